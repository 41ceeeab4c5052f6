"""The cards on a report's first screen: a comparison's, training run's or evaluation's verdict."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from evaluation.metrics import BETTER, FEW, TOO_FEW, UNCLEAR, WORSE, judge_changes
from evaluation.report.charts import over_types, validated
from evaluation.report.demo import RESULT
from evaluation.report.facts import Comparison, Tally, Validation
from evaluation.run_folder import EVALUATION, Run, mapping, numbers
from evaluation.tables import number, points

Card = dict[str, Any]
VERDICTS = {
    BETTER: "It got better.",
    WORSE: "It got worse.",
    UNCLEAR: "No change that chance could not make.",
    TOO_FEW: "Too few tasks to tell.",
}
ONE_VALIDATION = "One validation: there is nothing to compare it with."
ONE_EVALUATION = "One evaluation: there is nothing to compare it with."
NO_VALIDATION = "No validation was played."
NOT_ENDED = "It has not ended, or died."
POINTS, REWARD = "points of 100", "reward"


def results_of(tallies: Sequence[Tally], compared: Sequence[Comparison]) -> list[Card]:
    """Return the cards: comparisons, training runs, which have no verdict where evaluations of their
    agent are compared, and evaluations that stand alone.
    """
    known = {one.base for one in compared} | {one.run for one in compared}
    judged = {tallies[one.run].run.agent for one in compared}
    cards = [comparison_card(one, tallies[one.base], tallies[one.run]) for one in compared]
    for place, tally in enumerate(tallies):
        if tally.run.kind != EVALUATION:
            card = training_card(place, tally)
            if tally.run.agent in judged and card["verdict"] in VERDICTS.values():
                card |= {"verdict": "", "tone": ""}
            cards.append(card)
        elif place not in known:
            cards.append(evaluation_card(place, tally))
    return cards


def comparison_card(one: Comparison, base: Tally, tally: Tally) -> Card:
    """Return the card of an evaluation against another, its base."""
    overall = one.result["overall"]
    given = tally.run.given
    minutes = numbers(Run(given, EVALUATION, "", given).object_in(RESULT)).get("minutes")
    bounds = None
    if overall["n"] >= FEW:
        bounds = [points(bound, "+.1f") for bound in overall["ci95"]]
    return {
        "run": one.run,
        "title": [tally.run.label, base.run.label],
        "measure": tally.agent.columns[0].metric if tally.agent else "score",
        "unit": POINTS,
        "before": points(overall["a"]),
        "after": points(overall["b"]),
        "change": points(overall["difference"], "+.1f"),
        "bounds": bounds,
        "p": f"{overall['sign_p']:.2g}",
        "tone": overall["verdict"],
        "verdict": VERDICTS[overall["verdict"]],
        "facts": [
            ["tasks", overall["n"]],
            ["episodes", base.episodes + tally.episodes],
            ["minutes", None if minutes is None else number(minutes)],
            ["unscored", base.causes.total() + tally.causes.total()],
        ],
    }


def training_card(place: int, tally: Tally) -> Card:
    """Return the card of a training run: its first validation and its last."""
    run = tally.run
    metric = "episodes/reward/mean"
    rewards = [data[metric] for _, data in run.steps if metric in data]
    seconds = numbers(run.summary.get("seconds")).get("total")
    reason = run.summary.get("exit_reason")
    message = run.summary.get("message")
    card: Card = {
        "run": place,
        "title": [run.label],
        "measure": "validation reward",
        "unit": REWARD,
        "tone": "",
        "verdict": NO_VALIDATION if run.summary else NOT_ENDED,
        "state": f"{reason}: {message or ''}" if reason not in (None, "done") else "",
        "facts": [
            ["steps", len(rewards)],
            ["reward in training", first_to_last(rewards)],
            ["episodes", tally.episodes],
            ["minutes", None if seconds is None else number(seconds / 60)],
            ["unscored", tally.causes.total()],
        ],
    }
    return card | _validated(tally.validation)


def first_to_last(values: Sequence[float]) -> str | None:
    """Return the first of the values and, where there are more, the last."""
    if len(values) > 1:
        return f"{values[0]:.3f} → {values[-1]:.3f}"
    return f"{values[0]:.3f}" if values else None


def _validated(validation: Validation) -> Card:
    steps = validated(validation)
    if not steps:
        return {}
    first = steps[0]
    last = steps[-1]
    _, after, *bounds = over_types(last, validation)
    if first == last:
        shown = [number(bound, ".3f") for bound in bounds]
        return {"after": number(after, ".3f"), "bounds": shown, "verdict": ONE_VALIDATION}
    paired: Validation = {}
    types = []
    for name, kinds in validation.items():
        old = kinds.get(first, {})
        new = kinds.get(last, {})
        both = [task for task in old if task in new]
        if both:
            paired[name] = {first: {task: old[task] for task in both}}
            paired[name][last] = {task: new[task] for task in both}
            types.append([fmean(new[task]) - fmean(old[task]) for task in both])
    if not paired:
        return {"after": number(after, ".3f"), "verdict": VERDICTS[TOO_FEW]}
    before, after = (over_types(step, paired)[1] for step in (first, last))
    found = judge_changes(types)
    enough = found["verdict"] != TOO_FEW
    return {
        "before": number(before, ".3f"),
        "after": number(after, ".3f"),
        "change": number(after - before, "+.3f"),
        "bounds": [number(bound, "+.3f") for bound in found["ci95"]] if enough else None,
        "p": f"{found['sign_p']:.2g}",
        "tone": found["verdict"],
        "verdict": VERDICTS[found["verdict"]],
    }


def evaluation_card(place: int, tally: Tally) -> Card:
    """Return the card of an evaluation that is compared with no other."""
    found = mapping(tally.run.scores.get("overall"))
    known = numbers(found)
    headline = tally.agent.columns[0].metric if tally.agent else "score"
    bounds = found.get("ci95" if headline == "score" else f"{headline}_ci95")
    few = known.get("n", 0) < FEW
    verdict = VERDICTS[TOO_FEW] if few else ONE_EVALUATION
    card: Card = {
        "run": place,
        "title": [tally.run.label],
        "measure": headline,
        "unit": POINTS,
        "tone": "",
        "verdict": verdict if headline in known else NOT_ENDED,
        "facts": [
            ["tasks", found.get("n")],
            ["episodes", tally.episodes],
            ["turns", number(known["turns"], ".2f") if "turns" in known else None],
            ["unscored", tally.causes.total()],
        ],
    }
    if headline in known:
        card["after"] = points(known[headline])
    shown = bounds if isinstance(bounds, list) else []
    if shown and not few and all(isinstance(bound, int | float) for bound in shown):
        card["bounds"] = [points(bound) for bound in shown]
    return card
