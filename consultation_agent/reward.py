"""What a consultation earns: the terms of rewards.toml, or the reference's sum, by `--reward`.

The score, in [0, 1], is that of the conclusion alone: diagnosis and advice by their weights.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from conditions.diagnosis import names_it
from conditions.gold_sentence import diseases_in
from conditions.judged import beside_the_rule
from consultation_agent.advice import advice_value
from consultation_agent.patient import Exchange
from consultation_agent.protocol import Conclusion, Malformed
from consultation_agent.task import ConsultationTask
from episodes.episode import AgentError, Episode
from scoring.case import Case, Judge
from scoring.rubric import Reward, Rubric, parse_rubric
from scoring.text import words_only

SCHEMES = tomllib.loads(Path(__file__).with_name("rewards.toml").read_text(encoding="utf-8"))
RUBRIC = Rubric(SCHEMES["terms"])
# What DoctorAgent-RL counts as a word: a Chinese character, or letters in a row
WORD = re.compile(r"[\u4e00-\u9fff]|[a-z0-9]+")


def conclusion_of(episode: Episode) -> Conclusion | None:
    return next((event for event in episode.events if isinstance(event, Conclusion)), None)


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


def mentioned(episode: Episode) -> set[str]:
    """Return the facets that the patient mentioned."""
    found = set[str]()
    for exchange in exchanges_of(episode):
        found.update(exchange.reply.facets)
    return found


def found_facets(task: ConsultationTask, episode: Episode) -> float | None:
    """Return the share of the distinguishing facets that the patient mentioned, or None if the case
    has none.
    """
    needed = {*task.distinguishing}
    return len(needed & mentioned(episode)) / len(needed) if needed else None


def inquiry_value(task: ConsultationTask, episode: Episode) -> float:
    """Return the share of the distinguishing facets that were asked for, against the number of
    things asked. A compound question asks for several things and finds the first.
    """
    things = 0
    found = set[str]()
    for exchange in exchanges_of(episode):
        told = exchange.reply.facets
        compound = exchange.reply.kind == "compound"
        things += max(1, len(told)) if compound else 1
        found.update(told[:1] if compound else told)
    needed = {*task.distinguishing}
    return len(needed & found) / max(len(needed), things)


def kinds_of(episode: Episode) -> Counter[str]:
    """Return the number of events of each kind: the patient's replies by their kind, and
    "malformed".
    """
    kinds = Counter(exchange.reply.kind for exchange in exchanges_of(episode))
    malformed = sum(isinstance(event, Malformed) for event in episode.events)
    if malformed:
        kinds["malformed"] = malformed
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


class Scheme:
    """One way to pay: a name of rewards.toml, or weights of the terms. A judge may value the
    conclusion. Raises UsageError: neither.
    """

    def __init__(self, name: str, judge: Judge | None) -> None:
        if name not in SCHEMES and "=" not in name:
            expected = f"{', '.join(SCHEMES)}, or weights such as format=0.1,diagnosis=1"
            raise AgentError(f"--reward {name}: expected {expected}")
        self.name = name
        self.judge = judge
        self.rubric = parse_rubric(name, RUBRIC.weights) if "=" in name else RUBRIC
        self.amounts: Mapping[str, float] = SCHEMES[name] if name == "doctoragent" else {}

    def highest(self, turns: int) -> float:
        """Return the most that an episode of so many turns can earn."""
        if not self.amounts:
            return self.rubric.highest
        end = self.amounts["diagnosis"] + self.amounts["recommendation"]
        return end + self.amounts["informative"] * (turns - 1)

    async def score(self, task: ConsultationTask, episode: Episode) -> Reward:
        """Return the reward of an episode, unscored with its cause if the judge failed."""
        conclusion = conclusion_of(episode)
        counters = {name: float(n) for name, n in kinds_of(episode).items()}
        values = conclusion_values(task, conclusion)
        measures: dict[str, float] = {}
        judge = None if task.options else self.judge
        if conclusion and judge:
            verdict = await judge.judge(case_of(task, conclusion))
            if verdict.score is None:
                return Reward(None, {}, verdict.cause, counters=counters)
            rule = values["diagnosis"]
            values = {name: verdict.parts.get(name, verdict.score) for name in parts_of(task)}
            measures = beside_the_rule(rule, values["diagnosis"])
        weights = RUBRIC.weights
        whole = sum(weights[name] for name in values)
        score = sum(values[name] * weights[name] for name in values) / whole
        if self.amounts:
            paid = self._summed(task, episode, values, by_words=judge is None)
        else:
            paid = self._weighed(task, episode, values)
        total = math.fsum(paid.values())
        return Reward(total, paid, score=min(1.0, score), measures=measures, counters=counters)

    def _weighed(
        self, task: ConsultationTask, episode: Episode, values: Mapping[str, float]
    ) -> dict[str, float]:
        malformed = kinds_of(episode)["malformed"]
        replies = malformed + len(exchanges_of(episode)) + (conclusion_of(episode) is not None)
        known = {**values, "format": 1 - malformed / replies if replies else 0.0}
        if task.distinguishing:
            concluded = conclusion_of(episode) is not None
            known["inquiry"] = inquiry_value(task, episode) if concluded else 0.0
        return self.rubric.weigh(
            {name: value for name, value in known.items() if name in self.rubric.names}
        )

    def _summed(
        self, task: ConsultationTask, episode: Episode, values: Mapping[str, float], by_words: bool
    ) -> dict[str, float]:
        conclusion = conclusion_of(episode)
        often = {**kinds_of(episode), "no_diagnosis": float(conclusion is None), **values}
        if conclusion and by_words:
            often["diagnosis"] = word_f1(conclusion.diagnosis, task.reference)
            often["recommendation"] = word_f1(conclusion.recommendation, task.recommendation)
        return {name: self.amounts[name] * number for name, number in often.items()}


def word_f1(text: str, reference: str) -> float:
    """Return the F1 of the words that two texts have in common."""
    said = Counter(WORD.findall(text.lower()))
    gold = Counter(WORD.findall(reference.lower()))
    return 2 * (said & gold).total() / max(1, said.total() + gold.total())


def case_of(task: ConsultationTask, conclusion: Conclusion) -> Case:
    """Return what a judge sees."""
    gold = Conclusion(task.reference, task.recommendation)
    context = [task.description] if task.description else []
    return Case(task.question, str(conclusion), str(gold), context)
