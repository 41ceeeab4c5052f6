"""Process 1 of an episode: starts interpreter and commands, watches them, and ends what is left.

It runs no code of the model, reads no pickle from it, and never waits for it without a limit.
"""

import math
import os
import shutil
import signal
import socket
import tempfile
import time
from contextlib import suppress
from typing import Any

from tools.sandbox.inside.clock import LATE, Clock, times_of
from tools.sandbox.inside.frames import MORE, READY, frame, receive
from tools.sandbox.inside.kernel import (
    DUMPABLE,
    SUBREAPER,
    Process,
    Settings,
    fork,
    keep_only,
    look,
    numbers,
    processes,
    readable,
    seclude,
    system,
    tell,
    tell_all,
)
from tools.sandbox.inside.programs import DONE, FAILED, command, interpret

# Bytes kept of an output's beginning and end, between which stands a note: of standard output, and
# of standard error
PRINTED = (32 * 1024, 16 * 1024 - 64)
ERRORS = (8 * 1024, 8 * 1024 - 64)
DRAINS = 32  # reads that empty any pipe. A process that was stopped may still be writing
TICK = 0.05  # seconds between two looks at an episode's processes
PAUSE = 20  # times what a look took, so that looks take at most a twentieth of the time
STATUS = {DONE: "ok", FAILED: "error"}


def supervise(line: socket.socket, settings: Settings) -> None:
    """Run and answer the steps that arrive on `line` until its other end is closed."""
    line = socket.socket(fileno=keep_only(line.detach()))
    # Processor time is shared out among sessions, so among episodes, with however many processes
    os.setsid()
    socket.send_fds(line, [b"+"], [os.pidfd_open(os.getpid())])
    secluded = settings["namespaces"]
    try:
        scratch = seclude(settings) if secluded else tempfile.mkdtemp(prefix="sandbox-")
        os.chdir(scratch)
    except OSError as error:
        line.sendall(frame({"refused": str(error)}))
        return
    system("prctl", DUMPABLE, 0, None, 0, 0)  # no program reads this process
    system("prctl", SUBREAPER, 1, None, 0, 0)
    episode = Supervisor(line, settings)
    with suppress(ConnectionError):  # the caller no longer waits for the answer
        line.sendall(READY)
        while question := receive(line):
            line.sendall(frame(episode.step(**question)))
            episode.bury()
            line.sendall(READY)
    episode.end_all()
    if not secluded:
        shutil.rmtree(scratch, ignore_errors=True)


class Output:
    """The beginning and end of a pipe's output. Bytes between them are counted and dropped."""

    def __init__(self, file: int, first: int, last: int) -> None:
        """first, last: numbers of bytes to keep."""
        self.file = file
        self.first = first
        self.last = last
        self.size = 0
        self.head = bytearray()
        self.tail = bytearray()
        os.set_blocking(file, False)

    def read(self) -> bool:
        """Read what is there and return whether more may come."""
        try:
            data = os.read(self.file, 65536)
        except BlockingIOError:
            return False
        room = self.first - len(self.head)
        self.head += data[:room]
        self.tail = (self.tail + data[room:])[-self.last :]
        self.size += len(data)
        return bool(data)

    def text(self) -> str:
        """Return the text. Bytes that are not UTF-8 become question marks."""
        dropped = self.size - len(self.head) - len(self.tail)
        note = b"\n[... %d bytes ...]\n" % dropped if dropped else b""
        text = (self.head + note + self.tail).decode(errors="replace")
        return text.replace("\N{REPLACEMENT CHARACTER}", "?")


class Supervisor:
    """One episode: its interpreter, if any, and what a step started."""

    def __init__(self, line: socket.socket, settings: Settings) -> None:
        self.line = line
        self.settings = settings
        self.interpreter = 0  # its number, when there is one
        # This end of the line over which the interpreter takes programs
        self.commands: socket.socket
        own = look(os.getpid())
        self.spare = own.memory if own else 0  # bytes that every fork begins with

    def step(self, source: str, language: str, deadline: float) -> dict[str, Any]:
        """Run a program or command, end all it started, and return the report."""
        out, out_in = os.pipe()
        err, err_in = os.pipe()
        done, done_in = os.pipe()
        printed = Output(out, *PRINTED)
        errors = Output(err, *ERRORS)
        if language == "python":
            self.hand_over(source, out_in, err_in, done_in)
            worker = self.interpreter
        else:
            worker = fork(lambda: command(source, out_in, err_in, self.settings))
        for file in (out_in, err_in, done_in):
            os.close(file)
        handle = os.pidfd_open(worker)
        reporting = done if language == "python" else handle
        status = self.watch(worker, handle, reporting, [printed, errors], deadline)
        self.end_all(keep=status in ("ok", "error"))
        for output in (printed, errors):
            for _ in range(DRAINS):
                if not output.read():
                    break
        for file in (out, err, done, handle):
            os.close(file)
        return {"status": status, "printed": printed.text(), "errors": errors.text()}

    def hand_over(self, source: str, *files: int) -> None:
        """Give the interpreter, or a new one, a program and pipes."""
        text = os.memfd_create("program")
        os.write(text, source.encode(errors="surrogatepass"))
        os.lseek(text, 0, os.SEEK_SET)
        if not self.offer(text, *files):
            self.end_all()
            self.commands, theirs = socket.socketpair()
            # A program that does not listen must not block this process
            self.commands.setblocking(False)
            with theirs:
                self.interpreter = fork(lambda: interpret(theirs, self.settings))
            self.offer(text, *files)
        os.close(text)

    def offer(self, *files: int) -> bool:
        """Return whether an interpreter exists and took the program."""
        if not self.interpreter:
            return False
        try:
            os.kill(self.interpreter, signal.SIGCONT)
            socket.send_fds(self.commands, [b"+"], files)
        except OSError:
            return False
        return True

    def watch(
        self, worker: int, handle: int, done: int, outputs: list[Output], deadline: float
    ) -> str:
        """Read a worker's output until it ends or exceeds a limit, and return how it ended."""
        # Without namespaces a program can stop this process.
        tolerated = LATE if self.settings["namespaces"] else math.inf
        clock = Clock(deadline, lambda: times_of(numbers), tolerated)
        next_look = clock.begun + TICK
        files = {self.line.fileno(), handle, done, *(output.file for output in outputs)}
        reported = 1  # deadlines that went by, as far as the caller knows
        while True:
            now = time.monotonic()
            if now >= next_look:
                if excess := self.excess(processes()):
                    return excess
                next_look = time.monotonic() + max(TICK, PAUSE * (time.monotonic() - now))
            due = clock.begun + reported * deadline
            asked = max(0.0, min(clock.end, next_look, due) - time.monotonic())
            ready = readable(*files, seconds=asked)
            clock.beat(asked)
            if self.line.fileno() in ready:
                raise ConnectionError
            for output in outputs:
                if output.file in ready and not output.read():
                    files.remove(output.file)
            if done in ready and done == handle:
                return "ok" if os.waitpid(worker, 0)[1] == 0 else "error"
            if done in ready:
                return STATUS.get(os.read(done, 1), "crashed")
            if handle in ready:
                return "crashed"
            if time.monotonic() >= clock.end and (verdict := clock.verdict()):
                return verdict
            if time.monotonic() >= due:  # or the caller takes this process for a stuck one
                self.line.sendall(MORE)
                reported += 1

    def excess(self, running: list[Process]) -> str:
        """Return what the episode has too much of: "processes" (with threads), "memory", or ""."""
        # The numbers of processes that have ended are taken until these are reaped
        held = max(sum(process.threads for process in running), len(numbers()))
        if held > self.settings["processes"]:
            return "processes"
        own = sum(max(0, process.memory - self.spare) for process in running)
        return "memory" if own > self.settings["memory"] else ""

    def end_all(self, keep: bool = False) -> None:
        """Kill every process but a kept interpreter, which is stopped. `bury` waits for them."""
        tell_all(signal.SIGSTOP if keep else signal.SIGKILL)  # what stands still starts nothing
        if not keep:
            self.interpreter = 0
        ending = {self.interpreter}
        while others := {process.number for process in processes()} - ending:
            for number in others:
                tell(number, signal.SIGKILL)
            ending |= others

    def bury(self) -> None:
        """Wait until the processes that were signalled have ended."""
        while [process for process in processes() if process.number != self.interpreter]:
            self.reap()
            time.sleep(0.001)
        self.reap()

    def reap(self) -> None:
        """Note which children have ended."""
        with suppress(ChildProcessError):
            while number := os.waitpid(-1, os.WNOHANG)[0]:
                if number == self.interpreter:
                    self.interpreter = 0
