"""Draw a report's main curves and scores as one picture, for READMEs and papers.

draw(page, Path("report.png"))      # page: of `evaluation.report.page.read`; a demo draws its demo.png so
"""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from common.command import UsageError
from common.files import replacing
from evaluation.report.charts import ALL, VALIDATION
from evaluation.report.demo import RESULT, read_result
from evaluation.report.facts import tables_of
from evaluation.report.page import Page
from evaluation.run_folder import Run
from evaluation.tables import FEW

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[Sequence[float]]  # [step, value] or [step, value, low, high]
Bar = tuple[float, Sequence[float] | None]  # a mean and its interval, of 100
Result = dict[str, Any]

COLORS = ("#0b6fb8", "#c2500a", "#17805c", "#9b3f94", "#8a6a00", "#5a54c4", "#b1283d", "#54606b")
WIDE, LEAST_HIGH, DPI = 11.0, 4.6, 120  # inches, and dots an inch
HEADING, BAR, BETWEEN = 1.6, 0.15, 0.12  # inches: title and legend, a bar, two groups
TITLE = 120  # characters of a line of the title
MOST_NUMBERED = 3  # bars a group that have their number beside them


def draw(page: Page, path: Path) -> None:
    """Write the picture, whole or not at all, as high as its bars need.

    Raises UsageError: no run has a curve or a score.
    """
    import matplotlib

    matplotlib.use("Agg")  # no screen is needed
    from matplotlib.figure import Figure

    demos = dict.fromkeys(run.given for run in page.runs if (run.given / RESULT).is_file())
    results = {folder: read_result(folder) for folder in demos}
    parts = [part for part, found in ((curves, _rewards(page)), (bars, _scored(page))) if found]
    if not parts:
        raise UsageError(
            "there is nothing to draw: no run has two steps "
            "with a reward, and no evaluation has ended"
        )
    figure = Figure(figsize=(WIDE, _inches(_scored(page))), layout="constrained")
    for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        part(axes, page, results)
    title = textwrap.fill(_title(page, [*results.values()]), TITLE)
    figure.suptitle(title, fontsize=11)
    with replacing(path) as draft:
        figure.savefig(draft, dpi=DPI, format="png")


def _inches(scored: Mapping[str, Mapping[str, Bar]]) -> float:
    """Return how high the picture must be for every bar to have its place."""
    groups = len({name for found in scored.values() for name in found})
    return max(LEAST_HIGH, HEADING + groups * (BAR * len(scored) + BETWEEN))


def _title(page: Page, results: Sequence[Result]) -> str:
    if not results:
        return page.title
    seeds = ", ".join(str(result["seed"]) for result in results)
    commits = ", ".join(dict.fromkeys(str(result["commit"]) for result in results))
    minutes = max(result["minutes"] for result in results)
    return (
        f"seed {seeds} · {results[0]['n_eval']} test tasks · at "
        f"most {minutes:.1f} minutes a seed · commit {commits}"
    )


def curves(axes: Axes, page: Page, results: Mapping[Path, Result]) -> None:
    """Draw the mean reward of each training step as lines, and validation, which no update saw, as
    points with their intervals.
    """
    from matplotlib.ticker import MaxNLocator

    validation = _points(page, VALIDATION, ALL)
    for color, (number, points) in zip(COLORS, _rewards(page).items(), strict=False):
        steps, values = zip(*points, strict=True)
        name = _name(page.runs[number], results)
        axes.plot(steps, values, label=name, color=color, linewidth=1.6)
        for step, value, *bounds in validation.get(number, []):
            ends = [[abs(end - value)] for end in bounds or (value, value)]
            axes.errorbar(
                step, value, yerr=ends, fmt="D", color=color, markersize=4, elinewidth=0.8
            )
    axes.scatter([], [], marker="D", color="black", s=22, label="validation tasks")
    axes.set(xlabel="step", ylabel="mean reward of a step's episodes")
    axes.set_ylim(bottom=0)
    axes.set_title("while training", fontsize=10)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    _legend_below(axes, 2)


def _legend_below(axes: Axes, columns: int) -> None:
    """Put the legend where no curve and no bar can be."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), fontsize=8, ncols=columns)


def _rewards(page: Page) -> dict[int, Points]:
    """Return the rewards of training runs by step; those of one step alone are no curve."""
    found = _points(page, "Reward", "reward")
    return {number: points for number, points in found.items() if len(points) > 1}


def _points(page: Page, group: str, title: str) -> dict[int, Points]:
    """Return the points of a chart by the number of the run."""
    found = [
        chart["series"]
        for chart in page.shared["charts"]
        if (chart["group"], chart["title"]) == (group, title)
    ]
    return {one["run"]: one["points"] for series in found for one in series}


def _name(run: Run, results: Mapping[Path, Result]) -> str:
    """Return the run's label, or for a demo's training its seed and the keys given to it."""
    if run.given not in results:
        return run.label or run.folder.name
    keys = [word for word in shlex.split(results[run.given]["command"]) if "=" in word]
    return ", ".join([f"training, seed {results[run.given]['seed']}", *keys])


def bars(axes: Axes, page: Page, results: Mapping[Path, Result]) -> None:
    """Draw the headline by task type, all tasks first: with intervals for one demo, as means for
    several.

    The bars are horizontal, so that names and numbers do not overlap.
    """
    scored = _scored(page)
    groups = list(dict.fromkeys(name for found in scored.values() for name in found))
    thick = 0.8 / len(scored)
    for side, (color, (name, found)) in enumerate(zip(COLORS, scored.items(), strict=False)):
        known = [(at, *found[group]) for at, group in enumerate(groups) if group in found]
        places = [at + (side - (len(scored) - 1) / 2) * thick for at, *_ in known]
        axes.barh(places, [value for _, value, _ in known], thick, color=color, label=name)
        for at, (_, value, bounds) in zip(places, known, strict=True):
            low, high = bounds or (value, value)
            axes.plot([low, high], [at, at], color="black", linewidth=0.8)
            if len(scored) <= MOST_NUMBERED:
                paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
                place = max(value, high) + 1
                axes.text(place, at, f"{value:.0f}", fontsize=7, va="center", bbox=paper)
    ceilings = [result["ceiling"] for result in results.values() if result["ceiling"] is not None]
    if ceilings:
        name = "ceiling of the cold start"
        axes.axvline(fmean(ceilings), linewidth=1, linestyle="--", color=COLORS[2], label=name)
    axes.set_yticks(range(len(groups)), [name.replace("_", " ") for name in groups], fontsize=8)
    axes.invert_yaxis()
    headlines = dict.fromkeys(
        agent.showing.headline.replace("_", " ") for agent in page.agents if agent
    )
    axes.set(
        xlabel=f"{', '.join(headlines)}, points of 100", xlim=(0, 108), xticks=range(0, 101, 20)
    )
    axes.set_title(
        f"by task type, {'means' if len(results) > 1 else 'with 95 % intervals'}", fontsize=10
    )
    _legend_below(axes, 3)


def _scored(page: Page) -> dict[str, dict[str, Bar]]:
    """Return the headline of each evaluation by group ("all", then task types). All demos together
    count as one evaluation before and one after.
    """
    found: dict[str, list[dict[str, Bar]]] = {}
    for run, agent in zip(page.runs, page.agents, strict=True):
        if agent and tables_of(run, agent):
            groups = {"all": run.scores["overall"], **run.scores["by_task_type"]}
            known = {
                group: bar
                for group, part in groups.items()
                if (bar := _bar(part, agent.showing.headline))
            }
            name = run.folder.name if run.folder != run.given else run.label or run.folder.name
            found.setdefault(name, []).extend([known] if known else [])
    return {name: _together(sides) for name, sides in found.items() if sides}


def _bar(part: Mapping[str, Any], headline: str) -> Bar | None:
    bounds = part.get("ci95" if headline == "score" else f"{headline}_ci95")
    bounds = bounds if part["n"] >= FEW else None
    value = part.get(headline)
    return None if value is None else (100 * value, bounds and [100 * bound for bound in bounds])


def _together(sides: Sequence[dict[str, Bar]]) -> dict[str, Bar]:
    """Return the means of several evaluations; a single one keeps its intervals."""
    if len(sides) == 1:
        return sides[0]
    return {
        group: (fmean(side[group][0] for side in sides if group in side), None)
        for group in sides[0]
    }
