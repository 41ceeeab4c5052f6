"""The demos' results that README and docs quote, one row for each agent and seed.

    .venv/bin/python -m bench.published runs/A runs/B  # puts their rows into docs/results.json

A row of an earlier demo with the same agent and seed is replaced. A test compares the README's
table with the file. Exit codes: 0 written, 1 failed, 2 wrong usage.
"""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from common.command import UsageError, new_parser, run_command
from common.jsonl import write_text
from common.settings import ROOT
from evaluation.report.demo import RESULT

RESULTS = ROOT / "docs" / "results.json"
KEPT = ("agent", "seed", "headline", "before", "after", "gain", "ci95")
ALSO_KEPT = ("n_eval", "steps", "minutes", "commit")

Row = dict[str, Any]


def read_result(folder: Path) -> Row:
    """Return the content of a finished demo's demo.json. Raises UsageError: it is missing."""
    try:
        found = dict(json.loads((folder / RESULT).read_text(encoding="utf-8")))
        if "headline" not in found:
            raise KeyError("headline")
        return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError(f"{folder} holds no finished demo: {why}") from None


def row_of(result: Row) -> Row:
    """Return what is published of a demo's `demo.json`, points of 100.

    Raises UsageError: it was made with changes that no commit holds.
    """
    if str(result["commit"]).endswith("-dirty"):
        raise UsageError(
            f"the demo of {result['agent']}, seed {result['seed']}, ran with uncommitted changes "
            f"({result['commit']}); commit them and run it again"
        )
    wordings = {name: part["after"] for name, part in result["by_wording"].items()}
    command = re.sub(r" --run-dir \S+", "", result["command"])
    kept = {name: result[name] for name in (*KEPT, *ALSO_KEPT)}
    return {**kept, "command": command, "after_by_wording": wordings}


def read_rows(path: Path = RESULTS) -> list[Row]:
    """Return the published rows, [] where nothing is published yet."""
    return list(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else []


def merged(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Return the rows by agent and seed. A new row replaces an old one of the same demo."""
    rows = {(row["agent"], row["seed"]): row for row in [*old, *new]}
    return [rows[key] for key in sorted(rows)]


def cells(rows: Sequence[Row]) -> list[str]:
    """Return the cells of the README's table for the demos of one agent.

    They are the headline before and after, the gain with the lowest bound of all 95 % intervals,
    and the minutes.
    """
    bound = min(row["ci95"][0] for row in rows)
    before, after, gain = (
        _range(row[name] for row in rows) for name in ("before", "after", "gain")
    )
    return [
        f"{before} → {after}",
        f"{gain} (> {bound:.1f})",
        _range(row["minutes"] for row in rows),
    ]


def _range(values: Iterable[float]) -> str:
    known = [round(value, 1) for value in values]
    low, high = min(known), max(known)
    return f"{low:.1f}" if low == high else f"{low:.1f}–{high:.1f}"


def publish(folders: Sequence[Path], to: Path) -> None:
    """Put the rows of these demos into a file and print the rows of the README's table.

    Raises UsageError: a folder holds no finished demo, or one that no commit can repeat.
    """
    rows = merged(read_rows(to), [row_of(read_result(folder)) for folder in folders])
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    write_text(to, f"[\n{lines}\n]\n", force=True)
    for agent in dict.fromkeys(row["agent"] for row in rows):
        print(agent, *cells([row for row in rows if row["agent"] == agent]), sep=" | ")


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="finished demos")
    parser.add_argument("--to", type=Path, default=RESULTS, help="default: docs/results.json")
    arguments = parser.parse_args(argv)
    return run_command("published", lambda: publish(arguments.folders, arguments.to))


if __name__ == "__main__":
    sys.exit(main())
