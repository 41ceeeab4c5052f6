"""Gold, taken apart: the facts of its rows or evidence and of its reference, with the places where
they may stand.

    gold = read_gold("X怎么存放？", "X的贮藏：密封、避光", "{}")
    gold.take_apart()
    gold.places                          # {"密封": {("x", "贮藏")}, "避光": {("x", "贮藏")}}
    gold.facts_at_end("x的贮藏是避光")     # (["避光"], "x的贮藏是")
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scoring.text import words_only
from sql_agent.judge.abstention import abstains
from sql_agent.judge.canonical import canonical, with_digits
from sql_agent.judge.heads import Heads
from sql_agent.judge.pieces import (
    COPULA,
    COURTESY_BEHIND,
    DENYING,
    ENDING,
    HAS_WORD,
    HELPERS,
    JOINT,
    JOINTS,
    OTHER_NUMBER,
    is_free,
    key_of,
    pieces_in,
    pieces_of,
    split_head,
    without_frames,
)
from sql_agent.judge.units import COUNTED, UNIT

MEASURE = rf"{UNIT}|{COUNTED}|[个款类项名位家条盒张床元]"
NUMBER = re.compile(r"-?\d{1,9}(?:\.\d{1,4})?")
MEASURED = re.compile(rf"(?<![-\d.~])({NUMBER.pattern}) ?({MEASURE})(?![a-z/])")
ASKED_MEASURE = re.compile(rf"(?:几|多少|how many )({MEASURE})(?![a-z])")
TOTAL = "1?共计?|总共|合计|总计"  # in all, which is no field
COUNTERS = "种个款类项例名位家样味条盒"
COUNT = re.compile(rf"(?:{TOTAL}|有)*(\d+)[{COUNTERS}]?")
COUNTED_BEHIND = re.compile(f"[{COUNTERS}]?")
UNCOUNTED = re.compile(f"[a-z]+|[^{COUNTERS}]")  # a word that counts nothing
BEFORE_NUMBER = re.compile(f"{OTHER_NUMBER}$")
BEHIND_NUMBER = re.compile(OTHER_NUMBER)
JOINT_BEHIND = re.compile(f"(?:{JOINT})$")
LONGEST_JOINT = 5
AND_BEFORE = re.compile("^(?:以及|还有|另有|and |or )(?=.)")  # before the last item: "A, B, and C"
ASKED_BEHIND = re.compile("[吗呢啊呀?。! ]+$")
SHORTEST_END = 2  # characters of the question's end that may stand behind a fact
LINE_END = re.compile(r"[;。\n]")
COPULA_INSIDE = re.compile(COPULA)
PROGRAM = re.compile(
    r'^\W*[{\[]\s*["\[{]|"?(?:columns|rows|row_count)"?\s*:|"\w+"\s*:\s*["\[\d]|\|\s*:?-{2,}'
)


@dataclass
class Form:
    """One way to tell gold: its facts by key, each with the places where it may stand (whose it is,
    and which field).
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
            item = AND_BEFORE.sub("", piece)
            parts = list(filter(None, JOINTS.split(item))) if listed else []
            whole = len(parts) > 1 and all(len(part) > 1 for part in parts)
            for part in parts if whole else [item]:
                self.facts.setdefault(key_of(part), set()).add((owner, label))
                self.written[part] = key_of(part)

    @property
    def weight(self) -> int:
        return sum(map(len, self.facts))


@dataclass
class Gold:
    """What is known to be right: `rows` of texts, and the reference.

    `heads`: what may stand before a fact; `places`: where each fact may stand; `written`: each fact
    by the texts that say it; `inside`: the reference's facts that a longer one of a row says. The
    last three are there after `take_apart`.
    """

    rows: list[list[str]]
    reference: str
    by_reference: bool
    heads: Heads
    wholes: set[str] = field(default_factory=set)
    nothing: bool = False
    is_program: bool = False
    forms: list[Form] = field(default_factory=list)
    number: str | None = None  # how many there are, where that is the whole answer
    places: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    inside: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _lengths: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))

    def take_apart(self) -> None:
        """Find the facts, once; an answer that is gold word for word does not need them."""
        if self.forms:
            return
        of_reference = _reference_form(self)
        of_rows = _row_form(self, of_reference)
        self._take(of_rows)
        self._read_heads()
        if self.by_reference and self.rows:
            self._take_quoted()
        if self.by_reference or not self.rows:
            self._take(of_reference)
            self._read_inside(of_rows, of_reference)

    def _take(self, form: Form) -> None:
        """Know the facts of a form, and the texts that say them."""
        if not form.facts:
            return
        self.forms.append(form)
        self.written |= form.written
        for fact, places in form.facts.items():
            self.places[fact] = self.places.get(fact, set()) | places
        self._read_numbers()
        for text in self.written:
            self._lengths[text[-2:]].add(len(text))

    def _take_quoted(self) -> None:
        """Ask only for the cells that the reference quotes, where it consists of quotes: a row may
        have columns that were not asked for.
        """
        quoted = Form()
        for piece, _ in pieces_of(self.reference):
            facts = self.facts_at_end(piece)[0]
            if not facts and not self.heads.leads(piece) and not is_free(piece):
                return
            quoted.facts |= {fact: self.places[fact] for fact in facts}
        if not quoted.facts:
            return
        for cell in (cell for row in self.rows for cell in row):
            own = Form()
            _read_lines(own, Heads(""), canonical(cell), "", "")
            if own.facts.keys().isdisjoint(quoted.facts):
                for key in own.facts.keys() & self.forms[0].facts.keys():
                    del self.forms[0].facts[key]
        self.forms.append(quoted)

    def _read_inside(self, of_rows: Form, of_reference: Form) -> None:
        """Let a clause of a row say the fact that the reference has of it: "饭前15分钟服用" says
        "饭前15分钟".
        """
        clauses = "\n".join(of_rows.written)
        for part, fact in of_reference.written.items():
            if fact in of_rows.facts or part not in clauses:
                continue
            for clause, quoted in of_rows.written.items():
                if _says(clause, part):
                    self.inside[quoted].add(fact)

    def facts_at_end(self, piece: str) -> tuple[list[str], str]:
        """Return the facts that the piece ends with, and the head before them; none where what stands
        before is no head.
        """
        found: list[str] = []
        rest, joint = self._without_tail(piece), None
        while rest and (fact := self._fact_at_end(rest)):
            found.append(self.written[fact])
            rest = rest.removesuffix(fact)
            joint = None if rest in self.written else JOINT_BEHIND.search(rest[-LONGEST_JOINT:])
            rest = (rest.removesuffix(joint.group()) if joint else rest).strip()
            if not joint and self.heads.leads(rest):  # "X的Y是是": the copula is no second fact
                break
        if (
            not found
            or HELPERS.fullmatch(piece)
            or (rest and (joint or not self.heads.leads(rest)))
        ):
            return [], piece
        return found, rest

    def before_label(self, piece: str) -> str:
        """Return "x有" of "x有过敏史", where 过敏史 is a label: yes and no may stand before it."""
        label = next(filter(piece.endswith, self.heads.labels.words), "")
        before = piece.removesuffix(label) if label else ""
        before = before.replace("没有", "无").replace("不是", "否")
        return before if before.endswith(("有", "无", "是", "否")) else piece

    def ends_in_fact(self, piece: str) -> bool:
        return self._fact_at_end(piece) is not None

    def _fact_at_end(self, text: str) -> str | None:
        """Return the longest fact that the text ends with, not inside a number or an English word."""
        lengths = self._lengths.get(text[-2:], set()) | self._lengths.get(text[-1:], set())
        for length in sorted(lengths, reverse=True):
            fact = text[-length:]
            if fact in self.written and _is_apart(text[: len(text) - length][-1:], fact[0]):
                return fact
        return None

    def _without_tail(self, piece: str) -> str:
        """Return the piece without what may stand behind a fact: a measure word and words of the question
        behind a count, and "医生" behind a name.
        """
        number = self.number or ""
        places = {piece.find(number), piece.rfind(number)} - {-1} if number else set()
        for start in sorted(places):
            end = start + len(number)
            word = UNCOUNTED.match(piece, end)
            tail = COUNTED_BEHIND.sub("", piece[end:], count=1)
            of_question = word and number + word.group() in self.heads.asked  # "3级"
            if not of_question and not BEHIND_NUMBER.match(piece, end) and self.heads.asks(tail):
                return piece[:end]
        if self.ends_in_fact(piece):
            return piece
        courtesy = COURTESY_BEHIND.search(piece)
        return piece[: courtesy.start()] if courtesy else self._before_asked_end(piece)

    def _before_asked_end(self, piece: str) -> str:
        """Return "属于乙类" of "属于乙类法定传染病", where the question ends in 法定传染病 and denies
        nothing, and a fact stands before that.
        """
        asked = ASKED_BEHIND.sub("", self.heads.asked)
        if DENYING.search(asked):
            return piece
        for length in range(min(len(piece) - 1, len(asked)), SHORTEST_END - 1, -1):
            rest, end = piece[:-length], asked[-length:]
            if piece.endswith(end) and not end[0].isascii() and self.ends_in_fact(rest):
                return rest
        return piece

    def _read_numbers(self) -> None:
        """Let a bare number stand with the measure word that the reference or the question has for it."""
        asked = ASKED_MEASURE.findall(with_digits(self.heads.asked))
        measured = MEASURED.findall(with_digits(self.reference))
        for text, key in [*self.written.items()]:
            if NUMBER.fullmatch(text):
                words = {*asked, *(word for number, word in measured if number == text)}
                words |= {"年"} if re.fullmatch(r"(?:19|20)\d\d", text) else set()
                self.written |= {canonical(text + word): key for word in words}
            elif (measured_fact := MEASURED.fullmatch(text)) and measured_fact[2] in asked:
                self.written |= {measured_fact[1]: key}  # "多少片" is answered by a bare number
        if len(self.places) == 1:
            fact = next(iter(self.places))
            counted = COUNT.fullmatch(fact)
            self.number = counted[1] if counted else None
            self.written |= {counted[1]: fact} if counted else {}

    def _read_heads(self) -> None:
        """Know the labels that the reference has before facts of the rows: "血型" of "患者的血型是A型"."""
        for piece, _ in pieces_of(self.reference):
            fact = self._fact_at_end(piece)
            head = ENDING.sub("", piece.removesuffix(fact).strip()) if fact else ""
            about, label = split_head(head)
            if about and words_only(about) in self.heads.words:
                self.heads.labels.add(label)


def _is_apart(before: str, first: str) -> bool:
    """Return whether a fact that begins with a sign is whole behind another."""
    number = (first.isdecimal() or not first.isalnum()) and BEFORE_NUMBER.search(before)
    return not number and not (before.isascii() and before.isalnum() and first.isascii())


def _says(clause: str, part: str) -> bool:
    """Return whether the clause has the part somewhere, not inside a number or an English word."""
    places = (one.span() for one in re.finditer(re.escape(part), clause))
    return any(
        _is_apart(clause[:start][-1:], part[0]) and not BEHIND_NUMBER.match(clause, end)
        for start, end in places
    )


@lru_cache(maxsize=512)
def read_gold(
    question: str, reference: str, encoded: str, by_reference: bool = True
) -> Gold | None:
    """Return what is known to be right, of the gold rows (else the evidence) and the reference; None
    without any of them.
    """
    known = json.loads(encoded)
    table, evidence = known.get("structured_gt"), known.get("evidence") or []
    rows = table["rows"] if table else [[item["quote"]] for item in evidence]
    rows = [[_text(cell) for cell in row] for row in rows]
    filled = [[cell for cell in row if HAS_WORD.search(canonical(cell))] for row in rows]
    filled = [row for row in filled if row]
    if not filled and not words_only(reference) and table is None:
        return None
    heads = Heads(canonical(question))
    for column in table["columns"] if table else []:
        heads.labels.add(_plain(str(column).replace("_", " ")))
    gold = Gold(filled, reference, by_reference, heads)
    gold.nothing = not filled and (abstains(reference) or not words_only(reference))
    cells = (without_frames(cell) for row in filled for cell in row)
    gold.wholes = {"\n".join(cells), without_frames(reference) if by_reference else ""} - {""}
    gold.is_program = any(PROGRAM.search(text) for row in [*filled, [reference]] for text in row)
    return gold


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell)


def _plain(text: str) -> str:
    return canonical(text).strip()


def _row_form(gold: Gold, of_reference: Form) -> Form:
    """Return the cells as facts, each row's name apart: the cell that the question or a head of the
    reference has too. A fact of the reference has the same label here.
    """
    form, heads = Form(), "\n".join(gold.heads.whole)
    labelled = any(label for places in of_reference.facts.values() for _, label in places)
    for row in gold.rows:
        name = _name_of(row, gold.heads.words, heads)
        gold.heads.names.add(_plain(name))
        for cell in row:
            if cell != name:
                pieces = pieces_of(cell) if labelled else ()
                found = [of_reference.facts.get(key_of(piece), set()) for piece, _ in pieces]
                labels = {label for where in found for _, label in where}
                label = labels.pop() if len(labels) == 1 else ""
                _read_lines(form, gold.heads, canonical(cell), _plain(name), label)
    return form


def _name_of(row: Sequence[str], question: str, heads: str) -> str:
    """Return the cell that says what the row is about; "" where none does or the row has no other."""
    if len(row) < 2:
        return ""
    found = [cell for cell in row if _plain(cell) in heads or words_only(_plain(cell)) in question]
    return max(found, key=len, default="")


def _reference_form(gold: Gold) -> Form:
    """Return the reference's facts."""
    form, text = Form(), canonical(gold.reference)
    if not gold.rows:
        text = "\n".join(_with_colon(line, gold.heads) for line in LINE_END.split(text))
    _read_lines(form, gold.heads, text, "", "")
    return form


def _read_lines(form: Form, heads: Heads, text: str, owner: str, label: str) -> None:
    """Add a text's facts; what stands before a colon is a head, of a name and a field where it says
    both.
    """
    for line in LINE_END.split(text):
        head, _, behind = line.partition(":")
        pieces = pieces_in(head)
        if len(pieces) != 1 or not words_only(behind):
            form.add(line, owner, label)
            continue
        about, label = split_head(ENDING.sub("", pieces[0][0]))
        heads.whole.add(pieces[0][0])
        heads.labels.add(label)
        if about and words_only(about) in heads.words:
            owner = about
            heads.names.add(about)
        form.add(behind, owner, label)


def _with_colon(line: str, heads: Heads) -> str:
    """Return the sentence with a colon behind the copula, where only a head stands before."""
    copulas = COPULA_INSIDE.finditer(line)
    ends = (one.end() for one in copulas if not re.fullmatch(TOTAL, line[: one.start()]))
    end = next((end for end in ends if heads.leads(line[:end].strip())), None)
    return f"{line[:end]}:{line[end:]}" if end else line
