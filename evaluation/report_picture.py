"""A report's main curves as one picture, and its summary in Markdown: for READMEs and papers.

draw(runs, Path("report.png"))      # of demos the picture that `evaluation.demo` draws
text = markdown(page)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.command import UsageError
from common.files import replacing
from evaluation import demo_picture
from evaluation.demo_report import RESULT, read_result
from evaluation.report_facts import differences, facts_of, tables_of, text, unscored
from evaluation.report_page import Page
from evaluation.run_folder import Run
from evaluation.tables import Report, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#0b6fb8", "#c2500a", "#17805c", "#9b3f94", "#8a6a00", "#5a54c4", "#b1283d", "#54606b")
INCHES, DPI = (11.0, 4.6), 120
REWARD = "episodes/reward/mean"


def draw(runs: Sequence[Run], path: Path) -> None:
    """Write the picture, whole or not at all. Raises UsageError: no run has a curve or a score."""
    demos = list(dict.fromkeys(run.given for run in runs))
    if all((folder / RESULT).is_file() for folder in demos):
        demo_picture.draw([read_result(folder) for folder in demos], path)
        return
    import matplotlib

    matplotlib.use("Agg")  # no screen is needed
    from matplotlib.figure import Figure

    parts = [part for part, found in ((_curves, _rewards(runs)), (_bars, _scored(runs))) if found]
    if not parts:
        raise UsageError("there is nothing to draw: no run has a step with a reward, and no evaluation has ended")
    figure = Figure(figsize=INCHES, layout="constrained")
    for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        part(axes, runs)
    with replacing(path) as draft:
        figure.savefig(draft, dpi=DPI, format="png")


def _rewards(runs: Sequence[Run]) -> dict[str, list[tuple[int, float]]]:
    found = {_name(run): [(step, data[REWARD]) for step, data in run.steps if REWARD in data] for run in runs}
    return {name: points for name, points in found.items() if points}


def _scored(runs: Sequence[Run]) -> dict[str, dict[str, Any]]:
    return {_name(run): {"all": run.scores["overall"], **run.scores["by_task_type"]} for run in runs if run.scores}


def _name(run: Run) -> str:
    return run.label or run.folder.name


def _curves(axes: Axes, runs: Sequence[Run]) -> None:
    """Training reward of each step."""
    for color, (name, points) in zip(COLORS, _rewards(runs).items(), strict=False):
        axes.plot(
            *zip(*points, strict=True), label=name, color=color, linewidth=1.6, marker="." if len(points) < 4 else ""
        )
    axes.set(xlabel="step", ylabel="mean reward of a step's episodes")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _bars(axes: Axes, runs: Sequence[Run]) -> None:
    """The score by task type with its 95 % interval, all tasks first."""
    scored = _scored(runs)
    groups = list(dict.fromkeys(name for parts in scored.values() for name in parts))
    width = 0.8 / len(scored)
    for place, (color, (name, parts)) in enumerate(zip(COLORS, scored.items(), strict=False)):
        known = [
            (at, parts[group]) for at, group in enumerate(groups) if (parts.get(group) or {}).get("score") is not None
        ]
        heights = [100 * part["score"] for _, part in known]
        errors = [
            [abs(100 * part["ci95"][side] - height) for (_, part), height in zip(known, heights, strict=True)]
            for side in (0, 1)
        ]
        places = [at + (place - (len(scored) - 1) / 2) * width for at, _ in known]
        axes.bar(places, heights, width, yerr=errors, color=color, label=name, error_kw={"linewidth": 0.8})
    axes.set_xticks(
        range(len(groups)), [name.replace("_", " ") for name in groups], rotation=60, ha="right", fontsize=7
    )
    axes.set(ylabel="score, points", ylim=(0, 105))
    axes.legend(fontsize=8)


def markdown(page: Page) -> str:
    """The facts, differences, tables and causes of a report; no text of an episode beyond the tables'."""
    lines = [f"# {page.title}", ""]
    for run, agent, tally in zip(page.runs, page.agents, page.tallies, strict=True):
        facts = [f"{name}: {value}" for section, name, value in facts_of(run) if section != "Versions"]
        rewards = [value for _, value in _rewards([run]).get(_name(run), [])]
        learned = (
            [f"reward of a step: {text(rewards[0])} to {text(rewards[-1])}, {len(rewards)} steps"] if rewards else []
        )
        facts = [f"{tally.episodes} episodes", *learned, *run.missing, *facts]
        lines += [Report(_name(run), facts, tables_of(run, agent)).markdown().replace("# ", "## ", 1), ""]
    for one in differences(page.runs, page.tallies):
        lines += [Report(one["title"], one["facts"], one["tables"]).markdown().replace("# ", "## ", 1), ""]
    causes = unscored(page.runs, page.tallies)
    return "\n".join([*lines, *(["## Without a score", "", *table(causes)] if len(causes) > 1 else []), ""])
