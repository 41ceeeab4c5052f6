"""Numbers as cells, cells as tables, and the report of an evaluation, in Markdown or on a terminal."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from common.language import CHINESE, is_chinese, said
from common.terminal import printable
from common.toml import table_beside
from episodes import outcomes
from episodes.agent import SCORE, Agent, Column, folder_of
from episodes.words import words_of
from evaluation.metrics import FEW, GROUPINGS, TOO_FEW

Scores = dict[str, Any]
Rows = Sequence[Sequence[str]]
# What scores.json has of measurements; all else in it is how they were made
PARTS = ("overall", *(f"by_{column}" for column in GROUPINGS))
# What tells evaluations apart without being a condition that their scores depend on.
IDENTITY = ("agent", "model", "kind", "base_url", "model_digest", "data", "seed")
NOTHING = "–"  # was measured
WRAPPED = 40  # cells of a terminal; a longer text is wrapped


def number(value: float | None, form: str = ".1f") -> str:
    """Return the number as text, a dash if nothing was measured."""
    return NOTHING if value is None else format(value, form)


def points(share: float | None, form: str = ".1f") -> str:
    """Return a share or score times 100, as text."""
    return number(None if share is None else 100 * share, form)


def span(bounds: Sequence[float], n: int = FEW) -> str:
    """Return both ends of a difference's interval, in points already, over `n` tasks as text."""
    return TOO_FEW if n < FEW else " to ".join(number(bound, "+.1f") for bound in bounds)


@dataclass(frozen=True)
class Report:
    """Facts, then tables by their headings ("" for none): rows of cells, the header first."""

    title: str
    facts: Sequence[str]
    tables: Mapping[str, Rows]
    note: str = ""
    words: Mapping[str, str] = field(default_factory=dict)  # Chinese names of the agent's own

    def markdown(self) -> str:
        lines = [f"# {printable(self.title)}", "", *(f"- {printable(fact)}" for fact in self.facts)]
        for heading, rows in self.tables.items():
            lines += ["", f"## {heading}", ""] if heading else [""]
            lines += table(rows)
        if self.note:
            lines += ["", self.note, ""]
        return "\n".join(lines)

    def show(self) -> None:
        """Print it, on a terminal without the title and the columns that have no room."""
        tables = in_words(self.tables, self.words) if is_chinese() else self.tables
        if not sys.stdout.isatty():
            print(replace(self, tables=tables).markdown())
            return
        print(printable("\n".join(self.facts)))
        for heading, rows in tables.items():
            show_table(rows, heading)


def table(rows: Rows) -> list[str]:
    """Return a Markdown table, one line a row, the header first. Texts cannot end their cell."""
    lines = []
    for row in (rows[0], ["---"] * len(rows[0]), *rows[1:]):
        cells = [printable(" ".join(cell.split())).replace("|", "\\|") for cell in row]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def in_words(tables: Mapping[str, Rows], own: Mapping[str, str]) -> dict[str, Rows]:
    """Return tables with Chinese headings, heads and first cells but questions. own: an agent's names."""
    of_reports = table_beside(__file__, "report/assets/words.toml")
    known = CHINESE | outcomes.CHINESE | of_reports | dict(own)

    def name(cell: str) -> str:
        if cell in known:
            return known[cell]
        whole, bracket, rest = cell.partition(" [")
        first, _, second = whole.partition(" ")
        if {first, second} <= known.keys():
            whole = f"{known[first]} {known[second]}"
        return f"{known.get(whole, whole)}{bracket}{rest}"

    def value(cell: str) -> str:
        cell = cell.replace(f"[{TOO_FEW}]", f"[{known[TOO_FEW]}]")
        return known[cell] if cell == TOO_FEW else re.sub(r"(?<=\d) to (?=[+-])", " 至 ", cell)

    found: dict[str, Rows] = {}
    for heading, rows in tables.items():
        first = str if rows[0][0] == "question" else name
        body = [[first(row[0]), *map(value, row[1:])] for row in rows[1:]]
        found[known.get(heading, heading)] = [[*map(name, rows[0])], *body]
    return found


def show_table(rows: Rows, title: str = "") -> None:
    """Print a table on the terminal, with as many columns as have room for their whole text."""
    console = Console()
    shown = Table(title=title or None)
    left = console.width - 1
    for place, name in enumerate(rows[0]):
        widest = max(Text(row[place]).cell_len for row in rows)
        left -= min(widest, WRAPPED) + 3  # a line and a space on each side
        if left < 0 and place > 1:
            break
        shown.add_column(name, justify="right" if place else "left", overflow="fold")
    for row in rows[1:]:
        shown.add_row(*(Text(printable(cell)) for cell in row[: len(shown.columns)]))
    console.print(shown)


def report_of(agent: Agent, scores: Scores) -> Report:
    """Return the report of an evaluation, overall and by group, in points (100 x a share)."""
    columns = [one for one in agent.columns if one != SCORE and one.metric in scores["overall"]]
    own = [f"{one.heading} [95 %]" if one.interval else one.heading for one in columns]
    counted = ("turns", "unfinished", "pass@k", "tokens", "seconds")
    rows: list[Sequence[str]] = [("group", "tasks", "score [95 %]", *own, *counted)]
    for name, part in groups_in(scores).items():
        rows.append([name, *_cells(columns, part, scores["k"])])
    note = said(
        "Points are 100 x the share or score; what each column means: docs/evaluate-and-serve.md."
    )
    title = said("Evaluation of {model}", model=scores["model"])
    words = words_of(folder_of(agent)).chinese
    return Report(title, _facts(agent, scores), {"": rows}, note, words)


def groups_in(scores: Scores) -> dict[str, Any]:
    """Return the numbers of all tasks and of each group, by name, but for unknown groupings."""
    groups = {"overall": scores["overall"]}
    groups |= scores["by_task_type"]
    for column in GROUPINGS[1:]:
        parts = scores.get(f"by_{column}", {})
        if [*parts] != ["unknown"]:
            groups |= {f"{column} {name}": part for name, part in parts.items()}
    return groups


def _cells(columns: Sequence[Column], part: Scores, k: int) -> list[str]:
    cells = [str(part["n"]), _with_interval(part, "score", "ci95")]
    for column in columns:
        cells.append(_with_interval(part, column.metric, f"{column.metric}_ci95"))
    most = max(part["pass@k"], key=int, default=str(k))
    passed = points(part["pass@k"].get(most))
    return [
        *cells,
        number(part["turns"], ".2f"),
        points(part["unfinished"]),
        passed if most == str(k) else f"{passed} (k={most})",  # some task has unscored episodes
        number(part["tokens"]["completion"], ".0f"),
        number(part["latency"] and part["latency"]["p50"], ".2f"),
    ]


def _with_interval(part: Scores, metric: str, interval: str) -> str:
    value = points(part.get(metric))
    bounds = part.get(interval)
    if bounds is None:
        return value
    if part["n"] < FEW:
        return f"{value} [{TOO_FEW}]"
    return f"{value} [{points(bounds[0])}, {points(bounds[1])}]"


def _facts(agent: Agent, scores: Scores) -> list[str]:
    overall = scores["overall"]
    data = scores["data"]
    drawn = said("no sampling")
    if scores["sampling"]:
        sampled = "temperature {temperature:g}, at most {max_tokens} tokens a reply"
        drawn = said(sampled, **scores["sampling"])
    about = "{agent} agent, model {model} ({kind})"
    played = (
        "data {file}, {questions} tasks, {k} of each played, sha256 {sha}, seed {seed}, {drawn}"
    )
    conditions = [name for name in scores if name not in (*IDENTITY, *PARTS, "sampling", "k")]
    sha = data["sha256"][:12]
    lines = [
        said(about, agent=scores["agent"], model=scores["model"], kind=scores["kind"]),
        said(played, **data, k=scores["k"], sha=sha, seed=scores["seed"], drawn=drawn),
        ", ".join(f"{name} {_words(scores[name])}" for name in conditions),
    ]
    lines.append(said("stop reasons: {named}", named=outcomes.counted(overall["stop_reasons"])))
    if unscored := overall["unscored"]:
        lacking = "NOT COMPLETE: {count} episodes have no score ({named})"
        causes = outcomes.counted(unscored)
        lines.append(said(lacking, count=sum(unscored.values()), named=causes))
    return lines


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_words(part)}" for name, part in value.items())
    return number(value, "g") if value is None or isinstance(value, float) else str(value)
