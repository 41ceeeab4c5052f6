"""Question files: read any accepted form into one kind of row, write it, and check and complete it.

    from data.load import load_rows, write_rows
    rows = load_rows("my.jsonl")
    write_rows(rows, Path("my.parquet"))

Files are Parquet, JSONL or a JSON list; the first character says which. A row is a dict of text, the same in memory as
on disk: it has all of COLUMNS, "" where there is nothing. `sql` is one statement, or several as a JSON list (read it
with `statements`); `structured_gt`, `evidence` and `entities` are JSON text (read them with `nested`). Columns beyond
these come along as the file has them, and are not written.

A row needs `id` and `question`. Accepted besides: `qid` for `id`, `ground_truth` for `answer`, `source_table` for
`table` in evidence, nested values instead of JSON text, and the names in `meta.entity` where `entities` is missing.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from itertools import count
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from common.command import UsageError
from common.files import replacing
from data.database.schema import NAME_COLUMN, TABLES
from data.intake.sources import as_record, line_records, parquet_records, refusing
from data.questions.row import COLUMNS, Note, Record, Row, compact, missing_columns, nested, normalise, statements

if TYPE_CHECKING:
    from data.questions.gold_check import Finding

__all__ = [
    "COLUMNS", "NAME_COLUMN", "TABLES", "DataError", "Row", "check_rows", "column_words", "count_without_reference",
    "fill_answers", "iterate_rows", "load_rows", "nested", "read_records", "statements", "write_rows",
]  # fmt: skip


class DataError(UsageError):
    """A question file that cannot be used; the message names the file, the column and the row."""


def load_rows(path: str | PathLike[str]) -> list[Row]:
    """The rows of a file, in file order; they are counted from 0 in messages.

    Raises:
        DataError: no such file, not readable, no rows, a required column missing, a value of the wrong type or shape,
            text that should be JSON and is not, a blank id or question, or an id used twice.
    """
    rows: list[Row] = []
    first_seen: dict[str, int] = {}
    for number, row, problems in iterate_rows(Path(path)):
        if problems:
            column, reason = problems[0]
            raise DataError(f"{path}, row {number}, column {column}: {reason}" if column else reason)
        earlier = first_seen.setdefault(row["id"], number)
        if earlier != number:
            raise DataError(f"{path}, row {number}, column id: {row['id']!r} is already the id of row {earlier}")
        rows.append(row)
    return rows


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """Write the COLUMNS of the rows, as JSONL to a name that ends so, else as Parquet; complete or not at all."""
    known = [{column: row[column] for column in COLUMNS} for row in rows]
    with replacing(path) as draft:
        if path.suffix == ".jsonl":
            draft.write_text("".join(compact(row) + "\n" for row in known), encoding="utf-8")
        else:
            import pyarrow as arrow
            import pyarrow.parquet as parquet

            schema = arrow.schema([(column, arrow.string()) for column in COLUMNS])
            parquet.write_table(arrow.Table.from_pylist(known, schema=schema), draft)


def count_without_reference(rows: Iterable[Row]) -> int:
    """How many rows have no answer to compare with."""
    return sum(1 for row in rows if not row["answer"])


def fill_answers(rows: Iterable[Row], database_url: str) -> int:
    """Write an answer into every row that has none and whose gold gives one; returns how many were written.

    Raises:
        DatabaseError: a row has SQL whose result was not recorded, and the database cannot be read.
    """
    from data.questions.draft import draft_answer
    from data.questions.gold_check import gold_tool

    tool, bare = gold_tool(database_url), [row for row in rows if not row["answer"]]
    for row in bare:
        row["answer"] = draft_answer(row, tool)
    return len(bare) - count_without_reference(bare)


def check_rows(rows: Iterable[Row], database_url: str) -> list[Finding]:
    """What is wrong with each row's gold (`problems`) and what could not be checked (`unchecked`), in order.

    Raises:
        DatabaseError: the database cannot be opened or read.
    """
    from data.questions.gold_check import Checker

    return Checker(database_url).check(rows)


def column_words() -> dict[str, dict[str, list[str]]]:
    """By table and column the words that mean the column in a question, the more telling columns first."""
    from data.questions.templates import KEYWORDS

    return KEYWORDS


def iterate_rows(path: Path) -> Iterator[tuple[int, Row, list[Note]]]:
    """Number, row and problems of every row, wrong ones included; a row without problems is usable.

    A line that is no row at all is an empty dict with one problem, of no column ("").

    Raises:
        DataError: no such file, not readable, no rows, or a required column missing from the first row.
    """
    number = -1
    for number, record in read_records(path):
        if isinstance(record, DataError):
            yield number, {}, [("", str(record))]
            continue
        if number == 0 and (missing := missing_columns(record)):
            raise DataError(f"{path} has no column {', '.join(missing)}; it has: {', '.join(record)}")
        yield number, *normalise(record)
    if number < 0:
        raise DataError(f"{path} has no rows")


def read_records(path: Path) -> Iterator[tuple[int, Record | DataError]]:
    """Each row's number, from 0, and the row as the file has it; a line that is no JSON object is the error it is.

    Blank lines of JSONL are no rows. Memory stays that of some rows, except for a JSON list.

    Raises:
        DataError: no such file, or nothing more can be read from it.
    """
    if not path.is_file():
        seen = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{path} {seen}; expected a Parquet or JSONL file with the columns id, question and answer")
    with refusing(f"{path} cannot be read", DataError), path.open("rb") as head:
        first = head.read(1024).removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    what = f"{path} cannot be read as {'JSON' if first in (b'{', b'[') else 'Parquet'}"
    with refusing(what, DataError), path.open("rb") as file:
        if first == b"{":
            records = line_records(line for line in file if line.strip())
        elif first == b"[":
            records = map(as_record, count(1), json.load(file))
        else:
            records = parquet_records(path)
        for number, record in enumerate(records):
            wrong = f"{path}, row {number}: {record.problem}"
            yield number, DataError(wrong) if record.problem else record.values
