"""The numbers of a demo: from its folder to `demo.json`, and the tables on the screen.

    result = build(agent, folder, facts)      # after both evaluations and the training
    show(result)

Everything is read from what the project's own commands wrote; nothing is measured here. Points are of 100, of the
agent's headline.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.jsonl import read_jsonl
from common.settings import ROOT
from episodes.agent import Agent, Record
from evaluation.compare import compare, read_evaluation
from evaluation.metrics import headline_of
from evaluation.results import ResultsError, read_episodes, read_scores
from evaluation.tables import show_table, table

BEFORE, TRAIN, AFTER = "before", "train", "after"  # the parts of a demo, and their folders
RESULT, PICTURE = "demo.json", "demo.png"
COLD_START = "cold_start.json"  # beside a model that `training.cold_start` made
GAINS = ("group", "tasks", "before", "after", "gain", "95 %")
SEEDS = ("seed", "before", "after", "gain", "95 %", "minutes", "steps", "answered")
FAILURES = ("kind", "% before", "% after", "lost before", "lost after", "gained")


def build(agent: Agent, folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """What `demo.json` holds; `facts` are added as they are.

    Raises:
        ResultsError, FileError, OSError, KeyError: a part's folder is not what that part writes.
    """
    comparison = compare(read_evaluation(folder / BEFORE), read_evaluation(folder / AFTER), seed=0)
    sides = (BEFORE, AFTER)
    scores = {side: read_scores(folder / side) for side in sides}
    records = {side: read_episodes(folder / side) for side in sides}
    steps = curve(folder / TRAIN)
    shown = ["unfinished", *(column.metric for column in agent.columns)]
    return {
        "agent": agent.name,
        "headline": agent.headline,
        **_difference(comparison["overall"]),
        "ceiling": ceiling(facts["model"]),
        "steps": steps[-1]["step"] if steps else 0,
        **facts,
        "commit": commit(),
        "by_failure": by_failure(agent, records[BEFORE], records[AFTER]),
        "by_task_type": {kind: _difference(part) for kind, part in comparison["by_task_type"].items()},
        **{name: {side: points(scores[side]["overall"].get(name)) for side in sides} for name in shown},
        "stop_reasons": {side: scores[side]["overall"]["stop_reasons"] for side in sides},
        **{name: scores[BEFORE][name] for name in ("sampling", "data")},
        "different_conditions": comparison["different_conditions"],
        "curve": steps,
        **training(folder / TRAIN),
    }


def points(share: float | None) -> float | None:
    """A share in [0, 1] as points of 100; None stays None."""
    return None if share is None else round(100 * share, 2)


def _difference(part: dict[str, Any]) -> dict[str, Any]:
    return {
        "before": points(part["a"]),
        "after": points(part["b"]),
        "gain": points(part["difference"]),
        "ci95": [points(bound) for bound in part["ci95"]],
        "n_eval": part["n"],
    }


def by_failure(agent: Agent, before: Sequence[Record], after: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """For each of the agent's kinds of failure `before` and `after` (see `costs`), and the points it costs less.

    With one episode a task the gains add up to the gain of the headline.
    """
    first, second = costs(agent, before), costs(agent, after)
    return {
        kind: {
            "before": first[kind],
            "after": second[kind],
            "gain": round(first[kind]["lost"] - second[kind]["lost"], 2),
        }
        for kind in agent.failures
    }


def costs(agent: Agent, records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """For each kind the `episodes`, their `share`, and the points `lost` to full marks; of 100, over scored episodes.

    Raises:
        ResultsError: no episode has a score.
    """
    values = [(record, value) for record in records if (value := headline_of(agent, record)) is not None]
    if not values:
        raise ResultsError("no episode of an evaluation has a score")
    losses: dict[str, list[float]] = {kind: [] for kind in agent.failures}
    for record, value in values:
        if losses:
            losses[agent.failure(record)].append(1.0 - value)
    return {
        kind: {
            "episodes": len(lost),
            "share": round(100 * len(lost) / len(values), 2),
            "lost": round(100 * sum(lost) / len(values), 2),
        }
        for kind, lost in losses.items()
    }


def ceiling(model: str) -> float | None:
    """The score copying accuracy allows, as the model's maker measured it; None where the model does not say."""
    path = ROOT / model / COLD_START
    return json.loads(path.read_text(encoding="utf-8")).get("ceiling") if path.is_file() else None


def curve(train: Path) -> list[dict[str, Any]]:
    """Of each training step the mean reward of its episodes and how many groups had equal rewards."""
    return [
        {
            "step": row["step"],
            "reward": round(row["data"]["episodes/reward/mean"], 4),
            "equal_reward_groups": int(row["data"]["episodes/equal_reward_groups"]),
        }
        for _, row in read_jsonl(train / "metrics.jsonl")
        if "episodes/reward/mean" in row["data"]
    ]


def training(train: Path) -> dict[str, Any]:
    """The reward of the first and the last validation; how much was played and trained, and how long it took."""
    summary = json.loads((train / "summary.json").read_text(encoding="utf-8"))
    found = summary["validation"]
    wanted = ("rollouts", "generated_tokens", "trained_tokens", "weight_updates", "seconds")
    return {
        "validation": {BEFORE: found["first_reward"]["mean"], AFTER: found["reward"]["mean"]},
        "training": {name: summary[name] for name in wanted},
    }


def commit() -> str | None:
    """The commit of this working copy, `-dirty` with changes; None where it is no working copy of git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def read_result(folder: Path) -> dict[str, Any]:
    """What demo.json of a finished demo holds.

    Raises:
        ResultsError: there is none.
    """
    try:
        found = json.loads((folder / RESULT).read_text(encoding="utf-8"))
        return {name: found[name] for name in ("headline", "by_failure", "curve")} | found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{folder} holds no finished demo: {type(error).__name__}: {error}") from None


def collected(results: Sequence[dict[str, Any]]) -> list[str]:
    """Several demos as a Markdown table, a line each."""
    return table([SEEDS, *(seed_row(result) for result in results)])


def seed_row(result: dict[str, Any]) -> list[str]:
    """One demo's line of the table of seeds."""
    ended = [100 * result["stop_reasons"][side].get("answered", 0) / result["n_eval"] for side in (BEFORE, AFTER)]
    return [
        *(str(result["seed"]), *gain_row("", result)[2:], f"{result['minutes']:.1f}", str(result["steps"])),
        f"{ended[0]:.1f} -> {ended[1]:.1f}",
    ]


def show(result: dict[str, Any]) -> None:
    """Print the tables and what has to be known with them."""
    gains = {"all": result, **result["by_task_type"]}
    title = f"{result['headline'].replace('_', ' ')} on tasks never trained"
    show_table([GAINS, *(gain_row(*group) for group in gains.items())], title)
    failures = result["by_failure"].items()
    if failures:
        show_table([FAILURES, *(failure_row(*kind) for kind in failures)], "what happened, and the points it cost")
    print("\n".join(facts_of(result)), flush=True)


def gain_row(name: str, part: dict[str, Any]) -> list[str]:
    """One line of the table of gains."""
    low, high = part["ci95"]
    before, after = (f"{part[side]:.1f}" for side in (BEFORE, AFTER))
    return [name, str(part["n_eval"]), before, after, f"{part['gain']:+.1f}", f"{low:+.1f} to {high:+.1f}"]


def failure_row(kind: str, part: dict[str, Any]) -> list[str]:
    """One line of the table of failures; docs/learning.md defines the kinds."""
    shares = [f"{part[side]['share']:.1f}" for side in (BEFORE, AFTER)]
    lost = [f"{part[side]['lost']:.1f}" for side in (BEFORE, AFTER)]
    return [kind, *shares, *lost, f"{part['gain']:+.1f}"]


def facts_of(result: dict[str, Any]) -> list[str]:
    """What has no table: the run, and how episodes ended."""
    lines = [
        f"{result['steps']} steps of seed {result['seed']} on {result['model']}, "
        f"{result['minutes']:.1f} minutes in all, commit {result['commit']}",
        f"ceiling that copying accuracy sets: {'not known' if result['ceiling'] is None else result['ceiling']}",
        *(
            f"episodes ended, {side}: " + ", ".join(f"{name} {count}" for name, count in reasons.items())
            for side, reasons in result["stop_reasons"].items()
        ),
    ]
    for name, (first, second) in result["different_conditions"].items():
        lines.append(f"CONDITIONS DIFFER: {name} was {first} before and {second} after")
    return lines
