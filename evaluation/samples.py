"""The episodes of an evaluation: which tasks, how many of each, and the record that is kept of one.

samples = samples_of(agent, sample_rows(rows, n=300, seed=0), k=4, settings)
record = record_of(samples[0], scored, environment)          # a line of episodes.jsonl
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from common.settings import Settings
from episodes.agent import Agent, Environment, Record, Row, Task
from episodes.play import Scored


@dataclass(frozen=True)
class Sample:
    """One episode to play: a task, and which of its episodes this is (from 0)."""

    task: Task
    number: int

    @property
    def key(self) -> str:
        """A name of the episode that no other has."""
        return f"{self.task.id}#{self.number}"


class Unscored(Exception):
    """An episode without a score; `record` has the cause."""

    def __init__(self, record: Record) -> None:
        super().__init__(record["detail"] or record["unscored"])
        self.record = record


def sample_rows(rows: Sequence[Row], n: int | None, seed: int) -> list[Row]:
    """`n` rows in file order, as many of each task type as its share of the file; all rows for None."""
    if n is None or n >= len(rows):
        return list(rows)
    kinds: dict[str, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        kinds[row.get("task_type") or ""].append(number)
    exact = {kind: n * len(members) / len(rows) for kind, members in kinds.items()}
    quota = {kind: int(share) for kind, share in exact.items()}
    for kind in sorted(kinds, key=lambda kind: quota[kind] - exact[kind])[: n - sum(quota.values())]:
        quota[kind] += 1
    chance = random.Random(seed)
    chosen = [number for kind in sorted(kinds) for number in chance.sample(kinds[kind], quota[kind])]
    return [rows[number] for number in sorted(chosen)]


def samples_of(agent: Agent, rows: Sequence[Row], k: int, settings: Settings) -> list[Sample]:
    """`k` episodes of every row.

    Raises:
        AgentError: a row that cannot be used as a task.
    """
    return [Sample(task, number) for row in rows for task in [agent.task(row, settings)] for number in range(k)]


def record_of(sample: Sample, scored: Scored, environment: Environment) -> Record:
    """What `episodes.jsonl` keeps of an episode; docs/evaluation.md explains every key.

    What the policy did not finish is wrong and scores 0; what the machine did not finish is unscored.
    """
    task, episode, reward = scored.task, scored.episode, scored.reward
    finished = episode.stop_reason == "answered"
    record = {
        "id": task.id,
        "sample": sample.number,
        "task_type": task.task_type,
        "difficulty": task.difficulty,
        "question": task.question,
        "reference": task.reference,
        "answer": episode.answer,
        "stop_reason": episode.stop_reason,
        "score": reward.score if finished or reward.score is None else 0.0,
        "unscored": reward.unscored,
        "detail": scored.detail,
        "reward": reward.total,
        "terms": reward.terms,
        "measures": reward.measures,
        "facts": dict(environment.facts(task, episode)),
        **environment.record(task, episode),
        "turns": episode.turns,
        "prompt_tokens": episode.prompt_tokens,
        "completion_tokens": episode.completion_tokens,
        "seconds": round(scored.seconds, 3),
        "transcript": episode.messages,
    }
    # A model may write half of a surrogate pair, which no UTF-8 file can hold.
    return dict(json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")))
