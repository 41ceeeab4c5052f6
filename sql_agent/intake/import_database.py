"""Load a file or database into the medical database's tables of drugs and diseases.

    .venv/bin/python -m data.import_database my/drugs.csv --to sqlite:///my/drugs.db --dry-run
    .venv/bin/python -m data.import_database hospital.xlsx --to postgresql+psycopg://user:word@host/medical --replace
    .venv/bin/python -m data.import_database mysql+pymysql://user:word@host/old --to sqlite:///my/drugs.db --strip-html

Reads CSV, TSV, workbooks (.xlsx, .xls, .ods), JSON, JSONL, Parquet or a database. Columns are found
by name and synonym, in Chinese or English. For others it prints lines of a mapping file.
The target changes after all rows were read, in one transaction (docs/your-data.md).
"""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from common.command import Failure, UsageError, filled, new_parser, positive, run_command
from common.language import said
from common.terminal import watched
from sql_agent.intake.columns import Planned, listed, plan_parts, read_mapping
from sql_agent.intake.sources import open_parts
from sql_agent.intake.staging import DUPLICATE, EMPTY, FOOTER, HEADING, REJECTED, Staging
from sql_agent.intake.target import APPEND, MISSING, REPLACE, Target


def run(options: argparse.Namespace) -> int:
    target = Target(options.to, options.mode)
    given = read_mapping(options.mapping) if options.mapping else {}
    parts = open_parts(options.source, options.encoding, options.part, options.header_row)
    if parts[0].note:
        print(parts[0].note)
    seen = [part for part in parts if not part.is_hidden]
    if seen and not options.part:
        for part in parts:
            if part.is_hidden:
                hidden = "left out: {name}, a hidden sheet; --part {name} imports it"
                print(said(hidden, name=part.name))
        parts = seen
    planned, skipped = plan_parts(parts, given)
    for name in skipped:
        print(said("left out: {name}, whose columns are of neither table", name=name))
    _refuse_unused(planned)
    filled = target.check({item.table for item in planned})
    if target.mode == MISSING:
        for table in sorted(filled):
            stays = "{target}: {table} has rows and stays as it is"
            print(said(stays, target=target.name, table=table))
        planned = [item for item in planned if item.table not in filled]
    staged = {item.table: Staging() for item in planned}
    rejected = 0
    for item in planned:
        rejected += _stage(item, staged[item.table], options.strip_html)
    if rejected and not options.skip_rejected:
        print(
            "nothing imported: mend the source, or give --skip-rejected to import the other rows",
            file=sys.stderr,
        )
        return 1
    ready = {}
    for table, staging in staged.items():
        if len(staging):
            ready[table] = staging.rows()
        else:
            print(said("{table}: no row is ready, so the target's stay as they are", table=table))
        if 0 < staging.without_key < len(staging):
            numbered = "{table}: {count} rows have no id, so all of its rows are numbered anew"
            print(said(numbered, table=table, count=staging.without_key))
    if planned and not ready:
        raise Failure(f"{options.source} has no row to import")
    if not options.dry_run:
        _say_written(target.write(ready), target.name)
    return 0


def _refuse_unused(planned: list[Planned]) -> None:
    fitting = [item for item in planned if len(item.unused) <= len(item.mapping)]
    for item in planned:
        if item not in fitting:
            print(item.report())
            others = listed([f"--part {other.part.name}" for other in fitting])
            raise UsageError(
                f"{len(item.unused)} of {len(item.mapping) + len(item.unused)} columns of "
                f"{item.part.name} fit none of {item.table}; decide about each in a file for "
                "--mapping" + (f", or import only a part that fits: {others}" if others else "")
            )


def _say_written(counts: dict[str, int], target: str) -> None:
    into = "{target}: {count} rows written to {table}"
    lines = [said(into, target=target, count=count, table=table) for table, count in counts.items()]
    try:
        print("\n".join(lines), flush=True)
    except OSError:  # the target has changed, whoever reads of it or not
        print("\n".join(lines), file=sys.stderr)
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (for the interpreter's last flush)


def _stage(item: Planned, staging: Staging, strip_html: bool) -> int:
    rows = Counter[str]()
    lines = []
    for record in watched(item.part.records(), item.part.name):
        findings = staging.add(item, record, strip_html)
        rows[findings[0].kind if findings else "ready"] += 1
        for kind, column, reason in findings:
            place = said("row {number}", number=record.number)
            place += said(", column {name}", name=column) if column else ""
            lines.append(f"  {place}: {said(kind)}" + (f": {reason}" if reason else ""))
    kinds = (DUPLICATE, EMPTY, FOOTER, HEADING, REJECTED)
    counted = [kind for kind in kinds if rows[kind] or kind not in (FOOTER, HEADING)]
    left_out = said(", ").join(f"{rows[kind]} {said(kind)}" for kind in counted)
    ready = "{name} -> {table}: {count} rows ready, {left_out}"
    name = item.part.name
    print(said(ready, name=name, table=item.table, count=rows["ready"], left_out=left_out))
    print("\n".join([item.report(), *lines]))
    return rows[REJECTED]


def main(arguments: list[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add(
        "source",
        type=filled,
        help="a file (.csv .tsv .xlsx .xls .ods .json .jsonl .parquet) or a database URL",
    )
    to = "target, e.g. sqlite:///my/drugs.db; postgresql+psycopg, mysql+pymysql"
    add("--to", required=True, metavar="URL", help=to)
    add("--part", metavar="NAME", help="only this sheet or table of the source")
    mapping = "JSON or YAML: source column: our column (null: leave out)"
    add("--mapping", type=Path, metavar="FILE", help=mapping)
    header = "the row of column names (CSV, Excel; default: found)"
    add("--header-row", type=positive(int), metavar="N", help=header)
    add("--encoding", help="of a text file, such as big5 or latin-1 (default: found out)")
    add("--strip-html", action="store_true", help="remove tags, entities and control characters")
    existing = parser.add_mutually_exclusive_group()
    for mode, what in (
        (REPLACE, "delete the table's rows first"),
        (APPEND, "keep them and number the new ones on"),
        (MISSING, "fill the tables that have no rows, and leave the others as they are"),
    ):
        flag = mode.replace("_", "-")
        existing.add_argument(f"--{flag}", dest="mode", action="store_const", const=mode, help=what)
    add("--skip-rejected", action="store_true", help="import the other rows when some are rejected")
    add("--dry-run", action="store_true", help="read and report, write nothing")
    options = parser.parse_args(arguments)
    return run_command(
        "import_database", lambda: run(options), afterwards="the target is unchanged"
    )


if __name__ == "__main__":
    sys.exit(main())
