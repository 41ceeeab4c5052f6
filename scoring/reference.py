"""The offline judge: it pays what is quoted; other words need TEACHER_MODEL. Deterministic, no
network.

    await ReferenceJudge().judge(Case(question, answer, reference, context, gold))
    ReferenceJudge().score(question="...", answer="...", reference="...", rows=[{"dosage": "一次15毫克"}])

Gold and answer are written in one form (`scoring.text`) and cut at punctuation. A piece of the
answer that is a piece of gold is a fact that is said. A piece that names what is asked about, or is
one of a few polite frames, is free. Every other piece is the answer's own, and an answer with words
of its own earns little, one that denies nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from scoring.case import Case, Verdict
from scoring.degenerate import is_degenerate
from scoring.pieces import (
    FRAME,
    JOINT,
    NOTHING,
    UNSURE,
    abstains,
    honesty,
    is_free,
    key_of,
    pieces_of,
)
from scoring.text import canonical, words_only

WITH_OWN_WORDS = 0.4  # of the share: the most that an answer with words of its own earns
OF_A_PROGRAM = 0.2  # of the score, where the answer is JSON or a table
LONGEST_LABEL = 10  # characters of a field's name that neither question nor gold has
MOST_JOINED = 4  # pieces of the answer that may be one piece of gold

COPULA = "(?:主要|分别|应该|一般)?(?:是指|是|为|有|包括|包含|如下|如何| is| are|is|are)(?:以下几[种个点]|如下)?"
DENYING = re.compile(
    r"不|没|未|无|非|误|错|反|否|假|谣|虚|禁|勿|别|莫|可以|放心|撤回|更正|纠正|作废|忽略|(?<![a-z])(?:no|not|none|never"
    r"|wrong|false|ignore|incorrect|untrue|untruth|myth|opposite|contrary|disregard|isn|aren|doesn|don|won|can)(?![a-z])"
)
IN_A_LABEL = re.compile(
    r"不(?!良|适|足)|没|未|误|错|反(?!应)|否|假|谣|传(?!染)|虚|旧|非(?!处方)|无|另|其他|别"
)
HELPERS = re.compile(r"[能可会要应该得是有否吗不没无莫勿别非]+")
# Words that a head may have beside those of the question. The second kind says that something may be
# done, which is wrong before what must not be: only where the question asks for it.
PLAIN = "方面|相关|有关|对应|具体|数据库|药品|药物|疾病|一共|总共|方法|如下|记录|的|药|中|里|共|其|该|时|了|种|对"
MAY = "可以|选用|使用|服用|应用|治疗|用于|可|能|用|吃|治"
FORBIDS = re.compile("禁|忌|慎|不宜|不能|不可|避免")
COUNTED = "[种个款类项例名位家样味条盒]?"
TOTAL = re.compile(
    rf"(?:一?共计?|总共|合计|总计|共有|有|查到|找到|查询到|数量[是为]?)*(\d+){COUNTED}(.*)"
)
PROGRAM = re.compile(
    r'^\W*[{\[]\s*["\[{]|"?(?:columns|rows|row_count)"?\s*:|"\w+"\s*:\s*["\[\d]|\|\s*:?-{2,}'
)


@dataclass
class Form:
    """One way to tell gold: its facts by key, each with the places where it may stand (whose it is,
    and which field).
    """

    facts: dict[str, set[tuple[str, str]]] = field(default_factory=dict)

    def add(self, text: str, owner: str = "", label: str = "") -> None:
        """Take a text of gold apart; in an enumeration the items of its last part are facts too."""
        pieces = pieces_of(text)
        listed = any(sign == "、" for _, sign in pieces)
        for piece, _ in pieces:
            parts = [part for part in re.split(JOINT, piece) if part] if listed else []
            whole = len(parts) > 1 and all(len(part) > 1 for part in parts)
            for part in parts if whole else [piece]:
                self.facts.setdefault(key_of(part), set()).add((owner, label))

    @property
    def weight(self) -> int:
        return sum(map(len, self.facts))


@dataclass
class Gold:
    """What is known to be right.

    `names`: what it is about; `labels`: its fields; `heads`: what may stand before it.
    """

    forms: list[Form]
    names: list[str]
    labels: list[str]
    heads: set[str]
    question: str
    wholes: set[str] = field(default_factory=set)
    nothing: bool = False
    is_program: bool = False
    number: str | None = None  # how many there are, where that is the whole answer
    count: str = ""  # the fact that says so
    known: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    by_end: dict[str, list[str]] = field(default_factory=dict)

    def index(self) -> None:
        """Gather the facts of all forms: where each may stand, and by their last sign, the longest
        first.
        """
        for form in self.forms:
            for fact, places in form.facts.items():
                self.known[fact] = self.known.get(fact, set()) | places
        for fact in sorted(self.known, key=len, reverse=True):
            self.by_end.setdefault(fact[-1], []).append(fact)


class ReferenceJudge:
    """Scores by comparison with gold values, evidence and the reference answer: it pays what is
    quoted.
    """

    name = "reference"

    async def judge(self, case: Case) -> Verdict:
        """The verdict; not scored, with the cause "no_reference", when the case has nothing to
        compare with.
        """
        return self.compare(case)

    def score(
        self,
        *,
        question: str,
        answer: str,
        reference: str = "",
        rows: Sequence[Mapping[str, Any]] | None = None,
    ) -> float:
        """The score in [0, 1] of one answer. `rows`: what the gold query returns; without rows
        `reference` decides.

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

    def bears_out(self, case: Case) -> Verdict:
        """The verdict by the gold rows or the evidence alone: the reference gives names and fields,
        but no facts.
        """
        return self.compare(case, by_reference=False)

    def compare(self, case: Case, by_reference: bool = True) -> Verdict:
        """As `judge`, for callers without an event loop."""
        encoded = json.dumps(case.gold or {}, ensure_ascii=False, default=str)
        gold = read_gold(case.question, case.reference, encoded, by_reference)
        if gold is None:
            return Verdict(None, cause="no_reference")
        if is_degenerate(case):
            return Verdict(0.0, {"degenerate": 1.0})
        if gold.nothing:
            return Verdict(honesty(case.answer, f"{case.question}\n{case.reference}"))
        return _compared(case.answer, gold)


def _compared(answer: str, gold: Gold) -> Verdict:
    told = _joined(answer) in gold.wholes
    reading = _Reading(answer, gold)
    found = 1.0 if told else max(reading.share(form) for form in gold.forms)
    own = [] if told else reading.own
    parts = {"facts": found, "own": 1.0}
    if own:
        said = sum(map(len, reading.said))
        denied = reading.abstained or any(DENYING.search(piece) for piece in own)
        parts["own"] = 0.0 if denied else WITH_OWN_WORDS * said / (said + sum(map(len, own)))
    if PROGRAM.search(answer) and not gold.is_program:
        parts["prose"] = OF_A_PROGRAM
    score = 1.0
    for part in parts.values():
        score *= part
    return Verdict(min(1.0, score), parts)


def _joined(text: str) -> str:
    """The text's pieces without punctuation, and without the polite ones before them."""
    pieces = [piece for piece, _ in pieces_of(text)]
    while len(pieces) > 1 and is_free(pieces[0]):
        del pieces[0]
    return "\n".join(pieces)


class _Reading:
    """An answer against gold: which facts it says, and which pieces are its own."""

    def __init__(self, answer: str, gold: Gold) -> None:
        self.gold, self.said, self.own, self.abstained = gold, set[str](), list[str](), False
        self.owner, self.label, self.of_another = "", "", False
        pieces, place = pieces_of(answer), 0
        while place < len(pieces):
            place += self._read(pieces, place)

    def share(self, form: Form) -> float:
        """The weight of the form's facts that were said, of all."""
        said = sum(len(fact) for fact in form.facts if fact in self.said)
        return said / form.weight if form.weight else 0.0

    def _read(self, pieces: Sequence[tuple[str, str]], place: int) -> int:
        """Read the piece at a place, or several that are one piece of gold; how many were read."""
        for many in range(min(MOST_JOINED, len(pieces) - place), 0, -1):
            joined = "".join(piece for piece, _ in pieces[place : place + many])
            if key_of(joined) in self.gold.known and self._say([key_of(joined)]):
                return many
        piece, sign = pieces[place]
        if (sign == ":" and self._is_head(piece)) or piece in self.gold.names:
            self._enter(piece)
        elif not is_free(piece) and not self._say_in(piece):
            self.own.append(piece)
            self.of_another = self.of_another or sign == ":" or self._ends_in_fact(piece)
            self.abstained = self.abstained or bool(NOTHING.search(piece) or UNSURE.search(piece))
        return 1

    def _say(self, facts: Sequence[str]) -> bool:
        """Take the facts as said, if they may stand under the name and field that were named last."""
        if self.of_another or not all(self._in_place(fact) for fact in facts):
            return False
        self.said.update(facts)
        items = (item for fact in facts for item in fact.split("\t"))
        self.said.update(item for item in items if item in self.gold.known)
        return True

    def _in_place(self, fact: str) -> bool:
        return any(
            (not owner or not self.owner or owner == self.owner)
            and (not label or not self.label or label == self.label)
            for owner, label in self.gold.known[fact]
        )

    def _say_in(self, piece: str) -> bool:
        """Whether the piece is a head and facts, one behind the other; then they are said."""
        if self.gold.number and self._is_count(piece):
            return self._say([self.gold.count])
        found: list[str] = []
        rest = piece
        while rest:
            fact = next(
                (one for one in self.gold.by_end.get(rest[-1], ()) if _ends_with(rest, one)), None
            )
            if fact is None:
                break
            found.append(fact)
            rest = rest.removesuffix(fact)
            if key_of(rest) in self.gold.known:
                continue
            joint = re.search(rf"(?:{JOINT})$", rest)
            rest = rest[: joint.start()] if joint and found else rest
        if not found or (rest and not self._is_head(rest)):
            return False
        self._enter(rest)
        return self._say(found)

    def _ends_in_fact(self, piece: str) -> bool:
        return any(_ends_with(piece, fact) for fact in self.gold.by_end.get(piece[-1], ()))

    def _is_count(self, piece: str) -> bool:
        """Whether the piece is gold's number, with a measure word and words of the question."""
        for start in range(len(piece)):
            match = TOTAL.fullmatch(piece, start)
            if match and (start == 0 or self._is_head(piece[:start])):
                tail = words_only(match[2])
                known = not tail or self._in_words_of_the_question(tail)
                return match[1] == self.gold.number and known
        return False

    def _is_head(self, text: str) -> bool:
        """Whether the text only names what is asked about: "X的Y是", "根据数据库查询结果", "X用药的禁忌有"."""
        return self._names_asked(text) or self._names_asked(_without_frame(text))

    def _names_asked(self, rest: str) -> bool:
        if not rest or rest in self.gold.heads or rest in self.gold.names:
            return True
        rest = re.sub(rf"^(?:{JOINT})", "", re.sub(rf"(?:{COPULA})$", "", rest)).strip()
        if not rest or rest in self.gold.heads or rest in self.gold.names:
            return True
        if HELPERS.fullmatch(rest):
            return False
        if len(rest) > 1 and words_only(rest) in self.gold.question:
            return True
        if self._in_words_of_the_question(rest):
            return True
        english = re.fullmatch(r"the ((?:[a-z]+ ?){1,3}) (?:of|for) (.+)", rest)
        about, label = (english[2], english[1]) if english else _split(rest)
        named = about in self.gold.names or (
            len(about) > 1 and words_only(about) in self.gold.question
        )
        fits = len(label) <= (3 * LONGEST_LABEL if english else LONGEST_LABEL)
        known = label in self.gold.labels or label in self.gold.question
        fine = known or not (IN_A_LABEL.search(label) or re.search(r"\d", label))
        return named and fits and fine

    def _in_words_of_the_question(self, rest: str) -> bool:
        """Whether nothing is left of the text without plain words but parts of the question."""
        asked = self.gold.question
        may = not FORBIDS.search(asked) and re.search(MAY, asked)
        left = re.split(f"{PLAIN}|{MAY}" if may else PLAIN, words_only(rest))
        return not DENYING.search("".join(left)) and all(part in asked for part in left if part)

    def _enter(self, head: str) -> None:
        """Keep the name and field that a head names: what follows is said of them."""
        names = [name for name in self.gold.names if name in head]
        labels = [label for label in self.gold.labels if label in head]
        if names:
            self.owner, self.label, self.of_another = max(names, key=len), "", False
        if labels:
            self.label = max(labels, key=len)


def _ends_with(text: str, fact: str) -> bool:
    """Whether the text ends with the fact, and not inside a number or an English word."""
    before = text[: -len(fact)][-1:]
    inside = before.isascii() and (before.isalnum() or before in "-.~") and fact[0].isascii()
    return text.endswith(fact) and not inside


def _without_frame(text: str) -> str:
    match = FRAME.match(text)
    return text[match.end() :].strip() if match else text


def _split(head: str) -> tuple[str, str]:
    about, _, label = head.rpartition("的")
    return about, label


@lru_cache(maxsize=512)
def read_gold(
    question: str, reference: str, encoded: str, by_reference: bool = True
) -> Gold | None:
    """What is known to be right, of the gold rows (else the evidence) and the reference; None
    without any of them.
    """
    known = json.loads(encoded)
    table, evidence = known.get("structured_gt"), known.get("evidence") or []
    rows = table["rows"] if table else [[item["quote"]] for item in evidence]
    rows = [[_text(cell) for cell in row] for row in rows]
    filled = [[cell for cell in row if words_only(canonical(cell))] for row in rows]
    filled = [row for row in filled if row]
    if not filled and not words_only(reference) and table is None:
        return None
    gold = Gold([], [], [], set(), words_only(canonical(question)))
    if not filled and (abstains(reference) or not words_only(reference)):
        gold.nothing = True
        return gold
    if words_only(reference):
        gold.forms.append(_reference_form(reference, gold))
    gold.forms.append(_row_form(filled, gold))
    if not by_reference and filled:
        del gold.forms[:-1]
    gold.forms = [form for form in gold.forms if form.facts]
    gold.question += words_only(canonical(reference)) if not filled else ""
    gold.wholes = {_joined("\n".join(cell for row in filled for cell in row))}
    gold.wholes |= {_joined(reference)} if by_reference else set()
    gold.wholes -= {""}
    gold.is_program = any(PROGRAM.search(text) for row in [*filled, [reference]] for text in row)
    gold.index()
    if len(filled) == 1 and len(filled[0]) == 1 and re.fullmatch(r"\d+", filled[0][0]):
        gold.number = gold.count = filled[0][0]
    elif by_reference:
        gold.number, gold.count = _count_of(reference)
    return gold if gold.forms else None


def _count_of(reference: str) -> tuple[str | None, str]:
    """Return the number and the fact of a reference that only counts; (None, "") of any other."""
    pieces = pieces_of(reference)
    match = TOTAL.fullmatch(pieces[0][0]) if len(pieces) == 1 else None
    return (match[1], key_of(pieces[0][0])) if match and not match[2] else (None, "")


def _text(cell: Any) -> str:
    return "" if cell is None else f"{cell:g}" if isinstance(cell, float) else str(cell)


def _row_form(rows: Sequence[Sequence[str]], gold: Gold) -> Form:
    """The cells as facts, each row's name apart: the cell that the question or a head of the
    reference has too.
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
                form.add(cell, _plain(name), labels.pop() if len(labels) == 1 else "")
    return form


def _plain(text: str) -> str:
    return canonical(text).strip()


def _name_of(row: Sequence[str], question: str, heads: str) -> str:
    """The cell that says what the row is about; "" where none does or the row has no other."""
    found = [cell for cell in row if _plain(cell) in heads or words_only(_plain(cell)) in question]
    return max(found, key=len) if len(row) > 1 and found else ""


def _reference_form(reference: str, gold: Gold) -> Form:
    """The reference's facts; what stands before a colon is a head, of a name and a field where it
    says both.
    """
    form, owner, label = Form(), "", ""
    for line in re.split(r"[;。\n]", canonical(reference)):
        head, colon, text = line.partition(":")
        pieces = pieces_of(head)
        if colon and len(pieces) == 1 and words_only(text):
            about, kind = _split(re.sub(f"(?:{COPULA})$", "", pieces[0][0]))
            gold.heads.add(pieces[0][0])
            if about and words_only(about) in gold.question:
                owner = about
                gold.names += [about] if about not in gold.names else []
            label = kind
            gold.labels += [kind] if kind and kind not in gold.labels else []
        form.add(text if colon and len(pieces) == 1 and words_only(text) else line, owner, label)
    return form
