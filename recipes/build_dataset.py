"""Make the question files from a database: train, validation and test, with no entity in two of
them.

Nine types of question in natural Chinese ask about the database's own entities, or only about the
invented ones if it has any (column `source`). Every row's gold SQL has been run by the agent's own
tool, and its gold answer earns 1 from the project's own judge. Names of one split occur
in no other, its search words and filter values are asked for in no other, and no question is nearly
one of another. The same database and arguments give the same bytes.

    .venv/bin/python -m data.build_dataset --force                                # the bundled files
    .venv/bin/python -m data.build_dataset --db sqlite:///my/drugs.db --output my/data --rows 20000
    .venv/bin/python -m data.build_dataset --db URL --output my/data --rows train=5000,val=500,test=1000 --typo-rate 0.1
    .venv/bin/python -m data.build_dataset --db URL --output my/data --paraphrase 0.3      # by the LLM of TEACHER_MODEL

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. A paraphrasing run that was
interrupted goes on when the same command is given again.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from common.command import Failure, UsageError, new_parser, number, run_command
from common.files import refuse_existing
from common.language import said
from common.settings import ROOT, load_settings
from recipes.fictional import SEED
from recipes.questions.entities import read_catalogue
from recipes.questions.generate import Dataset, Generator, Request, overlap
from recipes.questions.streams import MIX, Rates
from sql_agent.intake.question_files import DataError, write_rows
from sql_agent.tables import TABLES
from tools.sql.settings import DEFAULT_DATABASE, DatabaseSettings

Shares = Mapping[str, float]
DATA = ROOT / "data"
JSONL = "qa_dataset.jsonl"

# Rows of each split, and its share of the entities: a small split needs more entities a row to have
# every type.
ROWS = {"train": 960, "val": 96, "test": 320}
SHARES = {"train": 0.62, "val": 0.10, "test": 0.28}
# Entities of a table that are asked about, for each row. Small databases are asked about whole.
ENTITIES_A_ROW = 0.5
ENTITIES = 2_000


def make_dataset(url: str, request: Request, seed: int = SEED) -> Dataset:
    """Return all rows by split. The same database and arguments give the same rows.

    url: SQLAlchemy URL of a database with both tables. request: of `request_for`. Raises DataError:
    the database lacks a table or column, or cannot be read. Raises DatabaseError: the tool cannot
    query it.
    """
    rng = random.Random(seed)
    total = sum(sum(kinds.values()) for kinds in request.rows.values())
    catalogue = read_catalogue(url, max(ENTITIES, int(total * ENTITIES_A_ROW)), rng)
    return Generator(catalogue, request, rng).fill(url)


def request_for(
    rows: int | Mapping[str, int] = ROWS, mix: Shares = MIX, rates: Rates | None = None
) -> Request:
    """Return what is to be made: rows by split, or in total and divided like ROWS.

    Raises DataError: a split or type that does not exist, or nothing above 0.
    """
    wanted = share_out(rows, ROWS) if isinstance(rows, int) else rows
    for given, known in ((wanted, ROWS), (mix, MIX)):
        wrong = [f"{name}={n}" for name, n in given.items() if name not in known or n < 0]
        if wrong or sum(given.values()) <= 0:
            seen = ", ".join(wrong) or "nothing above 0"
            raise DataError(f"{seen}: expected numbers above 0 for some of {', '.join(known)}")
    by_type = {split: share_out(wanted.get(split, 0), mix) for split in ROWS}
    return Request(by_type, SHARES, rates or Rates())


def share_out(total: int, shares: Shares) -> dict[str, int]:
    """Return `total` divided into whole numbers by the shares (largest remainders)."""
    scale = total / sum(shares.values())
    counts = {name: int(share * scale) for name, share in shares.items()}
    order = sorted(shares, key=lambda name: counts[name] - shares[name] * scale)
    for name in order[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def refuse_empty(dataset: Dataset, request: Request) -> None:
    wanted = [split for split, kinds in request.rows.items() if sum(kinds.values())]
    empty = [split for split in wanted if not dataset.splits[split]]
    if empty:
        raise Failure(
            f"{' and '.join(empty)} would have no row: the database has too few drugs and "
            "diseases to divide them so that no name stands in two files. Add rows to it "
            f"(15 drugs are enough), or leave {' and '.join(empty)} out: --rows train=200"
            + "".join(f". {line}" for line in dataset.left_out)
        )


def report(dataset: Dataset, request: Request) -> list[str]:
    lines = []
    for split, rows in dataset.splits.items():
        kinds = Counter(row["task_type"] for row in rows)
        named = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
        lines.append(
            said("{split}: {count} rows, {kinds}", split=split, count=len(rows), kinds=named)
        )
    refused = ", ".join(f"{count} {reason}" for reason, count in sorted(dataset.refused.items()))
    lines.append(said("drafts refused and replaced: {named}", named=refused or said("none")))
    shared = "names, search words and filter values in more than one split: {count}"
    lines.append(said(shared, count=len(overlap(dataset.splits))))
    lines += dataset.left_out
    for table, columns in dataset.not_asked.items():
        named = ", ".join(f"{TABLES[table].get(column, column)} ({column})" for column in columns)
        unasked = (
            "no question asks for these columns of {table}: {named}; a wording in "
            "recipes/questions/wordings.toml adds one (docs/your-data.md#ask-for-another-column)"
        )
        lines.append(said(unasked, table=table, named=named))
    for (split, kind), count in dataset.missing(request).items():
        lacking = "not made: {count} {kind} rows of {split}; the database has no more to ask"
        lines.append(said(lacking, count=count, kind=kind, split=split))
    return lines


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    kept = (
        "; replies of the LLM are kept, and the same command goes on" if options.paraphrase else ""
    )
    afterwards = f"no question was written{kept}"
    return run_command("build_dataset", lambda: _build(options), afterwards=afterwards)


def _build(options: argparse.Namespace) -> None:
    url = options.db or load_settings().of(DatabaseSettings).database_url
    if url != DEFAULT_DATABASE and options.output.resolve() == DATA:
        raise UsageError(
            f"{DATA} holds the bundled questions, which git keeps; those of another database need "
            "a folder of their own, such as --output my/data"
        )
    if options.output.exists() and not options.output.is_dir():
        raise UsageError(f"{options.output} is not a folder")
    files = {split: options.output / f"{split}.parquet" for split in ROWS} | {
        "all": options.output / JSONL
    }
    if options.output.exists():
        for file in files.values():
            refuse_existing(file, options.force)
    request = request_for(
        options.rows, MIX | options.mix, Rates(options.typo_rate, options.partial_rate)
    )
    dataset = make_dataset(url, request, options.seed)
    refuse_empty(dataset, request)
    lines = report(dataset, request)
    if options.paraphrase:
        from recipes.questions.paraphrase import paraphrase

        lines.append(paraphrase(dataset, options.paraphrase))
    made_from = "" if url == DEFAULT_DATABASE else address(url)
    options.output.mkdir(parents=True, exist_ok=True)
    everything = [row for rows in dataset.splits.values() for row in rows]
    for split, rows in (dataset.splits | {"all": everything}).items():
        write_rows(rows, files[split], made_from)
    print(*lines, sep="\n")


def address(url: str) -> str:
    """Return a URL without its password, which means the same database in every folder."""
    known = make_url(url)
    if known.get_backend_name() == "sqlite" and known.database:
        known = known.set(database=str(Path(known.database).resolve()))
    return known.render_as_string()


def _parser() -> argparse.ArgumentParser:
    parser = new_parser(__doc__)
    add = parser.add_argument
    share = number(float, lambda share: 0 <= share <= 1, "from 0 to 1")
    add(
        "--db",
        metavar="URL",
        help="SQLAlchemy URL (default: DATABASE_URL, else the embedded database)",
    )
    add(
        "--output",
        type=Path,
        default=DATA,
        metavar="DIR",
        help="folder to write to (default: data/, for the embedded database)",
    )
    add("--seed", type=int, default=SEED, help=f"same seed, same rows (default: {SEED})")
    add(
        "--rows",
        type=_rows,
        default=ROWS,
        help="N in all, or train=N,val=N,test=N (default: 960, 96, 320)",
    )
    add(
        "--mix",
        type=_pairs,
        default={},
        metavar="TYPE=SHARE,...",
        help="other shares of types; 0: none",
    )
    add(
        "--typo-rate",
        type=share,
        default=0.12,
        help="share of one-field questions with a misspelt name (0.12)",
    )
    add(
        "--partial-rate",
        type=share,
        default=0.10,
        help="share with a part of the name, or another name (0.10)",
    )
    add(
        "--paraphrase",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="share of questions an LLM rewords (0)",
    )
    add("--force", action="store_true", help="replace existing files")
    return parser


def _rows(text: str) -> int | dict[str, int]:
    return int(text) if text.isdecimal() else _pairs(text, int)


def _pairs(text: str, kind: Callable[[str], Any] = float) -> dict[str, Any]:
    try:
        return {
            name.strip(): kind(value)
            for name, _, value in (part.partition("=") for part in text.split(","))
        }
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected NAME=NUMBER,... (or a number of rows), got {text!r}"
        ) from None


if __name__ == "__main__":
    sys.exit(main())
