"""Takes apart what is known to be right: facts of gold rows (else evidence) and reference.

gold = read_gold("X怎么存放？", "X的贮藏：密封、避光", "{}")
gold.places                          # {"密封": {("x", "贮藏")}, "避光": {("x", "贮藏")}}
gold.trailing_facts("x的贮藏是避光")  # (["避光"], "x的贮藏是")
"""

import json
import re
from collections import ChainMap, defaultdict
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from typing import Any

from scoring.text import words_only
from sql_agent.judge.fold import HAS_WORD, SPELLINGS, TABLE, fold, pieces
from sql_agent.judge.groups import Groups, facts_of
from sql_agent.judge.heads import COPULA, ENDING, JOINT, LONGEST, Heads, is_free
from sql_agent.judge.nothing import CHINESE, abstains
from sql_agent.tables import WORDS

Rows = Sequence[Sequence[str]]
Place = tuple[str, str]  # owner and label of a fact
Places = dict[str, set[Place]]

FIELD_WORDS = ChainMap(*WORDS.values())  # of the columns that the import knows
LINE_END = re.compile(r"[;。\n]")
COPULA_INSIDE = re.compile(COPULA)
JOINT_BEHIND = re.compile(f"(?:{JOINT})$")
# What makes another number of the one that it stands beside
OTHER_NUMBER = re.compile(r"[-+.~<>≤≥≠±≈/∕^%‰\d]")
MEASURES = "种个款类项例名位家样味条盒张床"
ALIKE, DIFFERENT = ("|".join(TABLE["compared"][name]) for name in ("alike", "different"))
# 零售价（元）: of a column of numbers the name, and the unit
WITH_UNIT = re.compile(r"(.+?)\s*[（(\[]\s*([^\d\s()（）\[\]][^()（）\[\]]{0,11})[)）\]]")
ASKED_UNIT = re.compile(
    rf"(?:(?<=几)|(?<=多少)|(?<=how many )|(?<=in ))(?:{SPELLINGS})(?![a-z])|(?:{SPELLINGS})(?=数)"
)
# What one column of numbers counts: 多少名患者, how many patients
COUNTED = re.compile("(?:几|多少)([一-鿿]{1,4})|how many ([a-z]+)")
UNIT_COLUMNS = ("单位", "计量单位", "unit", "units")
UNIT = re.compile(rf".|.*[a-z/%°].*|{SPELLINGS}")  # and no employer
AMOUNT = re.compile(r"\d+(?:\.\d+)?(?:~\d+(?:\.\d+)?)?")  # folded
MONEY = re.compile("[价费钱]|金额|多少元")
PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)?")
HAS_LETTER = re.compile(r"[^\W\d_]")
COUNT = re.compile(rf"(?:一?共计?|总共|合计|总计|有)*(\d+)[{MEASURES}]?")
NEAR = "(?:以[上下内外]|左右|上下)"  # behind a count: not that many
ABOUT = re.compile(f".{NEAR}")
MORE = re.compile("[多余来]")  # so does this, but words begin with it, too: 来自, 多潘立酮
# Not behind a fact, where words of the question may stand: another item, or what limits it. Where
# gold has names they may turn the fact: 头痛时服用甲片
LIMITING = re.compile(rf"{NEAR}|{JOINT}|{OTHER_NUMBER.pattern}|.*[?哪]")
PROGRAM = re.compile(
    r'^\W*[{\[]\s*["\[{]|"?(?:columns|rows|row_count)"?\s*:|"\w+"\s*:\s*["\[\d]|\|\s*:?-{2,}'
)


class Gold:
    """forms: ways to tell all of it, each by its facts. places: owners and fields of each fact.

    wholes: texts that are all of it. number: how many there are, if that is the whole answer. rows:
    how an answer may count gold's rows, or compare two.
    """

    def __init__(
        self, question: str, reference: str, columns: Sequence[str], rows: Rows, by_reference: bool
    ) -> None:
        self.heads = Heads(fold(question))
        self.with_units: dict[str, str] = {}  # the number of 23.5元
        self.counted: re.Pattern[str] | None = None  # numbers, each with what it counts
        self.unit_names: dict[str, str] = {}  # as written, and in one piece
        self.unit_cells: set[str] = set()  # which no answer has to repeat
        for at, name in enumerate(columns):
            if name.lower() in UNIT_COLUMNS and name.lower() not in question.lower():
                self._take_units(at, rows)
        columns = [self._without_unit(name, at, rows) for at, name in enumerate(columns)]
        reference = self.without_units(reference)
        self.nothing = not rows and (abstains(reference) or not words_only(reference))
        cells = list(chain(*rows))
        self.is_program = any(PROGRAM.search(text) for text in (*cells, reference))
        wholes = ["\n".join(cells), reference] if by_reference else ["\n".join(cells)]
        self.wholes = {without_signs(text) for text in wholes} - {""}
        names = [{fold(name), fold(name.replace("_", " "))} for name in columns]
        self.heads.labels |= set().union(*names)
        told: Places = defaultdict(set)
        for fact, places in _of_reference(reference, self.heads, set(map(fold, cells))).items():
            told[self.bare(fact)] |= places
        self.heads.letters = "".join(self.heads.labels)
        labels = []  # of each column: the reference's, if it has one for all of it
        for number, aliases in enumerate(names):
            said: set[str] = set()
            for row in rows:
                for fact, _ in pieces(row[number]):
                    said |= {label for _, label in told.get(fact, ()) if label}
            labels.append(said.pop() if len(said) == 1 else fold(columns[number]))
            words = FIELD_WORDS.get(columns[number].lower(), ())
            aliases.update(map(fold, filter(CHINESE.search, words)))
            self.heads.labels |= aliases
            self.heads.aliases |= dict.fromkeys(aliases, labels[-1])
        form = _of_rows(rows, labels, self.heads)
        for fact, places in form.items():
            # A draft may not say whose a value is, or which field: name:甲,dosage:1片
            if fact in told and all(owner for owner, _ in places):
                told[fact] = {place for place in told[fact] if place[0]} or places
            if fact in told and not any(label for _, label in told[fact]):
                label = max(label for _, label in places)
                told[fact] = {(owner, label) for owner, _ in told[fact]}
        ways = [form, told] if by_reference or not rows else [form]
        self.forms: list[Places] = []
        self.groups = Groups(rows or [[reference]], self.heads.names)
        self.places: Places = defaultdict(set)
        self.number = self.number_fact = ""
        self.fields: list[str] = []  # in gold's order
        for way in ways:
            asked = {fact: way[fact] for fact in way if fact not in self.unit_cells}
            self.forms += filter(None, [asked])
            for fact, places in way.items():
                self.places[fact] |= places
                new = {label for _, label in places} - {"", *self.fields}
                self.fields += sorted(new)
            if len(way) == 1 and not self.number:
                [self.number_fact] = way
                found = COUNT.fullmatch(self.number_fact)
                self.number = found[1] if found else ""
        self.fields.sort(key=lambda field: labels.index(field) if field in labels else len(labels))
        units = ASKED_UNIT.findall(self.heads.asked)  # 住院几天: 5 and 5天
        if MONEY.search(self.heads.asked):
            units.append("元")
        numbers = list(filter(PLAIN_NUMBER.fullmatch, self.places))
        for unit in units:
            for fact in numbers:
                if fold(fact + unit) not in self.places:
                    self.with_units[fold(fact + unit)] = fact
        counted = COUNTED.findall(self.heads.asked)
        labels_of = {label for fact in numbers for _, label in self.places[fact]}
        if len(counted) == len(labels_of) == 1 and not self.number:
            [(word, english)] = counted
            words = [word[:end].lstrip(MEASURES) or word[:end] for end in range(len(word), 0, -1)]
            what = "|".join(filter(None, [*words, english]))
            self.counted = re.compile(rf"(?<![\d.])({'|'.join(numbers)})[{MEASURES}]?(?:{what})")
        self.rows: re.Pattern[str] | None = None
        if columns and rows and not self.number:
            claims = [rf"(?<![\d.]){len(rows)}[{MEASURES}](?!.*{NEAR})"]
            if self.heads.asked.isascii():  # 3 wards: all other words are the question's
                claims.append(rf"(?<!than )(?<![\d.]){len(rows)}(?![\d.])")
            shared = set(map(fold, rows[0])).intersection(map(fold, rows[-1])) - {""}
            if len(rows) == len(columns) == 2 and shared.isdisjoint(self.heads.names):
                right, wrong = (ALIKE, DIFFERENT) if shared else (DIFFERENT, ALIKE)
                claims += ["2者", right]
                self.heads.words = re.sub(wrong, lambda one: "\n" * len(one[0]), self.heads.words)
            self.rows = re.compile("|".join(claims))
            self.heads.known.insert(0, self.rows)

    def _without_unit(self, name: str, at: int, rows: Rows) -> str:
        """Return a column's name without the unit behind it, which belongs to its numbers."""
        found = WITH_UNIT.fullmatch(name)
        cells = [row[at] for row in rows if row[at]]
        if not (found and cells and all(map(PLAIN_NUMBER.fullmatch, cells))):
            return name
        unit = found[2].strip()
        is_whole = len(pieces(f"1{unit}")) == 1
        self.unit_names[unit] = unit if is_whole else unit.replace("/", "每")  # 次/分
        for cell in cells:
            self.with_units[fold(cell + self.unit_names[unit])] = fold(cell)
        return found[1]

    def _take_units(self, at: int, rows: Rows) -> None:
        """Take the cells of a column of units as the units of their rows' numbers."""
        for row in rows:
            amounts = list(filter(AMOUNT.fullmatch, map(fold, row)))
            if amounts and UNIT.fullmatch(row[at].lower()):
                self.unit_cells.add(fold(row[at]))
                unit = re.sub(r"^(?=\d)", "×", row[at])  # 4.5×10^9/L
                for amount in amounts:
                    self.with_units[fold(amount + unit)] = amount

    def without_units(self, text: str) -> str:
        """Return a text without the units in parentheses behind names of columns."""
        for unit, whole in self.unit_names.items():
            text = re.sub(rf"\s*[（(\[]\s*{re.escape(unit)}\s*[)）\]]", "", text)
            text = text.replace(unit, whole)
        return text

    def bare(self, piece: str) -> str:
        """Return a piece without units behind the numbers that have them."""
        told = _one_of(tuple(self.with_units))
        plain = told.sub(lambda one: self.with_units[one[0]], piece)
        return self.counted.sub(r"\1", plain) if self.counted else plain

    def counts_rows(self, piece: str) -> bool:
        """Return whether the piece counts or compares gold's rows, and claims nothing else."""
        return self.rows is not None and self.heads.asks(piece) and bool(self.rows.search(piece))

    def trailing_facts(self, piece: str) -> tuple[list[str], str]:
        """Return the final facts and the head before them, or no facts if the head says more."""
        head = self._before_number(piece)
        if head is not None:
            return [self.number_fact], head
        found: list[str] = []
        rest = piece if self.trailing_fact(piece) else self._without_tail(piece)
        joint = True
        while joint and (fact := self.trailing_fact(rest)):
            found.append(fact)
            before = rest.removesuffix(fact)
            rest = JOINT_BEHIND.sub("", before).strip()
            joint = rest != before.strip()
        if found and not joint and found[-1] in self.groups.members.get(rest, ()):
            found.append(rest)  # 东药 of 东药12元, one of several of one name
            rest = ""
        is_headed = not rest or (not joint and self.heads.leads(rest))
        return (found[::-1], rest) if found and is_headed else ([], piece)

    def _without_tail(self, piece: str) -> str:
        """Return the piece up to its last fact if courtesies or what was asked for follow."""
        found = [fact for fact in self.places if fact in piece and fact not in self.heads.asked]
        end = max([piece.rfind(fact) + len(fact) for fact in found], default=0)
        tail = piece[end:]
        # Beside a name or several fields they may turn it: 口服贮藏，密封用法
        is_one = not self.heads.names or len(self.heads.names) == len(self.fields) == 1
        is_open = is_one and not (self.number or LIMITING.match(tail))
        asked = self.heads.asks(tail.lstrip("均都"))
        return piece[:end] if is_free(tail) or (is_open and asked) else piece

    def _before_number(self, piece: str) -> str | None:
        """Return what stands before the count in a sentence about the question, or None."""
        if not self.number:
            return None
        for found in re.finditer(self.number, piece):
            head = piece[: found.start()]
            behind = piece[found.end() :]
            tail = behind[1:] if behind[:1] in MEASURES else behind
            if len(tail) > LONGEST:
                continue
            apart = not OTHER_NUMBER.match(head[-1:]) and not OTHER_NUMBER.match(behind)
            begins_word = tail != behind and len(tail) > 1 and tail[:2] in self.heads.asked
            more = MORE.match(tail) and not begins_word
            about = ABOUT.search(piece, found.end() - 1)
            is_about = about and about[0] not in self.heads.asked  # 4名60岁以上的患者
            others = re.findall(rf"\d+[{MEASURES}]", head + tail)  # 6元的有20种
            is_other = any(one not in self.heads.asked for one in others)
            exact = not ("?" in tail or is_about or more or is_other)
            if apart and exact and self.heads.leads(head) and self.heads.asks(tail):
                return head
        return None

    def trailing_fact(self, text: str) -> str | None:
        """Return the longest fact that the text ends with, not inside a number or an English word."""
        found = filter(text.endswith, self.places)
        for fact in sorted(found, key=len, reverse=True):
            first = fact[0]
            before = text.removesuffix(fact)[-1:]
            in_number = (first.isdecimal() or not first.isalnum()) and OTHER_NUMBER.match(before)
            in_word = before.isascii() and before.isalnum() and first.isascii()
            if not in_number and not in_word:
                return fact
        return None


@lru_cache(maxsize=8)
def _one_of(amounts: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(map(re.escape, amounts), key=len, reverse=True)
    return re.compile(rf"(?<![\d.])(?:{'|'.join(longest_first) or '(?!)'})")


@lru_cache(maxsize=512)
def read_gold(
    question: str, reference: str, encoded: str, by_reference: bool = True
) -> Gold | None:
    """Return what is known to be right, or None without gold and reference.

    Without `by_reference` the reference adds only names and fields, not facts.
    """
    known = json.loads(encoded)
    table = known.get("structured_gt")
    evidence = known.get("evidence") or []
    rows = table["rows"] if table else [[item["quote"]] for item in evidence]
    texts = [[_text(cell) for cell in row] for row in rows]
    filled = [row for row in texts if any(HAS_WORD.search(cell) for cell in row)]
    if not filled and not words_only(reference) and table is None:
        return None
    return Gold(question, reference, table["columns"] if table else [], filled, by_reference)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.15g}" if isinstance(cell, float) else str(cell)


def without_signs(text: str) -> str:
    """Return the text's pieces without punctuation."""
    return "\n".join(piece for piece, _ in pieces(text))


def _of_rows(rows: Rows, labels: Sequence[str], heads: Heads) -> Places:
    """Return the cells as facts of the row's name."""
    form: Places = {}
    whole = "\n".join(heads.whole)
    firsts = [fold(row[0]) for row in rows]
    # Rows that the question does not name are told by their first cell: 内科：3；外科：5
    are_keys = len(rows) > 1 and len({*firsts}) == len(rows) and all(map(HAS_LETTER.search, firsts))
    for row in rows:
        cells = [fold(cell) for cell in row]
        named = [cell for cell in cells if cell in whole or words_only(cell) in heads.words]
        name = max(filter(None, named), key=len, default="") if len(row) > 1 else ""
        if not name and are_keys and len(row) > 1:
            name = cells[0]
            _add(form, name, "", "")
        heads.add_name(name)
        for cell, label in zip_longest(cells, labels, fillvalue=""):
            if cell != name:
                _add(form, cell, name, label)
    return form


def _of_reference(reference: str, heads: Heads, cells: Collection[str]) -> Places:
    """Return the reference's facts. A head before a colon gives name and field."""
    form: Places = {}
    owner = label = ""
    for line in LINE_END.split(fold(reference)):
        head, colon, said = line.partition(":")
        if not colon and not cells:
            head, said = _before_copula(line, heads)
        if not words_only(said) or len(pieces(head)) != 1:
            _add(form, line, owner, label)
            continue
        head = ENDING.sub("", head.strip())
        about = head
        label = ""
        if head not in cells:
            about, _, label = head.rpartition("的")
        heads.whole.add(head)
        heads.labels |= {label} - {""}
        if about and words_only(about) in heads.words:
            owner = about
            heads.add_name(about)
        _add(form, said, owner, label)
    return form


def _before_copula(line: str, heads: Heads) -> tuple[str, str]:
    """Return a sentence's head and what it says: ("x的贮藏是", "避光")."""
    for copula in COPULA_INSIDE.finditer(line):
        head = line[: copula.end()]
        if head != copula.group() and heads.leads(head.strip()) and not COUNT.fullmatch(line):
            return head, line[copula.end() :]
    return "", line


def _add(form: Places, text: str, owner: str, label: str) -> None:
    for facts, _ in facts_of(text):
        for fact in facts:
            form.setdefault(fact, set()).add((owner, label))
