"""The numbers of a demo: from its folder to `demo.json`, and the tables on the screen."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.jsonl import own_object, read_jsonl
from common.language import is_chinese, said
from common.settings import ROOT
from episodes import registry
from episodes.agent import Agent, folder_of
from episodes.outcomes import counted
from episodes.words import words_of
from evaluation.compare import compare, read_evaluation, verdict_line
from evaluation.run_folder import DEMO
from evaluation.tables import PARTS, Rows, groups_in, in_words, number, show_table, span

PUBLISHED, BEFORE, TRAIN, AFTER = DEMO
SIDES = (BEFORE, AFTER)
RESULT = "demo.json"
GAINS = ("group", "tasks", "before", "after", "gain", "95 % interval")


def build(agent: Agent, folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the content of `demo.json` (docs/training.md). `facts` are added as they are.
    Raises UsageError, OSError, KeyError: a part's folder is not what that part writes.
    """
    train = folder / TRAIN
    sides = {side: read_evaluation(folder / side) for side in SIDES}
    comparison = compare(sides[BEFORE], sides[AFTER])
    summary = train / "summary.json"
    validation = own_object(summary.read_bytes(), str(summary))["validation"]
    steps = [row["step"] for _, row in read_jsonl(train / "metrics.jsonl")]
    groups = {}
    for by in PARTS[1:]:
        groups[by] = {name: _difference(part) for name, part in comparison[by].items()}
    warmed = None
    if (folder / PUBLISHED).is_dir():
        warmed = _difference(compare(read_evaluation(folder / PUBLISHED), sides[BEFORE])["overall"])
    return {
        "agent": agent.name,
        "headline": agent.columns[0].metric,
        **_difference(comparison["overall"]),
        "verdict": verdict_line(comparison, SIDES),
        "steps": steps[-1] if steps else 0,
        **facts,
        "warm_up": warmed,
        "commit": commit(),
        **groups,
        "stop_reasons": {
            side: found.scores["overall"]["stop_reasons"] for side, found in sides.items()
        },
        "different_conditions": comparison["different_conditions"],
        "validation": {
            BEFORE: validation["first_reward"]["mean"],
            AFTER: validation["reward"]["mean"],
        },
    }


def points(share: float) -> float:
    """Return a share in [0, 1] as points of 100, exact enough to be rounded once more."""
    return round(100 * share, 6)


def _difference(part: dict[str, Any]) -> dict[str, Any]:
    return {
        BEFORE: points(part["a"]),
        AFTER: points(part["b"]),
        "gain": points(part["difference"]),
        "ci95": [points(bound) for bound in part["ci95"]],
        "sign_p": part["sign_p"],
        "n_eval": part["n"],
    }


def commit() -> str | None:
    """Return the commit of this working copy, with `-dirty` if files changed, or None outside git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def show(result: dict[str, Any]) -> None:
    """Print the tables and what has to be known with them."""
    gains: list[Sequence[str]] = [GAINS]
    warmed = {"warm-up": result["warm_up"]} if result.get("warm_up") else {}
    for name, part in {**warmed, **groups_in(result | {"overall": result})}.items():
        change = [number(part["gain"], "+.1f"), span(part["ci95"], part["n_eval"])]
        means = [number(part[side]) for side in SIDES]
        gains.append([name, str(part["n_eval"]), *means, *change])
    measure = result["headline"].replace("_", " ")
    title = said("{measure} on tasks never trained", measure=measure)
    tables: Mapping[str, Rows] = {title: gains}
    if is_chinese():
        tables = in_words(tables, words_of(folder_of(registry.get(result["agent"]))).chinese)
    show_table(tables[title], title)
    print(result["verdict"])
    took = "{steps} steps of seed {seed} on {model}, {minutes:.1f} minutes in all, commit {commit}"
    shown = ("steps", "seed", "model", "minutes", "commit")
    print(said(took, **{name: result[name] for name in shown}))
    for side, reasons in result["stop_reasons"].items():
        print(said("episodes ended, {side}: {reasons}", side=said(side), reasons=counted(reasons)))
    differ = "CONDITIONS DIFFER: {name} was {first} before and {second} after"
    for name, (first, second) in result["different_conditions"].items():
        print(said(differ, name=name, first=first, second=second))
