"""query_database_by_sql: SQL text in, a bounded JSON result or a helpful error out.

    tool = QueryTool("sqlite:////data/medical.db")
    tool.run("SELECT indication FROM drugs_info WHERE med_name = '...'").to_json()

What the model did wrong comes back as a result with status "error"; a database that is gone raises DatabaseError. One
tool may be used from many threads. The texts in a result are read by a model, so they are in Chinese, and nothing a
cell or an error contains can end the tool message or open another: see `neutralise`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tools.database import Access, Database, DatabaseError, DeadlineExceeded, Rows, StatementError, open_database
from tools.guard import Refused, check

DEFAULT_TABLES = ("drugs_info", "disease")
MAX_NAME = 64  # characters of a column name
MAX_ERROR = 300  # characters of an error text
SMALLEST_CELL = 8  # characters; cells shrink to this before a row is given up

# What starts like a tag or a chat token: <|im_start|>, </tool_response>, <think>, <s> and the like, not "x < 5".
TAG_START = re.compile(r"<(?=[/|｜!]?[A-Za-z_|｜])")
# Control characters except tab and newline, and characters that hide or reorder text.
INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


@dataclass(frozen=True)
class Limits:
    """Bounds of one call.

    deadline: seconds the statement may take. max_rows: rows shown. max_cell: characters of a cell. max_chars:
    characters of the whole JSON text (1,000 at least).
    """

    deadline: float = 1.0
    max_rows: int = 20
    max_cell: int = 500
    max_chars: int = 8_000


@dataclass(frozen=True)
class QueryResult:
    """What the model gets to see, and which tables were read.

    rows are lists of JSON values. count is the number of rows the statement returned, shown or not. truncated is False
    or says what was cut. error is None or the reason there is no result.
    """

    columns: list[str]
    rows: list[list[Any]]
    count: int
    truncated: str | bool = False
    error: str | None = None
    tables_read: frozenset[str] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether the statement ran."""
        return self.error is None

    @property
    def status(self) -> str:
        """ "success" or "error"."""
        return "success" if self.ok else "error"

    def to_json(self) -> str:
        """The tool message: one JSON object with the keys status, columns, rows, count, truncated, error."""
        keys = ("status", "columns", "rows", "count", "truncated", "error")
        return json.dumps({key: getattr(self, key) for key in keys}, ensure_ascii=False, separators=(",", ":"))


class QueryTool:
    """Runs the model's SQL on one database; safe to share between threads, to fork and to pickle."""

    def __init__(
        self, database_url: str, allowed_tables: Iterable[str] = DEFAULT_TABLES, limits: Limits = Limits()
    ) -> None:
        self.database_url = database_url
        self.allowed_tables = frozenset(name.lower() for name in allowed_tables)
        self.limits = limits

    def run(self, sql: str) -> QueryResult:
        """Run one SELECT and return a result that fits the limits.

        Raises:
            DatabaseError: the database cannot be used, or lacks an allowed table.
        """
        database = self._database()
        try:
            statement = check(sql, database.dialect, self.allowed_tables)
            access = Access(self.allowed_tables, statement.own_names)
            found = database.read(statement.sql, access, self.limits.deadline, self.limits.max_rows)
        except Refused as refusal:
            return _failure(str(refusal))
        except DeadlineExceeded:
            return _failure(f"查询超过 {self.limits.deadline:g} 秒，已停止。请增加条件或减少连接。")
        except StatementError as error:
            return _failure(f"数据库报错：{error}")
        return _fit(found, self.limits)

    def _database(self) -> Database:
        database = open_database(self.database_url)
        missing = self.allowed_tables - database.tables
        if missing:
            raise DatabaseError(f"the database {database.path} has no table {', '.join(sorted(missing))}")
        return database


def neutralise(text: str) -> str:
    """The text with tags and chat tokens opened by a full-width bracket, and without invisible characters."""
    return TAG_START.sub("＜", INVISIBLE.sub("", text))


def _failure(reason: str) -> QueryResult:
    return QueryResult([], [], 0, error=_shorten(neutralise(reason), MAX_ERROR))


def _fit(found: Rows, limits: Limits) -> QueryResult:
    """Cut cells, then rows, until the JSON text fits; at least one row stays, with its cells cut further."""
    columns = [_shorten(neutralise(name), MAX_NAME) for name in found.columns]
    size = limits.max_cell
    while True:
        rows = [[_cell(value, size) for value in row] for row in found.rows]
        for shown in _fewer(len(rows)):
            note = _note(found, rows[:shown], size)
            result = QueryResult(columns, rows[:shown], found.count, note, tables_read=found.tables_read)
            if len(result.to_json()) <= limits.max_chars:
                return result
        if size <= SMALLEST_CELL:
            note = f"结果太宽，共 {found.count} 行，无法显示，请只选需要的列"
            return QueryResult([], [], found.count, note, tables_read=found.tables_read)
        size = max(SMALLEST_CELL, size // 2)


def _fewer(rows: int) -> Iterable[int]:
    """Numbers of rows to try: all, then one less each time, at least one."""
    return range(rows, 0, -1) if rows else (0,)


def _note(found: Rows, shown: list[list[Any]], size: int) -> str | bool:
    notes = []
    if found.count > len(shown):
        total = f"共 {found.count} 行" if found.count_is_exact else f"超过 {found.count} 行"
        notes.append(f"{total}，只显示前 {len(shown)} 行")
    if any(isinstance(cell, str) and len(cell) == size and cell.endswith("…") for row in shown for cell in row):
        notes.append(f"过长的内容已截断到 {size} 字")
    return "；".join(notes) or False


def _cell(value: Any, size: int) -> Any:
    if isinstance(value, bytes):
        return f"（二进制数据，{len(value)} 字节）"
    if isinstance(value, float) and value - value != 0:
        return str(value)  # infinity has no JSON form
    return _shorten(neutralise(value), size) if isinstance(value, str) else value


def _shorten(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
