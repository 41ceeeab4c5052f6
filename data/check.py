"""Check that question rows agree with the database: run before training on them, and while building them.

Accepted is a row whose gold SQL runs through the agent's own tool and returns exactly its `structured_gt`, whose
evidence quotes are substrings of the cells they name, and whose answer contains every gold value. Rows without SQL are
not checked: there is nothing to compare.

    python -m data.check                         # all three files
    python -m data.check --sample 32 my.parquet  # the first rows of another file
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from data.load import DataError, load_rows
from tools.database import DatabaseError
from tools.query import QueryTool
from utils.settings import SettingsError, load_settings

FILES = [Path(__file__).resolve().parent / f"{split}.parquet" for split in ("train", "val", "test")]


def check_rows(rows: Iterable[Mapping[str, Any]], database_url: str) -> list[str]:
    """One line a row that the database does not confirm; an empty list is a pass.

    Raises:
        DatabaseError: the database cannot be opened or read.
    """
    tool = QueryTool(database_url)
    problems = []
    for row in rows:
        if not row.get("sql"):
            continue
        try:
            reason = _problem(row, tool)
        except (KeyError, TypeError, ValueError) as error:
            reason = f"structured_gt or evidence has not the expected shape: {type(error).__name__} {error}"
        if reason:
            problems.append(f"{row['id']}: {reason}")
    return problems


def _problem(row: Mapping[str, Any], tool: QueryTool) -> str | None:
    result = tool.run(row["sql"])
    if not result.ok:
        return f"gold SQL fails: {result.error}"
    if result.truncated:
        return f"gold SQL returns more than the tool shows: {result.truncated}"
    gold = json.loads(row.get("structured_gt") or "null")
    if gold and (result.columns, result.rows) != (gold["columns"], gold["rows"]):
        return f"gold SQL returns {result.rows}, structured_gt says {gold['rows']}"
    for quote in json.loads(row.get("evidence") or "[]"):
        cell = tool.run(f"SELECT {quote['field']} FROM {quote['table']} WHERE id = {int(quote['row_id'])}")
        if not cell.ok or not cell.rows or quote["quote"] not in str(cell.rows[0][0]):
            return f"evidence {quote['quote']!r} is not in {quote['table']}.{quote['field']} of row {quote['row_id']}"
    absent = [cell for line in gold["rows"] for cell in line if str(cell) not in row["answer"]] if gold else []
    if row.get("answer") and absent:
        return f"the answer lacks the gold value {absent[0]!r}"
    return None


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Check that question rows agree with the database (DATABASE_URL).")
    parser.add_argument(
        "files", nargs="*", type=Path, default=FILES, help="Parquet files (default: the three of data/)"
    )
    parser.add_argument("--sample", type=int, default=None, help="check only the first N rows of each file")
    options = parser.parse_args(arguments)
    try:
        url = load_settings().database_url
        rows = {path: load_rows(path)[: options.sample] for path in options.files}
        problems = [f"{path}: {line}" for path, part in rows.items() for line in check_rows(part, url)]
    except (DataError, SettingsError) as error:
        print(error, file=sys.stderr)
        return 2
    except DatabaseError as error:
        print(error, file=sys.stderr)
        return 1
    print("\n".join(problems) or f"{sum(map(len, rows.values()))} rows agree with the database")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
