"""Builds the seccomp filter of forbidden system calls, as classic BPF (seccomp(2)).

A refused call fails with EPERM. clone3 fails with ENOSYS, so that libc falls back to clone, whose
flags the filter can read. Calls that need a capability are not listed: programs have none.
"""

import platform
import struct

from common.toml import table_beside
from tools.sandbox.errors import SandboxError

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*
_CALLS = table_beside(__file__)
# By name, numbers on x86_64 and on aarch64, or the one of both
REFUSED: dict[str, list[int]] = _CALLS["refused"]
OWN: dict[str, list[int]] = _CALLS["own"]  # calls whose first argument, a process, must be 0
CLONE = (56, 220)
CLONE3 = 435
NEW_NAMESPACES = 0x7E020000  # CLONE_NEWUSER and the other namespaces
X32 = 0x40000000  # from here on, x86_64 numbers its calls a second time

LOAD = 0x20
EQUAL = 0x15
AT_LEAST = 0x35
ANY_BIT = 0x45
RETURN = 0x06
# Offsets in struct seccomp_data
NUMBER = 0
MACHINE = 4
FIRST_ARGUMENT = 16
# Allow the call, fail with EPERM, or fail with ENOSYS
ALLOW = 0x7FFF0000
REFUSE = 0x00050001
UNKNOWN = 0x00050026


def filter_bytes(machine: str = platform.machine()) -> bytes:
    """Return the filter for this machine. Raises SandboxError if its system calls are not known."""
    if machine not in MACHINES:
        raise SandboxError(
            f"the sandbox knows the system calls of {', '.join(MACHINES)}, not those of {machine}"
        )
    column = list(MACHINES).index(machine)
    # Code, value, and where to jump if it holds and if not: "" is the next step
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
    flags = [
        (LOAD, FIRST_ARGUMENT, "", ""),
        (ANY_BIT, NEW_NAMESPACES, "refuse", ""),
        (RETURN, ALLOW, "", ""),
    ]
    process = [(LOAD, FIRST_ARGUMENT, "", ""), (EQUAL, 0, "", "refuse"), (RETURN, ALLOW, "", "")]
    parts = {
        "flags": flags,
        "process": process,
        "refuse": [(RETURN, REFUSE, "", "")],
        "unknown": [(RETURN, UNKNOWN, "", "")],
    }
    places = {}
    steps = looks
    for name, part in parts.items():
        places[name] = len(steps)
        steps = steps + part
    program = b""
    for following, (code, value, yes, no) in enumerate(steps, 1):
        if_true = places[yes] - following if yes else 0
        if_false = places[no] - following if no else 0
        program += struct.pack("HBBI", code, if_true, if_false, value)
    return program
