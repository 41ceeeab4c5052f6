"""A reward model behind one URL: POST {"prompt", "response"} -> {"score"}.

    await RewardModelJudge("http://127.0.0.1:8001/score", timeout=30, scale=load_scale("runs/scale.json")).judge(case)

A scale (`utils/reward_scale.py` fits one, `scoring/scale.py` reads it) maps raw scores to [0, 1]. Without one a score
outside [0, 1] is a failure: clipping a logit would make every good answer equal.
"""

from __future__ import annotations

from scoring.case import Case
from scoring.remote import MalformedReply, RemoteJudge, Scored, finite_number, strict_json
from scoring.scale import Scale


class RewardModelJudge(RemoteJudge):
    """Sees the question and the answer only."""

    name = "reward_model"

    def __init__(self, url: str, timeout: float, scale: Scale | None = None) -> None:
        """`timeout` is the budget in seconds for one case, retries included."""
        super().__init__(timeout)
        self.url = url
        self.scale = scale

    async def _ask(self, case: Case) -> Scored:
        body = strict_json(await self._post(self.url, {"prompt": case.question, "response": case.answer}))
        if not isinstance(body, dict):
            raise MalformedReply(f'expected {{"score": number}}, got {str(body)[:200]}')
        if self.scale is None:
            score = finite_number(body.get("score"), "score", 0, 1)
        else:
            score = self.scale.apply(finite_number(body.get("score"), "score"))
        return Scored(score, {"reward_model": score}, 0.0)
