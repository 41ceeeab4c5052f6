"""What a consultation earns: the terms of rewards.toml, or one of the reference's two sums, by
`--reward`.

    reward = await Scheme("terms", judge=None).score(task, episode)
    reward.total, reward.terms, reward.score

The score, in [0, 1], is that of the conclusion alone: diagnosis and advice by their weights. An LLM
judge gives these two values where one is set, and leaves the episode unscored where it fails.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from conditions.condition_types import terms
from conditions.diagnosis import names_it
from conditions.gold_sentence import diseases_in
from conditions.judged import beside_the_rule
from consultation_agent.doctor_questions import content_of
from consultation_agent.patient import Exchange
from consultation_agent.protocol import Conclusion, Malformed
from consultation_agent.task import ConsultationTask
from consultation_agent.text_overlap import word_f1
from episodes.episode import AgentError, Episode
from scoring.case import Case, Judge, Verdict
from scoring.rubric import Reward, Rubric, parse_rubric
from scoring.text import words_only

TABLES = tomllib.loads(Path(__file__).with_name("rewards.toml").read_text(encoding="utf-8"))
WORDS = TABLES.pop("words")
NAMES = tuple(TABLES)
SUMS = tuple(name for name in NAMES if name != "terms")
RUBRIC = Rubric(TABLES["terms"])
CLAUSE = re.compile(r"[，。；、,;.!！?？\n]")
NEGATED = re.compile("|".join(map(re.escape, sorted(WORDS["negations"], key=len, reverse=True))))
NO_NEGATION = re.compile("|".join(WORDS["no_negations"]))
# Between a negation and what it acts on no other predicate begins; none but its manner is between it
# and another negation that it undoes.
WITHIN = re.compile(rf"(?!{'|'.join(WORDS['next_predicate'])}).*")
DIRECTLY = re.compile(rf"了?(?:{'|'.join(WORDS['manner'])})?")
ANY_ADVICE = re.compile("|".join(WORDS["any_advice"]))
ROOM = 1.4  # advice may have so many times the characters that the gold has for what is given
FREE = 4  # characters more, for advice of few words


def conclusion_of(episode: Episode) -> Conclusion | None:
    return next((event for event in episode.events if isinstance(event, Conclusion)), None)


def is_right(task: ConsultationTask, diagnosis: str) -> bool:
    """Return whether a diagnosis is the gold one, by one of its names, and nothing else: a list is
    wrong.

    A gold sentence has the names of the disease in it, and the same sentence is right. With options
    the letter is compared.
    """
    if task.options:
        return diagnosis == task.reference
    names = task.names or diseases_in(task.reference)
    same = words_only(diagnosis) == words_only(task.reference)
    return same or names_it(diagnosis, (*names, task.reference))


def diagnosis_value(task: ConsultationTask, diagnosis: str) -> float:
    """Return 1 for the right diagnosis, else 0."""
    return float(is_right(task, diagnosis))


def recommendation_value(task: ConsultationTask, advice: str) -> float:
    """Return the mean over the gold items of the share of their terms that are advised; a
    contradicted term counts against it.

    For what it gives, advice may have 1.4 times as many characters as gold needs. Beyond that, its
    worth falls in proportion, so that a list of everything is worth little. Without known items it
    is the F1 of the content words, without those that any advice has.
    """
    if not task.advice:
        return _content_f1(advice, task.recommendation)
    clauses = CLAUSE.split(advice)
    gold = [CLAUSE.split(item) for item in task.advice]
    shares = [
        sum(_given(term, own, clauses) for term in terms(item)) / len(terms(item))
        for item, own in zip(task.advice, gold, strict=True)
    ]
    given = max(0.0, sum(shares) / len(shares))
    room = FREE + ROOM * given * len(words_only("".join(task.advice)))
    return given * min(1.0, room / max(1, len(words_only(advice))))


def _content_f1(advice: str, gold: str) -> float:
    if words_only(advice) == words_only(gold):
        return 1.0
    said, wanted = (content_of(ANY_ADVICE.sub(" ", text.lower())) for text in (advice, gold))
    return 2 * len(said & wanted) / max(1, len(said) + len(wanted))


def _given(term: str, gold: list[str], clauses: list[str]) -> int:
    """Return 1 if the term is advised in the gold's sense, -1 if in the opposite one, 0 if not at all
    or in both.
    """
    senses = {_sense(term, clause) for clause in clauses} - {None}
    if len(senses) != 1:
        return 0
    wanted = next(sense for clause in gold if (sense := _sense(term, clause)) is not None)
    return 1 if wanted in senses else -1


def _sense(term: str, clause: str) -> bool | None:
    """Return whether a clause is for (True) or against (False) what the term names; None if it does
    not name it.

    The last negation before it decides. Another one undoes that only directly before it, as in
    "不要停用"; coordinated ones ("少喝酒少喝咖啡") each act on their own thing.
    """
    before, named, _ = clause.partition(term)
    if not named:
        return None
    before = NO_NEGATION.sub(" ", before)
    acts = DIRECTLY if NEGATED.match(term) else WITHIN
    sense = True
    place = len(before)
    for negation in reversed([*NEGATED.finditer(before)]):
        if not acts.fullmatch(before, negation.end(), place):
            break
        acts = DIRECTLY
        sense = not sense
        place = negation.start()
    return sense


def found_facets(task: ConsultationTask, episode: Episode) -> float | None:
    """Return the share of the distinguishing facets that the patient mentioned; None if the case
    has none.
    """
    mentioned = {
        facet
        for event in episode.events
        if isinstance(event, Exchange)
        for facet in event.reply.facets
    }
    return (
        len(mentioned & {*task.distinguishing}) / len(task.distinguishing)
        if task.distinguishing
        else None
    )


def things_asked(episode: Episode) -> int:
    """Return how many things the doctor asked for: each thing of a compound question is one."""
    replies = [event.reply for event in episode.events if isinstance(event, Exchange)]
    return sum(max(1, len(reply.facets)) if reply.kind == "compound" else 1 for reply in replies)


def kinds_of(episode: Episode) -> Counter[str]:
    """Return the number of events of each kind: the patient's replies by their kind, and
    "malformed".
    """
    return Counter(
        event.reply.kind if isinstance(event, Exchange) else "malformed"
        for event in episode.events
        if isinstance(event, Exchange | Malformed)
    )


def term_values(task: ConsultationTask, episode: Episode) -> dict[str, float]:
    """Return the values, before weights, of `format` and, if the case has distinguishing facets, of
    `inquiry`, which is 0 without a conclusion.
    """
    kinds = kinds_of(episode)
    replies = sum(isinstance(event, Exchange | Malformed | Conclusion) for event in episode.events)
    values = {"format": 1 - kinds["malformed"] / replies if replies else 0.0}
    share = found_facets(task, episode)
    if share is not None:
        needed = len(task.distinguishing)
        asked = things_asked(episode)
        values["inquiry"] = share * needed / max(needed, asked) if conclusion_of(episode) else 0.0
    return values


class Scheme:
    """One way to pay: a name of rewards.toml, or weights of the terms; a judge, if any, values
    diagnosis and advice.

    Raises UsageError: neither.
    """

    def __init__(self, name: str, judge: Judge | None) -> None:
        if name not in NAMES and "=" not in name:
            raise AgentError(
                f"--reward {name}: expected {', '.join(NAMES)}, "
                "or weights such as format=0.1,diagnosis=1"
            )
        self.name = name
        self.judge = judge
        self.rubric = parse_rubric(name, RUBRIC.weights) if "=" in name else RUBRIC
        self.amounts = TABLES[name] if name in SUMS else {}

    def highest(self, turns: int) -> float:
        """Return the most that an episode of so many turns can earn."""
        if not self.amounts:
            return self.rubric.highest
        end = sum(self.amounts[name] for name in ("diagnosis", "recommendation", "turn"))
        return float(
            end + max(0.0, self.amounts["informative"] + self.amounts["turn"]) * (turns - 1)
        )

    async def score(self, task: ConsultationTask, episode: Episode) -> Reward:
        """Return the reward of an episode; unscored, with its cause, if the judge failed."""
        conclusion = conclusion_of(episode)
        counters = {name: float(n) for name, n in kinds_of(episode).items()}
        measures: dict[str, float] = {}
        if conclusion and self.judge and not task.options:
            verdict = await self.judge.judge(case_of(task, conclusion))
            if verdict.score is None:
                return Reward(None, {}, verdict.cause, counters=counters)
            values = judged(task, verdict)
            rule = diagnosis_value(task, conclusion.diagnosis)
            measures = beside_the_rule(rule, values["diagnosis"])
        else:
            values = conclusion_values(task, conclusion)
        weights = {name: RUBRIC.weights[name] for name in values}
        score = sum(values[name] * weight for name, weight in weights.items()) / sum(
            weights.values()
        )
        paid = (
            self._summed(task, episode, values)
            if self.amounts
            else self._weighed(task, episode, values)
        )
        return Reward(
            math.fsum(paid.values()),
            paid,
            score=min(1.0, score),
            measures=measures,
            counters=counters,
        )

    def _weighed(
        self, task: ConsultationTask, episode: Episode, values: Mapping[str, float]
    ) -> dict[str, float]:
        known = {**values, **term_values(task, episode)}
        return self.rubric.weigh(
            {name: value for name, value in known.items() if name in self.rubric.names}
        )

    def _summed(
        self, task: ConsultationTask, episode: Episode, values: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the amount that each kind of event earned in all."""
        conclusion = conclusion_of(episode)
        if conclusion and self.amounts["match"] == "words" and not self.judge:
            gold = {"diagnosis": task.reference, "recommendation": task.recommendation}
            values = {name: word_f1(vars(conclusion)[name], text) for name, text in gold.items()}
        often = {
            **kinds_of(episode),
            "turn": len(episode.events),
            "no_diagnosis": float(conclusion is None),
            **values,
        }
        return {name: self.amounts[name] * number for name, number in often.items()}


def parts_of(task: ConsultationTask) -> tuple[str, ...]:
    """Return the parts of a conclusion that the case has a gold for; some cases have no advice."""
    advised = bool(task.recommendation or task.advice)
    return ("diagnosis", "recommendation") if advised else ("diagnosis",)


def conclusion_values(task: ConsultationTask, conclusion: Conclusion | None) -> dict[str, float]:
    """Return the values of diagnosis and advice by the rules; 0 without a conclusion."""
    if conclusion is None:
        return dict.fromkeys(parts_of(task), 0.0)
    values = {"diagnosis": diagnosis_value(task, conclusion.diagnosis)}
    if "recommendation" in parts_of(task):
        values["recommendation"] = recommendation_value(task, conclusion.recommendation)
    return values


def case_of(task: ConsultationTask, conclusion: Conclusion) -> Case:
    """Return what a judge sees."""
    gold = Conclusion(task.reference, task.recommendation)
    return Case(
        task.question, str(conclusion), str(gold), [task.description] if task.description else []
    )


def judged(task: ConsultationTask, verdict: Verdict) -> dict[str, float]:
    """Return a judge's values of diagnosis and advice; a single score counts for both."""
    return {name: verdict.parts.get(name, verdict.score or 0.0) for name in parts_of(task)}
