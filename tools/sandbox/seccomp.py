"""The system calls a program may not make, as the filter the kernel runs.

`filter_bytes()` is classic BPF (seccomp(2)): a refused call fails with EPERM, clone3 with ENOSYS, so that the C library
takes clone, whose flags can be read. A program has no capabilities, so calls that need one are not listed; these are
what is left: names that neighbours share (sockets, keys), memory no limit counts, other processes' memory, namespaces
of one's own, where it would have capabilities again, and large interfaces that nothing here needs.
"""

from __future__ import annotations

import platform
import struct

from tools.sandbox.errors import SandboxError

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*
REFUSED: dict[str, tuple[int, ...]] = {  # numbers on x86_64 and on aarch64, or the one number of both
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "inotify_init": (253, 26),  # aarch64 has inotify_init1 only
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "memfd_create": (319, 279),
    "memfd_secret": (447,),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438,),
    "kcmp": (312, 272),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "open_tree": (428,),
    "move_mount": (429,),
    "fsopen": (430,),
    "fspick": (433,),
    "mount_setattr": (442,),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "setsid": (112, 157),  # for a session has a share of the processors, and an episode is to have one
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425,),
    "personality": (135, 92),
    "syslog": (103, 116),
}
OWN = {  # whose first argument, a process, must be 0, the caller: the supervisor is of the same user
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
}
CLONE, CLONE3 = (56, 220), 435
NEW_NAMESPACES = 0x7E020000  # CLONE_NEWUSER and the other namespaces
X32 = 0x40000000  # from here on, x86_64 numbers its calls a second time

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, MACHINE, FIRST_ARGUMENT = 0, 4, 16  # where they are in struct seccomp_data
ALLOW, REFUSE, UNKNOWN = 0x7FFF0000, 0x00050001, 0x00050026  # or fail with EPERM, or with ENOSYS


def filter_bytes(machine: str = platform.machine()) -> bytes:
    """The filter for programs of this machine. Raises SandboxError: its system calls' numbers are not known here."""
    if machine not in MACHINES:
        raise SandboxError(f"the sandbox knows the system calls of {', '.join(MACHINES)}, not those of {machine}")
    column = list(MACHINES).index(machine)
    looks = [
        (LOAD, MACHINE, "", ""),
        (EQUAL, MACHINES[machine], "", "unknown"),
        (LOAD, NUMBER, "", ""),
        (AT_LEAST, X32, "unknown", ""),
        (EQUAL, CLONE3, "unknown", ""),
        (EQUAL, CLONE[column], "flags", ""),
        *((EQUAL, numbers[column % len(numbers)], "refuse", "") for numbers in REFUSED.values()),
        *((EQUAL, numbers[column], "process", "") for numbers in OWN.values()),
        (RETURN, ALLOW, "", ""),
    ]
    flags = [(LOAD, FIRST_ARGUMENT, "", ""), (ANY_BIT, NEW_NAMESPACES, "refuse", ""), (RETURN, ALLOW, "", "")]
    process = [(LOAD, FIRST_ARGUMENT, "", ""), (EQUAL, 0, "", "refuse"), (RETURN, ALLOW, "", "")]
    parts = {
        "flags": flags,
        "process": process,
        "refuse": [(RETURN, REFUSE, "", "")],
        "unknown": [(RETURN, UNKNOWN, "", "")],
    }
    places, steps = {}, looks
    for name, part in parts.items():
        places[name] = len(steps)
        steps = steps + part
    return assemble(steps, places)


def assemble(steps: list[tuple[int, int, str, str]], places: dict[str, int]) -> bytes:
    """The instructions: code, value, and where to go when it holds and when not, "" being the next step."""

    def jump(here: int, name: str) -> int:
        return places[name] - here - 1 if name else 0

    return b"".join(
        struct.pack("HBBI", code, jump(here, yes), jump(here, no), value)
        for here, (code, value, yes, no) in enumerate(steps)
    )
