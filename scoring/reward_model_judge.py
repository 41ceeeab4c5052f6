"""A reward model behind one URL: POST {"prompt", "response"} -> {"score"}.

The file of REWARD_SCALE has a scale that maps raw scores to [0, 1] (docs/settings.md). Without one
a score outside is a failure: clipping a logit would make every good answer equal.
"""

import math
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from common.llm.client import Usage
from common.llm.endpoint import post, without_secrets
from common.llm.errors import LLMError
from common.llm.replies import error_in
from common.llm.retry import Patience
from common.settings import SettingsError
from scoring import remote
from scoring.case import Case, Verdict

MOST = 1e300  # an integer too large for a float is no score


class LogisticScale(BaseModel, extra="forbid", frozen=True, strict=True):
    """1 / (1 + exp(-(raw - center) / scale))."""

    kind: Literal["logistic"] = "logistic"
    center: FiniteFloat
    scale: Annotated[FiniteFloat, Field(gt=0)]

    def apply(self, raw: float) -> float:
        """Return the score in [0, 1] of a finite number, with which it grows."""
        # tanh has no overflow where exp has one; both are the same function.
        return 0.5 + 0.5 * math.tanh((raw / 2 - self.center / 2) / self.scale)


def load_scale(path: str | PathLike[str]) -> LogisticScale:
    """Return the scale of a JSON file. Raises SettingsError: the file holds none."""
    try:
        return LogisticScale.model_validate_json(Path(path).read_bytes())
    except OSError as error:
        reason = error.strerror
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        reason = f"{where}: {first['msg']}" if where else first["msg"]
    raise SettingsError(
        f"REWARD_SCALE: {path} cannot be used ({reason}); "
        'expected {"kind": "logistic", "center": NUMBER, "scale": NUMBER} (docs/settings.md)'
    )


class RewardModelJudge(remote.RemoteJudge):
    """Sees the question and the answer only. `timeout`: seconds of one score with its retries."""

    name = "reward_model"

    def __init__(self, url: str, timeout: float, scale: LogisticScale | None = None) -> None:
        super().__init__()
        self.url = url
        self.scale = scale
        self.identity = f"{self.name} {without_secrets(url)}" + (f", {scale}" if scale else "")
        self.patience = Patience(remote.ATTEMPTS, timeout, remote.LONGEST_WAIT)

    async def _ask(self, case: Case, spent: Usage) -> Verdict:
        low, high = (-MOST, MOST) if self.scale else (0.0, 1.0)
        who = without_secrets(self.url)

        async def attempt() -> float:
            spent.calls += 1
            body = {"prompt": case.question, "response": case.answer}
            reply = await post(self.url, body, timeout=self.patience.budget)
            score: Any = reply.get("score") if isinstance(reply, dict) else None
            # NaN fails every comparison, and a score beside an error was not computed
            no_number = type(score) not in (int, float) or not low <= score <= high
            if no_number or error_in(reply):
                wanted = f'{{"score": NUMBER}}, at least {low:g} and at most {high:g}'
                raise LLMError(f"{who}: expected {wanted}, got {str(reply)[:120]}", "malformed")
            return float(score)

        raw = await self.patience.ask(attempt, who)
        score = self.scale.apply(raw) if self.scale else raw
        return Verdict(score, {"reward_model": score})
