"""What a case earns: the terms of rewards.toml, by `--reward`, less `--turn-penalty`.

The score, in [0, 1], is the reward over the most that the case can earn. What addresses the judge
earns nothing, and is never shown to it.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conditions.diagnosis import names_it
from conditions.judged import beside_the_rule
from conditions.orders import covered_by
from diagnosis_agent.judge_words import addresses_the_judge, f1
from diagnosis_agent.protocol import Conclusion
from diagnosis_agent.record_simulator import own_name
from diagnosis_agent.simulator import Exchange, Result
from diagnosis_agent.task import DiagnosisTask
from episodes.episode import AgentError, Episode
from episodes.text_loop import Malformed
from scoring.case import Case, Judge
from scoring.rubric import Reward, Rubric, parse_rubric

SCHEMES = tomllib.loads(Path(__file__).with_name("rewards.toml").read_text(encoding="utf-8"))
TERMS = SCHEMES["terms"]


@dataclass(frozen=True)
class Judged:
    """A judge's values of the terms, kept among the events of their episode."""

    values: Mapping[str, float]


def conclusion_of(episode: Episode) -> Conclusion | None:
    return next((event for event in episode.events if isinstance(event, Conclusion)), None)


def results_of(episode: Episode) -> list[Result]:
    """Return the results of an episode, in order."""
    return [event.result for event in episode.events if isinstance(event, Exchange)]


def key_of(task: DiagnosisTask) -> set[str]:
    """Return the recommended examinations by the names that orders have."""
    return {own_name(name) for name in task.key}


def key_seen(task: DiagnosisTask, episode: Episode) -> set[str]:
    """Return the recommended examinations that were ordered and exist for this patient, recorded or
    not.
    """
    return set[str]().union(*_key_by_order(task, episode))


def _key_by_order(task: DiagnosisTask, episode: Episode) -> list[set[str]]:
    left = key_of(task)
    found = list[set[str]]()
    for one in counted(task, episode):
        made = covered_by(own_name(one.name)) if one.kind != "unavailable" else frozenset()
        found.append(left & made)
        left = left - made
    return found


def counted(task: DiagnosisTask, episode: Episode) -> list[Result]:
    """Return the results of orders that are paid or charged: all but the first of an optional one."""
    free = {own_name(name) for name in task.optional}
    return [
        one
        for one in results_of(episode)
        if one.kind == "repeated" or own_name(one.name) not in free
    ]


def examination_values(task: DiagnosisTask, episode: Episode) -> dict[str, float | None]:
    """Return precision over all orders, with repeats and unavailable ones, recall, and F1. A share
    without a basis is None.
    """
    by_order = _key_by_order(task, episode)
    key = key_of(task)
    orders = len(by_order)
    useful = sum(map(bool, by_order))
    found = len(key_seen(task, episode))
    return {
        "precision": useful / orders if orders else None,
        "recall": found / len(key) if key else None,
        "f1": f1(useful, orders, found, len(key)) if key else None,
    }


def values_of(task: DiagnosisTask, episode: Episode) -> dict[str, float]:
    """Return the values of `diagnosis` and, if the case has a key, `examinations`: a judge's if it
    gave some.
    """
    judged = next((event for event in episode.events if isinstance(event, Judged)), None)
    if judged:
        return dict(judged.values)
    share = examination_values(task, episode)["f1"]
    right = named_rightly(task, episode)
    return {"diagnosis": right} | ({} if share is None else {"examinations": share})


def named_rightly(task: DiagnosisTask, episode: Episode) -> float:
    """Return 1 where the diagnosis is the gold one by the rules, else 0."""
    conclusion = conclusion_of(episode)
    names = (task.reference, *task.aliases)
    return float(conclusion is not None and names_it(conclusion.diagnosis, names))


def kinds_of(episode: Episode) -> Counter[str]:
    """Return the number of events of each kind: results by their kind, and "malformed"."""
    malformed = sum(isinstance(event, Malformed) for event in episode.events)
    return Counter({"malformed": malformed} | Counter(one.kind for one in results_of(episode)))


class Scheme:
    """One way to pay: a name of rewards.toml, or weights. `penalty`: for each turn beyond so many.

    Raises UsageError: neither.
    """

    def __init__(
        self, name: str, judge: Judge | None, penalty: tuple[float, int] = (0.0, 0)
    ) -> None:
        if name not in SCHEMES and "=" not in name:
            expected = f"{', '.join(SCHEMES)}, or weights such as format=0.1,diagnosis=1"
            raise AgentError(f"--reward {name}: expected {expected}")
        self.name = name
        self.judge = judge
        self.penalty = penalty
        self.rubric = parse_rubric(name, TERMS) if "=" in name else Rubric(SCHEMES[name])

    async def score(self, task: DiagnosisTask, episode: Episode) -> Reward:
        """Return the reward of an episode, 0 without a conclusion, unscored if the judge failed."""
        counters = {name: float(often) for name, often in kinds_of(episode).items()}
        conclusion = conclusion_of(episode)
        if conclusion and addresses_the_judge(conclusion.diagnosis):
            conclusion = None
        if self.judge and conclusion:
            cause = await self._ask(task, episode, conclusion)
            if cause:
                return Reward(None, {}, cause, counters=counters)
        values = dict[str, float]()
        if conclusion:
            malformed = counters["malformed"] / max(1, episode.turns)
            values = {"format": 1 - malformed, **values_of(task, episode)}
        paid = self.rubric.weigh(
            {name: value for name, value in values.items() if name in self.rubric.names}
        )
        amount, free = self.penalty
        if amount and episode.turns > free:
            paid["turns"] = -amount * (episode.turns - free)
        total = math.fsum(paid.values())
        score = min(1.0, max(0.0, total / self.reachable(task)))
        measures = {}
        if self.judge and conclusion:
            measures = beside_the_rule(named_rightly(task, episode), values["diagnosis"])
        return Reward(total, paid, score=score, measures=measures, counters=counters)

    def reachable(self, task: DiagnosisTask) -> float:
        """Return the most that a case can earn: no examinations are paid where none is recommended."""
        weights = self.rubric.weights
        return math.fsum(
            weight for name, weight in weights.items() if task.key or name != "examinations"
        )

    async def _ask(
        self, task: DiagnosisTask, episode: Episode, conclusion: Conclusion
    ) -> str | None:
        assert self.judge
        episode.events = [event for event in episode.events if not isinstance(event, Judged)]
        values = values_of(task, episode)
        verdict = await self.judge.judge(case_of(task, episode, conclusion))
        if verdict.score is not None:
            given = {"diagnosis": verdict.score, **verdict.parts}
            episode.events.append(
                Judged({name: given.get(name, value) for name, value in values.items()})
            )
        return verdict.cause


def case_of(task: DiagnosisTask, episode: Episode, conclusion: Conclusion) -> Case:
    """Return what a judge sees. Of the policy's own words these are the diagnosis, and orders that
    are not words to the judge.
    """
    orders = counted(task, episode)
    names = dict.fromkeys(one.name for one in orders if one.kind != "unavailable")
    ordered = [name for name in names if not addresses_the_judge(name)]
    gold = {"key": sorted(key_of(task)), "orders": len(orders)}
    return Case(task.question, conclusion.diagnosis, task.reference, ordered, gold)
