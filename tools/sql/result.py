"""The result that the model sees: bounded JSON, with Chinese messages, that no text can end."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import Any

from tools.sql.database import Rows

MOST_DECIMALS = 10
SMALLEST_CELL = 8  # characters. Cells shrink to this before the last row is given up

# What starts like a tag or a chat token: <|im_start|>, </tool_response>, <think>, <s> and the like,
# not "x < 5".
TAG_START = re.compile(r"<(?=[/|｜!]?[A-Za-z_|｜])")
# Control characters except tab and newline, and what shows nothing or reorders text: Unicode's
# Default_Ignorable, separators of lines, and half pairs.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


@dataclass(frozen=True)
class Limits:
    """Bounds of one call.

    deadline: seconds of the statement. max_rows: rows shown. max_cell: characters of a cell.
    max_chars: characters of the whole JSON text (1,000 at least).
    """

    deadline: float = 1.0
    max_rows: int = 20
    max_cell: int = 500
    max_chars: int = 8_000


@dataclass(frozen=True)
class QueryResult:
    """What the model sees, and which tables were read.

    rows: lists of JSON values. count: all rows of the statement. truncated: False or what was cut.
    error: None or the reason. hint: help with an error or empty result. cut: (row, column) of cut
    cells.
    """

    columns: list[str]
    rows: list[list[Any]]
    count: int
    truncated: str | bool = False
    error: str | None = None
    tables_read: frozenset[str] = frozenset()
    hint: str = ""
    cut: frozenset[tuple[int, int]] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether the statement ran."""
        return self.error is None

    @property
    def status(self) -> str:
        """ "success" or "error"."""
        return "success" if self.ok else "error"

    def to_json(self) -> str:
        """Return the tool message: one JSON object."""
        message = {
            "status": self.status,
            "columns": self.columns,
            "rows": self.rows,
            "count": self.count,
            "truncated": self.truncated,
            "error": self.error,
        }
        return compact(message | ({"hint": self.hint} if self.hint else {}))


def compact(value: Any) -> str:
    """Return JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def neutralise(text: str) -> str:
    """Disarm tags and chat tokens by full-width brackets, and remove invisible signs."""
    return TAG_START.sub("＜", INVISIBLE.sub("", text))


def failure(reason: str) -> QueryResult:
    """Return the result of a statement that did not run."""
    return QueryResult([], [], 0, error=shorten(neutralise(reason), 300))


def fit(found: Rows, limits: Limits) -> QueryResult:
    """Cut cells to `max_cell`, then drop rows. Where not one row fits, cut cells shorter, and show
    none if that is not enough.
    """
    columns = [shorten(neutralise(name), 64) for name in found.columns]
    size = limits.max_cell
    rows: list[list[Any]] = []
    for values in found.rows:
        rows.append([_cell(value, size) for value in values])
    while (result := _most_rows(found, columns, rows, size, limits)) is None:
        if size <= SMALLEST_CELL:
            note = f"结果太宽，共 {found.count} 行，无法显示，请只选需要的列"
            return QueryResult([], [], found.count, note, tables_read=found.tables_read)
        size = max(SMALLEST_CELL, size // 2)
        for row in rows:
            row[:] = [shorten(cell, size) if isinstance(cell, str) else cell for cell in row]
    return result


def _most_rows(
    found: Rows, columns: list[str], rows: list[list[Any]], size: int, limits: Limits
) -> QueryResult | None:
    """Return the result with as many rows as fit, or None where not one does."""
    # Characters of the text, without names and notes
    used = [0, *accumulate(len(compact(row)) for row in rows)]
    fewest = min(1, len(rows))
    for shown in range(len(rows), fewest - 1, -1):
        if used[shown] > limits.max_chars:
            continue
        cut = _cut_cells(found, rows[:shown])
        note = _note(found, shown, size if cut else 0)
        read = found.tables_read
        result = QueryResult(columns, rows[:shown], found.count, note, None, read, cut=cut)
        if len(result.to_json()) <= limits.max_chars:
            return result
    return None


def _cut_cells(found: Rows, shown: list[list[Any]]) -> frozenset[tuple[int, int]]:
    cut = set()
    for at, row in enumerate(shown):
        for place, cell in enumerate(row):
            ends = isinstance(cell, str) and cell.endswith("…")
            if ends and cell != _cell(found.rows[at][place], len(cell) + 1):
                cut.add((at, place))
    return frozenset(cut)


def _note(found: Rows, shown: int, size: int) -> str | bool:
    """Describe cut rows and cells. size: characters of a cut cell, or 0."""
    notes = []
    if found.count > shown:
        total = f"共 {found.count} 行" if found.count_is_exact else f"超过 {found.count} 行"
        notes.append(f"{total}，只显示前 {shown} 行")
    if size:
        notes.append(f"过长的内容已截断到 {size} 字")
    return "；".join(notes) or False


def _cell(value: Any, size: int) -> Any:
    if isinstance(value, str):
        return _text(value, size)
    if isinstance(value, bytes):
        return f"（二进制数据，{len(value)} 字节）"
    if isinstance(value, float) and value - value != 0:
        return str(value)  # infinity has no JSON form
    if value is None or isinstance(value, (int, float)):
        return value
    # A number beyond these bounds is shown as text
    if isinstance(value, Decimal) and value.is_finite() and abs(value) < 10**18:
        if value == value.to_integral_value():
            return int(value)
        # The digits of a column are kept, and not the endless ones of a division
        is_stored = -int(value.as_tuple().exponent) <= MOST_DECIMALS
        if not is_stored or Decimal(repr(float(value))) == value:
            return float(value)
    return _text(str(value), size)


def _text(text: str, size: int) -> str:
    """Return a stored text as shown, without looking at more of it than needed."""
    rest = "…" if len(text) > 2 * size else ""
    return shorten(neutralise(text[: 2 * size]) + rest, size)


def shorten(text: str, size: int) -> str:
    """Return the text, cut to `size` characters with an ellipsis."""
    return text if len(text) <= size else text[: size - 1] + "…"
