"""The circuit breaker: closed, open, half open with one probe."""

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
        with breaker.call() as call:
            call.failed()


def test_it_opens_after_failures_in_a_row_only(breaker: Breaker) -> None:
    fail(breaker, 2)
    with breaker.call() as call:
        call.succeeded()
    fail(breaker, 2)
    assert breaker.allows()
    fail(breaker)
    assert not breaker.allows()


def test_one_probe_at_a_time_after_the_pause(breaker: Breaker, clock: list[float]) -> None:
    fail(breaker, 3)
    clock[0] = 10.0
    assert breaker.allows()
    with breaker.call() as probe:
        assert not breaker.allows()
        probe.failed()
    assert not breaker.allows()
    clock[0] = 20.0
    with breaker.call() as probe:
        probe.succeeded()
    assert breaker.allows()


def test_a_cancelled_probe_makes_room_for_the_next(breaker: Breaker, clock: list[float]) -> None:
    fail(breaker, 3)
    clock[0] = 10.0

    def cancelled() -> None:
        with breaker.call():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cancelled()
    assert breaker.allows()


def test_a_call_that_began_before_it_opened_does_not_count_as_a_probe(breaker: Breaker, clock: list[float]) -> None:
    with breaker.call() as early:
        fail(breaker, 3)
        clock[0] = 10.0
        with breaker.call():
            early.failed()
        assert not breaker.allows()
