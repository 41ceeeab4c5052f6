"""The picture of one demo or of several seeds: the reward while training, and the score by task type before and after.

draw([result, ...], Path("demo.png"))       # results: what demo.json holds
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from common.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Result = dict[str, Any]

GREY, BLUE, ORANGE = "#b0b0b0", "#1f77b4", "#d95f02"
INCHES, DPI = (11.0, 4.6), 120
ROOM = 10  # groups whose names and numbers stand side by side


def draw(results: Sequence[Result], path: Path) -> None:
    """Write the picture, whole or not at all. Several results are curves of their own, and means in the bars."""
    import matplotlib

    matplotlib.use("Agg")  # no screen is needed
    from matplotlib.figure import Figure

    figure = Figure(figsize=INCHES, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    _curves(left, results)
    _bars(right, results)
    figure.suptitle(_title(results), fontsize=11)
    with replacing(path) as draft:
        figure.savefig(draft, dpi=DPI, format="png")


def _title(results: Sequence[Result]) -> str:
    seeds = ", ".join(str(result["seed"]) for result in results)
    commits = ", ".join(dict.fromkeys(str(result["commit"]) for result in results))
    minutes = max(result["minutes"] for result in results)
    asked = f"{results[0]['n_eval']} test tasks"
    return f"seed {seeds} · {asked} · at most {minutes:.1f} minutes a seed · commit {commits}"


def _curves(axes: Axes, results: Sequence[Result]) -> None:
    """Training reward of each step; validation, which no update saw, as points at both ends."""
    from matplotlib.ticker import MaxNLocator

    for result in results:
        numbers, rewards = ([step[name] for step in result["curve"]] for name in ("step", "reward"))
        axes.plot(numbers, rewards, label=_name(result), linewidth=1.6)
        ends = result["validation"]
        axes.scatter([0, numbers[-1]], [ends["before"], ends["after"]], marker="D", color="black", s=22, zorder=3)
    axes.scatter([], [], marker="D", color="black", s=22, label="validation tasks")
    axes.set(xlabel="step", ylabel="mean reward of a step's episodes")
    axes.set_ylim(bottom=0)
    axes.set_title("while training", fontsize=10)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)


def _name(result: Result) -> str:
    """A training run by its seed and the keys it was given."""
    keys = [word for word in shlex.split(result["command"]) if "=" in word]
    return ", ".join([f"training, seed {result['seed']}", *keys])


def _bars(axes: Axes, results: Sequence[Result]) -> None:
    """The headline by task type, all tasks first."""
    groups = ["all", *results[0]["by_task_type"]]
    parts = [[{"all": result, **result["by_task_type"]}[name] for result in results] for name in groups]
    places = range(len(groups))
    for side, color, shift in (("before", GREY, -0.2), ("after", BLUE, 0.2)):
        heights = [fmean([part[side] for part in found]) for found in parts]
        bars = axes.bar([place + shift for place in places], heights, width=0.4, color=color, label=side)
        if len(groups) <= ROOM:
            axes.bar_label(bars, fmt="%.0f", fontsize=7)
    known = [result["ceiling"] for result in results if result["ceiling"] is not None]
    if known:
        axes.axhline(fmean(known), color=ORANGE, linestyle="--", linewidth=1, label="ceiling of the cold start")
    few = len(groups) <= ROOM
    names = [name.replace("_", "\n" if few else " ") for name in groups]
    axes.set_xticks(list(places), names, fontsize=6.5, rotation=0 if few else 90)
    headline = results[0]["headline"].replace("_", " ")
    axes.set(ylabel=f"{headline}, points", ylim=(0, 118), yticks=range(0, 101, 20))  # above 100: the legend
    axes.set_title("test tasks before and after, at the temperature of training", fontsize=10)
    axes.legend(loc="upper left", fontsize=8, ncols=3)
