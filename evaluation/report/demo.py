"""The numbers of a demo: from its folder to `demo.json`, and the tables on the screen.

    result = build(agent, folder, folder / TRAIN, facts)  # after both evaluations and the training
    show(result)

Everything is read from what the project's own commands wrote; nothing is measured here. Points are
of 100, of the agent's headline.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.command import UsageError
from common.jsonl import read_jsonl
from common.settings import ROOT
from episodes.agent import Agent, Record
from evaluation.compare import compare, read_evaluation
from evaluation.metrics import headline_of
from evaluation.results import read_episodes, read_scores
from evaluation.tables import PARTS, Rows, groups_in, named, number, show_table, span

BEFORE, TRAIN, AFTER = "before", "train", "after"  # the parts of a demo, and their folders
SIDES = (BEFORE, AFTER)
RESULT, PICTURE = "demo.json", "demo.png"
COLD_START = "cold_start.json"  # beside a model that `training.cold_start` made
PLAYED = ("rollouts", "generated_tokens", "trained_tokens", "weight_updates", "seconds")
GAINS = ("group", "tasks", "before", "after", "gain", "95 % interval")
SEEDS = ("seed", "before", "after", "gain", "95 % interval", "minutes", "steps", "answered")
FAILURES = ("kind", "% before", "% after", "lost before", "lost after", "gained")


def build(agent: Agent, folder: Path, train: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the content of `demo.json` (docs/training.md has every key), made from an agent's
    folder and that of the training run. `facts` are added as they are.

    Raises UsageError, OSError, KeyError: a part's folder is not what that part writes.
    """
    comparison = compare(read_evaluation(folder / BEFORE), read_evaluation(folder / AFTER), seed=0)
    scores = {side: read_scores(folder / side) for side in SIDES}
    episodes = [read_episodes(folder / side) for side in SIDES]
    steps = curve(train)
    summary = _read(train / "summary.json")
    validation, model = summary["validation"], ROOT / facts["model"] / COLD_START
    shown = ["unfinished", *(column.metric for column in agent.showing.columns)]
    return {
        "agent": agent.name,
        "headline": agent.showing.headline,
        **_difference(comparison["overall"]),
        "ceiling": _read(model).get("ceiling") if model.is_file() else None,
        "steps": steps[-1]["step"] if steps else 0,
        **facts,
        "commit": commit(),
        "by_failure": by_failure(agent, *episodes),
        **{
            by: {name: _difference(part) for name, part in comparison[by].items()}
            for by in PARTS[1:]
        },
        **{
            name: {side: points(scores[side]["overall"].get(name)) for side in SIDES}
            for name in shown
        },
        "stop_reasons": {side: scores[side]["overall"]["stop_reasons"] for side in SIDES},
        **{name: scores[BEFORE][name] for name in ("sampling", "data")},
        "different_conditions": comparison["different_conditions"],
        "curve": steps,
        "validation": {
            BEFORE: validation["first_reward"]["mean"],
            AFTER: validation["reward"]["mean"],
        },
        "training": {name: summary[name] for name in PLAYED},
    }


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def points(share: float | None) -> float | None:
    """Return a share in [0, 1] as points of 100; None stays None."""
    return None if share is None else round(100 * share, 2)


def _difference(part: dict[str, Any]) -> dict[str, Any]:
    numbers = {
        name: points(part[key])
        for name, key in ((BEFORE, "a"), (AFTER, "b"), ("gain", "difference"))
    }
    return {**numbers, "ci95": [points(bound) for bound in part["ci95"]], "n_eval": part["n"]}


def by_failure(agent: Agent, *sides: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Return for each of the agent's kinds of failure `before` and `after` (see `_costs`), and the
    points that it costs less.

    With one episode a task the gains add up to the gain of the headline.
    """
    before, after = (_costs(agent, records) for records in sides)
    nothing = {"episodes": 0, "share": 0.0, "lost": 0.0}
    found = {}
    for kind in sorted({*before, *after}, key=lambda kind: (kind != "right", kind)):
        old, new = before.get(kind, nothing), after.get(kind, nothing)
        found[kind] = {BEFORE: old, AFTER: new, "gain": round(old["lost"] - new["lost"], 2)}
    return found


def _costs(agent: Agent, records: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """Return for each kind of failure the number of its `episodes`, their `share`, and the points
    `lost` to full marks, both of 100 over scored episodes.

    Raises UsageError: no episode has a score.
    """
    values = [
        (record, value) for record in records if (value := headline_of(agent, record)) is not None
    ]
    if not values:
        raise UsageError("no episode of an evaluation has a score")
    losses: dict[str, list[float]] = {}
    for record, value in values:
        losses.setdefault(agent.showing.failure(record), []).append(1.0 - value)
    n = len(values)
    return {
        kind: {"episodes": len(lost), "share": points(len(lost) / n), "lost": points(sum(lost) / n)}
        for kind, lost in losses.items()
    }


def curve(train: Path) -> list[dict[str, Any]]:
    """Return for each training step the mean reward of its episodes and, if groups are compared,
    the number of groups with equal rewards.
    """
    steps = [(row["step"], row["data"]) for _, row in read_jsonl(train / "metrics.jsonl")]
    reward, equal = "episodes/reward/mean", "episodes/equal_reward_groups"
    return [
        {"step": step, "reward": round(data[reward], 4)}
        | ({"equal_reward_groups": int(data[equal])} if equal in data else {})
        for step, data in steps
        if reward in data
    ]


def commit() -> str | None:
    """Return the commit of this working copy, with `-dirty` if files changed; None outside git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def read_result(folder: Path) -> dict[str, Any]:
    """Return the content of a finished demo's demo.json. Raises UsageError: there is none."""
    try:
        found = _read(folder / RESULT)
        return {name: found[name] for name in ("headline", "by_failure", "curve")} | found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{folder} holds no finished demo: {type(error).__name__}: {error}"
        ) from None


def seed_rows(results: Sequence[dict[str, Any]]) -> Rows:
    """Return a table of several demos, a line each."""
    rows: list[Sequence[str]] = [SEEDS]
    for result in results:
        ended = []
        for side in SIDES:
            reasons = result["stop_reasons"][side]
            # Of all episodes: n_eval counts tasks that both sides scored
            ended.append(100 * reasons.get("answered", 0) / sum(reasons.values()))
        run = [number(result["minutes"]), str(result["steps"]), " -> ".join(map(number, ended))]
        rows.append([str(result["seed"]), *_gain_row("", result)[2:], *run])
    return rows


def show(result: dict[str, Any]) -> None:
    """Print the tables and what has to be known with them."""
    gains = groups_in(result | {"overall": result})
    title = f"{result['headline'].replace('_', ' ')} on tasks never trained"
    show_table([GAINS, *(_gain_row(*group) for group in gains.items())], title)
    if failures := result["by_failure"]:
        rows = [_failure_row(*kind) for kind in failures.items()]
        show_table([FAILURES, *rows], "what happened, and the points it cost")
    print("\n".join(_facts(result)), flush=True)


def _gain_row(name: str, part: dict[str, Any]) -> list[str]:
    means = [number(part[side]) for side in SIDES]
    return [
        name,
        str(part["n_eval"]),
        *means,
        number(part["gain"], "+.1f"),
        span(part["ci95"], part["n_eval"]),
    ]


def _failure_row(kind: str, part: dict[str, Any]) -> list[str]:
    cells = [number(part[side][column]) for column in ("share", "lost") for side in SIDES]
    return [kind, *cells, number(part["gain"], "+.1f")]


def _facts(result: dict[str, Any]) -> list[str]:
    """Return the lines that have no table: about the run, and how episodes ended."""
    differ = result["different_conditions"].items()
    parts = {name: bounds for name in result if (bounds := result.get(f"{name}_ci95"))}
    return [
        f"{result['steps']} steps of seed {result['seed']} on {result['model']}, "
        f"{result['minutes']:.1f} minutes in all, commit {result['commit']}",
        "ceiling of the cold start: "
        f"{'not known' if result['ceiling'] is None else result['ceiling']}",
        *(
            f"{name.replace('_', ' ')}: {result[name]:+.1f} ({span(bounds)})"
            for name, bounds in parts.items()
        ),
        *(
            f"episodes ended, {side}: {named(reasons)}"
            for side, reasons in result["stop_reasons"].items()
        ),
        *(
            f"CONDITIONS DIFFER: {name} was {first} before and {second} after"
            for name, (first, second) in differ
        ),
    ]
