"""What a case's gold asks of an answer.

read_gold(case).kind:
    "nothing"  the gold query found no row or an empty cell, or the reference only says that nothing is there
    "number"   one number
    "names"    one column of names
    "facts"    statements: of the rows; else those of the evidence that the reference makes too; else the reference's
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from scoring.case import Case
from scoring.reference.abstention import honesty
from scoring.reference.facts import Fact, Reading, facts_of, find
from scoring.reference.text import RE, canonical, closeness, numbers, words_only

LONGEST_NAME = 40
LONGEST_COUNT = 30  # characters of a reference that is a count alone
SHARED = 0.25  # share of the evidence that the reference must repeat for both to be of one answer
TOLD = 0.6  # a cell or fact so close to the reference is part of the answer


@dataclass(frozen=True)
class Gold:
    """`texts`: the number or the names; `facts`: alternatives, each fact with what the reference itself earns for it."""

    kind: str
    texts: tuple[str, ...] = ()
    facts: list[list[tuple[Fact, float]]] = field(default_factory=list)
    names: tuple[str, ...] = ()
    ordered: bool = False


def read_gold(case: Case) -> Gold | None:
    """The gold result, else evidence and reference; None without any of them."""
    gold = case.gold or {}
    table = gold.get("structured_gt") or {}
    columns = [str(column) for column in table.get("columns") or []]
    rows = [["" if cell is None else str(cell) for cell in row] for row in table.get("rows") or []]
    rows = [row for row in rows if any(words_only(cell) for cell in row)]
    if rows:
        return _of_rows(columns, rows, case, bool(table.get("ordered")))
    quotes = list(dict.fromkeys(str(item.get("quote") or "") for item in gold.get("evidence") or []))
    quotes = [quote for quote in quotes if words_only(quote)]
    if not quotes and (honesty(case.reference, case.question) or (columns and not words_only(case.reference))):
        return Gold("nothing")
    return _of_texts(quotes, case) if quotes or words_only(case.reference) else None


def _of_rows(columns: list[str], rows: list[list[str]], case: Case, ordered: bool) -> Gold:
    cells = [cell for row in rows for cell in row if words_only(cell)]
    if len(cells) == 1 and re.fullmatch(r"-?\d+(?:\.\d+)?", cells[0].strip()):
        return Gold("number", (cells[0],))
    key = next((i for i, column in enumerate(columns) if RE.name_column.search(column)), None)
    if len(rows[0]) == 1 and key == 0 and max(map(len, cells)) <= LONGEST_NAME:
        return Gold("names", tuple(dict.fromkeys(map(canonical, cells))), ordered=ordered)
    told = _told([cell for row in rows for i, cell in enumerate(row) if i != key and words_only(cell)], case)
    if key is None or len(rows) == 1:
        return _statements([(told or cells, "")], case)
    values = [([cell for i, cell in enumerate(row) if i != key and cell in told], row[key]) for row in rows]
    return _statements(values, case)


def _told(cells: list[str], case: Case) -> list[str]:
    """The cells an answer must give: not those the reference leaves out."""
    said = words_only(canonical(case.reference))
    return [cell for cell in cells if closeness(words_only(canonical(cell)), said) >= TOLD] or cells


def _statements(values: list[tuple[list[str], str]], case: Case) -> Gold:
    """Facts of the texts of each name; a name without texts is a fact itself."""
    names = tuple(dict.fromkeys(canonical(name) for _, name in values if name))
    asked, facts = words_only(canonical(case.question)), []
    for texts, name in values:
        for text in texts or [""]:
            text = f"{name}:{text}" if name else text
            found = facts_of(text, names, asked) or facts_of(text, names)
            facts += [fact for fact in found if not texts or words_only(fact.text) != words_only(canonical(name))]
    stated = _shared(facts, case.reference) or [(fact, 1.0) for fact in facts]
    return Gold("facts", facts=[stated], names=names if len(names) > 1 else ())


def _shared(facts: list[Fact], reference: str) -> list[tuple[Fact, float]]:
    """The facts that the reference states too, with what it earns for each; none where it states next to none."""
    reading = Reading(reference)
    shared = [(fact, finding.share) for fact in facts if (finding := find(fact, reading)).share >= TOLD]
    return shared if sum(fact.weight for fact, _ in shared) >= SHARED * sum(fact.weight for fact in facts) else []


def _of_texts(quotes: list[str], case: Case) -> Gold:
    """The evidence's facts that the reference states; both as alternatives where they share next to nothing."""
    asked = words_only(canonical(case.question))
    said = numbers(canonical(case.reference)) - numbers(canonical(case.question))
    if len(said) == 1 and RE.how_many.search(case.question) and len(words_only(case.reference)) <= LONGEST_COUNT:
        return Gold("number", (f"{min(said):g}",))
    cited = list(dict.fromkeys(fact for quote in quotes for fact in facts_of(quote, (), asked)))
    names = _headed(case.reference, case.question)
    stated = list(facts_of(case.reference, names, asked))
    shared = _shared(cited, case.reference)
    if shared:
        return Gold("facts", facts=[shared])
    refused = honesty(case.reference, case.question) > 0
    found = [cited, [] if refused and cited else stated]
    facts = [[(fact, 1.0) for fact in facts] for facts in found if facts]
    facts = facts or [[(fact, 1.0) for text in (*quotes, case.reference) for fact in facts_of(text)]]
    return Gold("facts", facts=facts, names=names)


def _headed(reference: str, question: str) -> tuple[str, ...]:
    """The names that head the reference's parts ("A的禁忌：……；B的禁忌：……"), if the question has several of them."""
    asked = canonical(question)
    heads = [head.split("的")[0] for head in RE.head.findall(canonical(reference))]
    names = tuple(dict.fromkeys(head for head in heads if len(head) > 1 and head in asked))
    return names if len(names) > 1 else ()


def known_text(case: Case) -> str:
    """Question, reference and gold in canonical form: what an answer may say without having invented it."""
    gold: dict[str, Any] = case.gold or {}
    cells = [str(cell) for row in (gold.get("structured_gt") or {}).get("rows") or [] for cell in row]
    quotes = [str(item.get("quote", "")) for item in gold.get("evidence") or []]
    return canonical("\n".join([case.question, case.reference, *cells, *quotes]))
