"""The table of an evaluation: as Markdown for its file, and on the terminal.

markdown(agent, scores)     # scores: what `evaluation.metrics.summarise` gives, with the evaluation's configuration
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from episodes.agent import Agent, Column

Scores = dict[str, Any]

Cell = Callable[[Scores], str]
PARTS = ("overall", "by_task_type", "by_difficulty")
# What tells evaluations apart without being a condition that their scores depend on.
IDENTITY = ("agent", "model", "kind", "base_url", "model_digest", "data", "seed")
NARROW = 8  # columns that fit a terminal; the file has all


def columns_of(agent: Agent) -> dict[str, Cell]:
    """What stands in each column of a group of tasks; the agent's own columns come after the score."""
    return {
        "tasks": lambda part: str(part["n"]),
        _heading("score", True): lambda part: _with_interval(part["score"], part["ci95"]),
        **{_heading(column.heading, column.interval): _own_cell(column) for column in agent.columns},
        "turns": lambda part: _number(part["turns"], 2),
        "unfinished": lambda part: points(part["unfinished"]),
        "pass@k": lambda part: points(_last(part["pass@k"])),
        "pass^k": lambda part: points(_last(part["pass^k"])),
        "tokens": lambda part: _number(part["tokens"]["completion"], 0),
        "seconds": lambda part: _number(part["latency"] and part["latency"]["p50"], 2),
    }


def _heading(name: str, interval: bool) -> str:
    return f"{name} [95 %]" if interval else name


def _own_cell(column: Column) -> Cell:
    if column.interval:
        return lambda part: _with_interval(part.get(column.metric), part.get(f"{column.metric}_ci95"))
    return lambda part: points(part.get(column.metric))


def rows_of(agent: Agent, scores: Scores) -> list[list[str]]:
    """The table: a header, overall, task types, difficulties. Shares and scores are in points, 100 x the number."""
    columns = columns_of(agent)
    groups = [
        ("overall", scores["overall"]),
        *scores["by_task_type"].items(),
        *((f"difficulty {name}", part) for name, part in scores["by_difficulty"].items()),
    ]
    return [["group", *columns], *([name, *(cell(part) for cell in columns.values())] for name, part in groups)]


def points(share: float | None) -> str:
    """A share or score as points with one decimal; a dash where nothing was measured."""
    return _number(None if share is None else 100 * share, 1)


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _with_interval(value: float | None, bounds: list[float] | None) -> str:
    return points(value) if bounds is None else f"{points(value)} [{points(bounds[0])}, {points(bounds[1])}]"


def _last(by_k: dict[str, float]) -> float | None:
    return by_k[max(by_k, key=int)] if by_k else None


def facts_of(agent: Agent, scores: Scores) -> list[str]:
    """What the numbers are of, and those that have no column, one line each."""
    overall, data = scores["overall"], scores["data"]
    of_agent = [name for name in agent.summarise([]) if isinstance(overall[name], dict)]
    shown = {name: scores[name] for name in scores if name not in IDENTITY + PARTS + ("sampling", "k")}
    lines = [
        f"{scores['agent']} agent, model {scores['model']} ({scores['kind']})",
        f"data {data['file']}, {data['questions']} tasks, {scores['k']} episodes each, sha256 {data['sha256'][:12]}, "
        f"seed {scores['seed']}, {_sampling(scores['sampling'])}",
        ", ".join(f"{name} {_words(value)}" for name, value in shown.items()),
        *(f"{name}: {_words(overall[name])}" for name in of_agent),
        f"stop reasons: {_words(overall['stop_reasons'])}",
    ]
    if overall["unscored"]:
        count, causes = sum(overall["unscored"].values()), _words(overall["unscored"])
        lines.append(f"NOT COMPLETE: {count} episodes have no score ({causes})")
    return lines


def _words(value: Any) -> str:
    """Numbers by name in one line; shares in points."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(part)}" for name, part in value.items())
    return points(value) if value is None or isinstance(value, float) else str(value)


def _sampling(sampling: dict[str, Any] | None) -> str:
    if sampling is None:
        return "no sampling"
    return f"temperature {sampling['temperature']:g}, at most {sampling['max_tokens']} tokens a reply"


def markdown(agent: Agent, scores: Scores) -> str:
    """The whole report as Markdown."""
    lines = [f"# Evaluation of {scores['model']}", "", *(f"- {fact}" for fact in facts_of(agent, scores)), ""]
    lines += table(rows_of(agent, scores))
    return "\n".join(
        [*lines, "", "Points are 100 x the share or score; what each column means: docs/evaluation.md.", ""]
    )


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table, one line a row, the header first; texts cannot end their cell."""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (cells[0], ["---"] * len(cells[0]), *cells[1:])]


def show(agent: Agent, scores: Scores) -> None:
    """Print the facts and the table's first columns on a terminal, else the Markdown."""
    if not sys.stdout.isatty():
        print(markdown(agent, scores))
        return
    print("\n".join(facts_of(agent, scores)))
    show_table([row[:NARROW] for row in rows_of(agent, scores)])


def show_table(rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Print a table on the terminal, its header first."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=title)
    for number, name in enumerate(rows[0]):
        shown.add_column(name, justify="right" if number else "left")
    for row in rows[1:]:
        shown.add_row(*map(Text, row))
    Console().print(shown)
