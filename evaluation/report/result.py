"""The cards on the first screen of a report, which say for each training run and evaluation whether
it got better.

results = results_of(runs, agents, tallies, comparisons)      # cards: a verdict, two numbers, intervals, facts

Evaluations that are compared have one card for both, a training run's card has its first and its
last validation, and an evaluation alone has its score. Everything is read from what the run wrote;
what it did not write is not on the card.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from episodes.agent import Agent
from evaluation.metrics import interval_of_types
from evaluation.report.charts import Validation, over_types
from evaluation.report.demo import RESULT
from evaluation.report.facts import Comparison, Tally
from evaluation.run_folder import EVALUATION, Run, numbers
from evaluation.tables import FEW

Card = dict[str, Any]
SAME = 1e-9
BETTER, WORSE, UNCLEAR = "It got better.", "It got worse.", "No change that chance could not make."
TOO_FEW = "Too few tasks to tell."
ONE_VALIDATION = "One validation: there is nothing to compare it with."
ONE_EVALUATION = "One evaluation: there is nothing to compare it with."
NO_VALIDATION = "No validation was played."
NOT_ENDED = "It has not ended, or died."
NO_INTERVAL = "Its change has no interval."
POINTS, REWARD = "points of 100", "reward"


def results_of(
    runs: Sequence[Run],
    agents: Sequence[Agent | None],
    tallies: Sequence[Tally],
    compared: Sequence[Comparison],
) -> list[Card]:
    """Return the cards: comparisons first, then training runs, then evaluations that
    stand alone.
    """
    known = {number for one in compared for number in (one.base, one.run)}
    cards = [comparison_card(one, runs, agents, tallies) for one in compared]
    for number, (run, tally) in enumerate(zip(runs, tallies, strict=True)):
        if run.kind != EVALUATION:
            cards.append(training_card(number, run, tally))
        elif number not in known:
            cards.append(evaluation_card(number, run, agents[number], tally))
    return cards


def comparison_card(
    one: Comparison,
    runs: Sequence[Run],
    agents: Sequence[Agent | None],
    tallies: Sequence[Tally],
) -> Card:
    """Return the card of an evaluation against another."""
    overall, agent = one.result["overall"], agents[one.run]
    sides = (one.base, one.run)
    bounds = [100 * bound for bound in overall["ci95"]]
    few = overall["n"] < FEW
    return {
        "run": one.run,
        "title": [runs[number].label for number in reversed(sides)],
        "measure": agent.showing.headline if agent else "score",
        "unit": POINTS,
        "before": 100 * overall["a"],
        "after": 100 * overall["b"],
        "change": 100 * overall["difference"],
        "change_bounds": None if few else bounds,
        "verdict": TOO_FEW if few else verdict(bounds),
        "facts": [
            ["tasks", overall["n"]],
            ["episodes", sum(tallies[number].episodes for number in sides)],
            ["minutes", _minutes_of_demo(runs[one.run].given)],
            ["unscored", sum(sum(tallies[number].causes.values()) for number in sides)],
        ],
    }


def training_card(number: int, run: Run, tally: Tally) -> Card:
    """Return the card of a training run: its first validation and its last."""
    steps = sorted({step for kinds in tally.validation.values() for step in kinds})
    rewards = [data["episodes/reward/mean"] for _, data in run.steps if _has_reward(data)]
    seconds = numbers(run.summary.get("seconds")).get("total")
    card: Card = {
        "run": number,
        "title": [run.label],
        "measure": "validation reward",
        "unit": REWARD,
        "verdict": NO_VALIDATION if run.summary else NOT_ENDED,
        "state": _state(run),
        "facts": [
            ["steps", len(rewards)],
            ["reward in training", [*rewards[:1], *rewards[1:][-1:]] or None],
            ["episodes", tally.episodes],
            ["minutes", None if seconds is None else seconds / 60],
            ["unscored", sum(tally.causes.values())],
        ],
    }
    return card | _validated(steps, tally.validation)


def _validated(steps: Sequence[int], validation: Validation) -> Card:
    """Return what a card says of the first and the last validation; {} where there is none."""
    if not steps:
        return {}
    _, last, *bounds = over_types(steps[-1], validation)
    if len(steps) == 1:
        return {"after": last, "bounds": bounds or None, "verdict": ONE_VALIDATION}
    first = over_types(steps[0], validation)[1]
    changes = [
        [fmean(kinds[steps[-1]][task]) - fmean(rewards) for task, rewards in played.items()]
        for kinds in validation.values()
        if (played := _of_both(kinds, steps[0], steps[-1]))
    ]
    around = interval_of_types(changes, seed=0)
    few = sum(map(len, changes)) < FEW
    found = verdict(around) if around else NO_INTERVAL
    return {
        "before": first,
        "after": last,
        "change": last - first,
        "change_bounds": None if few else around,
        "verdict": TOO_FEW if few else found,
    }


def _of_both(
    kinds: dict[int, dict[str, list[float]]], first: int, last: int
) -> dict[str, list[float]]:
    """Return the first rewards of the tasks that both validations of a type have."""
    later = kinds.get(last, {})
    return {task: rewards for task, rewards in kinds.get(first, {}).items() if task in later}


def evaluation_card(number: int, run: Run, agent: Agent | None, tally: Tally) -> Card:
    """Return the card of an evaluation that is compared with no other."""
    overall = run.scores.get("overall")
    overall = overall if isinstance(overall, dict) else {}
    headline = agent.showing.headline if agent else "score"
    value = numbers(overall).get(headline)
    bounds = overall.get("ci95" if headline == "score" else f"{headline}_ci95")
    few = numbers(overall).get("n", 0) < FEW
    known = isinstance(bounds, list) and not few
    ended = TOO_FEW if few else ONE_EVALUATION
    return {
        "run": number,
        "title": [run.label],
        "measure": headline,
        "unit": POINTS,
        "after": None if value is None else 100 * value,
        "bounds": [100 * bound for bound in bounds] if known and bounds else None,
        "verdict": NOT_ENDED if value is None else ended,
        "facts": [
            ["tasks", overall.get("n")],
            ["episodes", tally.episodes],
            ["turns", numbers(overall).get("turns")],
            ["unscored", sum(tally.causes.values())],
        ],
    }


def verdict(bounds: Sequence[float]) -> str:
    """Return what the 95 % interval of a change says of it."""
    low, high = bounds
    return BETTER if low > SAME else WORSE if high < -SAME else UNCLEAR


def _has_reward(data: dict[str, float]) -> bool:
    return "episodes/reward/mean" in data


def _state(run: Run) -> str:
    """Return how a training run ended and why, where it is not simply done."""
    reason, message = run.summary.get("exit_reason"), run.summary.get("message")
    return "" if reason in (None, "done") else f"{reason}: {message or ''}".rstrip(": ")


def _minutes_of_demo(folder: Path) -> float | None:
    """Return how long a demo took in all; None where the folder is of no finished demo."""
    try:
        found = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return numbers(found).get("minutes")
