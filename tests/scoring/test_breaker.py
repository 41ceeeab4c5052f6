"""A judge that keeps failing is left alone, and one that answers is not.

Keeps of docs/rewards.md, "When a judge fails": after five failures in a row it is left alone but
for one call every 30 s.
"""

from __future__ import annotations

import asyncio

import pytest

from common.llm import LLMError, Usage
from scoring.case import Case, Verdict
from scoring.remote import FAILURES, RemoteJudge

LATE = LLMError("late", "timeout")
GONE = ConnectionError("gone")


class Scripted(RemoteJudge):
    """Raises what a list holds, and answers where it holds None; `now` is its clock."""

    name = "scripted"

    def __init__(self, *errors: BaseException | None) -> None:
        super().__init__()
        self.errors, self.now = list(errors), 0.0
        self.breaker._clock = lambda: self.now

    async def _ask(self, case: Case, spent: Usage) -> Verdict:
        error = self.errors.pop(0)
        if error is not None:
            raise error
        return Verdict(0.5)

    def causes(self, count: int) -> list[str | None]:
        async def play() -> list[str | None]:
            cases = [Case("问题？", f"回答{number}") for number in range(count)]
            return [(await self.judge(case)).cause for case in cases]

        return asyncio.run(play())


@pytest.mark.parametrize(
    ("between", "cause"),
    [
        (None, None),
        (LLMError("odd", "malformed"), "judge_malformed"),
        (LLMError("a content filter", "refused", 400), "judge_failed"),
    ],
)
def test_an_answer_of_any_kind_shows_that_the_judge_is_there(
    between: Exception | None, cause: str | None
) -> None:
    """Left alone for odd answers or for failures long ago, a judge that works would leave episodes
    unscored.
    """
    judge = Scripted(*[LATE] * (FAILURES - 1), between, *[LATE] * FAILURES)
    late = ["judge_timeout"] * (FAILURES - 1)
    assert judge.causes(2 * FAILURES - 1) == [*late, cause, *late]


def test_a_judge_that_fails_is_left_alone_but_for_one_call_every_thirty_seconds() -> None:
    judge = Scripted(*[GONE] * (FAILURES + 1), asyncio.CancelledError(), None, None)
    failed = ["judge_failed"] * FAILURES
    assert judge.causes(FAILURES + 2) == [*failed, "judge_unavailable", "judge_unavailable"]
    judge.now = 31.0
    assert judge.causes(2) == ["judge_failed", "judge_unavailable"]
    judge.now = 62.0
    with pytest.raises(asyncio.CancelledError):
        judge.causes(1)
    judge.now = 93.0
    assert judge.causes(2) == [None, None], "a call that was cancelled does not end the asking"


def test_a_judge_that_asks_for_a_pause_is_not_left_alone() -> None:
    paused = LLMError("busy", "timeout", retry_after=1.0)
    count = FAILURES + 2
    assert Scripted(*[paused] * count).causes(count) == ["judge_timeout"] * count
