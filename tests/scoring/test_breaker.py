"""The circuit breaker: closed, or open with one probe a pause.

Keeps of docs/rewards.md, "When a judge fails": after five failures in a row it is left alone but for one call every
30 s.
"""

from __future__ import annotations

import pytest

from scoring.remote import Breaker


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def breaker(clock: list[float]) -> Breaker:
    return Breaker(failures=3, pause=10.0, clock=lambda: clock[0])


def fail(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.failed()


def test_it_opens_after_failures_in_a_row_only(breaker: Breaker) -> None:
    fail(breaker, 2)
    breaker.succeeded()
    fail(breaker, 2)
    assert breaker.allows()
    fail(breaker)
    assert not breaker.allows()


def test_one_probe_after_every_pause_until_one_succeeds(breaker: Breaker, clock: list[float]) -> None:
    fail(breaker, 3)
    clock[0] = 10.0
    assert breaker.allows()
    assert not breaker.allows()
    fail(breaker)
    clock[0] = 20.0
    assert breaker.allows()  # this one is cancelled and says nothing
    clock[0] = 30.0
    assert breaker.allows()
    breaker.succeeded()
    assert breaker.allows()
    assert breaker.allows()


def test_a_call_that_began_before_it_opened_does_not_open_the_way(breaker: Breaker, clock: list[float]) -> None:
    fail(breaker, 3)
    clock[0] = 10.0
    fail(breaker)
    assert not breaker.allows()
