"""Bring your own drugs and diseases: load a file or another database into the medical database's two tables.

Reads CSV, TSV, Excel, JSON, JSONL, Parquet or a database; finds the columns by name or synonym, in Chinese or English.
Nothing reaches the target before every row was read, and then all rows in one transaction. An interrupted import goes
on where it was when the same command is given again. docs/data.md has the details.

    python -m data.import_database drugs.csv --to sqlite:///my.db --dry-run
    python -m data.import_database hospital.xlsx --to postgresql+psycopg://user:word@host/medical --replace
    python -m data.import_database mysql+pymysql://user:word@host/old --to sqlite:///my.db --strip-html
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from data.database.schema import SOURCE_LENGTH, TABLES
from data.intake.columns import MappingError, read_mapping
from data.intake.importing import Planned, fingerprint, plan_parts, stage_part
from data.intake.source_types import SourceError
from data.intake.sources import open_parts
from data.intake.staging import DUPLICATE, EMPTY, REJECTED, StagedRow, Staging, StagingError
from data.intake.target import APPEND, REPLACE, Target, TargetError

SHOWN = 20
INTERRUPTED = 130


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line's options."""
    parser = argparse.ArgumentParser(description="Load drugs and diseases from a file or a database.")
    add = parser.add_argument
    add("source", help="a file (.csv .tsv .xlsx .json .jsonl .parquet) or a database URL")
    add("--to", required=True, metavar="URL", help="target, e.g. sqlite:///my.db; postgresql+psycopg, mysql+pymysql")
    add("--table", choices=sorted(TABLES), help="the table the rows are for (default: told from the columns)")
    add("--part", metavar="NAME", help="only this sheet or table of the source")
    add("--mapping", type=Path, metavar="FILE", help="JSON or YAML: source column: our column (null: leave out)")
    add("--encoding", help="of a text file (default: UTF-8 or GB18030, found out)")
    add("--strip-html", action="store_true", help="remove tags, entities and control characters")
    add("--label", default="imported", help="the column `source` of these rows (default: imported)")
    existing = parser.add_mutually_exclusive_group()
    for mode, what in ((REPLACE, "delete the table's rows first"), (APPEND, "keep them and number the new ones on")):
        existing.add_argument(f"--{mode}", dest="mode", action="store_const", const=mode, help=what)
    add("--skip-rejected", action="store_true", help="import the other rows when some are rejected")
    add("--dry-run", action="store_true", help="read and report, write nothing")
    add("--report", type=Path, metavar="FILE", help="write every finding to a TSV file")
    add("--work", type=Path, metavar="FOLDER", help="where rows wait (default: beside an SQLite target, else here)")
    options = parser.parse_args(arguments)
    if not 0 < len(options.label) <= SOURCE_LENGTH:
        parser.error(f"--label: expected 1 to {SOURCE_LENGTH} characters")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code: 0 done, 1 failed or rows rejected, 2 wrong usage, 130 interrupted."""
    options = parse(arguments)
    try:
        target = Target(options.to, options.mode)
        given = read_mapping(options.mapping) if options.mapping else None
        parts = open_parts(options.source, options.encoding, options.part)
        planned, skipped = plan_parts(parts, options.table, given)
    except (TargetError, MappingError, SourceError) as error:
        print(error, file=sys.stderr)
        return 2
    for name in skipped:
        print(f"left out: {name}, its columns are those of neither table, or of another than asked for")
    try:
        if target.file is not None and _file_of(options.source) == target.file:
            raise TargetError("source and target are the same file")
        target.check({item.table for item in planned})
        if not options.dry_run:
            return _import(options, planned, target, options.work or _default_folder(target))
        with tempfile.TemporaryDirectory() as folder:
            return _import(options, planned, target, Path(folder))
    except (TargetError, SourceError, StagingError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the target is unchanged. Give the same command again to go on from here", file=sys.stderr)
        return INTERRUPTED


def _import(options: argparse.Namespace, planned: list[Planned], target: Target, folder: Path) -> int:
    place = hashlib.sha256(f"{options.source}\n{target.name}\n{options.table}\n{options.part}".encode()).hexdigest()
    content = fingerprint(options.source, planned, options.encoding, options.strip_html)
    staging = Staging(folder / f".import-{place[:16]}.sqlite", content)
    finished = False
    try:
        if staging.resumed:
            read = sum(staging.position(item.part.name)[0] for item in planned)
            print(f"going on with an earlier import of the same source: {read} of its rows are read already")
        _stage(options.source, planned, staging, options.strip_html)
        rejected = _report(planned, staging, options.report)
        if rejected and not options.skip_rejected:
            print(
                "nothing imported: mend the source, or give --skip-rejected to import the other rows", file=sys.stderr
            )
            return 1
        if not options.dry_run:
            _write(planned, staging, target, options.label)
        finished = True
        return 0
    finally:
        staging.close(remove=finished or options.dry_run)


def _stage(source: str, planned: list[Planned], staging: Staging, strip_html: bool) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[rows]} rows"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        for item in planned:
            task = progress.add_task(item.part.name, total=None, rows=0)

            def watch(rows: int, item: Planned = item, task: TaskID = task) -> None:
                done, total = item.part.progress()
                progress.update(task, completed=done, total=total, rows=rows)

            stage_part(item, staging, strip_html, watch)


def _report(planned: list[Planned], staging: Staging, file: Path | None) -> int:
    """Print what was read and what was left out, by part; returns the number of rejected rows."""
    rejected = 0
    for item in planned:
        part = item.part.name
        counts = {kind: staging.count(part, kind) for kind in (DUPLICATE, EMPTY, REJECTED)}
        rejected += counts[REJECTED]
        print(
            f"{part} -> {item.table}: {staging.staged(part)} rows ready, {counts[DUPLICATE]} duplicate, "
            f"{counts[EMPTY]} empty, {counts[REJECTED]} rejected"
        )
        print("  columns: " + ", ".join(f"{source} -> {column}" for source, column in item.mapping.items()))
        if item.ignored:
            print("  not used: " + ", ".join(item.ignored))
        for kind, count in counts.items():
            found = list(staging.findings(part, kind, SHOWN))
            for each in found:
                column = f", column {each.place}" if each.place else ""
                print(f"  row {each.number}{column}: {kind}" + (f": {each.reason}" if each.reason else ""))
            if count > len(found):
                print(f"  ... {count} rows {kind} in all; --report FILE writes every one")
    if file is not None:
        _write_report(planned, staging, file)
    return rejected


def _write_report(planned: list[Planned], staging: Staging, file: Path) -> None:
    import csv

    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, delimiter="\t", lineterminator="\n")
            writer.writerow(("part", "row", "column", "kind", "reason"))
            for item in planned:
                for kind in (REJECTED, DUPLICATE, EMPTY):
                    for each in staging.findings(item.part.name, kind):
                        writer.writerow((item.part.name, each.number, each.place, kind, each.reason))
        os.replace(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)


def _write(planned: list[Planned], staging: Staging, target: Target, label: str) -> None:
    rows: dict[str, Iterable[StagedRow]] = {}
    for item in planned:
        rows[item.table] = chain(rows.get(item.table, ()), staging.rows(item.part.name))
    for table, count in target.write(rows, label).items():
        print(f"{target.name}: {count} rows written to {table}")


def _file_of(source: str) -> Path | None:
    """The file a source is kept in, as far as it is one."""
    if source.startswith("sqlite:///"):
        return Path(source.removeprefix("sqlite:///").partition("?")[0]).resolve()
    return None if "://" in source else Path(source).resolve()


def _default_folder(target: Target) -> Path:
    return target.file.parent if target.file is not None else Path.cwd()


if __name__ == "__main__":
    sys.exit(main())
