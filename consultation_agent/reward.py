"""What a consultation earns: the terms of rewards.toml, or those of `--reward`, and its other numbers.

The score, in [0, 1], is that of the conclusion alone: diagnosis and advice by their weights.
"""

import math
from collections import Counter

from common.toml import table_beside
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

RUBRIC = Rubric(table_beside(__file__, "rewards.toml"))


def exchanges_of(episode: Episode) -> list[Exchange]:
    return [event for event in episode.events if isinstance(event, Exchange)]


def is_right(task: ConsultationTask, diagnosis: str) -> bool:
    """Return whether a diagnosis is the gold one, by one of its names, and nothing else.

    A gold sentence has the names of the disease in it. With options the letter is compared.
    """
    if task.options:
        return diagnosis == task.reference
    names = task.names or diseases_in(task.reference)
    return names_it(diagnosis, (*names, task.reference))


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
    """Return the values of diagnosis and advice by the rules, or 0 without a conclusion. Some cases
    have no advice.
    """
    values = {"diagnosis": 0.0, "recommendation": 0.0}
    if conclusion:
        values["diagnosis"] = float(is_right(task, conclusion.diagnosis))
        said = conclusion.recommendation
        values["recommendation"] = advice_value(task.advice, said, task.recommendation)
    if not (task.recommendation or task.advice):
        del values["recommendation"]
    return values


def facts_of(task: ConsultationTask, episode: Episode) -> dict[str, float | None]:
    """Return an episode's numbers. Shares of questions or facets are None without any."""
    values = conclusion_values(task, ending_of(episode))
    kinds = kinds_of(episode)
    questions = sum(kinds[kind] for kind in KINDS)
    needed = {*task.distinguishing}
    found = needed & told(exchanges_of(episode)).keys()
    return {
        "diagnosis_accuracy": values["diagnosis"],
        "advice": values.get("recommendation"),
        "facet_recall": len(found) / len(needed) if needed else None,
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
        gold = str(Conclusion(task.reference, task.recommendation))
        context = [task.description] if task.description else []
        verdict = await judge.judge(Case(task.question, str(conclusion), gold, context))
        if verdict.score is None:
            return Reward(None, {}, verdict.cause, counters=counters)
        rule = values["diagnosis"]
        values = {name: verdict.parts.get(name, verdict.score) for name in values}
        measures = beside_the_rule(rule, values["diagnosis"])
    weights = {name: RUBRIC.weights[name] for name in values}
    worth = sum(values[name] * weight for name, weight in weights.items()) / sum(weights.values())
    replies = kinds.total() + (conclusion is not None)
    values["format"] = 1 - kinds["malformed"] / replies if replies else 0.0
    if task.distinguishing:
        values["inquiry"] = inquiry_value(task, episode) if conclusion else 0.0
    paid = rubric.weigh({name: value for name, value in values.items() if name in rubric.names})
    total = math.fsum(paid.values())
    return Reward(total, paid, score=min(1.0, worth), measures=measures, counters=counters)
