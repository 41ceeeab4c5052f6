"""What kind of answer the gold data of a case asks for.

read_gold(case).kind:
    "nothing"  the gold query found no row or an empty cell, or the gold answer is an abstention
    "number"   one number
    "names"    one column of names
    "table"    values that belong to named rows
    "text"     texts to be found in the answer, whole or in part
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from scoring.case import Case
from scoring.reference.abstention import abstains
from scoring.reference.text import RE, canonical, closeness, normalise, numbers, words_only

LONGEST_NAME = 40


@dataclass(frozen=True)
class Gold:
    """`texts` for "text" and "names", the number's text for "number", `groups` (name -> texts) for "table"."""

    kind: str
    texts: list[str] = field(default_factory=list)
    groups: dict[str, list[str]] = field(default_factory=dict)
    ordered: bool = False


def read_gold(case: Case) -> Gold | None:
    """The gold result, else the evidence quotes, else the reference answer; None without any of them."""
    gold = case.gold or {}
    table = gold.get("structured_gt") or {}
    columns = [str(column) for column in table.get("columns") or []]
    rows = [["" if cell is None else str(cell) for cell in row] for row in table.get("rows") or []]
    if any(words_only(cell) for row in rows for cell in row):
        return _of_rows(columns, rows, case, bool(table.get("ordered")))
    if abstains(case.reference) or ((columns or rows) and not words_only(case.reference)):
        return Gold("nothing")
    quotes = [str(item["quote"]) for item in gold.get("evidence") or [] if words_only(str(item.get("quote") or ""))]
    if words_only(case.reference):  # a quote may be why a row was counted, and no part of the answer
        quotes = _in_reference(quotes, case.reference)
    return Gold("text", _unique(quotes)) if quotes else _of_reference(case)


def _of_rows(columns: list[str], rows: list[list[str]], case: Case, ordered: bool) -> Gold:
    rows = [row for row in rows if any(words_only(cell) for cell in row)]
    cells = [cell for row in rows for cell in row if words_only(cell)]
    if len(cells) == 1 and re.fullmatch(r"-?\d+(?:\.\d+)?", cells[0].strip()):
        return Gold("number", cells)
    if len(rows[0]) == 1:
        called_names = bool(columns) and RE.name_column.search(columns[0])
        kind = "names" if called_names and max(map(len, cells)) <= LONGEST_NAME else "text"
        return Gold(kind, _unique(cells), ordered=ordered)
    groups = _groups(columns, rows, case)
    return Gold("table", groups=groups) if len(groups) > 1 else Gold("text", _told(cells, case))


def _groups(columns: list[str], rows: list[list[str]], case: Case) -> dict[str, list[str]]:
    """The texts of each name; the name's column is the one whose cells the question names, else is called a name."""
    asked = words_only(case.question)
    named = [i for i in range(len(rows[0])) if all(words_only(row[i]) and words_only(row[i]) in asked for row in rows)]
    called = [i for i, column in enumerate(columns) if RE.name_column.search(column)]
    key = (named or called or [0])[0]
    groups: dict[str, list[str]] = {}
    for row in rows:
        values = [cell for i, cell in enumerate(row) if i != key and words_only(cell)]
        groups.setdefault(row[key], []).extend(values)
    told = _told([cell for values in groups.values() for cell in values], case)
    return {name: [value for value in _unique(values) if value in told] for name, values in groups.items()}


def _told(cells: list[str], case: Case) -> list[str]:
    """The cells an answer must give: not what the question says, nor what the reference answer leaves out."""
    asked = words_only(case.question)
    cells = [cell for cell in _unique(cells) if words_only(cell) not in asked] or _unique(cells)
    return _in_reference(cells, case.reference) or cells


def _in_reference(texts: list[str], reference: str) -> list[str]:
    """The texts that are close enough to some part of the reference answer."""
    said = words_only(canonical(reference))
    return [text for text in texts if closeness(words_only(canonical(text)), said) >= 0.6]


def _of_reference(case: Case) -> Gold | None:
    if not words_only(case.reference):
        return None
    said = numbers(canonical(case.reference)) - numbers(canonical(case.question))
    if len(said) == 1 and RE.how_many.search(case.question) and len(words_only(case.reference)) <= 30:
        return Gold("number", [f"{number:g}" for number in said])
    asked = words_only(case.question)
    heads = [(head, text) for head, text in RE.headed.findall(case.reference) if words_only(text)]
    groups: dict[str, list[str]] = {}
    for head, text in heads:
        name = next((part for part in (head, head.split("的")[0]) if words_only(part) in asked), "")
        if len(words_only(name)) > 1:
            groups[name.strip()] = [text]
    if len(groups) > 1 and len(groups) == len(heads):
        return Gold("table", groups=groups)
    return Gold("text", [_without_head(case.reference, asked)])


def _without_head(text: str, asked: str) -> str:
    """The reference without a leading "X的禁忌：" when X is what the question is about."""
    head, colon, rest = text.replace("：", ":", 1).partition(":")
    told = any(len(words) > 1 and words in asked for words in map(words_only, head.split("的")))
    return rest if colon and told and len(head) <= LONGEST_NAME and words_only(rest) else text


def _unique(texts: Iterable[Any]) -> list[str]:
    return list({normalise(text): text for text in texts}.values())
