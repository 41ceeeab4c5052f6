"""What an import does, without its command line: choose the tables, stage the rows, finish in one transaction.

from data.intake.importing import plan_parts, stage_part
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from data.database.schema import NAME_COLUMN, NAME_LENGTH, SOURCE_LENGTH
from data.intake.cells import CellError, to_text
from data.intake.columns import MappingError, guess_table, map_columns
from data.intake.source_types import Part, Record
from data.intake.staging import EMPTY, REJECTED, Finding, StagedRow, Staging

CHUNK = 2_000
LENGTHS = {"med_name": NAME_LENGTH, "disease_name": NAME_LENGTH, "source": SOURCE_LENGTH}
LARGEST_KEY = 2**31 - 1


@dataclass(frozen=True)
class Planned:
    """A part of the source, the table it goes to, and which of its columns fills which of the table's."""

    part: Part
    table: str
    mapping: dict[str, str]

    @property
    def ignored(self) -> list[str]:
        """The source's columns that fill none."""
        return [column for column in self.part.columns if column not in self.mapping]


def plan_parts(
    parts: list[Part], table: str | None, given: Mapping[str, str | None] | None = None
) -> tuple[list[Planned], list[str]]:
    """Which parts are imported where, and the names of those that are not.

    Raises:
        MappingError: a part's table can not be told, or its columns not mapped.
    """
    planned, skipped = [], []
    for part in parts:
        guessed = guess_table(part.columns, part.name)
        if table is not None and len(parts) == 1:
            guessed = table
        if guessed is None and len(parts) == 1:
            raise MappingError(f"which table is it? give --table drugs_info or disease; columns: {_list(part.columns)}")
        if guessed is None or (table is not None and guessed != table):
            skipped.append(part.name)
        else:
            planned.append(Planned(part, guessed, map_columns(part.columns, guessed, given)))
    if not planned:
        raise MappingError(f"no part of the source is for {table or 'either table'}: {_list(skipped)}; give --part")
    return planned, skipped


def _list(names: list[str]) -> str:
    return ", ".join(names)


def fingerprint(source: str, planned: list[Planned], *options: Any) -> str:
    """A short text that changes with the source's content or place, the mapping or an option."""
    identity: list[Any] = [
        source,
        [(item.part.name, item.table, item.mapping, item.part.fingerprint) for item in planned],
    ]
    if "://" not in source:
        status = Path(source).stat()
        identity += [str(Path(source).resolve()), status.st_size, status.st_mtime_ns]
    text = json.dumps([identity, options], ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def stage_part(
    item: Planned, staging: Staging, strip_html: bool = False, watch: Callable[[int], None] = lambda done: None
) -> None:
    """Take a part's rows into staging, from where an earlier import stopped; `watch` hears the records done."""
    done, complete = staging.position(item.part.name)
    if complete:
        return
    records = item.part.records()
    for _ in islice(records, done):
        pass
    while True:
        chunk = list(islice(records, CHUNK))
        rows: list[StagedRow] = []
        findings: list[Finding] = []
        for record in chunk:
            row, problems = convert(record, item, strip_html)
            findings += problems
            if row is not None:
                rows.append(row)
        done += len(chunk)
        staging.add(item.part.name, item.table, rows, findings, done)
        watch(done)
        if len(chunk) < CHUNK:
            break
    staging.complete(item.part.name)


def convert(record: Record, item: Planned, strip_html: bool = False) -> tuple[StagedRow | None, list[Finding]]:
    """A record as a row for the table, or None and the findings that say why not."""
    if record.problem:
        return None, [Finding(record.number, REJECTED, "", record.problem)]
    cells: dict[str, str] = {}
    problems: list[Finding] = []
    for source, column in item.mapping.items():
        try:
            text = to_text(record.values.get(source), strip_html)
            if text is not None:
                cells[column] = _fitting(column, text)
        except CellError as error:
            problems.append(Finding(record.number, REJECTED, _place(source, column), str(error)))
    if not problems and not cells.keys() - {"id"}:
        return None, [Finding(record.number, EMPTY)]
    names = {column: source for source, column in item.mapping.items()}
    for required in [NAME_COLUMN[item.table], *(["id"] if "id" in names else [])]:
        place = _place(names[required], required)
        if required not in cells and not any(problem.place == place for problem in problems):
            problems.append(Finding(record.number, REJECTED, place, "empty, every row needs one"))
    if problems:
        return None, problems
    key = cells.pop("id", None)
    return StagedRow(record.number, None if key is None else int(key), cells), []


def _fitting(column: str, text: str) -> str:
    if column == "id" and not (text.isascii() and text.isdigit() and len(text) < 11 and 0 < int(text) <= LARGEST_KEY):
        raise CellError(f"{text[:40]!r}, expected a whole number from 1 to {LARGEST_KEY}")
    if len(text) > LENGTHS.get(column, len(text)):
        raise CellError(f"{len(text)} characters, at most {LENGTHS[column]} fit")
    return text


def _place(source: str, column: str) -> str:
    return source if source == column else f"{source} ({column})"
