"""The table of an evaluation: as Markdown for its file, and on the terminal.

markdown(scores)     # scores: what `evaluation.metrics.summarise` gives, with the evaluation's configuration
"""

from __future__ import annotations

import sys
from typing import Any

Scores = dict[str, Any]

HEADER = (
    "group", "questions", "score [95 %]", "execution [95 %]", "pass@k", "pass^k", "SQL ok", "turns", "unfinished",
    "evidence", "tokens", "seconds",
)  # fmt: skip
NARROW = 8  # columns that fit a terminal; the file has all


def rows_of(scores: Scores) -> list[list[str]]:
    """The cells of the table: overall, task types, difficulties. Shares and scores are in points, 100 x the number."""
    groups = [
        ("overall", scores["overall"]),
        *scores["by_task_type"].items(),
        *((f"difficulty {name}", part) for name, part in scores["by_difficulty"].items()),
    ]
    return [[name, *_cells(part)] for name, part in groups]


def _cells(part: Scores) -> list[str]:
    return [
        str(part["n"]),
        _with_interval(part["score"], part["ci95"]),
        _with_interval(part["execution_accuracy"], part["execution_accuracy_ci95"]),
        points(_last(part["pass@k"])),
        points(_last(part["pass^k"])),
        points(part["sql_ok"]),
        _number(part["turns"], 2),
        points(part["unfinished"]),
        points(part["evidence_recall"]),
        _number(part["tokens"]["completion"], 0),
        _number(part["latency"] and part["latency"]["p50"], 2),
    ]


def points(share: float | None) -> str:
    """A share or score as points with one decimal; a dash where nothing was measured."""
    return _number(None if share is None else 100 * share, 1)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _with_interval(value: float | None, bounds: list[float] | None) -> str:
    return points(value) if bounds is None else f"{points(value)} [{points(bounds[0])}, {points(bounds[1])}]"


def _last(by_k: dict[str, float]) -> float | None:
    return by_k[max(by_k, key=int)] if by_k else None


def facts_of(scores: Scores) -> list[str]:
    """What the numbers are of, and those that have no column, one line each."""
    overall, data = scores["overall"], scores["data"]
    abstention, recovery = overall["abstention"], overall["recovery"]
    lines = [
        f"model {scores['model']} ({scores['kind']})",
        f"data {data['file']}, {data['questions']} questions, {scores['k']} episodes each, "
        f"sha256 {data['sha256'][:12]}",
        f"judge {scores['judge']}, prompt version {scores['prompt_version']}, at most {scores['max_turns']} turns, "
        f"seed {scores['seed']}, " + _sampling(scores["sampling"]),
        f"abstention: precision {points(abstention['precision'])}, recall {points(abstention['recall'])} "
        f"({abstention['abstained']} abstained, {abstention['unanswerable']} should have)",
        f"recovery after a failed query: {points(recovery['share'])} of {recovery['episodes']} episodes",
        "stop reasons: " + ", ".join(f"{name} {count}" for name, count in overall["stop_reasons"].items()),
    ]
    if overall["unscored"]:
        causes = ", ".join(f"{cause} {count}" for cause, count in overall["unscored"].items())
        lines.append(f"NOT COMPLETE: {sum(overall['unscored'].values())} episodes have no score ({causes})")
    return lines


def _sampling(sampling: dict[str, Any] | None) -> str:
    if sampling is None:
        return "no sampling"
    return f"temperature {sampling['temperature']:g}, at most {sampling['max_tokens']} tokens a reply"


def markdown(scores: Scores) -> str:
    """The whole report as Markdown."""
    lines = [f"# Evaluation of {scores['model']}", "", *(f"- {fact}" for fact in facts_of(scores)), ""]
    lines += table(HEADER, rows_of(scores))
    return "\n".join(
        [*lines, "", "Points are 100 x the share or score; what each column means: docs/evaluation.md.", ""]
    )


def table(header: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    """A Markdown table, one line a row; texts cannot end their cell."""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (list(header), ["---"] * len(header), *cells)]


def show(scores: Scores) -> None:
    """Print the facts and the table's first columns on a terminal, else the Markdown."""
    if not sys.stdout.isatty():
        print(markdown(scores))
        return
    print("\n".join(facts_of(scores)))
    show_table(HEADER[:NARROW], [row[:NARROW] for row in rows_of(scores)])


def show_table(header: tuple[str, ...], rows: list[list[str]], title: str | None = None) -> None:
    """Print a table on the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=title)
    for number, name in enumerate(header):
        shown.add_column(name, justify="right" if number else "left")
    for row in rows:
        shown.add_row(*map(Text, row))
    Console().print(shown)
