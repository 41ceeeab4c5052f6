"""Turn a question file of another form into the Parquet that training reads.

    python -m data.convert my.jsonl --out my.parquet
    python -m data.convert my.jsonl --out my.parquet --draft-answers --db sqlite:///my.db

Other names and nested values become the columns of `data/load.py`, all of them text; HTML is removed from questions,
answers, quotes and gold; `--draft-answers` writes missing answers from gold SQL or evidence
(`data/questions/draft.py`). Rows are not checked against the database: `python -m data.validate` does that. Exit codes:
0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from data.load import Row
    from data.questions.draft import Drafter

BATCH_ROWS = 500


@dataclass
class Converted:
    """What was done: rows written, answers drafted and still missing, columns that have no place in the result."""

    rows: int = 0
    drafted: int = 0
    without_answer: int = 0
    left_out: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        bare = f"{self.without_answer} without an answer (judged without a reference)"
        notes = [f"{self.rows} rows", f"{self.drafted} answers drafted", bare]
        if self.left_out:
            notes.append(f"columns left out: {', '.join(sorted(self.left_out))}")
        return ", ".join(notes)


def convert(source: Path, target: Path, drafter: Drafter | None = None) -> Converted:
    """Write the rows of `source` to `target`, complete or not at all; memory stays that of some rows.

    Raises:
        DataError: a row cannot be used; the message names the file, the row and the column.
        DatabaseError: drafting needs the database, and it cannot be read.
    """
    from data.questions.check import batches

    done = Converted()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        _write(temporary, (batch for batch in batches(_rows(source, drafter, done), BATCH_ROWS)))
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return done


def write_rows(rows: list[Row], target: Path) -> None:
    """Write rows of `load_rows` as Parquet, complete or not at all; columns beyond the known ones are left out."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        _write(temporary, iter([[on_disk(row) for row in rows]]))
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def on_disk(row: Row) -> dict[str, str]:
    """The row's known columns as text: several statements become a JSON list, one stays itself."""
    from data.load import COLUMNS

    statements = row["sql"]
    sql = statements[0] if len(statements) == 1 else json.dumps(statements, ensure_ascii=False) if statements else ""
    return {column: sql if column == "sql" else row[column] for column in COLUMNS}


def _rows(source: Path, drafter: Drafter | None, done: Converted) -> Iterator[dict[str, str]]:
    from data.load import ALIASES, COLUMNS, checked_rows

    for row in checked_rows(source):
        clean(row)
        if not row["answer"] and drafter:
            row["answer"] = drafter.draft(row)
            done.drafted += bool(row["answer"])
        done.rows += 1
        done.without_answer += not row["answer"]
        done.left_out |= row.keys() - set(COLUMNS) - ALIASES.keys()
        yield on_disk(row)


def clean(row: Row) -> None:
    """Remove HTML from what people and judges read; SQL and names stay as they are."""
    from data.questions.markup import plain

    for column in ("question", "answer"):
        row[column] = plain(row[column]) or row[column]
    if row["evidence"]:
        quotes = json.loads(row["evidence"])
        row["evidence"] = _compact([item | {"quote": plain(item["quote"])} for item in quotes])
    if row["structured_gt"]:
        gold = json.loads(row["structured_gt"])
        cells = [[plain(cell) if isinstance(cell, str) else cell for cell in line] for line in gold["rows"]]
        row["structured_gt"] = _compact(gold | {"rows": cells})


def _write(path: Path, parts: Iterator[list[dict[str, str]]]) -> None:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    from data.load import COLUMNS

    schema = arrow.schema([(column, arrow.string()) for column in COLUMNS])
    with parquet.ParquetWriter(path, schema) as writer:
        for part in parts:
            writer.write_table(arrow.Table.from_pylist(part, schema=schema))


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line; ends the program with code 2 where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m data.convert", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="Parquet, JSONL or a JSON list")
    add("--out", type=Path, required=True, metavar="X.parquet", help="file to write")
    add("--draft-answers", action="store_true", help="write missing answers from gold SQL or evidence")
    add("--db", metavar="URL", help="database for drafting (default: DATABASE_URL, else the embedded one)")
    add("--force", action="store_true", help="replace --out if it exists")
    options = parser.parse_args(arguments)
    if options.out.exists() and not options.force:
        parser.error(f"{options.out} exists; give another --out, or --force to replace it")
    if not options.out.parent.is_dir():
        parser.error(f"the folder {options.out.parent} does not exist")
    if options.db and not options.draft_answers:
        parser.error("--db is used by --draft-answers only")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    options = parse(arguments)
    from common.settings import SettingsError, load_settings
    from data.load import DataError
    from data.questions.draft import Drafter
    from tools.sql.database import DatabaseError

    try:
        drafter = Drafter(options.db or load_settings().database_url) if options.draft_answers else None
        print(f"{options.out}: {convert(options.file, options.out, drafter)}")
    except (DataError, DatabaseError, SettingsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.strerror or error}: {error.filename or options.out}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
