"""What a consultation earns: the terms of rewards.toml, or those of `--reward`, and its other numbers.

The score, in [0, 1], is that of the conclusion alone: diagnosis and advice by their weights.
"""

import math
import tomllib
from collections import Counter
from pathlib import Path

from conditions.diagnosis import names_it
from conditions.gold_sentence import diseases_in
from conditions.judged import beside_the_rule
from consultation_agent.advice import advice_value
from consultation_agent.protocol import Conclusion, Malformed
from consultation_agent.record_patient import KINDS, Exchange, told
from consultation_agent.task import ConsultationTask
from episodes.episode import Episode
from episodes.partner_agent import ending_of
from scoring.case import Case, Judge
from scoring.rubric import Reward, Rubric
from scoring.text import words_only

TERMS = Path(__file__).with_name("rewards.toml").read_text(encoding="utf-8")
RUBRIC = Rubric(tomllib.loads(TERMS))


def exchanges_of(episode: Episode) -> list[Exchange]:
    return [event for event in episode.events if isinstance(event, Exchange)]


def is_right(task: ConsultationTask, diagnosis: str) -> bool:
    """Return whether a diagnosis is the gold one, by one of its names, and nothing else.

    A gold sentence has the names of the disease in it. With options the letter is compared.
    """
    if task.options:
        return diagnosis == task.reference
    if words_only(diagnosis) == words_only(task.reference):
        return True
    names = task.names or diseases_in(task.reference)
    return names_it(diagnosis, (*names, task.reference))


def found_facets(task: ConsultationTask, episode: Episode) -> float | None:
    """Return the share of the distinguishing facets that were mentioned, None without any."""
    needed = {*task.distinguishing}
    return len(needed & told(exchanges_of(episode)).keys()) / len(needed) if needed else None


def inquiry_value(task: ConsultationTask, episode: Episode) -> float:
    """Return the share of the distinguishing facets that were asked for, against the number of
    things asked. A compound question asks for several things and finds the first.
    """
    things = 0
    found = set[str]()
    for exchange in exchanges_of(episode):
        facets = exchange.reply.facets
        compound = exchange.reply.kind == "compound"
        things += max(1, len(facets)) if compound else 1
        found.update(facets[:1] if compound else facets)
    needed = {*task.distinguishing}
    return len(needed & found) / max(len(needed), things)


def kinds_of(episode: Episode) -> Counter[str]:
    """Return the number of events of each kind: a reply's kind, and "malformed"."""
    kinds = Counter(exchange.reply.kind for exchange in exchanges_of(episode))
    kinds.update("malformed" for event in episode.events if isinstance(event, Malformed))
    return kinds


def conclusion_values(task: ConsultationTask, conclusion: Conclusion | None) -> dict[str, float]:
    """Return the values of diagnosis and advice by the rules, or 0 without a conclusion."""
    if conclusion is None:
        return dict.fromkeys(parts_of(task), 0.0)
    values = {"diagnosis": float(is_right(task, conclusion.diagnosis))}
    if "recommendation" in parts_of(task):
        said = conclusion.recommendation
        values["recommendation"] = advice_value(task.advice, said, task.recommendation)
    return values


def parts_of(task: ConsultationTask) -> tuple[str, ...]:
    """Return the parts of a conclusion that the case has a gold for. Some cases have no advice."""
    advised = bool(task.recommendation or task.advice)
    return ("diagnosis", "recommendation") if advised else ("diagnosis",)


def facts_of(task: ConsultationTask, episode: Episode) -> dict[str, float | None]:
    """Return an episode's numbers. Shares of questions are None if none was asked."""
    values = conclusion_values(task, ending_of(episode))
    kinds = kinds_of(episode)
    questions = sum(kinds[kind] for kind in KINDS)
    return {
        "diagnosis_accuracy": values["diagnosis"],
        "advice": values.get("recommendation"),
        "facet_recall": found_facets(task, episode),
        "questions": float(questions),
        "useful_questions": kinds["informative"] / questions if questions else None,
        "repeated_questions": kinds["repeated"] / questions if questions else None,
        "patient_leak": float(sum(one.reply.leaked for one in exchanges_of(episode))),
    }


async def score(
    task: ConsultationTask, episode: Episode, rubric: Rubric, judge: Judge | None
) -> Reward:
    """Return the reward of an episode, unscored with its cause if the judge failed."""
    conclusion = ending_of(episode)
    kinds = kinds_of(episode)
    counters = {name: float(n) for name, n in kinds.items()}
    values = conclusion_values(task, conclusion)
    measures: dict[str, float] = {}
    if conclusion and judge and not task.options:
        verdict = await judge.judge(case_of(task, conclusion))
        if verdict.score is None:
            return Reward(None, {}, verdict.cause, counters=counters)
        rule = values["diagnosis"]
        values = {name: verdict.parts.get(name, verdict.score) for name in parts_of(task)}
        measures = beside_the_rule(rule, values["diagnosis"])
    weights = RUBRIC.weights
    whole = sum(weights[name] for name in values)
    worth = sum(values[name] * weights[name] for name in values) / whole
    replies = kinds["malformed"] + len(exchanges_of(episode)) + (conclusion is not None)
    values["format"] = 1 - kinds["malformed"] / replies if replies else 0.0
    if task.distinguishing:
        values["inquiry"] = inquiry_value(task, episode) if conclusion else 0.0
    paid = rubric.weigh({name: value for name, value in values.items() if name in rubric.names})
    total = math.fsum(paid.values())
    return Reward(total, paid, score=min(1.0, worth), measures=measures, counters=counters)


def case_of(task: ConsultationTask, conclusion: Conclusion) -> Case:
    """Return what a judge sees."""
    gold = Conclusion(task.reference, task.recommendation)
    context = [task.description] if task.description else []
    return Case(task.question, str(conclusion), str(gold), context)
