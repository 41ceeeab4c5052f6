"""Numbers as cells, cells as tables, and the report of an evaluation or a comparison: Markdown, or
on the terminal.

report_of(agent, scores).show()     # scores: what `evaluation.metrics.summarise` gives, with its configuration
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from episodes.agent import Agent, Column
from evaluation.baselines import SILENT
from evaluation.metrics import GROUPINGS

Scores = dict[str, Any]
Cell = Callable[[Scores], str]
Rows = Sequence[Sequence[str]]
PARTS = ("overall", *(f"by_{column}" for column in GROUPINGS))
MEASURED = (*PARTS, "baselines")  # what is measured; all else in scores.json is how
# What tells evaluations apart without being a condition that their scores depend on.
IDENTITY = ("agent", "model", "kind", "base_url", "model_digest", "data", "seed")
NARROW = 8  # columns that fit a terminal; Markdown has all
FEW = 10  # tasks; the interval of fewer says more than they know, such as [100, 100] of three
TOO_FEW = "too few"  # stands where their interval would


def number(value: float | None, form: str = ".1f") -> str:
    """Return the number as text; a dash if nothing was measured."""
    return "–" if value is None else format(value, form)


def points(share: float | None, form: str = ".1f") -> str:
    """Return a share or score times 100, as text."""
    return number(None if share is None else 100 * share, form)


def setting(value: float | None) -> str:
    """Return a weight or another setting as text, as it was given."""
    return number(value, "g")


def span(bounds: Sequence[float], n: int = FEW) -> str:
    """Return both ends of a difference's interval, in points already, over `n` tasks as text."""
    return TOO_FEW if n < FEW else " to ".join(number(bound, "+.1f") for bound in bounds)


def named(numbers: Mapping[str, Any]) -> str:
    """Return counts or texts with their names in one line."""
    return ", ".join(f"{name} {value}" for name, value in numbers.items())


@dataclass(frozen=True)
class Report:
    """Facts, then tables by their headings ("" for none): rows of cells, the header first."""

    title: str
    facts: Sequence[str]
    tables: Mapping[str, Rows]
    note: str = ""

    def markdown(self) -> str:
        """Return the whole report."""
        lines = [f"# {self.title}", "", *(f"- {fact}" for fact in self.facts)]
        for heading, rows in self.tables.items():
            lines += ["", *([f"## {heading}", ""] if heading else []), *table(rows)]
        return "\n".join([*lines, *(["", self.note, ""] if self.note else [])])

    def show(self) -> None:
        """Print it; on a terminal without the title and the columns that have no room."""
        if not sys.stdout.isatty():
            print(self.markdown())
            return
        print("\n".join(self.facts))
        for heading, rows in self.tables.items():
            show_table(rows, heading)


def table(rows: Rows) -> list[str]:
    """Return a Markdown table, one line a row, the header first; texts cannot end their cell."""
    cells = [[" ".join(cell.split()).replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (cells[0], ["---"] * len(cells[0]), *cells[1:])]


def show_table(rows: Rows, title: str = "") -> None:
    """Print a table on the terminal, its header first."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=title or None)
    for place, name in enumerate(rows[0][:NARROW]):
        shown.add_column(name, justify="right" if place else "left")
    for row in rows[1:]:
        shown.add_row(*map(Text, row[:NARROW]))
    Console().print(shown)


def report_of(agent: Agent, scores: Scores) -> Report:
    """Return the report of an evaluation, overall and for every group.

    Points are 100 x the share or score.
    """
    columns = _columns(agent)
    rows = [
        [name, *(cell(part) for cell in columns.values())]
        for name, part in groups_in(scores).items()
    ]
    note = (
        "Points are 100 x the share or score; what each column means: docs/evaluate-and-serve.md."
    )
    title = f"Evaluation of {scores['model']}"
    return Report(title, _facts(agent, scores), {"": [["group", *columns], *rows]}, note)


def groups_in(scores: Scores) -> dict[str, Any]:
    """Return the numbers of all tasks, of the baselines on them, and of each group, by their names
    in a table. A task type is known by its name alone; a grouping that no task knows is left out.
    """
    groups = {"overall": scores["overall"]}
    groups |= {f"baseline {name}": part for name, part in scores.get("baselines", {}).items()}
    groups |= scores["by_task_type"]
    for column in GROUPINGS[1:]:
        parts = scores.get(f"by_{column}", {})
        if [*parts] != ["unknown"]:
            groups |= {f"{column} {name}": part for name, part in parts.items()}
    return groups


def _columns(agent: Agent) -> dict[str, Cell]:
    """Return for each column the function that fills its cell for a group of tasks; the agent's own
    columns come after the score.
    """
    return {
        "tasks": lambda part: str(part["n"]),
        "score [95 %]": lambda part: _with_interval(part, part["score"], part["ci95"]),
        **{
            f"{column.heading} [95 %]" if column.interval else column.heading: _own(column)
            for column in agent.showing.columns
        },
        "turns": lambda part: number(part["turns"], ".2f"),
        "unfinished": lambda part: points(part["unfinished"]),
        "pass@k": lambda part: points(_last(part["pass@k"])),
        "pass^k": lambda part: points(_last(part["pass^k"])),
        "tokens": lambda part: number(part["tokens"]["completion"], ".0f"),
        "seconds": lambda part: number(part["latency"] and part["latency"]["p50"], ".2f"),
    }


def _own(column: Column) -> Cell:
    return lambda part: _with_interval(
        part, part.get(column.metric), part.get(f"{column.metric}_ci95")
    )


def _with_interval(part: Scores, value: float | None, bounds: list[float] | None) -> str:
    if bounds is None:
        return points(value)
    around = f"{points(bounds[0])}, {points(bounds[1])}" if part["n"] >= FEW else TOO_FEW
    return f"{points(value)} [{around}]"


def _last(by_k: dict[str, float]) -> float | None:
    return by_k[max(by_k, key=int)] if by_k else None


def _facts(agent: Agent, scores: Scores) -> list[str]:
    """Return lines that say what was evaluated and how, and the numbers that have no column."""
    overall, data, sampling = scores["overall"], scores["data"], scores["sampling"]
    drawn = (
        "temperature {temperature:g}, at most {max_tokens} tokens a reply".format(**sampling)
        if sampling
        else ""
    )
    conditions = {
        name: scores[name] for name in scores if name not in (*IDENTITY, *MEASURED, "sampling", "k")
    }
    lines = [
        f"{scores['agent']} agent, model {scores['model']} ({scores['kind']})",
        f"data {data['file']}, {data['questions']} tasks, {scores['k']} episodes each, "
        f"sha256 {data['sha256'][:12]}, seed {scores['seed']}, {drawn or 'no sampling'}",
        ", ".join(f"{name} {_words(value, setting)}" for name, value in conditions.items()),
        *(
            f"{name}: {_words(overall[name])}"
            for name in agent.showing.summarise([])
            if isinstance(overall[name], dict)
            and any(value is not None for value in overall[name].values())
        ),
        f"stop reasons: {named(overall['stop_reasons'])}",
    ]
    if unscored := overall["unscored"]:
        lines.append(
            f"NOT COMPLETE: {sum(unscored.values())} episodes have no score ({named(unscored)})"
        )
    silent = scores.get("baselines", {}).get(SILENT)
    if silent and overall["score"] is not None and overall["score"] <= silent["score"]:
        lines.append("NOT ABOVE THE SILENT AGENT, which says nothing and earns as much")
    return lines


def _words(value: Any, say: Callable[[float | None], str] = points) -> str:
    """Return numbers with their names in one line; `say` writes fractions, as points or settings."""
    if isinstance(value, dict):
        return named({name: _words(part, say) for name, part in value.items()})
    return say(value) if value is None or isinstance(value, float) else str(value)
