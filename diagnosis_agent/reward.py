"""What a case earns: the terms of rewards.toml, or those of `--reward`, and its other numbers.

The score, in [0, 1], is the reward over the most that the case can earn. What addresses the judge
is never shown to it, and earns nothing but beside the right diagnosis.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from common.toml import table_beside
from conditions.diagnosis import names_it
from conditions.judged import beside_the_rule
from conditions.orders import covered_by
from diagnosis_agent.judge_words import addresses_the_judge, f1
from diagnosis_agent.record_simulator import Exchange, Result, own_name
from diagnosis_agent.single_turn import Next
from diagnosis_agent.task import DiagnosisTask
from episodes.episode import Episode
from episodes.partner_agent import ending_of
from episodes.text_loop import Malformed
from scoring.case import Case, Judge
from scoring.rubric import Reward, Rubric

RUBRIC = Rubric(table_beside(__file__, "rewards.toml"))


@dataclass(frozen=True)
class Judged:
    """A judge's values of the terms, kept among the events of their episode."""

    values: Mapping[str, float]


def results_of(episode: Episode) -> list[Result]:
    """Return the results of an episode, in order."""
    return [event.result for event in episode.events if isinstance(event, Exchange)]


def key_of(task: DiagnosisTask) -> set[str]:
    """Return the recommended examinations by the names that orders have."""
    return {own_name(name) for name in task.key}


def key_seen(task: DiagnosisTask, episode: Episode) -> set[str]:
    """Return the recommended examinations that were ordered and exist for this patient."""
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
    """Return the results that are paid or charged. The first of an optional examination is neither."""
    free = {own_name(name) for name in task.optional}
    results = results_of(episode)
    return [one for one in results if one.kind == "repeated" or own_name(one.name) not in free]


def examination_values(task: DiagnosisTask, episode: Episode) -> dict[str, float | None]:
    """Return precision of all orders, recall, and F1. A share without a basis is None."""
    by_order = _key_by_order(task, episode)
    key = len(key_of(task))
    orders = len(by_order)
    useful = sum(map(bool, by_order))
    found = sum(map(len, by_order))
    return {
        "precision": useful / orders if orders else None,
        "recall": found / key if key else None,
        "f1": f1(useful, orders, found, key) if key else None,
    }


def values_of(task: DiagnosisTask, episode: Episode) -> dict[str, float]:
    """Return the values of `diagnosis` and, with a key, `examinations`: a judge's if any."""
    judged = next((event for event in episode.events if isinstance(event, Judged)), None)
    if judged:
        return dict(judged.values)
    conclusion = ending_of(episode)
    right = conclusion is not None and names_it(conclusion.diagnosis, task.names)
    share = examination_values(task, episode)["f1"]
    values = {"diagnosis": float(right)}
    if share is not None:
        values["examinations"] = share
    return values


def kinds_of(episode: Episode) -> Counter[str]:
    """Return the number of events of each kind: results by their kind, and "malformed"."""
    malformed = sum(isinstance(event, Malformed) for event in episode.events)
    kinds: Counter[str] = Counter(malformed=malformed)
    kinds.update(one.kind for one in results_of(episode))
    return kinds


def facts_of(task: DiagnosisTask, episode: Episode) -> dict[str, float | None]:
    """Return an episode's numbers. Shares of orders are None without orders."""
    values = values_of(task, episode)
    kinds = kinds_of(episode)
    orders = len(results_of(episode))
    hits = [event.hit for event in episode.events if isinstance(event, Next)]
    shares = {
        f"{kind}_examinations": kinds[kind] / orders if orders else None
        for kind in ("repeated", "unavailable", "not_recorded")
    }
    facts = {
        "accuracy": values["diagnosis"],
        "accuracy_concluded": values["diagnosis"] if ending_of(episode) else None,
        **{f"exam_{name}": value for name, value in examination_values(task, episode).items()},
        "examinations": float(orders),
        **shares,
        "withheld_examinations": float(kinds["withheld"]),
        "malformed_replies": float(kinds["malformed"]),
    }
    if hits:
        facts["next_examination_hit"] = fmean(hits)
    return facts


async def score(
    task: DiagnosisTask, episode: Episode, rubric: Rubric, judge: Judge | None
) -> Reward:
    """Return the reward of an episode, 0 without a conclusion, unscored if the judge failed."""
    episode.events = [event for event in episode.events if not isinstance(event, Judged)]
    kinds = kinds_of(episode)
    counters = {name: float(often) for name, often in kinds.items()}
    conclusion = ending_of(episode)
    known = dict[str, float]()
    measures = dict[str, float]()
    said = conclusion.diagnosis if conclusion else ""
    if addresses_the_judge(said):  # or is right, and has a score or a sign beside it
        said = task.reference if names_it(said, task.names) else ""
    if said:
        values = values_of(task, episode)
        if judge:
            # A judge reads the policy's diagnosis, and its orders but those that address the judge
            orders = counted(task, episode)
            names = dict.fromkeys(one.name for one in orders if one.kind != "unavailable")
            ordered = [name for name in names if not addresses_the_judge(name)]
            gold = {"key": sorted(key_of(task)), "orders": len(orders)}
            verdict = await judge.judge(Case(task.question, said, task.reference, ordered, gold))
            if verdict.score is None:
                return Reward(None, {}, verdict.cause, counters=counters)
            given = {"diagnosis": verdict.score, **verdict.parts}
            measures = beside_the_rule(values["diagnosis"], given["diagnosis"])
            values = {name: given.get(name, value) for name, value in values.items()}
            episode.events.append(Judged(values))
        known = {**values, "format": 1 - kinds["malformed"] / max(1, episode.turns)}
    paid = rubric.weigh({name: value for name, value in known.items() if name in rubric.names})
    total = math.fsum(paid.values())
    # No examinations are paid where none is recommended
    reachable = math.fsum(
        weight for name, weight in rubric.weights.items() if task.key or name != "examinations"
    )
    worth = min(1.0, total / reachable) if reachable else 0.0
    return Reward(total, paid, score=worth, measures=measures, counters=counters)
