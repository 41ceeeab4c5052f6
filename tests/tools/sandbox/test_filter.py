"""The filter of system calls, run as the kernel runs it."""

import struct

import pytest

from tools.sandbox.errors import SandboxError
from tools.sandbox.seccomp import (
    ALLOW,
    CLONE,
    CLONE3,
    MACHINES,
    OWN,
    REFUSE,
    REFUSED,
    UNKNOWN,
    X32,
    filter_bytes,
)

NEW_USER, SIGNAL = 0x10000000, 17
ORDINARY = (0, 1, 3, 9, 12, 59, 60, 63, 64, 93, 222, 257, 281, 434)  # none is refused on either


def verdict(program: bytes, machine: int, number: int, argument: int = 0) -> int:
    """What the filter answers: classic BPF, of which it uses five instructions."""
    data = struct.pack("<IIQQ", number, machine, 0, argument)
    place = value = 0
    while True:
        code, yes, no, constant = struct.unpack_from("<HBBI", program, place * 8)
        place += 1
        if code == 0x06:
            return constant
        if code == 0x20:
            (value,) = struct.unpack_from("<I", data, constant)
        else:
            holds = {0x15: value == constant, 0x35: value >= constant, 0x45: value & constant}
            place += yes if holds[code] else no


@pytest.mark.parametrize(("column", "name"), list(enumerate(MACHINES)))
def test_every_listed_call_is_refused_and_an_ordinary_one_is_not(column, name):
    program, machine = filter_bytes(name), MACHINES[name]
    for numbers in REFUSED.values():
        assert verdict(program, machine, numbers[column % len(numbers)]) == REFUSE
    listed = {numbers[column % len(numbers)] for numbers in (*REFUSED.values(), *OWN.values())}
    for number in set(ORDINARY) - listed:
        assert verdict(program, machine, number) == ALLOW


@pytest.mark.parametrize(("column", "name"), list(enumerate(MACHINES)))
def test_a_fork_may_have_no_namespace_of_its_own(column, name):
    program, machine = filter_bytes(name), MACHINES[name]
    assert verdict(program, machine, CLONE[column], SIGNAL) == ALLOW
    assert verdict(program, machine, CLONE[column], SIGNAL | NEW_USER) == REFUSE
    assert verdict(program, machine, CLONE3) == UNKNOWN


@pytest.mark.parametrize(("column", "name"), list(enumerate(MACHINES)))
def test_a_process_sets_limits_for_itself_only(column, name):
    program, machine = filter_bytes(name), MACHINES[name]
    for numbers in OWN.values():
        assert verdict(program, machine, numbers[column], 0) == ALLOW
        assert verdict(program, machine, numbers[column], 1) == REFUSE


def test_the_calls_of_another_machine_are_unknown():
    program = filter_bytes("x86_64")
    assert verdict(program, 0x40000003, 0) == UNKNOWN  # a 32-bit program's
    assert verdict(program, MACHINES["x86_64"], X32 + 1) == UNKNOWN


def test_a_machine_whose_calls_are_not_known_has_no_sandbox():
    with pytest.raises(SandboxError, match="riscv64"):
        filter_bytes("riscv64")
