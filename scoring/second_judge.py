"""A second judge that sees a share of the answers: how far two judges differ, and never a change of the reward.

judge = SecondOpinion(first, second, share=0.05)
(await judge.judge(case)).checks        # {"second_judge_difference": 0.12} where the second was asked
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from scoring.case import Case, Judge, Usage, Verdict


class SecondOpinion:
    """The first judge's verdicts; on a share of them the absolute difference to the second's score as a check.

    Which cases are shared depends on their content alone, so a repeated run asks for the same ones.
    """

    def __init__(self, first: Judge, second: Judge, share: float) -> None:
        self.first, self.second, self.share = first, second, share
        self.name = first.name

    async def judge(self, case: Case) -> Verdict:
        """The first judge's verdict; both are asked at the same time."""
        if int(case.key[:8], 16) >= self.share * 16**8:
            return await self.first.judge(case)
        first, second = await asyncio.gather(self.first.judge(case), self.second.judge(case))
        usage = _sum_of(first.usage, second.usage)
        if first.score is None or second.score is None or "degenerate" in first.parts:
            return replace(first, usage=usage)
        return replace(first, usage=usage, checks={"second_judge_difference": abs(first.score - second.score)})


def _sum_of(first: Usage, second: Usage) -> Usage:
    known = first.cost_usd is not None and second.cost_usd is not None
    cost = (first.cost_usd or 0.0) + (second.cost_usd or 0.0) if known else None
    return Usage(first.calls + second.calls, first.cached, cost)
