"""What a judge is given and what it returns."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.llm.client import Usage


@dataclass(frozen=True)
class Case:
    """One answer to judge."""

    question: str
    answer: str
    reference: str = ""  # the gold answer
    context: list[str] = field(default_factory=list)  # the tool's results, as the agent saw them
    # as far as known: `structured_gt` {"columns", "rows"}, `evidence` [{table, row_id, field, quote}]
    gold: dict[str, Any] | None = None

    @property
    def key(self) -> str:
        content = json.dumps(vars(self), sort_keys=True, default=str, ensure_ascii=False)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Verdict:
    """A judge's score in [0, 1] with its parts, or the cause why it is missing (docs/rewards.md).

    `usage` (cached: 1 for an earlier verdict) and `checks` are numbers beside the score.
    """

    score: float | None
    parts: dict[str, float] = field(default_factory=dict)
    cause: str | None = None
    usage: Usage = field(default_factory=Usage, compare=False)
    checks: dict[str, float] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if (self.score is None) == (self.cause is None):
            raise ValueError(f"expected a score or a cause, got {self.score}, {self.cause!r}")
        if self.score is not None and not 0 <= self.score <= 1:
            raise ValueError(f"a score lies in [0, 1], got {self.score}")


class Judge(Protocol):
    """Scores answers. One that cannot tell returns a verdict without a score, and never raises."""

    name: str

    async def judge(self, case: Case) -> Verdict: ...
