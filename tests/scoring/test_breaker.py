"""The circuit breaker: closed, or open with one probe a pause.

Keeps of docs/rewards.md, "When a judge fails": after five failures in a row it is left alone but
for one call every 30 s.
"""

from __future__ import annotations

import asyncio

import pytest

from common.llm import LLMError, Usage
from scoring.case import Case, Verdict
from scoring.remote import FAILURES, Breaker, RemoteJudge


@pytest.fixture
def clock() -> list[float]:
    return [0.0]


@pytest.fixture
def breaker(clock: list[float]) -> Breaker:
    return Breaker(failures=3, pause=10.0, clock=lambda: clock[0])


def fail(breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.failed()


def test_one_probe_after_every_pause_until_one_succeeds(
    breaker: Breaker, clock: list[float]
) -> None:
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


class Scripted(RemoteJudge):
    """Raises what a list holds, and answers where it holds None."""

    name = "scripted"

    def __init__(self, *errors: Exception | None) -> None:
        super().__init__()
        self.errors, self.asked = list(errors), 0

    async def _ask(self, case: Case, spent: Usage) -> Verdict:
        self.asked += 1
        error = self.errors.pop(0)
        if error is not None:
            raise error
        return Verdict(0.5)

    def causes(self) -> list[str | None]:
        async def play() -> list[str | None]:
            return [
                (await self.judge(Case("问题？", f"回答{number}"))).cause
                for number in range(len(self.errors))
            ]

        return asyncio.run(play())


LATE = LLMError("late", "timeout")


@pytest.mark.parametrize(
    ("between", "cause"),
    [(None, None), (LLMError("odd", "malformed"), "judge_malformed")],
)
def test_an_answer_of_any_kind_shows_that_the_judge_is_there(
    between: Exception | None, cause: str | None
) -> None:
    """Left alone for odd answers or for failures long ago, a judge that works would leave episodes
    unscored.
    """
    judge = Scripted(*[LATE] * (FAILURES - 1), between, *[LATE] * (FAILURES - 1), None)
    late = ["judge_timeout"] * (FAILURES - 1)
    assert judge.causes() == [*late, cause, *late, None]


def test_a_judge_that_asks_for_a_pause_is_not_left_alone_but_one_that_fails_is() -> None:
    paused = LLMError("busy", "timeout", retry_after=1.0)
    assert Scripted(*[paused] * (FAILURES + 2)).causes() == ["judge_timeout"] * (FAILURES + 2)
    dead = Scripted(*[ConnectionError("gone")] * (FAILURES + 2))
    assert dead.causes() == ["judge_failed"] * FAILURES + ["judge_unavailable"] * 2
    assert dead.asked == FAILURES
