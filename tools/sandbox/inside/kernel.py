"""System calls of the processes inside: namespaces, limits, the filter, running processes."""

import ctypes
import os
import resource
import select
import signal
import struct
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

# linux/sched.h, sys/mount.h, linux/prctl.h
NEWNS = 0x20000
NEWIPC = 0x08000000
NEWUSER = 0x10000000
NEWPID = 0x20000000
NEWNET = 0x40000000
READ_ONLY = 1
NO_SETUID = 2
NO_DEVICES = 4
NO_PROGRAMS = 8
REMOUNT = 0x20
BIND = 0x1000
RECURSIVE = 0x4000
PRIVATE = 0x40000
DUMPABLE = 4
SECCOMP = 22
SUBREAPER = 36
NO_NEW_PRIVILEGES = 38
CAPABILITY_VERSION = 0x20080522

LIBC = ctypes.CDLL(None, use_errno=True)
TEXT = ctypes.c_char_p
WORD = ctypes.c_ulong
LIBC.mount.argtypes = [TEXT, TEXT, TEXT, WORD, TEXT]
LIBC.prctl.argtypes = [ctypes.c_int, WORD, ctypes.c_void_p, WORD, WORD]
NICE = 5  # of programs, beside their supervisor's 0
# Times as much address space as memory, because shared memory may be left out of the count
SPARSE = 4
Settings = dict[str, Any]  # of `Sandbox._start`


def system(name: str, *arguments: Any) -> None:
    """Call a function of the C library. Raises OSError."""
    if getattr(LIBC, name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def readable(*files: int, seconds: float | None = None) -> set[int]:
    """Return the files that can be read or have ended, as soon as there is one."""
    poller = select.poll()
    for file in files:
        poller.register(file, select.POLLIN)
    return {file for file, _ in poller.poll(None if seconds is None else max(1.0, seconds * 1000))}


def fork(body: Callable[[], None]) -> int:
    """Run `body` in a child and return its number. The child's stderr gets its exception."""
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
    """Close every file but this and the standard ones, and return its new number."""
    os.dup2(file, 3)
    os.set_inheritable(3, False)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    return 3


def seclude(settings: Settings) -> str:
    """Give this process its own mounts, network and user namespace. Raises OSError."""
    system("unshare", NEWNS | NEWIPC | NEWNET)
    system("mount", None, b"/", None, RECURSIVE | PRIVATE, None)
    before = os.open("/proc", os.O_DIRECTORY)
    write(before, "self/oom_score_adj", "1000")  # if the machine's memory ends, programs go first
    # The owner of a device could change its mode, and root owns this machine's
    held = REMOUNT | BIND | READ_ONLY | NO_SETUID | NO_PROGRAMS
    for device in settings["devices"]:
        system("mount", None, device.encode(), None, held, None)
    for place, size in settings["scratch"].items():
        options = f"size={size},nr_inodes=8192,mode=0777".encode()
        system("mount", b"tmpfs", place.encode(), b"tmpfs", NO_SETUID | NO_DEVICES, options)
    # Read-only, because root's programs may write /proc/sys without any capability.
    held = READ_ONLY | NO_SETUID | NO_DEVICES | NO_PROGRAMS
    system("mount", b"proc", b"/proc", b"proc", held, None)
    user = os.getuid()
    group = os.getgid()
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


def confine(settings: Settings) -> None:
    """Give up rights for good: set limits, drop capabilities, forbid gains by exec, filter calls."""
    os.setpgid(0, 0)
    os.nice(NICE)
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


class Process(NamedTuple):
    """A process as the kernel sees it. Memory in bytes, with what it shares since the fork."""

    number: int
    parent: int
    threads: int
    memory: int


def processes() -> list[Process]:
    """Return the running or stopped processes of this episode, without the supervisor."""
    looks = [look(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    found = [process for process in looks if process]
    if os.getpid() == 1:
        return [process for process in found if process.number != 1]
    family: list[int] = []
    parents = [os.getpid()]
    while parents:
        parents = [process.number for process in found if process.parent in parents]
        family += parents
    return [process for process in found if process.number in family]


def numbers() -> list[int]:
    """Return the numbers of this episode's processes without the supervisor.

    Those that wait to be reaped are included, because their processor time still counts.
    """
    if os.getpid() == 1:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]
    return [process.number for process in processes()]


def look(number: int) -> Process | None:
    """Return the process, or None if it has ended. Takes no lock that the process may hold."""
    try:
        first = status(f"{number}")
        facts = first
        # Its first thread has ended. The threads that go on hold the memory
        if first["State"][0] == "Z":
            threads = [
                status(f"{number}/task/{thread}") for thread in os.listdir(f"/proc/{number}/task")
            ]
            facts = next((thread for thread in threads if thread["State"][0] != "Z"), {})
    except (FileNotFoundError, ProcessLookupError):
        return None
    if not facts:
        return None
    anonymous, shared, size = (
        int(facts.get(kind, "0")[0]) * 1024 for kind in ("RssAnon", "RssShmem", "VmSize")
    )
    memory = max(anonymous + shared, size // SPARSE)
    return Process(number, int(first["PPid"][0]), int(first["Threads"][0]), memory)


def status(process: str) -> dict[str, list[str]]:
    """Return /proc/N/status. Raises FileNotFoundError or ProcessLookupError: it has ended."""
    with open(f"/proc/{process}/status", encoding="utf-8", errors="replace") as file:
        return {name: values.split() for name, _, values in (row.partition(":") for row in file)}


def tell_all(number: int) -> None:
    """Send a signal to every process of the episode. The kernel reaches a whole namespace at once."""
    if os.getpid() == 1:
        with suppress(ProcessLookupError):
            os.kill(-1, number)
    else:
        for process in processes():
            tell(process.number, number)


def tell(process: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)
