"""The questions of EHRSQL (`*_valid.json`: a list with `query`) and EHRSQL-2024 (`label.json`: SQL by
id), and the tables of their schema.

Sources: https://github.com/glee4810/EHRSQL and https://github.com/glee4810/ehrsql-2024, CC BY 4.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data.outside.cases import PublishedError

IMPOSSIBLE = "null"  # what stands in place of a statement where the database has no answer
CREATED = re.compile(r"\bCREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[\"`\[]?(\w+)", re.IGNORECASE)
EXPECTED = "expected EHRSQL's list of questions with `query`, or EHRSQL-2024's label.json"


def statements(path: Path) -> tuple[list[str], int]:
    """Return the gold statements of a file in order, and how many questions have none.

    Raises:
        PublishedError: not readable, empty, or in none of the two forms.
    """
    found = _read_json(path)
    if isinstance(found, list) and all(
        isinstance(row, Mapping) and "query" in row for row in found
    ):
        queries = [row["query"] for row in found]
    elif isinstance(found, Mapping):
        queries = list(found.values())
    else:
        raise PublishedError(f"{path} is no file of EHRSQL; {EXPECTED}")
    if not queries:
        raise PublishedError(f"{path} has no questions; {EXPECTED}")
    strange = next((query for query in queries if not isinstance(query, str)), None)
    if strange is not None:
        raise PublishedError(
            f"{path} has {str(strange)[:40]!r} in place of a statement; {EXPECTED}"
        )
    gold = [query for query in queries if query.strip() != IMPOSSIBLE]
    if not any("select" in query.lower() for query in gold):
        raise PublishedError(f"{path} has no SELECT; {EXPECTED}")
    return gold, len(queries) - len(gold)


def table_names(path: Path) -> set[str]:
    """Return the lower-case names of the tables of a schema: CREATE TABLE statements, or tables.json.

    Raises:
        PublishedError: not readable, or without tables.
    """
    if path.suffix == ".json":
        databases = _read_json(path)
        databases = databases if isinstance(databases, list) else [databases]
        listed = [one.get("table_names_original") for one in databases if isinstance(one, Mapping)]
        names = {str(name).lower() for one in listed for name in one or ()}
    else:
        names = {name.lower() for name in CREATED.findall(_read(path))}
    if not names:
        raise PublishedError(
            f"{path} names no tables; expected CREATE TABLE statements, or tables.json with "
            "table_names_original"
        )
    return names


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise PublishedError(f"{path} cannot be read: {error}") from None


def _read_json(path: Path) -> Any:
    text = _read(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise PublishedError(f"{path} is no whole JSON: {error}") from None
