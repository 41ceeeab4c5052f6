"""Write docs/quality.md: the words of bench/quality.md with the figures of docs/performance.json.

    .venv/bin/python -m bench.rollouts > measured.json
    .venv/bin/python -m bench.performance rollouts=measured.json     # puts that line into the file, then writes the page
    .venv/bin/python -m bench.performance                            # writes the page

A figure of the words is a field such as `{rollouts[proxy][direct]:,.0f}`. Exit codes: 0 written, 1
failed, 2 wrong usage.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.command import UsageError, new_parser, run_command
from common.jsonl import write_text
from common.settings import ROOT

WORDS = ROOT / "bench" / "quality.md"
FIGURES = ROOT / "docs" / "performance.json"
PAGE = ROOT / "docs" / "quality.md"

Figures = dict[str, Any]


def read_figures() -> dict[str, Figures]:
    """Return the published figures by the name of their measurement."""
    return dict(json.loads(FIGURES.read_text(encoding="utf-8")))


def page(words: str, figures: Mapping[str, Figures]) -> str:
    """Return the page. Raises UsageError: the words name a figure that is missing."""
    try:
        return words.format_map(figures)
    except (KeyError, IndexError) as error:
        raise UsageError(
            f"{WORDS.name} names a figure that {FIGURES.name} lacks: {error}"
        ) from error


def read_measurement(argument: str) -> tuple[str, Figures]:
    """Return the name and the figures of `NAME=FILE`, a file to which a bench printed.

    Raises UsageError: another file, or no commit can repeat the measurement.
    """
    name, _, file = argument.partition("=")
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8").splitlines()[-1])
    except (OSError, ValueError, IndexError) as error:
        raise UsageError(
            f"{argument}: expected NAME=FILE, whose last line is the JSON that a bench prints: {error}"
        ) from error
    if not isinstance(found, dict) or "commit" not in found:
        raise UsageError(f"{file}: expected the output of a bench, which names its commit")
    if not found["commit"] or found["commit"].endswith("-dirty"):
        raise UsageError(
            f"{file} was measured with changes that no commit holds ({found['commit']}); "
            "commit them and measure again"
        )
    return name, found


def publish(arguments: Sequence[str]) -> None:
    figures = read_figures() | dict(map(read_measurement, arguments))
    written = page(WORDS.read_text(encoding="utf-8"), figures)
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(found, ensure_ascii=False)}"
        for name, found in figures.items()
    )
    write_text(FIGURES, f"{{\n{lines}\n}}\n", force=True)
    write_text(PAGE, written, force=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    parser.add_argument("measurements", nargs="*", metavar="NAME=FILE", help="what a bench printed")
    arguments = parser.parse_args(argv)
    return run_command("performance", lambda: publish(arguments.measurements))


if __name__ == "__main__":
    sys.exit(main())
