"""The offline judge: compares the answer with what is known to be right. Deterministic, no network.

    await ReferenceJudge().judge(Case(question, answer, reference, context, gold))
    ReferenceJudge().score(question="...", answer="...", reference="...", rows=[{"dosage": "一次15毫克"}])

The score is a product of parts: the share of what gold asks for (facts, names, the count, or an honest abstention), and
factors for what is wrong or foreign beside it and for its manner. docs/offline-judge.md explains them, and has how well
they agree with people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from operator import mul
from typing import Any

from scoring.case import Case, Verdict
from scoring.reference.abstention import abstains, honesty
from scoring.reference.counts import count_worth
from scoring.reference.degenerate import context_rows, is_degenerate, without_question
from scoring.reference.facts import Reading, has
from scoring.reference.finding import SMALL, Places, find, invented
from scoring.reference.gold import Gold, Wanted, read_gold
from scoring.reference.names import named, strange_names
from scoring.reference.text import RE, amounts, canonical, normalise

FEWEST, PER_WRONG, OF_FACTS = (
    1.75,
    1.35,
    0.22,
)  # what wrong statements weigh: a wrong one beside two facts costs 40 %
INVENTED = (
    1.7  # times a statement with a term of the field that known text has not counts as a wrong one
)
PROGRAM, INSINCERE = (
    0.2,
    0.1,
)  # what is left of a program's text, and of words to the judge or taken back
FREE_LENGTH = 40  # characters that an answer may have beside twice gold's
MANY, PER_FACT, COMPLETE = (
    4,
    0.03,
    0.75,
)  # of more facts than MANY not all are needed, but so much of their weight


class ReferenceJudge:
    """Scores by comparison with gold values, evidence or the reference answer."""

    name = "reference"

    async def judge(self, case: Case) -> Verdict:
        """The verdict; not scored, with the cause "no_reference", when the case has nothing to compare with."""
        return self.compare(case)

    def score(
        self,
        *,
        question: str,
        answer: str,
        reference: str = "",
        rows: Sequence[Mapping[str, Any]] | None = None,
    ) -> float:
        """The score in [0, 1] of one answer. `rows`: what the gold query returns; without rows `reference` decides.

        Raises:
            ValueError: neither a reference nor a row to compare with.
        """
        columns = list(dict.fromkeys(column for row in rows or [] for column in row))
        cells = [[row.get(column) for column in columns] for row in rows or []]
        gold = {"structured_gt": {"columns": columns, "rows": cells}} if cells else None
        verdict = self.compare(Case(question, answer, reference, gold=gold))
        if verdict.score is None:
            raise ValueError(
                "nothing to compare with: reference is empty and there are no rows; give one of them"
            )
        return verdict.score

    def compare(self, case: Case) -> Verdict:
        """As `judge`, for callers without an event loop."""
        gold = read_gold(case)
        if gold is None:
            return Verdict(None, cause="no_reference")
        if is_degenerate(case):
            return Verdict(0.0, {"degenerate": 1.0})
        parts = _parts(gold, case)
        return Verdict(min(1.0, max(0.0, prod(parts.values()))), parts)


def _parts(gold: Gold, case: Case) -> dict[str, float]:
    """The factors of the score by name; which there are depends on the kind of gold."""
    cells, answer = context_rows(case.context), without_question(case)
    manner = {
        "sincerity": _sincerity(case, gold.known),
        "prose": PROGRAM if RE.program.search(case.answer) else 1.0,
    }
    if gold.kind == "nothing":
        known = f"{case.question}\n{case.reference}"
        return {
            "honesty": honesty(case.answer, known, [cell for row in cells for cell in row])
        } | manner
    if gold.kind != "number" and abstains(answer) and honesty(answer, case.question):
        return {"answered": 0.0}
    reading = Reading(answer, gold.names, gold.known.text)
    manner["brevity"] = min(
        1.0, (2 * len(gold.known.words) + FREE_LENGTH) / max(1, len(normalise(case.answer)))
    )
    if gold.kind == "facts":
        readings = (_facts(wanted, gold, reading) for wanted in gold.facts)
        return max(readings, key=lambda parts: prod(parts.values())) | manner
    seen = Reading("\n".join([gold.known.text, *(cell for row in cells for cell in row)]))
    wrong = _wrong(reading, seen, gold.asked, any_word=True)
    if gold.kind == "number":
        return {"number": _number(gold.texts[0], case), "truth": _truth(wrong, 1)} | manner
    wrong = max(wrong, len(strange_names(reading.text, gold.known.text)))
    found = named(gold.texts, reading.text, gold.asked, gold.ordered)
    if RE.how_many.search(case.question):
        found = max(found, count_worth(len(gold.texts), case.answer, case.question))
    return {"names": found, "truth": _truth(wrong, len(gold.texts))} | manner


def _facts(wanted: Wanted, gold: Gold, reading: Reading) -> dict[str, float]:
    """The share of the facts that the answer states, and what it states wrongly beside them."""
    findings = [find(fact, reading) for fact, _ in wanted]
    shares = [
        min(1.0, finding.share / best) for finding, (_, best) in zip(findings, wanted, strict=True)
    ]
    weights = [fact.weight for fact, _ in wanted]
    told = [(fact, finding) for (fact, _), finding in zip(wanted, findings, strict=True)]
    right = {
        (fact.words, clause) for fact, finding in told if finding.share for clause in finding.where
    }
    places = {clause for _, clause in right}
    otherwise = {
        (fact.words, finding.where[0]) for fact, finding in told if finding.contradicted
    } - right
    wrong = len(otherwise) + _wrong(reading, gold.known, gold.asked, places)
    found = sum(map(mul, shares, weights)) / sum(weights) if wanted else 0.0
    needed = min(1.0, max(COMPLETE, 1 - PER_FACT * (len(wanted) - MANY)))
    return {"facts": min(1.0, found / needed), "truth": _truth(wrong, len(wanted))}


def _wrong(
    reading: Reading, known: Reading, asked: str, places: Places = (), any_word: bool = False
) -> float:
    """How many numbers and statements known text does not bear out."""
    numbers = sum(not has(known.amounts, amount) for amount in reading.amounts - SMALL)
    return numbers + INVENTED * invented(reading, known, asked, places, any_word)


def _truth(wrong: float, facts: int) -> float:
    base = max(FEWEST, OF_FACTS * facts)
    return base / (base + PER_WRONG * wrong)


def _sincerity(case: Case, known: Reading) -> float:
    """Far below 1 for an answer that takes back what it says, or that speaks to a judge, not to who asked."""
    text = canonical(case.answer)
    text = RE.scale.sub("", text) if RE.scale.search(known.text) else text
    spoken_to = RE.to_the_judge.search(text) and not RE.to_the_judge.search(known.text)
    taken_back = RE.retraction.search(text) or any(
        denied in known.text for denied in RE.denying.findall(text)
    )
    return (INSINCERE if taken_back else 1.0) * (INSINCERE if spoken_to else 1.0)


def _number(gold: str, case: Case) -> float:
    """1 for the number alone, less for each other value offered beside it, 0 without it."""
    if RE.how_many.search(case.question):
        return count_worth(float(gold), case.answer, case.question)
    offered = {
        number for number, _ in amounts(canonical(case.answer)) - amounts(canonical(case.question))
    }
    return 1.0 / len(offered) if float(gold) in offered else 0.0
