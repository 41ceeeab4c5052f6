"""One schema of a played and scored episode, written and read as lines of JSON.

docs/evaluate-and-serve.md explains every key. What was not recorded has no key. A null is a value.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from episodes.episode import AgentError, Message, Scored
from scoring.rubric import as_plain

# Fields that a line has only where they were recorded; of all others None is a value
NOT_ALWAYS = (
    *("step", "agent", "reference", "counters", "canaries", "transcript"),
    *("prompt_tokens", "completion_tokens", "reply_tokens"),
)


@dataclass(kw_only=True)
class EpisodeRecord:
    """One episode: its task, what happened, and what it earned.

    sample: from 0. score: the judge's, in [0, 1]. reward: what is trained on. unscored: the
    cause without either. facts: the environment's. measures: the reward's. counters: numbers to
    add up. canaries: known-bad answers judged beside it. own: the agent's.
    """

    id: str = ""
    sample: int = 0
    step: int | None = None
    task_type: str = ""
    difficulty: str = ""
    wording: str = ""
    question: str = ""
    reference: str | None = None
    answer: str | None = None
    stop_reason: str | None = None
    score: float | None = None
    unscored: str | None = None
    detail: str = ""
    reward: float | None = None
    terms: dict[str, float] = field(default_factory=dict)
    measures: dict[str, float] = field(default_factory=dict)
    facts: dict[str, float | None] = field(default_factory=dict)
    counters: dict[str, float] | None = None
    canaries: dict[str, int] | None = None
    own: dict[str, Any] = field(default_factory=dict)
    turns: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reply_tokens: list[int] | None = None
    seconds: float = 0.0
    transcript: list[Message] | None = None

    def line(self) -> dict[str, Any]:
        """Return the record as JSON values, without what was not recorded."""
        found: dict[str, Any] = {}
        names = {one.name for one in fields(self)}
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "own":  # never under a name of the schema
                found.update({name: part for name, part in value.items() if name not in names})
            elif value is not None or one.name not in NOT_ALWAYS:
                found[one.name] = value
        # A model may write half of a surrogate pair, which no UTF-8 file can hold
        return dict(json.loads(as_json(found).encode("utf-8", "replace")))

    @property
    def numbers(self) -> dict[str, float]:
        """The reward's measures and, of a scored episode, the facts that apply to it."""
        facts = {} if self.unscored else self.facts
        known = {name: value for name, value in facts.items() if value is not None}
        return {**known, **self.measures}

    @classmethod
    def of_line(cls, line: Mapping[str, Any]) -> Self:
        """Return the record of a line. Unknown keys are the agent's own."""
        names = {one.name for one in fields(cls)}
        known = {name: value for name, value in line.items() if name in names}
        own = {name: value for name, value in line.items() if name not in names}
        return cls(**known, own=own)


def as_json(value: Any) -> str:
    """Return JSON, with numpy's and torch's values as Python's own. Raises AgentError."""

    def plain(part: Any) -> Any:
        if hasattr(part, "tolist"):
            return part.tolist()
        raise TypeError(f"a {type(part).__name__} is no value of JSON")

    try:
        return json.dumps(value, ensure_ascii=False, default=plain)
    except TypeError as error:
        raise AgentError(
            f"what the agent records cannot be kept: {error}; give text, numbers, lists or objects"
        ) from None


def record_of(scored: Scored, own: Mapping[str, Any], sample: int = 0) -> EpisodeRecord:
    """Return an episode's record, `own` from its environment. An unfinished one scores 0."""
    facts = own.get("facts", {})
    task = scored.task
    episode = scored.episode
    reward = scored.reward
    finished = episode.stop_reason == "answered"
    return EpisodeRecord(
        id=task.id,
        sample=sample,
        task_type=str(task.task_type),
        difficulty=str(task.difficulty),
        wording=str(task.wording),
        question=str(task.question),
        reference=task.reference and str(task.reference),
        answer=episode.answer,
        stop_reason=episode.stop_reason,
        score=reward.score if finished or reward.score is None else 0.0,
        unscored=reward.unscored,
        detail=scored.detail,
        reward=reward.total,
        terms=reward.terms,
        measures=reward.measures,
        facts={name: as_plain(value) for name, value in facts.items()},
        own={name: value for name, value in own.items() if name != "facts"},
        turns=episode.turns,
        prompt_tokens=episode.prompt_tokens,
        completion_tokens=episode.completion_tokens,
        reply_tokens=episode.reply_tokens or None,  # not every loop notes them
        seconds=round(scored.seconds, 3),
        transcript=episode.messages,
    )
