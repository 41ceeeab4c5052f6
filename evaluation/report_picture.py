"""A report's main curves and scores as one picture, and its summary in Markdown: for READMEs and
papers.

draw(page, Path("report.png"))      # page: of `evaluation.report_page.read`; a demo draws its demo.png so
text = markdown(page)
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from common.command import UsageError
from common.files import replacing
from evaluation.demo_report import RESULT, read_result
from evaluation.report_charts import ALL, VALIDATION
from evaluation.report_facts import differences, facts_of, tables_of, text, unscored
from evaluation.report_page import Page
from evaluation.run_folder import Run
from evaluation.tables import Report, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[Sequence[float]]  # [step, value] or [step, value, low, high]
Bar = tuple[float, Sequence[float] | None]  # a mean and its interval, of 100
Result = dict[str, Any]

COLORS = ("#0b6fb8", "#c2500a", "#17805c", "#9b3f94", "#8a6a00", "#5a54c4", "#b1283d", "#54606b")
INCHES, DPI = (11.0, 4.6), 120
ROOM = 10  # groups whose names and numbers stand side by side


def draw(page: Page, path: Path) -> None:
    """Write the picture, whole or not at all. Raises UsageError: no run has a curve or a score."""
    import matplotlib

    matplotlib.use("Agg")  # no screen is needed
    from matplotlib.figure import Figure

    demos = dict.fromkeys(run.given for run in page.runs if (run.given / RESULT).is_file())
    results = {folder: read_result(folder) for folder in demos}
    parts = [part for part, found in ((curves, _rewards(page)), (bars, _scored(page))) if found]
    if not parts:
        raise UsageError(
            "there is nothing to draw: no run has a step with a reward, and no evaluation has ended"
        )
    figure = Figure(figsize=INCHES, layout="constrained")
    for axes, part in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts, strict=True):
        part(axes, page, results)
    figure.suptitle(_title(page, [*results.values()]), fontsize=11)
    with replacing(path) as draft:
        figure.savefig(draft, dpi=DPI, format="png")


def _title(page: Page, results: Sequence[Result]) -> str:
    if not results:
        return page.title
    seeds = ", ".join(str(result["seed"]) for result in results)
    commits = ", ".join(dict.fromkeys(str(result["commit"]) for result in results))
    minutes = max(result["minutes"] for result in results)
    return f"seed {seeds} · {results[0]['n_eval']} test tasks · at most {minutes:.1f} minutes a seed · commit {commits}"


def curves(axes: Axes, page: Page, results: Mapping[Path, Result]) -> None:
    """The reward of each training step; validation, which no update saw, as points with their
    intervals.
    """
    from matplotlib.ticker import MaxNLocator

    validation = _points(page, VALIDATION, ALL)
    for color, (number, points) in zip(COLORS, _rewards(page).items(), strict=False):
        steps, values = zip(*points, strict=True)
        name = _name(page.runs[number], results)
        axes.plot(
            steps,
            values,
            label=name,
            color=color,
            linewidth=1.6,
            marker="." if len(points) < 4 else "",
        )
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
    axes.legend(loc="lower right", fontsize=8)


def _rewards(page: Page) -> dict[int, Points]:
    return _points(page, "Reward", "reward")


def _points(page: Page, group: str, title: str) -> dict[int, Points]:
    """The points of a chart by the number of the run."""
    found = [
        chart["series"]
        for chart in page.shared["charts"]
        if (chart["group"], chart["title"]) == (group, title)
    ]
    return {one["run"]: one["points"] for series in found for one in series}


def _name(run: Run, results: Mapping[Path, Result]) -> str:
    """A run by its label; a demo's training by its seed and the keys it was given."""
    if run.given not in results:
        return run.label or run.folder.name
    keys = [word for word in shlex.split(results[run.given]["command"]) if "=" in word]
    return ", ".join([f"training, seed {results[run.given]['seed']}", *keys])


def bars(axes: Axes, page: Page, results: Mapping[Path, Result]) -> None:
    """The headline by task type, all tasks first; of several demos the means, else with intervals."""
    scored = _scored(page)
    groups = list(dict.fromkeys(name for found in scored.values() for name in found))
    few, width = len(groups) <= ROOM, 0.8 / len(scored)
    for place, (color, (name, found)) in enumerate(zip(COLORS, scored.items(), strict=False)):
        known = [(at, *found[group]) for at, group in enumerate(groups) if group in found]
        places = [at + (place - (len(scored) - 1) / 2) * width for at, *_ in known]
        ends = [
            [abs(end - height) for end in bounds or (height, height)] for _, height, bounds in known
        ]
        heights = [height for _, height, _ in known]
        drawn = axes.bar(places, heights, width, color=color, label=name)
        axes.errorbar(
            places,
            heights,
            yerr=[*zip(*ends, strict=True)],
            fmt="none",
            ecolor="black",
            elinewidth=0.8,
        )
        if few and len(scored) < 4:
            axes.bar_label(drawn, fmt="%.0f", fontsize=7, label_type="center", color="white")
    ceilings = [result["ceiling"] for result in results.values() if result["ceiling"] is not None]
    if ceilings:
        axes.axhline(
            fmean(ceilings),
            color=COLORS[2],
            linestyle="--",
            linewidth=1,
            label="ceiling of the cold start",
        )
    names = [name.replace("_", "\n" if few else " ") for name in groups]
    axes.set_xticks(range(len(groups)), names, fontsize=6.5, rotation=0 if few else 90)
    headlines = dict.fromkeys(
        agent.showing.headline.replace("_", " ") for agent in page.agents if agent
    )
    axes.set(
        ylabel=f"{', '.join(headlines)}, points", ylim=(0, 118), yticks=range(0, 101, 20)
    )  # above 100: the legend
    axes.set_title(
        f"by task type, {'means' if len(results) > 1 else 'with 95 % intervals'}", fontsize=10
    )
    axes.legend(loc="upper left", fontsize=8, ncols=3)


def _scored(page: Page) -> dict[str, dict[str, Bar]]:
    """The headline by group ("all", then task types) of each evaluation; before and after are one
    each of all demos.
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
    value = part.get(headline)
    return None if value is None else (100 * value, bounds and [100 * bound for bound in bounds])


def _together(sides: Sequence[dict[str, Bar]]) -> dict[str, Bar]:
    """The means of several; one alone keeps its intervals."""
    if len(sides) == 1:
        return sides[0]
    return {
        group: (fmean(side[group][0] for side in sides if group in side), None)
        for group in sides[0]
    }


def markdown(page: Page) -> str:
    """The facts, differences, tables and causes of a report; no text of an episode beyond the
    tables'.
    """
    lines = [f"# {page.title}", ""]
    for number, (run, agent, tally) in enumerate(
        zip(page.runs, page.agents, page.tallies, strict=True)
    ):
        facts = [
            f"{name}: {value}" for section, name, value in facts_of(run) if section != "Versions"
        ]
        rewards = [value for _, value in _rewards(page).get(number, [])]
        learned = (
            [f"reward of a step: {text(rewards[0])} to {text(rewards[-1])}, {len(rewards)} steps"]
            if rewards
            else []
        )
        facts = [f"{tally.episodes} episodes", *learned, *run.missing, *facts]
        lines += [
            Report(run.label or run.folder.name, facts, tables_of(run, agent))
            .markdown()
            .replace("# ", "## ", 1),
            "",
        ]
    for one in differences(page.runs, page.tallies):
        lines += [
            Report(one["title"], one["facts"], one["tables"]).markdown().replace("# ", "## ", 1),
            "",
        ]
    causes = unscored(page.runs, page.tallies)
    return "\n".join(
        [*lines, *(["## Without a score", "", *table(causes)] if len(causes) > 1 else []), ""]
    )
