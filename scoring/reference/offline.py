"""The offline judge: compares the answer with what is known to be right. Deterministic, no network, well under 1 ms.

    await ReferenceJudge().judge(Case(question, answer, reference, context, gold))
    ReferenceJudge().score(question="...", answer="...", reference="...", rows=[{"dosage": "一次15毫克"}])

What the gold data is decides what is looked for (scoring/reference/gold.py): a number must be equal; names are counted,
right against extra ones; values must stand with the name they belong to; texts count by the share that is said; where
nothing was to be found, an honest abstention earns 1 and an invention 0. That share is multiplied by factors for what
counts against an answer (scoring/reference/penalties.py): copied cells of the tool's results, strange numbers,
unsupported statements, another name than the question's, hedging, words to the judge, length beyond about twice what is
needed.

What it cannot see: synonyms it has no rule for (English drug names, abbreviations, traditional characters), a right
answer that gold does not hold, a denial in words it has no pattern for, whether advice is sensible, style. It compares
with gold; it does not know medicine. docs/offline-judge.md has its measured agreement with hand-made labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from scoring.case import Case, Verdict
from scoring.reference.abstention import honesty
from scoring.reference.counts import MOST_NUMBERS, count_worth
from scoring.reference.coverage import coverage, grouped
from scoring.reference.degenerate import context_rows, is_degenerate, known_text, without_question
from scoring.reference.gold import Gold, read_gold
from scoring.reference.names import named
from scoring.reference.penalties import brevity, hedging, number_agreement, precision, sincerity, subject, support
from scoring.reference.text import RE, Reading, canonical, numbers, words_only


class ReferenceJudge:
    """Scores by comparison with gold values, evidence or the reference answer."""

    name = "reference"

    async def judge(self, case: Case) -> Verdict:
        """The verdict; not scored, with the cause "no_reference", when the case has nothing to compare with."""
        return self.compare(case)

    def score(
        self, *, question: str, answer: str, reference: str = "", rows: Sequence[Mapping[str, Any]] | None = None
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
            raise ValueError("nothing to compare with: reference is empty and there are no rows; give one of them")
        return verdict.score

    def compare(self, case: Case) -> Verdict:
        """As `judge`, for callers without an event loop."""
        gold = read_gold(case)
        if gold is None:
            return Verdict(None, cause="no_reference")
        if is_degenerate(case):
            return Verdict(0.0, {"degenerate": 1.0})
        parts = _parts(gold, case)
        return Verdict(min(1.0, prod(parts.values())), parts)


def _parts(gold: Gold, case: Case) -> dict[str, float]:
    """The factors of the score by name; which there are depends on the kind of gold."""
    reading, cells = Reading(without_question(case), case.question), context_rows(case.context)
    parts = {"sincerity": sincerity(reading)}
    if gold.kind == "nothing":
        shown = [cell for row in cells for cell in row]
        return parts | {"honesty": honesty(case.answer, f"{case.question}\n{case.reference}", shown)}
    texts = [*gold.texts, *(text for name, texts in gold.groups.items() for text in (name, *texts))]
    needed = max(len(words_only(case.reference)), sum(len(words_only(text)) for text in texts))
    parts["brevity"] = brevity(needed, reading)
    if gold.kind == "number":
        return parts | {"number": _number(gold.texts[0], case)}
    known = known_text(case)
    parts["coverage"] = _covered(gold, reading)
    parts["precision"] = precision(cells, reading.words, known)
    parts["hedging"] = hedging(reading)
    if gold.kind == "names":
        return parts
    parts["agreement"] = number_agreement(map(canonical, texts), reading, known)
    parts["support"] = support(reading, known, needed)
    parts["subject"] = subject(reading, known)
    return parts


def _covered(gold: Gold, reading: Reading) -> float:
    if gold.kind == "names":
        return named(gold.texts, reading, gold.ordered)
    return grouped(gold.groups, reading) if gold.kind == "table" else coverage(gold.texts, reading)


def _number(gold: str, case: Case) -> float:
    """1 for the number alone, less for each other value offered beside it, 0 without it."""
    if RE.how_many.search(case.question):
        return count_worth(float(gold), case.answer, case.question)
    wanted, asked = float(gold), numbers(canonical(case.question))
    said = numbers(canonical(case.answer))
    offered = (said - asked) | ({wanted} & said)
    return 1.0 / len(offered) if wanted in offered and len(offered) <= MOST_NUMBERS else 0.0
