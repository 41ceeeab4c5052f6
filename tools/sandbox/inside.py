"""What runs inside the sandbox; standard library only, for nothing of the repository is there to import.

tools/sandbox/sandbox.py gives the text of this file to an interpreter of its own, and every process is a fork of that:

    warm          imports numpy and pandas once and forks for every episode; ends with the process that asks
    supervisor    process 1 of an episode's own namespaces; starts the two below, watches them, and ends what a step
                  leaves behind. It runs no program, and no program can signal it or read its memory
    interpreter   without rights and within limits; runs programs one after another and keeps their names
    command       the same for a shell command, once
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import linecache
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

HEAD, TAIL = 48 * 1024, 16 * 1024 - 64  # bytes kept of an output's beginning and end; between them stands a note
TICK = 0.02  # seconds between two looks at an episode's processes
HEADER = struct.Struct("!I")
HIDDEN = 2**62  # bytes: of a process that does not show how many it has
PAUSE = 4  # times what a look took, so that looks take at most a fifth of the time

# linux/sched.h, sys/mount.h, linux/prctl.h
NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
READ_ONLY, NO_SETUID, NO_DEVICES, NO_PROGRAMS, RECURSIVE, PRIVATE = 1, 2, 4, 8, 0x4000, 0x40000
DUMPABLE, SECCOMP, SUBREAPER, NO_NEW_PRIVILEGES = 4, 22, 36, 38
CAPABILITY_VERSION = 0x20080522

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
LIBC.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong]
Settings = dict[str, Any]  # tools/sandbox/sandbox.py, `settings`


def system(name: str, *arguments: Any) -> None:
    """Call a function of the C library. Raises OSError."""
    if getattr(LIBC, name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


# The warm interpreter


def main(settings: Settings) -> None:
    """Fork a supervisor for every socket that comes, until the process that asks has ended or closed its end."""
    sys.path += settings["packages"]  # -I, which keeps the account's own packages away, does not look at PYTHONPATH
    for name in settings["warm"]:
        importlib.import_module(name)
    gc.freeze()  # or each fork's first collection would copy what all of them share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    asker, control = settings["asker"], socket.socket(fileno=settings["control"])
    while asker not in readable(asker, control.fileno()):
        _, lines, *_ = socket.recv_fds(control, 1, 1)
        if not lines:
            return
        with socket.socket(fileno=lines[0]) as line:
            fork_episode(line, settings)


def fork_episode(line: socket.socket, settings: Settings) -> None:
    """Fork a supervisor that answers on `line`, and send a handle of it there."""
    own = os.open("/proc/self/ns/pid", os.O_RDONLY)
    if settings["namespaces"]:
        system("unshare", NEWPID)  # for the next child
    supervisor = fork(lambda: supervise(line, settings))
    if settings["namespaces"]:
        system("setns", own, NEWPID)
    os.close(own)
    with suppress(OSError):  # it has ended already: its end of the line says so
        handle = os.pidfd_open(supervisor)
        socket.send_fds(line, [b"+"], [handle])
        os.close(handle)


def readable(*files: int, seconds: float | None = None) -> set[int]:
    """Those that can be read or have ended, when there is one."""
    poller = select.poll()
    for file in files:
        poller.register(file, select.POLLIN)
    return {file for file, _ in poller.poll(None if seconds is None else max(1.0, seconds * 1000))}


def fork(body: Callable[[], None]) -> int:
    """Run `body` in a child; what it raises is said where its errors go. Returns the child's number."""
    child = os.fork()
    if child:
        return child
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        body()
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def keep_only(file: int) -> int:
    """Close every file but this and the standard ones; returns its number now."""
    os.dup2(file, 3)
    os.set_inheritable(3, False)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return 3


# The supervisor of an episode


def supervise(line: socket.socket, settings: Settings) -> None:
    """Answer what is asked on `line`, one step after another, until its other end is closed."""
    line = socket.socket(fileno=keep_only(line.detach()))
    try:
        scratch = seclude(settings) if settings["namespaces"] else tempfile.mkdtemp(prefix="sandbox-")
        os.chdir(scratch)
    except OSError as error:
        line.sendall(frame({"refused": str(error)}))
        return
    system("prctl", DUMPABLE, 0, None, 0, 0)  # no program reads this process
    system("prctl", SUBREAPER, 1, None, 0, 0)
    episode = Supervisor(line, settings)
    with suppress(ConnectionError):  # who asked does not wait for the answer
        line.sendall(READY)
        while question := receive(line):
            line.sendall(frame(episode.step(**question)))
            episode.bury()
            line.sendall(READY)
    episode.end_all()
    if not settings["namespaces"]:
        shutil.rmtree(scratch, ignore_errors=True)


def seclude(settings: Settings) -> str:
    """Give this process, the first of its namespace, mounts and a user namespace of its own. Raises OSError."""
    system("unshare", NEWNS | NEWIPC | NEWNET)
    system("mount", None, b"/", None, RECURSIVE | PRIVATE, None)
    before = os.open("/proc", os.O_DIRECTORY)
    write(before, "self/oom_score_adj", "1000")  # if the machine's memory ends, programs go first
    for place, size in settings["scratch"].items():
        options = f"size={size},nr_inodes=65536,mode=0777".encode()
        system("mount", b"tmpfs", place.encode(), b"tmpfs", NO_SETUID | NO_DEVICES, options)
    # Read-only, for root's programs are root to /proc/sys without any capability.
    system("mount", b"proc", b"/proc", b"proc", READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS, None)
    user, group = os.getuid(), os.getgid()
    system("unshare", NEWUSER)  # which counts its processes by itself, and owns none of the mounts
    write(before, "self/setgroups", "deny")
    write(before, "self/uid_map", f"1000 {user} 1")
    write(before, "self/gid_map", f"1000 {group} 1")
    os.close(before)
    return next(iter(settings["scratch"]))


def write(folder: int, path: str, text: str) -> None:
    file = os.open(path, os.O_WRONLY, dir_fd=folder)
    os.write(file, text.encode())
    os.close(file)


def frame(message: dict[str, Any]) -> bytes:
    """What goes over a line: the length of a JSON text, and the text."""
    text = json.dumps(message).encode()
    return HEADER.pack(len(text)) + text


READY = frame({})  # what a supervisor says before each question that it can take


def receive(line: socket.socket) -> dict[str, Any] | None:
    """The next message; None when the other end was closed."""
    (size,) = HEADER.unpack(exactly(line, HEADER.size) or bytes(HEADER.size))
    return json.loads(exactly(line, size) or b"null")


def exactly(line: socket.socket, size: int) -> bytes:
    """So many bytes; none when the line ends before."""
    data = bytearray()
    while len(data) < size:
        part = line.recv(size - len(data))
        if not part:
            return b""
        data += part
    return bytes(data)


class Output:
    """The beginning and the end of what comes out of a pipe; what is between them is counted and thrown away."""

    def __init__(self, file: int) -> None:
        self.file, self.size, self.head, self.tail = file, 0, bytearray(), bytearray()
        os.set_blocking(file, False)

    def read(self) -> bool:
        """Take what is there. False: there is nothing, or nothing more will come."""
        try:
            data = os.read(self.file, 65536)
        except BlockingIOError:
            return False
        room = HEAD - len(self.head)
        self.head += data[:room]
        self.tail = (self.tail + data[room:])[-TAIL:]
        self.size += len(data)
        return bool(data)

    def text(self) -> str:
        """At most 64 KiB of UTF-8; bytes that are none are question marks."""
        dropped = self.size - len(self.head) - len(self.tail)
        note = b"\n[... %d bytes ...]\n" % dropped if dropped else b""
        return (self.head + note + self.tail).decode(errors="replace").replace("\N{REPLACEMENT CHARACTER}", "?")


class Process(NamedTuple):
    """What the kernel says of one; memory in bytes, also what it shares with the one it was forked from."""

    number: int
    parent: int
    threads: int
    memory: int


def processes() -> list[Process]:
    """Those of this episode that run or stand still, without the supervisor."""
    found = [process for name in os.listdir("/proc") if name.isdigit() and (process := look(int(name)))]
    if os.getpid() == 1:
        return [process for process in found if process.number != 1]
    family = [os.getpid()]
    for number in family:
        family += [process.number for process in found if process.parent == number]
    return [process for process in found if process.number in family[1:]]


def look(number: int) -> Process | None:
    """The process; None when it has ended. Nothing here waits for a lock that the process may hold."""
    try:
        with open(f"/proc/{number}/status", encoding="utf-8", errors="replace") as file:
            facts = {name: values.split() for name, _, values in (row.partition(":") for row in file)}
    except (FileNotFoundError, ProcessLookupError):
        return None
    threads = int(facts["Threads"][0])
    memory = sum(int(facts[kind][0]) for kind in ("RssAnon", "RssShmem") if kind in facts) * 1024
    if facts["State"][0] == "Z":
        if threads < 2:
            return None
        memory = HIDDEN  # its first thread has ended, the others go on
    return Process(number, int(facts["PPid"][0]), threads, memory)


class Supervisor:
    """One episode: its interpreter, when there is one, and what a step started."""

    def __init__(self, line: socket.socket, settings: Settings) -> None:
        self.line, self.settings = line, settings
        self.interpreter, self.commands = 0, line  # its number, or 0; the socket it takes programs from
        self.spare = next(own.memory for own in [look(os.getpid())] if own)  # what every fork begins with
    def step(self, source: str, language: str, deadline: float) -> dict[str, Any]:
        """Run a program or a command, and end all it started. `fresh`: no earlier program's names were there."""
        (out, out_in), (done, done_in) = os.pipe(), os.pipe()
        output, fresh = Output(out), False
        if language == "python":
            fresh = self.hand_over(source, out_in, done_in)
            worker = self.interpreter
        else:
            worker = fork(lambda: command(source, out_in, self.settings))
        os.close(out_in)
        os.close(done_in)
        handle = os.pidfd_open(worker)
        status = self.watch(worker, handle, done if language == "python" else handle, output, deadline)
        self.end_all(keep=status in ("ok", "error"))
        while output.read():
            pass
        for file in (out, done, handle):
            os.close(file)
        return {"status": status, "output": output.text(), "fresh": fresh}

    def hand_over(self, source: str, *files: int) -> bool:
        """Give the interpreter a program and what it writes to; returns whether it is a new one."""
        text = os.memfd_create("program")
        os.write(text, source.encode(errors="surrogatepass"))
        os.lseek(text, 0, os.SEEK_SET)
        fresh = not self.offer(text, *files)
        if fresh:
            self.end_all()
            self.start_interpreter()
            self.offer(text, *files)
        os.close(text)
        return fresh

    def offer(self, *files: int) -> bool:
        """Let the interpreter go on, with a program. False: there is none, or it does not listen any more."""
        if not self.interpreter:
            return False
        try:
            os.kill(self.interpreter, signal.SIGCONT)
            socket.send_fds(self.commands, [b"+"], files)
        except OSError:
            return False
        return True

    def start_interpreter(self) -> None:
        self.commands, theirs = socket.socketpair()
        self.commands.setblocking(False)  # a program that does not listen stops nobody
        with theirs:
            self.interpreter = fork(lambda: interpret(theirs, self.settings))

    def watch(self, worker: int, handle: int, done: int, output: Output, deadline: float) -> str:
        """Read what it prints until it is done, or has had or done too much; returns how it ended."""
        begun = time.monotonic()
        end, next_look = begun + deadline, begun + TICK
        files = {self.line.fileno(), handle, done, output.file}
        while (now := time.monotonic()) < end:
            if now >= next_look:
                if excess := self.excess():
                    return excess
                next_look = time.monotonic() + max(TICK, PAUSE * (time.monotonic() - now))
            ready = readable(*files, seconds=min(end, next_look) - time.monotonic())
            if self.line.fileno() in ready:
                raise ConnectionError
            if output.file in ready and not output.read():
                files.remove(output.file)
            if done in ready:
                return ended(worker) if done == handle else REPORTS.get(os.read(done, 1), "crashed")
            if handle in ready:
                return "crashed"
        return "timeout"

    def excess(self) -> str:
        """What the episode has too much of: "processes" (with threads), "memory", or nothing."""
        running = processes()
        if sum(process.threads for process in running) > self.settings["processes"]:
            return "processes"
        own = sum(max(0, process.memory - self.spare) for process in running)
        return "memory" if own > self.settings["memory"] else ""

    def end_all(self, keep: bool = False) -> None:
        """Signal every process of the episode to end; the interpreter may be kept, standing still until its next program.

        None runs its program's next step after this. That they are gone takes them a while longer: `bury`.
        """
        tell_all(signal.SIGSTOP if keep else signal.SIGKILL)  # what stands still starts nothing
        if not keep:
            self.interpreter = 0
        told = {self.interpreter}
        while others := {process.number for process in processes()} - told:
            for number in others:
                tell(number, signal.SIGKILL)
            told |= others

    def bury(self) -> None:
        """Wait for those that were told to end."""
        while [process for process in processes() if process.number != self.interpreter]:
            self.reap()
            time.sleep(0.001)
        self.reap()

    def reap(self) -> None:
        """Take note of the children that have ended."""
        with suppress(ChildProcessError):
            while number := os.waitpid(-1, os.WNOHANG)[0]:
                if number == self.interpreter:
                    self.interpreter = 0


def tell_all(number: int) -> None:
    """Send a signal to every process of the episode; in a namespace the kernel does it at one moment."""
    if os.getpid() == 1:
        with suppress(ProcessLookupError):
            os.kill(-1, number)
    else:
        for process in processes():
            tell(process.number, number)


def tell(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)


def ended(worker: int) -> str:
    """The status of a command that has ended."""
    return "ok" if os.waitpid(worker, 0)[1] == 0 else "error"


# What the model wrote

REPORTS = {b"+": "ok", b"-": "error"}


def confine(settings: Settings) -> None:
    """Take this process's rights, for good: limits, no capabilities, no gain by exec, a filter of system calls."""
    os.setsid()
    with open("/proc/self/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    for name, value in {**settings["limits"], "AS": size + settings["memory"]}.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))
    system("prctl", NO_NEW_PRIVILEGES, 1, None, 0, 0)
    system("capset", (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)())
    steps = ctypes.create_string_buffer(settings["filter"])
    program = struct.pack("HxxxxxxP", len(settings["filter"]) // 8, ctypes.addressof(steps))
    system("prctl", SECCOMP, 2, program, 0, 0)
    system("prctl", DUMPABLE, 1, None, 0, 0)


def command(source: str, out: int, settings: Settings) -> NoReturn:
    """Become a shell that runs the command."""
    os.dup2(out, 1)
    os.dup2(out, 2)
    confine(settings)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execve("/bin/sh", ["sh", "-c", source.encode(errors="replace")], os.environ)


def interpret(commands: socket.socket, settings: Settings) -> None:
    """Run one program after another, in one namespace as a notebook's cells."""
    commands = socket.socket(fileno=keep_only(commands.detach()))
    confine(settings)
    me, names = os.getpid(), types.ModuleType("__main__")
    sys.modules["__main__"] = names
    for number in range(1, sys.maxsize):
        _, (text, out, done), *_ = socket.recv_fds(commands, 1, 3)
        with open(text, encoding="utf-8", errors="surrogatepass", newline="") as file:
            source = file.read()
        for standard in (1, 2):
            os.dup2(out, standard)
        os.close(out)
        sys.stdout, sys.stderr = (
            open(file, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False) for file in (1, 2)
        )
        report = execute(source, f"<program {number}>", names.__dict__)
        if os.getpid() != me:
            os._exit(0)  # a child that the program forked and forgot
        os.write(done, report)
        os.close(done)


def execute(source: str, name: str, names: dict[str, Any]) -> bytes:
    """Run a program; its traceback is part of what it prints. Returns the report of how it ended."""
    try:
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        exec(compile(source, name, "exec", dont_inherit=True), names)
        failed = False
    except SystemExit as request:
        failed = request.code not in (None, 0)
        if not isinstance(request.code, int | None):
            print(request.code, file=sys.stderr)
    except BaseException as error:
        failed = True
        traceback.print_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
    sys.stdout.flush()
    sys.stderr.flush()
    return b"-" if failed else b"+"
