"""Decides whether an answer is the gold value. It compares values, not texts, and never raises.

grade("[4280, '041']", Gold("set", ("041", "4280"), items=("text",)))  # True
grade("17 18 19", Gold("integer", 17))                                 # False: not one integer
"""

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

LONGEST = 65536  # characters of an answer: what the sandbox lets a program print
# Tolerance of a number without limits, relative to it: what the order of a sum may change. A whole
# number may be an identifier, whose neighbour is another one, so it is as near as 1 is.
CLOSE = Decimal("1e-6")
# Tolerance of 0, and of numbers that are as small: what is left of 0.1 + 0.2 - 0.3
ROUNDING = Decimal("1e-9")
NUMBER = re.compile(
    r"[+-]?(\d{1,3}(,\d{3})+(\.\d*)?|\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII
)
# A pandas array as it is printed, and as dtypes are
PRINTED_ARRAY = re.compile(r"<\w+Array>\n(.*)\nLength: \d+, dtype: [^\n]*", re.DOTALL)
# A list in which pandas quoted texts without escaping their own quotes: ['crohn's disease', 'gout']
UNESCAPED = re.compile(r"(?:Index\()?\['(.*)'\](?:,\s+dtype=[^]]*\))?", re.DOTALL)
# What values and collections are shown as: np.float64(1.5), Index(['a'], dtype='str')
SHOWN = re.compile(
    r"np\.\w+|(pd\.)?Timestamp|Decimal|array|frozenset|\w*Index|(Ordered)?[Dd]ict(_\w+)?|Counter|deque",
    re.ASCII,
)
DEFAULT = re.compile(r"\Adefaultdict\(<.*?>, (?={)")  # defaultdict(<class 'int'>, {'a': 1})
# What is between the cells of a printed frame, the last line of a series, and either without rows
GAP = re.compile(r" {2,}| (?=-\d|\d{4}-\d\d-\d\d)")
DTYPE = re.compile(r"((Freq|Name|Length): .*, )?dtype: \S+")
EMPTY = re.compile(r"Series\(\[\], .*\)|Empty DataFrame\nColumns: \[.*\]\nIndex: \[\]")
MOMENTS = {"datetime.date": date, "datetime.datetime": datetime}
NUMPY_BOOLEAN = re.compile(r"\bnp\.(True|False)_")
# What a list is made of, as numpy prints it: texts, what shows a value, brackets, numbers
TOKEN = re.compile(
    r"""'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?|[\w.]+\([^()]*\)|[][(){}:,]|[^][(){}:,\s'"]+""",
    re.DOTALL,
)
PYTHON = re.compile(r"""[\[({'"]|[\w.]+\(""")  # how a value begins that is more than a word
TRUE = {"true", "yes", "1"}
FALSE = {"false", "no", "0"}
MISSING = {"none", "nan", "nat", "null", "<na>"}  # what stands for None, in small letters
NOTHING = ([(0, "0")], [(0, "0.0")])  # how a count of 0 is sorted
SCALARS = ("number", "integer", "text", "date", "boolean")
SHAPES = ("set", "list", "table")
Seen = Any  # a parsed text: a text for each scalar, and lists, tuples, sets and dicts of these


class GoldError(ValueError):
    """The gold value cannot be compared with answers. The message says what was seen."""


@dataclass(frozen=True)
class Gold:
    """A typed answer. Raises GoldError if its parts contradict each other or a set repeats an item.

    kind: number, integer, text, date, boolean, set, list or table. value: the scalar (a date as ISO
    text), None if it is missing, or a tuple of items or rows. items: the kind of the items, or of
    each of a table's columns. lower, upper: inclusive limits of a number. Without them it may
    differ by `tolerance`, by default a millionth (a whole number: the rounding of a sum), also
    inside a set, list or table. ordered: whether the order of items or rows counts.
    """

    kind: str
    value: Any
    items: tuple[str, ...] = ()
    lower: float | None = None
    upper: float | None = None
    tolerance: float | None = None
    ordered: bool = True

    def __post_init__(self) -> None:
        if self.kind not in SCALARS + SHAPES:
            kinds = ", ".join(SCALARS + SHAPES)
            raise GoldError(f"there is no kind {self.kind!r}; the kinds are {kinds}")
        try:
            answered = grade(json.dumps(self.value), self)
        except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
            raise GoldError(
                f"{self} has no value of its kind ({type(error).__name__}: {error})"
            ) from None
        repeats = self.kind == "set" and len(set(self.value)) < len(self.value)
        if not answered or self.value == "" or repeats:
            raise GoldError(f"{self} is not answered by its own value")

    def limits(self, value: Decimal) -> tuple[Decimal, Decimal]:
        """Return the smallest and largest number that count as `value`."""
        if self.lower is not None and self.upper is not None:
            return Decimal(str(self.lower)), Decimal(str(self.upper))
        if self.tolerance is not None:
            away = Decimal(str(self.tolerance))
        elif not value.is_finite():
            away = Decimal(0)
        else:
            size = abs(value)
            whole = size == size.to_integral_value()
            away = max(ROUNDING, CLOSE * (min(size, Decimal(1)) if whole else size))
        return value - away, value + away


def grade(answer_text: str, gold: Gold) -> bool:
    """Return whether the answer is the gold value and nothing else."""
    text = answer_text.strip()
    if not text or len(text) > LONGEST:
        return False
    seen = parsed(text)
    if gold.kind in SHAPES and isinstance(seen, str) and "\n" in text:
        seen = _all_parsed(text.splitlines()) or seen
    if isinstance(seen, str):
        seen = _frame(answer_text, len(gold.items) or 1) or seen
    if gold.kind in SHAPES and isinstance(seen, dict) and len(seen) == 1:
        seen = next(filter(_parts, seen.values()), seen)  # {'drugs': ['aspirin', 'heparin']}
    is_ordered = gold.ordered and gold.kind != "set"
    if gold.kind == "table":
        rows = _rows(gold, seen, is_ordered)
        if gold.items == ("text", "integer"):  # other groups may be named that have nothing
            asked = {name for name, _ in map(_sorted_by, gold.value)}
            keyed = [(_sorted_by(row), row) for row in rows]
            rows = [row for key, row in keyed if key[1:] not in NOTHING or key[0] in asked]
        return _same_rows(gold, rows, gold.value, is_ordered)
    if gold.kind in SHAPES:
        if isinstance(seen, str):  # not Python: split at lines, else at commas, numbers at blanks
            mark = "\n" if "\n" in text else ","
            at_blanks = mark not in text and gold.items in (("number",), ("integer",))
            seen = [part.strip() for part in text.split(None if at_blanks else mark)]
        elif not isinstance(seen, list | tuple | set):
            seen = [seen]
        rows = [item if isinstance(item, list | tuple | dict) else [item] for item in seen]
        wanted = [(value,) for value in gold.value]
        has_no_order = is_ordered and isinstance(seen, set)
        return not has_no_order and _same_rows(gold, rows, wanted, is_ordered)
    while len(parts := _parts(seen)) == 1:
        [seen] = parts
    return _same(gold, gold.kind, seen, gold.value)


def _parts(seen: Seen) -> list[Seen]:
    """Return what a collection is made of. What a number names has a meaning of its own."""
    if isinstance(seen, dict):
        return [] if any(NUMBER.fullmatch(str(name)) for name in seen) else [*seen.values()]
    return [*seen] if isinstance(seen, list | tuple | set) else []


def _same(gold: Gold, kind: str, seen: Seen, value: Any) -> bool:
    """Return whether a scalar is the value."""
    if not isinstance(seen, str):
        return False
    seen = seen.strip()
    if value is None:
        return seen.casefold() in MISSING
    if kind == "text":
        plain = re.sub(r"[ \t]+", " ", seen).casefold()
        return plain == re.sub(r"[ \t]+", " ", value).casefold()
    if kind == "boolean":
        return seen.casefold() in (TRUE if value else FALSE)
    if kind == "date":
        return same_date(seen, value)
    number = Decimal(seen.replace(",", "")) if NUMBER.fullmatch(seen) else None
    if kind == "integer":
        return number == value
    lower, upper = gold.limits(Decimal(str(value)))
    if number is None or not lower.is_finite() or not upper.is_finite():
        return False
    return lower <= number <= upper


def same_date(seen: str, value: str) -> bool:
    shown = str(parsed(seen)) if seen.startswith("datetime.") else seen
    try:
        found = datetime.fromisoformat(shown.replace("/", "-"))
        return found == datetime.fromisoformat(value)
    except ValueError:
        return False


def _cells(row: Seen) -> Seen:
    return list(row.values()) if isinstance(row, dict) else row


def _same_rows(
    gold: Gold, seen: Sequence[Seen], wanted: Sequence[Sequence[Any]], is_ordered: bool
) -> bool:
    def same(row: Seen, value: Sequence[Any]) -> bool:
        cells = _cells(row)
        if not isinstance(cells, list | tuple) or len(cells) != len(value):
            return False
        return all(_same(gold, *each) for each in zip(gold.items, cells, value, strict=True))

    if len(seen) != len(wanted):
        return False
    if is_ordered:
        return all(map(same, seen, wanted))
    # Sorted, an item stands near its value. Else a long answer takes the square of its length
    free = sorted(wanted, key=_sorted_by)
    for item in sorted(seen, key=_sorted_by):
        at = next((at for at, value in enumerate(free) if same(item, value)), None)
        if at is None:
            return False
        del free[at]
    return True


def _sorted_by(item: Any) -> list[tuple[Decimal, str]]:
    cells = _cells(item)
    keys = []
    for cell in cells if isinstance(cells, list | tuple) else [cells]:
        text = " ".join(str(cell).split()).casefold()
        number = Decimal(text.replace(",", "")) if NUMBER.fullmatch(text) else Decimal(0)
        keys.append((number, "" if text in MISSING else text))
    return keys


def _rows(gold: Gold, seen: Seen, ordered: bool) -> list[Seen]:
    """Return a table's rows. A flat list is one, a dict has one a key, those of a set no order."""
    if isinstance(seen, str):  # a line is one, as `print(key, value)` writes it
        lines = seen.replace(": ", " ").splitlines()
        rows = [line.rsplit(None, len(gold.items) - 1) for line in lines]
        head = seen.partition("\n")[0].split()
        has_numbers = gold.items[-1] in ("number", "integer")
        return rows[has_numbers and not any(map(NUMBER.fullmatch, head)) :]
    if isinstance(seen, dict):
        return list(seen.items())
    if isinstance(seen, set):
        return [] if ordered else list(seen)
    return [seen] if all(isinstance(cell, str) for cell in seen) else list(seen)


def _frame(text: str, columns: int) -> list[Seen]:
    """Return the rows of a frame or series as pandas prints it, without their numbers, else []."""
    lines = text.rstrip().splitlines()
    if len(lines) < 2:
        return []
    if DTYPE.fullmatch(lines[-1]):
        del lines[-1]
    elif lines[0].startswith("  "):
        del lines[0]  # the names of the columns
    else:
        return []
    rows = [GAP.split(line.rstrip()) for line in lines]
    width = len(rows[-1])
    if len(rows[0]) < width:
        del rows[0]  # the names of the index
    if width < 2 or any(len(row) != width or not row[0] for row in rows):
        return []
    is_numbered = len(rows) == 1 or all(row[0].isdecimal() for row in rows)
    return [row[1:] for row in rows] if is_numbered and width > columns else rows


def parsed(text: str) -> Seen:
    """Parse a text as JSON or else as Python. Numbers and truth values keep their spelling."""
    if EMPTY.fullmatch(text):
        return []
    try:
        return _plain(json.loads(text, parse_int=str, parse_float=str))
    except (ValueError, RecursionError):
        pass
    printed = PRINTED_ARRAY.fullmatch(text)
    source = NUMPY_BOOLEAN.sub(r"\1", DEFAULT.sub("dict(", printed[1] if printed else text))
    if not PYTHON.match(source):
        return source
    try:
        tree = ast.parse(_with_commas(source.replace("<NA>", "None")), mode="eval")
        value = ast.literal_eval(_Unwrapped().visit(tree))
        said_aside = source.count("#") != repr(value).count("#")  # a comment is part of the answer
        return text if said_aside else _plain(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError, OverflowError):
        unescaped = UNESCAPED.fullmatch(source)
        return re.split(r"',\s+'", unescaped[1]) if unescaped else text


def _all_parsed(lines: Sequence[str]) -> list[Seen]:
    """Return the collections that the lines are, as `print(row)` writes rows, or [] if one is none."""
    found = list[Seen]()
    for line in lines:
        found.append(parsed(line.strip()))
        if not isinstance(found[-1], list | tuple | dict):
            return []
    return found


def _with_commas(text: str) -> str:
    """Return a list that numpy printed, ['CCU' 'MICU'], as Python writes it."""
    tokens = TOKEN.findall(text) if text.startswith("[") else []
    if not tokens or {*tokens} & {*"(){}:,"}:
        return text
    return "".join(one if one == "[" else f"{one}," for one in tokens).removesuffix(",")


class _Unwrapped(ast.NodeTransformer):
    """Replaces what shows a value or a collection by what it shows, and dates by their ISO text."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(node.id) if node.id.casefold() in MISSING else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        if name in MOMENTS and not node.keywords:
            return ast.Constant(str(MOMENTS[name](*map(ast.literal_eval, node.args))))
        if SHOWN.fullmatch(name) and len(node.args) == 1:
            return node.args[0]
        return ast.Set([]) if name == "frozenset" and not node.args else node


def _plain(value: Any) -> Seen:
    if isinstance(value, dict):
        return {_plain(key): _plain(cell) for key, cell in value.items()}
    if isinstance(value, list | tuple | set):
        return type(value)(map(_plain, value))
    return str(value)
