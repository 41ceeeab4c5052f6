"""Gold, taken apart: the facts of its rows or evidence and of its reference, with the places where
they may stand.

    gold = read_gold("X怎么存放？", "X的贮藏：密封、避光", "{}")
    gold.take_apart()
    gold.known          # {"密封": {("x", "贮藏")}, "避光": {("x", "贮藏")}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scoring.abstention import abstains
from scoring.pieces import (
    ENDING,
    HAS_WORD,
    JOINTS,
    key_of,
    pieces_in,
    pieces_of,
    split_head,
    without_frames,
)
from scoring.text import canonical, words_only

COUNTED = "[种个款类项例名位家样味条盒]?"
TOTAL = re.compile(
    rf"(?:一?共计?|总共|合计|总计|有|查到|找到|查询到|数量[是为]?){{0,4}}(\d+){COUNTED}"
)
PROGRAM = re.compile(
    r'^\W*[{\[]\s*["\[{]|"?(?:columns|rows|row_count)"?\s*:|"\w+"\s*:\s*["\[\d]|\|\s*:?-{2,}'
)


@dataclass
class Form:
    """One form of gold: its facts by key, each with the places where it may stand (whose it is, and
    which field).
    """

    facts: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)  # as a fact stands in the text: its key

    def add(self, text: str, owner: str = "", label: str = "") -> None:
        """Take a canonical text of gold apart; in an enumeration the items of its last part are
        facts too.
        """
        pieces = pieces_in(text)
        listed = any(sign == "、" for _, sign in pieces)
        for piece, _ in pieces:
            parts = list(filter(None, JOINTS.split(piece))) if listed else []
            whole = len(parts) > 1 and all(len(part) > 1 for part in parts)
            for part in parts if whole else [piece]:
                self.facts.setdefault(key_of(part), set()).add((owner, label))
                self.written[part] = key_of(part)

    @property
    def weight(self) -> int:
        return sum(map(len, self.facts))


@dataclass
class Gold:
    """What is known to be right: `rows` of texts, and the reference.

    `names`: what it is about; `labels`: its fields; `heads`: what may stand before it; `known`: its
    facts, and where each may stand. All of these are there after `take_apart`.
    """

    rows: list[list[str]]
    reference: str
    by_reference: bool
    asked: str  # the question, canonical
    question: str  # the same as words only
    wholes: set[str] = field(default_factory=set)
    nothing: bool = False
    is_program: bool = False
    forms: list[Form] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    heads: set[str] = field(default_factory=set)
    number: str | None = None  # how many there are, where that is the whole answer
    count: str = ""  # the fact that says so
    known: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    by_end: dict[str, list[str]] = field(default_factory=dict)

    def take_apart(self) -> None:
        """Find the facts, once; an answer that is gold word for word does not need them."""
        if self.forms:
            return
        if words_only(self.reference):
            self.forms.append(_reference_form(self.reference, self))
        self.forms.append(_row_form(self.rows, self))
        if not self.by_reference and self.rows:
            del self.forms[:-1]
        self.forms = [form for form in self.forms if form.facts]
        self.question += words_only(canonical(self.reference)) if not self.rows else ""
        if len(self.rows) == 1 and len(self.rows[0]) == 1 and self.rows[0][0].isdecimal():
            self.number = self.count = self.rows[0][0]
        elif self.by_reference:
            self.number, self.count = _count_of(self.reference)
        self._index()

    def _index(self) -> None:
        """Gather the facts of all forms: where each may stand, and how they are written by their
        last sign, the longest first.
        """
        for form in self.forms:
            self.written |= form.written
            for fact, places in form.facts.items():
                self.known[fact] = self.known.get(fact, set()) | places
        for text in sorted(self.written, key=len, reverse=True):
            self.by_end.setdefault(text[-1], []).append(text)


@lru_cache(maxsize=512)
def read_gold(
    question: str, reference: str, encoded: str, by_reference: bool = True
) -> Gold | None:
    """Return what is known to be right: the gold rows (else the evidence) and the reference; None
    if the task has neither.
    """
    known = json.loads(encoded)
    table, evidence = known.get("structured_gt"), known.get("evidence") or []
    rows = table["rows"] if table else [[item["quote"]] for item in evidence]
    rows = [[_text(cell) for cell in row] for row in rows]
    filled = [[cell for cell in row if HAS_WORD.search(canonical(cell))] for row in rows]
    filled = [row for row in filled if row]
    if not filled and not words_only(reference) and table is None:
        return None
    asked = canonical(question)
    gold = Gold(filled, reference, by_reference, asked, words_only(asked))
    gold.nothing = not filled and (abstains(reference) or not words_only(reference))
    cells = (without_frames(cell) for row in filled for cell in row)
    gold.wholes = {"\n".join(cells), without_frames(reference) if by_reference else ""} - {""}
    gold.is_program = any(PROGRAM.search(text) for row in [*filled, [reference]] for text in row)
    return gold


def _count_of(reference: str) -> tuple[str | None, str]:
    """Return the number and the fact of a reference that only counts; (None, "") of any other."""
    pieces = pieces_of(reference)
    match = TOTAL.fullmatch(pieces[0][0]) if len(pieces) == 1 else None
    return (match[1], key_of(pieces[0][0])) if match else (None, "")


def _text(cell: Any) -> str:
    return "" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)


def _row_form(rows: Sequence[Sequence[str]], gold: Gold) -> Form:
    """Return the cells as facts, apart from each row's name: the cell that the question or a head
    of the reference has too.
    """
    form, heads = Form(), "\n".join(gold.heads)
    names = [_name_of(row, gold.question, heads) for row in rows]
    gold.names += [
        name for name in dict.fromkeys(map(_plain, filter(None, names))) if name not in gold.names
    ]
    places = {fact: where for one in gold.forms for fact, where in one.facts.items()}
    for row, name in zip(rows, names, strict=True):
        for cell in row:
            if cell != name:
                found = [places.get(key_of(piece), set()) for piece, _ in pieces_of(cell)]
                labels = {label for where in found for _, label in where}
                form.add(canonical(cell), _plain(name), labels.pop() if len(labels) == 1 else "")
    return form


def _plain(text: str) -> str:
    return canonical(text).strip()


def _name_of(row: Sequence[str], question: str, heads: str) -> str:
    """Return the cell that says what the row is about; "" if no cell does or the row has
    no other.
    """
    if len(row) < 2:
        return ""
    found = [cell for cell in row if _plain(cell) in heads or words_only(_plain(cell)) in question]
    return max(found, key=len, default="")


def _reference_form(reference: str, gold: Gold) -> Form:
    """Return the reference's facts. The text before a colon is a head: a name and a field, if it
    has both.
    """
    form, owner, label = Form(), "", ""
    for line in re.split(r"[;。\n]", canonical(reference)):
        head, colon, text = line.partition(":")
        pieces = pieces_in(head)
        if colon and len(pieces) == 1 and words_only(text):
            about, kind = split_head(ENDING.sub("", pieces[0][0]))
            gold.heads.add(pieces[0][0])
            if about and words_only(about) in gold.question:
                owner = about
                gold.names += [about] if about not in gold.names else []
            label = kind
            gold.labels += [kind] if kind and kind not in gold.labels else []
        form.add(text if colon and len(pieces) == 1 and words_only(text) else line, owner, label)
    return form
