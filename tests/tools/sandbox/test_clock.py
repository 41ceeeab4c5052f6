"""A program's time is the policy's, unless the machine is shown to have kept it from running."""

import os
import subprocess
import sys

import pytest

from tests.corpora import cases_of
from tools.sandbox.inside.clock import Clock, Times, times_of


class Machine:
    """What a clock reads, one tick of 50 ms after another."""

    def __init__(self, deadline: float = 1.0) -> None:
        self.time = self.own = 0.0
        self.used = self.waited = 7.0  # of earlier programs of the episode
        self.clock = Clock(
            deadline,
            lambda: Times(self.used, {1: self.waited, 2: 0.0}),
            now=lambda: self.time,
            own=lambda: self.own,
        )

    def verdict_of(self, **shares: float) -> tuple[str, float]:
        """How a program ends and when, whose processes use and wait for so much of the time."""
        while self.time < 10:
            self.time += 0.05
            self.used += 0.05 * shares.get("used", 0.0)
            self.waited += 0.05 * shares.get("waited", 0.0)
            self.clock.beat(0.05)
            if self.time >= self.clock.end and (verdict := self.clock.verdict()):
                return verdict, round(self.time, 2)
        return "", self.time


@pytest.mark.parametrize(
    ("shares", "verdict", "most"),
    [
        ({"used": 1.0}, "timeout", 1.1),
        ({}, "timeout", 1.1),  # it sleeps, or waits for a pipe
        ({"used": 2.0, "waited": 0.95}, "timeout", 1.1),  # a crowd of its own on two processors
        ({"used": 0.5, "waited": 0.5}, "timeout", 2.1),  # it had its second, later
        ({"used": 0.1, "waited": 0.9}, "slow", 3.1),
    ],
)
def test_only_what_the_machine_took_does_not_count(shares, verdict, most):
    ended, after = Machine().verdict_of(**shares)
    assert ended == verdict
    assert most - 0.2 <= after <= most


def test_ticks_that_the_supervisor_lost_do_not_count_but_its_work_does():
    machine = Machine()
    machine.time += 1.5
    machine.clock.beat(0.05)
    assert machine.clock.verdict() == ""
    assert machine.verdict_of() == ("timeout", pytest.approx(2.45, abs=0.15))
    machine = Machine()
    machine.time = machine.own = 1.5
    machine.clock.beat(0.05)
    assert machine.clock.verdict() == "timeout"


@pytest.mark.system
def test_processor_time_of_children_that_have_ended_is_the_programs_own():
    """A program that lets others work would get three deadlines, or end its run."""
    now = 0.0
    clock = Clock(0.4, lambda: times_of(lambda: [os.getpid()]), now=lambda: now, own=lambda: 0.0)
    work = "import time\nwhile time.process_time() < 0.4: pass"
    subprocess.run([sys.executable, "-S", "-c", work], check=True)
    now = 1.6
    clock.beat(0.0)  # by the ticks alone, the machine took all of it
    assert clock.verdict() == "timeout"


@pytest.mark.parametrize(
    "code", cases_of(__file__, "own_doing"), ids=["waits", "stops itself", "stops its supervisor"]
)
async def test_what_a_program_does_to_itself_is_its_own_doing(sandbox, code, request):
    name = request.node.name
    assert (await sandbox.run(code, name, deadline=1.5)).status == "timeout"
    await sandbox.end(name)
