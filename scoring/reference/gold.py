"""What a case's gold asks of an answer.

read_gold(case).kind:
    "nothing"  the gold query found no row or an empty cell, or the reference only says that nothing is there
    "number"   one number
    "names"    one column of names
    "facts"    statements: of the rows, else of the evidence, those of them that the reference makes too; else its own
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from scoring.case import Case
from scoring.reference.abstention import honesty
from scoring.reference.facts import Fact, Reading, facts_of
from scoring.reference.finding import find
from scoring.reference.text import RE, canonical, numbers, words_only

LONGEST_NAME, LONGEST_COUNT = 40, 30  # characters: of a name; of a reference that is a count alone
SHARED = 0.25  # share of the gold facts that the reference must repeat for both to be of one answer
TOLD = 0.6  # a fact that the reference says so far is part of the answer

Wanted = list[tuple[Fact, float]]  # facts, and what the reference itself earns for each


@dataclass(frozen=True)
class Gold:
    """`texts`: the number or names; `facts`: alternatives; `names`: if several, what the facts are of.

    `known`: question, reference and gold, all that may be said without inventing it; `asked`: the question's words;
    """

    kind: str
    texts: tuple[str, ...] = ()
    facts: list[Wanted] = field(default_factory=list)
    names: tuple[str, ...] = ()
    ordered: bool = False
    known: Reading = field(default_factory=lambda: Reading(""))
    asked: str = ""


def read_gold(case: Case) -> Gold | None:
    """The gold result, else evidence and reference; None without any of them."""
    return _read(
        case.question, case.reference, json.dumps(case.gold or {}, ensure_ascii=False, default=str)
    )


@lru_cache(maxsize=256)
def _read(question: str, reference: str, encoded: str) -> Gold | None:
    case = Case(question, "", reference, gold=json.loads(encoded))
    found = _gold_of(case)
    return found and replace(
        found, known=Reading(known_text(case)), asked=words_only(canonical(question))
    )


def known_text(case: Case) -> str:
    """Question, reference and gold in canonical form."""
    gold: dict[str, Any] = case.gold or {}
    cells = [
        str(cell) for row in (gold.get("structured_gt") or {}).get("rows") or [] for cell in row
    ]
    quotes = [str(item.get("quote", "")) for item in gold.get("evidence") or []]
    return canonical("\n".join([case.question, case.reference, *cells, *quotes]))


def _gold_of(case: Case) -> Gold | None:
    gold: dict[str, Any] = case.gold or {}
    table = gold.get("structured_gt") or {}
    columns = [str(column) for column in table.get("columns") or []]
    rows = [["" if cell is None else str(cell) for cell in row] for row in table.get("rows") or []]
    rows = [row for row in rows if any(words_only(cell) for cell in row)]
    if rows:
        return _of_rows(columns, rows, case, bool(table.get("ordered")))
    quotes = list(
        dict.fromkeys(str(item.get("quote") or "") for item in gold.get("evidence") or [])
    )
    quotes = [quote for quote in quotes if words_only(quote)]
    if not quotes and (
        honesty(case.reference, case.question) or (columns and not words_only(case.reference))
    ):
        return Gold("nothing")
    return _of_texts(quotes, case) if quotes or words_only(case.reference) else None


def _of_rows(columns: list[str], rows: list[list[str]], case: Case, ordered: bool) -> Gold:
    cells = [cell for row in rows for cell in row if words_only(cell)]
    if len(cells) == 1 and re.fullmatch(r"-?\d+(?:\.\d+)?", cells[0].strip()):
        return Gold("number", (cells[0],))
    key = next((i for i, column in enumerate(columns) if RE.name_column.search(column)), None)
    if len(rows[0]) == 1 and key == 0 and max(map(len, cells)) <= LONGEST_NAME:
        return Gold("names", tuple(dict.fromkeys(map(canonical, cells))), ordered=ordered)
    values = [[cell for i, cell in enumerate(row) if i != key and words_only(cell)] for row in rows]
    if key is None or len(rows) == 1:
        return _of_values({"": [cell for row in values for cell in row] or cells}, case)
    return _of_values({row[key]: said for row, said in zip(rows, values, strict=True)}, case)


def _of_values(values: dict[str, list[str]], case: Case) -> Gold:
    """Facts of the texts of each name; a name without texts is a fact itself."""
    names, asked = (
        tuple(canonical(name) for name in values if name),
        words_only(canonical(case.question)),
    )
    facts: list[Fact] = []
    for name, texts in values.items():
        for text in (f"{name}：{text}" if name else text for text in texts or [""]):
            found = facts_of(text, names, asked) or facts_of(text, names)
            facts += [fact for fact in found if not texts or fact.text.strip(":") not in names]
    stated = _shared(facts, case.reference, names) or [(fact, 1.0) for fact in facts]
    return Gold("facts", facts=[stated], names=names if len(names) > 1 else ())


def _shared(facts: list[Fact], reference: str, names: tuple[str, ...] = ()) -> Wanted:
    """The facts that the reference states too; none where it states next to none."""
    reading = Reading(reference, names)
    shared = [
        (fact, finding.share) for fact in facts if (finding := find(fact, reading)).share >= TOLD
    ]
    return (
        shared
        if sum(fact.weight for fact, _ in shared) >= SHARED * sum(fact.weight for fact in facts)
        else []
    )


def _of_texts(quotes: list[str], case: Case) -> Gold:
    said = numbers(canonical(case.reference)) - numbers(canonical(case.question))
    if (
        len(said) == 1
        and RE.how_many.search(case.question)
        and len(words_only(case.reference)) <= LONGEST_COUNT
    ):
        return Gold("number", (f"{min(said):g}",))
    asked = words_only(canonical(case.question))
    compared = _compared(case, quotes)
    owners = compared or ("",) * len(quotes)
    headed = [
        f"{name}：{quote}" if name else quote for name, quote in zip(owners, quotes, strict=True)
    ]
    cited = [fact for quote in headed for fact in facts_of(quote, compared, asked)]
    if shared := _shared(cited, case.reference):
        return Gold("facts", facts=[shared], names=compared)
    refused = cited and honesty(case.reference, case.question)
    stated = [] if refused else facts_of(case.reference, (), asked)
    found = [facts for facts in (cited, stated) if facts] or [
        facts_of("\n".join([*quotes, case.reference]))
    ]
    wanted = [[(fact, 1.0) for fact in facts] for facts in found]
    return Gold("facts", facts=wanted, names=compared)


def _compared(case: Case, quotes: list[str]) -> tuple[str, ...]:
    """The two names that the question compares, if there is one quote of each, in the question's order."""
    match = RE.compared.search(canonical(case.question))
    return match.groups() if match and len(quotes) == 2 else ()
