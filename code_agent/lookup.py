"""The answers to `request_info` about CSV files and SQLite tables.

Files are read row by row, so that large ones need no memory.
"""

import csv
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from common.files import read_only_uri

KINDS = ("column_names", "column_values", "term")
# Values shown, suggestions, and how unlike a suggestion may be
SHOWN = 10
NEAREST = 5
FARTHEST = 0.5
MOST_VALUES = 20_000  # different values of a column that are counted or compared with a term
SQLITE = (".db", ".sqlite", ".sqlite3")


class LookupRefused(ValueError):
    """The requested item does not exist. The message says what does."""


def look_up(files: Sequence[Path], name: str, kind: str, keyterm: str = "") -> str:
    """Answer about one of the files. Raises LookupRefused, OSError, sqlite3.Error, ValueError."""
    if kind not in KINDS:
        raise LookupRefused(f"info_type {kind!r}: expected {', '.join(KINDS)}")
    path, table = find(files, name)
    if kind == "column_names" and path.suffix.lower() in SQLITE and not table:
        return "\n".join(f"{one}: {', '.join(columns_of(path, one))}" for one in tables_of(path))
    if kind == "column_names":
        return ", ".join(columns_of(path, table))
    if not keyterm.strip():
        raise LookupRefused(f"{kind} needs a keyterm: a column, or for term what to look for")
    return values(path, table, keyterm) if kind == "column_values" else term(path, table, keyterm)


def find(files: Sequence[Path], name: str) -> tuple[Path, str]:
    """Return the file that a name means, and an SQLite file's table. Raises LookupRefused."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    known = {path.name.lower(): path for path in files}
    for at in range(len(parts) - 1, -1, -1):
        file = known.get(parts[at].lower()) or known.get(f"{parts[at].lower()}.csv")
        if file:
            return file, parts[at + 1] if at + 1 < len(parts) else ""
    there = ", ".join(path.name for path in files) or "none"
    raise LookupRefused(f"there is no table {name!r}; there are {there}")


def tables_of(path: Path) -> list[str]:
    with closing(_connect(path)) as connection:
        found = connection.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
        )
        return [name for (name,) in found if not name.startswith("sqlite_")]


def columns_of(path: Path, table: str) -> list[str]:
    with opened(path, table) as (columns, _):
        return columns


def values(path: Path, table: str, column: str) -> str:
    """Return distinct values of a column in the order of the file, or near names if it is unknown."""
    with opened(path, table) as (columns, rows):
        named = {name.strip().lower(): at for at, name in enumerate(columns)}
        found = named.get(column.strip().lower())
        if found is None:
            raise LookupRefused(
                f"there is no column {column!r}; the columns are {', '.join(columns)}"
            )
        seen = dict[str, None]()
        for row in rows:
            if found < len(row):
                seen[row[found]] = None
            if len(seen) > MOST_VALUES:
                break
    shown = ", ".join(list(seen)[:SHOWN])
    count = len(seen) if len(seen) <= MOST_VALUES else f"more than {MOST_VALUES}"
    return shown if len(seen) <= SHOWN else f"{shown}, ... ({count} different values)"


def term(path: Path, table: str, keyterm: str) -> str:
    """Return the columns that hold a term as a whole value, else the most similar values."""
    wanted = keyterm.strip().lower()
    seen = dict[str, dict[str, None]]()
    with opened(path, table) as (columns, rows):
        for row in rows:
            for column, value in zip(columns, row, strict=False):
                if value.lower() == wanted:
                    return f"{keyterm!r} is a value of the column {column}: {value}"
                own = seen.setdefault(column, {})
                if len(own) < MOST_VALUES:
                    own[value] = None
    there = []
    for column, own in seen.items():
        there += [(value, column) for value in own]
    there.sort()
    found = process.extract(
        wanted,
        [value.lower() for value, _ in there],
        scorer=Levenshtein.normalized_distance,
        score_cutoff=FARTHEST,
        limit=NEAREST,
    )
    if not found:
        raise LookupRefused(f"nothing in {path.name} is spelled like {keyterm!r}")
    near = ", ".join("{} ({})".format(*there[at]) for *_, at in found)
    return f"{keyterm!r} is no value; the nearest are {near}"


@contextmanager
def opened(path: Path, table: str) -> Iterator[tuple[list[str], Iterator[tuple[str, ...]]]]:
    """Yield columns and rows of a table, as texts."""
    if path.suffix.lower() == ".csv":
        csv.field_size_limit(sys.maxsize)
        with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
            reader = csv.reader(file)
            yield next(reader, []), (tuple(row) for row in reader)
        return
    known = {name.lower(): name for name in tables_of(path)}
    if table.lower() not in known:
        raise LookupRefused(
            f"{path.name} has the tables {', '.join(known.values())}; name one: {path.name}/TABLE"
        )
    quoted = known[table.lower()].replace('"', '""')
    with closing(_connect(path)) as connection:
        found = connection.execute(f'SELECT * FROM "{quoted}"')
        names = [name for name, *_ in found.description]
        yield names, (tuple("" if cell is None else str(cell) for cell in row) for row in found)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(read_only_uri(path), uri=True, check_same_thread=False)
