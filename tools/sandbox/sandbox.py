"""Runs programs that a model wrote, each episode isolated from everything else (docs/safety.md).

sandbox = Sandbox(data=["data/ehr/tables"])            # read-only inside, at sandbox.paths[...]
run = await sandbox.run("print(1 + 1)", "task-7")      # Run(status="ok", printed="2\\n", ...)
await sandbox.end("task-7")
await sandbox.close()
"""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from common.settings import load_settings
from tools.sandbox import mounts
from tools.sandbox.errors import MachineTooSlowError, SandboxError
from tools.sandbox.inside.clock import MOST
from tools.sandbox.inside.frames import HEADER, frame
from tools.sandbox.seccomp import filter_bytes
from tools.sandbox.settings import SandboxSettings

LOG = logging.getLogger(__name__)
UNPROTECTED = (
    "SANDBOX=process: programs of the model run with this account's rights; "
    "they can read its files and keys, write and delete them, and signal its "
    "processes. Limits, deadline and the ban on sockets hold, nothing else does."
)
# Seconds after the deadline in which the supervisor may still answer, before its episode is ended
GRACE = 0.4
# Share of the time without an answer. A supervisor held up by the machine for so long is excused
SHARE = 0.25
START = 60.0  # seconds until a sandbox that does not start is given up
GIB = 2**30
PROCESSES = 64
EPISODES = 128
# What one process may have (setrlimit(2)). NPROC counts all processes and threads of an episode,
# except root's: the supervisor counts these, and memory, because AS would be one process's.
LIMITS = {
    "NPROC": PROCESSES,
    "NOFILE": 128,
    "FSIZE": 2**26,
    # Byte: with 0 a program that this machine sends cores to would still be started
    "CORE": 1,
    "MEMLOCK": 0,
    "MSGQUEUE": 0,
    "SIGPENDING": 256,
    "RTPRIO": 0,
    "NICE": 0,
}
# Bytes that an episode may write, in memory, by place
SCRATCH = {
    "/scratch": 2**26,
    "/dev/shm": 2**24,
}
KILLED = (
    "the sandbox of an episode was killed from outside, as the kernel does when memory runs out; "
    "run fewer episodes at once (--concurrency), or nothing beside them"
)
NOT_READY = (
    f"a sandbox was not ready for a program within {START:g} s; run fewer episodes at once "
    "(--concurrency), or nothing beside them"
)
WARM = ("numpy", "pandas")  # imported before the first program

Status = Literal["ok", "error", "timeout", "memory", "processes", "crashed"]


@dataclass(frozen=True)
class Run:
    """How a program or command ended, and what it wrote.

    status: ok, error (a traceback or exit code), timeout, memory or processes (too much in the
    whole episode), crashed (the interpreter ended or closed its reporting line). After the last
    four the names that programs defined are gone. printed: stdout, at most 48 KiB of UTF-8 with its
    beginning and end. errors: stderr likewise, at most 16 KiB. seconds: until the answer.
    """

    status: Status
    printed: str
    seconds: float
    errors: str = ""

    @property
    def output(self) -> str:
        """All that it wrote, standard error last."""
        return self.printed + self.errors


class Episode:
    """The line to an episode's supervisor, once it has one."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.line: socket.socket | None = None
        self.handle = -1
        self.hung_up = False

    async def open(self, line: socket.socket) -> None:
        """Wait for the supervisor at the other end. Raises EOFError if it has ended."""
        self.line = line
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(line, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(line)
        _, files, *_ = socket.recv_fds(line, 1, 1)
        if not files:
            raise EOFError
        self.handle = files[0]

    async def ask(self, question: dict[str, Any], deadline: float) -> Run:
        """Return the answer, or end the episode. Raises SandboxError, MachineTooSlowError."""
        assert self.line
        begun = time.monotonic()
        answer = dict[str, Any](status="crashed", printed="")
        ready = None
        try:
            async with asyncio.timeout(START):
                ready = await receive(self.line)
            if ready:
                raise SandboxError(f"no sandbox for programs: {ready['refused']}; {mounts.HELP}")
            begun = time.monotonic()
            async with asyncio.timeout(deadline + GRACE):
                await asyncio.get_running_loop().sock_sendall(self.line, frame(question))
            answer = await self._answer(deadline)
            if answer["status"] == "slow":
                raise too_slow(deadline)
        except TimeoutError:
            self.end(stuck=True)
            if ready is None:
                raise SandboxError(NOT_READY) from None
            answer["status"] = "timeout"
        except (OSError, EOFError):
            self.end()
            if not self.hung_up:
                raise SandboxError(KILLED) from None
        except BaseException as error:
            self.end(stuck=isinstance(error, MachineTooSlowError))
            raise
        return Run(seconds=time.monotonic() - begun, **answer)

    async def _answer(self, deadline: float) -> dict[str, Any]:
        """Wait as long as is needed. Raises TimeoutError, MachineTooSlowError, EOFError."""
        assert self.line
        patience = deadline + GRACE
        reading = asyncio.create_task(receive(self.line))
        try:
            for _ in range(MOST):
                begun = time.monotonic()
                waited = waiting_time(self.handle)
                if (await asyncio.wait({reading}, timeout=patience))[0]:
                    answer = reading.result()
                    if "more" not in answer:
                        return answer
                    reading = asyncio.create_task(receive(self.line))
                    continue
                late = time.monotonic() - begun - patience
                lost = max(late, waiting_time(self.handle) - waited)
                if lost < SHARE * patience:
                    raise TimeoutError
            raise too_slow(deadline)
        finally:
            # It must be off the loop before the line is closed: the next line may have its number.
            reading.cancel()
            await asyncio.wait({reading})

    def end(self, stuck: bool = False) -> None:
        """Close the line, which ends the supervisor and its episode. A stuck one is killed."""
        if self.line:
            self.line.close()
            self.line = None
        if self.handle >= 0:
            if stuck:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self.handle, signal.SIGKILL)
            os.close(self.handle)
            self.handle = -1

    def hang_up(self) -> None:
        """End the episode, even while a program runs. Its `ask` then sees the line end."""
        self.hung_up = True
        if self.line and self.lock.locked():
            self.line.shutdown(socket.SHUT_RDWR)
        else:
            self.end()


class Sandbox:
    """Episodes of programs, any number at once.

    One more than EPISODES ends the episode that has been idle longest, whose next program is refused.
    memory: bytes an episode may have beyond the warm interpreter's.
    """

    def __init__(self, data: Iterable[str | Path] = ()) -> None:
        """Check the files to read. The first program starts the sandbox. Raises SandboxError."""
        settings = load_settings().of(SandboxSettings)
        self.protected = settings.sandbox == "bubblewrap"
        self.deadline = settings.sandbox_seconds
        self.paths = mounts.data_paths(data)
        if not self.protected:
            LOG.warning(UNPROTECTED)
            self.paths = {path: str(path) for path in self.paths}
        self.memory = int(settings.sandbox_memory * GIB)
        self._episodes: dict[str, Episode] = {}
        self._displaced: set[str] = set()  # ended before their time, to make room
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._starting = threading.Lock()

    @property
    def idle(self) -> bool:
        """Whether an interpreter is kept and no episode."""
        return self._process is not None and not self._episodes

    async def run(
        self,
        code: str,
        episode: str,
        language: Literal["python", "sh"] = "python",
        deadline: float | None = None,
    ) -> Run:
        """Run a program or shell command in this episode, which the first call creates.

        deadline: seconds it may take (default: SANDBOX_SECONDS). Raises SandboxError if no sandbox
        can be had here, or the episode was ended to make room.
        """
        held = self._hold(episode)
        deadline = deadline or self.deadline
        async with held.lock:
            if not held.line:
                await self._open(held)
            question = {"source": code, "language": language, "deadline": deadline}
            return await held.ask(question, deadline)

    async def end(self, episode: str) -> None:
        """End an episode with its processes and files. Its running program counts as crashed."""
        self._displaced.discard(episode)
        if held := self._episodes.pop(episode, None):
            held.hang_up()

    async def close(self) -> None:
        """Close all episodes and the sandbox. A further program would start it again."""
        for episode in [*self._episodes, *self._displaced]:
            await self.end(episode)
        process = self._process
        self._process = None
        if process:
            self._control.close()  # which ends it
            try:
                await asyncio.to_thread(process.wait, 5)
            except subprocess.TimeoutExpired:
                process.kill()
                await asyncio.to_thread(process.wait)

    def _hold(self, name: str) -> Episode:
        """Return the episode, and end idle ones beyond the limit. Raises SandboxError: it was one."""
        if self._owner != os.getpid():  # a forked child must not use its parent's episodes
            self._episodes = {}
            self._displaced = set()
            self._process = None
            self._owner = os.getpid()
        if name in self._displaced:
            raise SandboxError(
                f"more than {EPISODES} episodes of programs ran at once, and this one lost its names "
                "and files to make room; run fewer at once (--concurrency)"
            )
        held = self._episodes.pop(name, None) or Episode()
        idle = [name for name, other in self._episodes.items() if not other.lock.locked()]
        for other in idle[: max(0, len(self._episodes) + 1 - EPISODES)]:
            self._episodes.pop(other).hang_up()
            self._displaced.add(other)
        self._episodes[name] = held
        return held

    async def _open(self, held: Episode) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs, self._starting:
                self._start()
                socket.send_fds(self._control, [b"+"], [theirs.fileno()])
            async with asyncio.timeout(START):
                await held.open(ours)
        except (OSError, EOFError, TimeoutError) as error:
            held.end()
            last_words = ""
            if self._process:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(1)
                self._errors.seek(0)
                said = self._errors.read().decode(errors="replace")
                last_words = said.strip().rpartition("\n")[2]
            raise SandboxError(
                f"no sandbox for programs: {last_words or error!r}; {mounts.HELP}"
            ) from None
        except BaseException:
            held.end()
            raise

    def _start(self) -> None:
        if self._process and self._process.poll() is None:
            return
        line, environment = mounts.protected(self.paths) if self.protected else mounts.unprotected()
        self._control, theirs = socket.socketpair()
        asker = os.pidfd_open(os.getpid())
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (it is read when the process fails)
        self._process = subprocess.Popen(
            line,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=(theirs.fileno(), asker),
            env=environment,
            process_group=0,  # Ctrl-C at the terminal must not reach it
        )
        limits = dict(LIMITS)
        if not self.protected:
            del limits["NPROC"]  # outside a user namespace all of the account's would count
        settings = {
            "namespaces": self.protected,
            "warm": WARM,
            "scratch": SCRATCH,
            "devices": mounts.DEVICES,
            "memory": self.memory,
            "processes": PROCESSES,
            "limits": limits,
            "filter": filter_bytes(),
            "packages": [mounts.PACKAGES] if self.protected else [],
            "control": theirs.fileno(),
            "asker": asker,
        }
        with theirs, self._process.stdin as program:  # type: ignore[union-attr]
            program.write(mounts.program(settings))
        os.close(asker)


async def probe() -> None:
    """Run one program. Raises SandboxError if this machine has no sandbox, or it does not work."""
    sandbox = Sandbox()
    try:
        run = await sandbox.run("print(1)", "probe")
    finally:
        await sandbox.close()
    if run.printed != "1\n":
        raise SandboxError(
            f"the sandbox does not work: `print(1)` ended as {run.status!r} and printed "
            f"{run.output[-200:]!r}; look at SANDBOX_MEMORY and SANDBOX_SECONDS; {mounts.HELP}"
        )


def too_slow(deadline: float) -> MachineTooSlowError:
    return MachineTooSlowError(
        f"a program's {deadline:g} s went by {MOST} times while this machine kept it "
        "from running: its processes waited for a processor; run fewer episodes at once "
        "(--concurrency), or nothing beside them"
    )


async def receive(line: socket.socket) -> dict[str, Any]:
    """Return the next message of a supervisor. Raises EOFError if it has ended."""
    (size,) = HEADER.unpack(await exactly(line, HEADER.size))
    return json.loads(await exactly(line, size))


async def exactly(line: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = await asyncio.get_running_loop().sock_recv(line, size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def waiting_time(handle: int) -> float:
    """Return how long the process of a handle has waited for a processor, 0 if it has ended."""
    with suppress(OSError):
        facts = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii")
        number = facts.partition("\nPid:")[2].split()[0]
        return int(Path(f"/proc/{number}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    return 0.0
