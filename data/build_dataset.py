"""Make the question files from a database: train, validation and test, with no entity in two of them.

Nine types of question (data/questions/questions.py), asked in natural Chinese (data/questions/templates.py) about the
database's own entities; where it has invented ones (column `source`), about those only. Every row's gold SQL has been
run by the agent's own tool, and its gold answer earns 1 from the project's own judge. Names, search words and filter
values of one split occur in no other (data/questions/split.py), and neither do questions that are nearly the same
(data/questions/near_duplicates.py). The same database and arguments give the same bytes.

    python -m data.build_dataset --force                                # the bundled files
    python -m data.build_dataset --db sqlite:////path/to/my.db --output my_data --rows 20000
    python -m data.build_dataset --db URL --output my_data --rows train=5000,val=500,test=1000 --typo-rate 0.1
    python -m data.build_dataset --db URL --output my_data --paraphrase 0.3      # by the LLM of TEACHER_MODEL

Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. Questions are written when all are made. A paraphrasing
run that was interrupted goes on when the same command is given again.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.database.fictional import SEED

if TYPE_CHECKING:
    from data.questions.dataset import Dataset, Request

HERE = Path(__file__).resolve().parent
JSONL = "qa_dataset.jsonl"
JOURNAL = JSONL + ".journal"
CONCURRENCY = 8  # calls of the LLM at once

# Rows of each split, and its share of the entities: a small split needs more of them a row to have every type.
ROWS = {"train": 960, "val": 96, "test": 320}
SHARES = {"train": 0.62, "val": 0.10, "test": 0.28}
# Share of each type in every split.
MIX = {
    "drug_field": 0.27,
    "disease_field": 0.23,
    "multi_field": 0.10,
    "compare_drugs": 0.07,
    "compare_diseases": 0.05,
    "drug_search_by_kw": 0.08,
    "disease_to_drug": 0.06,
    "count_filter": 0.07,
    "unanswerable": 0.07,
}
# Entities of a table that are asked about, for each row; small databases are asked about whole.
ENTITIES_A_ROW, ENTITIES = 0.5, 2_000


def make_dataset(url: str, rows: int | Mapping[str, int] = ROWS, seed: int = SEED, **options: Any) -> Dataset:
    """All rows by split; the same database and arguments give the same rows.

    Args:
        url: SQLAlchemy URL of a database with both tables.
        rows: rows by split, or all together, shared out like ROWS.
        seed: of everything that is drawn.
        options: `mix` (share by type) and `rates` (data.questions.streams.Rates).

    Raises:
        DataError: the database lacks a table or column, or cannot be read; or a split or type that does not exist.
        DatabaseError: the tool cannot query it.
    """
    return make(url, request_for(rows, **options), seed)


def make(url: str, request: Request, seed: int = SEED) -> Dataset:
    """The same for a request."""
    from data.questions.dataset import fill
    from data.questions.entities import open_catalogue

    rng = random.Random(seed)
    total = sum(sum(kinds.values()) for kinds in request.rows.values())
    with open_catalogue(url, max(ENTITIES, int(total * ENTITIES_A_ROW)), rng) as catalogue:
        return fill(catalogue, url, request, rng)


def request_for(rows: int | Mapping[str, int] = ROWS, mix: Mapping[str, float] = MIX, rates: Any = None) -> Request:
    """What is to be made, in rows of each split and type.

    Raises:
        DataError: a split or type that does not exist, or nothing above 0.
    """
    from data.load import DataError
    from data.questions.dataset import Request
    from data.questions.streams import Rates

    wanted = share_out(rows, ROWS) if isinstance(rows, int) else rows
    for given, known in ((wanted, ROWS), (mix, MIX)):
        if given.keys() - known.keys() or sum(given.values()) <= 0 or min(given.values()) < 0:
            raise DataError(f"{dict(given)}: expected numbers above 0 for some of {', '.join(known)}")
    by_type = {split: share_out(wanted.get(split, 0), mix) for split in ROWS}
    return Request(by_type, SHARES, rates or Rates())


def share_out(total: int, shares: Mapping[str, float]) -> dict[str, int]:
    """`total` in whole numbers by the shares; what rounding leaves goes to the largest remainders."""
    scale = total / sum(shares.values())
    counts = {name: int(share * scale) for name, share in shares.items()}
    order = sorted(shares, key=lambda name: counts[name] - shares[name] * scale)
    for name in order[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def write_dataset(folder: Path, splits: Mapping[str, list[dict[str, str]]]) -> None:
    """Write one Parquet file a split and qa_dataset.jsonl with all rows; each file appears complete or not at all."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    from data.questions.questions import COLUMNS, compact

    schema = arrow.schema([(column, arrow.string()) for column in COLUMNS])
    for split, rows in splits.items():
        target = folder / f"{split}.parquet"
        parquet.write_table(arrow.Table.from_pylist(rows, schema=schema), _temporary(target))
        os.replace(_temporary(target), target)
    target = folder / JSONL
    with _temporary(target).open("w", encoding="utf-8") as file:
        file.writelines(compact(row) + "\n" for rows in splits.values() for row in rows)
    os.replace(_temporary(target), target)


def _temporary(target: Path) -> Path:
    return target.with_name(f"{target.name}.{os.getpid()}.tmp")


def report(dataset: Dataset, request: Request) -> list[str]:
    """Lines for the operator: rows by type, what was refused and why, the overlap, and what could not be made."""
    from data.questions.dataset import overlap

    lines = []
    for split, rows in dataset.splits.items():
        kinds = Counter(row["task_type"] for row in rows)
        lines.append(f"{split}: {len(rows)} rows, " + ", ".join(f"{kind} {count}" for kind, count in kinds.items()))
    refused = ", ".join(f"{count} {reason}" for reason, count in sorted(dataset.refused.items()))
    lines.append(f"drafts refused and replaced: {refused or 'none'}")
    lines.append(f"names, search words and filter values in more than one split: {len(overlap(dataset.splits))}")
    for (split, kind), count in dataset.missing(request).items():
        lines.append(f"not made: {count} {kind} rows of {split}; the database has no more to ask")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    if not options.output.is_dir():
        print(f"{options.output} is not a folder; make it first", file=sys.stderr)
        return 2
    names = [f"{split}.parquet" for split in ROWS] + [JSONL]
    present = [name for name in names if (options.output / name).exists()]
    if present and not options.force and not (options.output / JOURNAL).exists():
        print(f"{options.output} already has {', '.join(present)}; give --force to replace them", file=sys.stderr)
        return 2
    try:
        return _run_safely(options)
    except KeyboardInterrupt:
        print("interrupted; no question written. Replies of the LLM are kept for the same command", file=sys.stderr)
        return 130


def _run_safely(options: argparse.Namespace) -> int:
    """The exit code; what a user can cause becomes one line."""
    from common.journal import JournalError, RunError
    from common.llm_error import LLMError
    from common.settings import SettingsError
    from data.load import DataError
    from tools.sql.database import DatabaseError

    try:
        return _build(options)
    except (DataError, SettingsError, JournalError) as error:
        code, text = 2, str(error)
    except LLMError as error:
        code, text = 2 if error.cause == "setup" else 1, f"{error}; the same command again tries what is left"
    except RunError as error:
        code, text = 1, f"{error}; the same command again goes on"
    except DatabaseError as error:
        code, text = 1, str(error)
    except OSError as error:
        code, text = 1, f"cannot write to {options.output}: {error}"
    print(text, file=sys.stderr)
    return code


def _build(options: argparse.Namespace) -> int:
    from common.settings import load_settings
    from data.questions.streams import Rates

    url = options.db or load_settings().database_url
    request = request_for(options.rows, MIX | options.mix, Rates(options.typo_rate, options.partial_rate))
    dataset = make(url, request, options.seed)
    lines = report(dataset, request)
    if options.paraphrase:
        lines.append(_paraphrase(dataset, options))
    write_dataset(options.output, dataset.splits)
    (options.output / JOURNAL).unlink(missing_ok=True)
    print(*lines, sep="\n")
    return 0


def _paraphrase(dataset: Dataset, options: argparse.Namespace) -> str:
    """Reword a share of the questions; returns a line for the operator."""
    from common.journal import Journal
    from common.llm import client_from_settings
    from common.settings import load_settings
    from data.questions.paraphrase import ask_all, choose, fingerprint, reword

    chosen = choose([row for rows in dataset.splits.values() for row in rows], options.paraphrase)
    settings = load_settings()
    client = client_from_settings(settings, cache=settings.llm_cache)
    with Journal(options.output / JOURNAL, fingerprint(chosen, client), fresh=options.force) as journal:
        replies = ask_all(chosen, client, journal, CONCURRENCY)
    taken = reword(dataset.splits, replies, dataset.mentions)
    refused = len(chosen) - taken
    return f"reworded: {taken} of {len(chosen)} questions; {refused} rewordings were refused. {client.usage}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Make train, validation and test questions from a database.")
    add = parser.add_argument
    add("--db", metavar="URL", help="SQLAlchemy URL (default: DATABASE_URL, else the embedded database)")
    add("--output", type=Path, default=HERE, metavar="DIR", help="folder to write to (default: data/)")
    add("--seed", type=int, default=SEED, help=f"same seed, same rows (default: {SEED})")
    add("--rows", type=_rows, default=ROWS, help="N in all, or train=N,val=N,test=N (default: 960, 96, 320)")
    add("--mix", type=_shares, default={}, metavar="TYPE=SHARE,...", help="other shares of types; 0: none")
    add("--typo-rate", type=_rate, default=0.02, help="share of one-field questions with a misspelt name (0.02)")
    add("--partial-rate", type=_rate, default=0.03, help="share with a part of the name, or another name (0.03)")
    add("--paraphrase", type=_rate, default=0.0, metavar="SHARE", help="share of questions an LLM rewords (0)")
    add("--force", action="store_true", help="replace existing files")
    return parser


def _rows(text: str) -> int | dict[str, int]:
    try:
        return {name: int(count) for name, count in _pairs(text)} if "=" in text else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected N, or train=N,val=N,test=N, got {text!r}") from None


def _shares(text: str) -> dict[str, float]:
    try:
        return {name: float(share) for name, share in _pairs(text)}
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected TYPE=SHARE,..., got {text!r}") from None


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = -1
    if not 0 <= rate <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, got {text!r}")
    return rate


def _pairs(text: str) -> list[tuple[str, str]]:
    parts = [part.partition("=") for part in text.split(",")]
    return [(name.strip(), value) for name, _, value in parts]


if __name__ == "__main__":
    sys.exit(main())
