"""A run's plain files -> `summary.json`, and what is printed at the end.

`episodes.jsonl` holds one rollout a line, `metrics.jsonl` verl's metrics a step, `timeline.json`
when the engine was ready. The summary is computed from these alone, so it is as true after a crash
as after success.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.jsonl import write_text
from common.settings import below_root
from training.engine.records import (
    RolloutRecord,
    by_agent,
    means,
    sum_canaries,
    sums,
    validation_of,
    validation_reward,
)
from training.engine.watchdog import MISMATCH

# What episodes are played with; its `notes` are for readers of the numbers
ENVIRONMENT = "environment.json"
PHASES = {
    "rollout": "timing_s/gen",
    "log_prob": "timing_s/old_log_prob",
    "update": "timing_s/update_actor",
    "sync": "timing_s/update_weights",
    "validation": "timing_s/testing",
    "checkpoint": "timing_s/save_checkpoint",
}
TRAINED = ("triplets", "sequences", "generated_tokens", "trained_tokens")
LEARNED_FROM = ("episodes", "groups", "learnable_groups")
MOST_NAMED = 5  # counters and measures on the screen, which holds 24 lines; the file has all


def write_summary(
    run_dir: Path, about: Mapping[str, str], exit_reason: str, message: str, started: float
) -> dict[str, Any]:
    """Compute and write `summary.json`; `started` is the program's start in Unix seconds."""
    summary = build_summary(run_dir, about, exit_reason, message, started)
    write_text(
        run_dir / "summary.json", json.dumps(summary, ensure_ascii=False, indent=2), force=True
    )
    return summary


def build_summary(
    run_dir: Path, about: Mapping[str, str], exit_reason: str, message: str, started: float
) -> dict[str, Any]:
    """Return the summary as a dict; every number comes from the run folder's files.

    about: device, model and store.
    """
    records = [RolloutRecord.of_line(row) for row in read_lines(run_dir / "episodes.jsonl")]
    train = [record for record in records if record.mode == "train"]
    validation = [record for record in records if record.mode == "val"]
    steps = [
        row["data"]
        for row in read_lines(run_dir / "metrics.jsonl")
        if "timing_s/step" in row["data"]
    ]
    counts = {
        name: int(sum(step.get(f"books/{name}", 0) for step in steps))
        for name in (*TRAINED, *LEARNED_FROM)
    }
    return {
        "exit_reason": exit_reason,
        "message": message,
        **about,
        "environment": read_object(run_dir / ENVIRONMENT),
        "rollouts": _rollouts(train),
        **{name: counts[name] for name in TRAINED},
        "dropped_tokens": _dropped(train, counts["generated_tokens"]),
        "weight_updates": int(sum(map(_weight_updates, steps))),
        "steps_without_signal": sum(not _taught(step) for step in steps),
        "signal": _signal(counts, [step[MISMATCH] for step in steps if MISMATCH in step]),
        "reward": _reward(train),
        "counters": sums(record.counters for record in train),
        "measures": means(record.numbers for record in train),
        "canaries": sum_canaries(records),
        "stop_reasons": dict(Counter(record.stop_reason for record in train if record.stop_reason)),
        "validation": _validation(validation),
        **_agents(records),
        "seconds": _seconds(run_dir, steps, started),
    }


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a file, [] if it does not exist. A torn last line is left out."""
    lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    return [json.loads(line) for line in lines[:-1] if line.strip()]


def curve(run: Path) -> list[dict[str, Any]]:
    """Return `step`, `reward` in training and `validation` (`validation_reward`) of every step;
    None where it was not measured.

    In a resumed run the parts kept aside are read, too; a step measured again counts as in the
    later part.
    """
    found: dict[int, dict[str, Any]] = {}
    for path in [
        *sorted(run.glob("metrics.*.jsonl"), key=lambda path: path.stat().st_mtime),
        run / "metrics.jsonl",
    ]:
        for row in read_lines(path):
            measured = {
                "reward": row["data"].get("episodes/reward/mean"),
                "validation": validation_reward(row["data"]),
            }
            known = found.setdefault(
                row["step"], {"step": row["step"], "reward": None, "validation": None}
            )
            known |= {name: value for name, value in measured.items() if value is not None}
    return [found[step] for step in sorted(found)]


def read_timeline(run_dir: Path) -> dict[str, float]:
    """Return when events first happened (Unix seconds), as far as they have."""
    return read_object(run_dir / "timeline.json")


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file, {} if it does not exist."""
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _rollouts(records: list[RolloutRecord]) -> dict[str, int]:
    finished = [record for record in records if record.status == "succeeded"]
    return {
        "finished": len(finished),
        "failed": len(records) - len(finished),
        "unscored": sum(record.cause is not None for record in finished),
    }


def _validation(records: list[RolloutRecord]) -> dict[str, Any]:
    """Return counts of all validation rollouts, and the rewards of the last validation and of the
    first.
    """
    steps = [record.step for record in records]
    first = [record for record in records if record.step == min(steps)]
    last = [record for record in records if record.step == max(steps)]
    return {
        "rollouts": _rollouts(records),
        "reward": validation_of(last),
        "first_reward": validation_of(first),
    }


def _agents(records: list[RolloutRecord]) -> dict[str, Any]:
    found = {}
    for agent, own in sorted(by_agent(records).items()):
        train = [record for record in own if record.mode == "train"]
        found[agent] = {
            "rollouts": _rollouts(train),
            "reward": _reward(train),
            "canaries": sum_canaries(own),
            "validation": _validation([record for record in own if record.mode == "val"]),
        }
    return {"agents": found} if found else {}


def _reward(records: list[RolloutRecord]) -> dict[str, Any]:
    scored = [record for record in records if record.cause is None]  # every one has a reward
    mean = sum(record.reward or 0.0 for record in scored) / len(scored) if scored else None
    return {"mean": mean, "terms": means(record.terms for record in scored)}


def _dropped(records: list[RolloutRecord], generated_in_updates: int) -> dict[str, float]:
    """Return the tokens generated and not trained on, by cause; `no_update` is for scored episodes
    whose step never came.
    """
    dropped = sums({record.cause: record.generated_tokens} for record in records if record.cause)
    scored = sum(record.generated_tokens for record in records if record.cause is None)
    if scored > generated_in_updates:
        dropped["no_update"] = scored - generated_in_updates
    return dropped


def _seconds(run_dir: Path, steps: list[dict[str, Any]], started: float) -> dict[str, Any]:
    first = read_timeline(run_dir).get("first_step")
    times = [step["timing_s/step"] for step in steps]
    return {
        "total": round(time.time() - started, 2),
        "to_first_step": round(first - started, 2) if first else None,
        "per_step": round(sum(times) / len(times), 2) if times else None,
        "by_phase": {
            phase: round(sum(step.get(key, 0) for step in steps), 2)
            for phase, key in PHASES.items()
        },
    }


def _weight_updates(step: dict[str, Any]) -> float:
    """Return the steps of the optimizer; earlier versions noted only that there was one."""
    known = "timing_s/update_weights" in step and _taught(step)
    return float(step.get("books/weight_updates", known))


def _taught(step: dict[str, Any]) -> bool:
    """Return whether a step had something to learn from: always if prompt groups are
    not compared.
    """
    return bool(step.get("books/learnable_groups") != 0)


def _signal(counts: dict[str, int], mismatches: list[float]) -> dict[str, Any]:
    episodes = counts["episodes"]
    return {
        **{name: counts[name] for name in LEARNED_FROM},
        "sequences_per_episode": round(counts["sequences"] / episodes, 4) if episodes else None,
        "log_prob_mismatch": max(mismatches, default=None),
    }


def show(summary: dict[str, Any], run_dir: Path) -> None:
    """Print the summary as a table, its results last; the last line is the run folder."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{summary['exit_reason']}: {run_dir.name}", show_header=False)
    for row in _rows(summary):
        table.add_row(*row)
    console = Console()
    console.print(table)
    if summary["message"]:
        console.print(
            f"{summary['exit_reason']}: {summary['message']}", style="bold red", markup=False
        )
    print(run_dir, flush=True)


def _rows(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of the table: what was run, what it cost, what it gave.

    Counts of 0 are left out, and so are lines that would say nothing.
    """
    seconds = summary["seconds"]
    to_first, per_step = _number(seconds["to_first_step"]), _number(seconds["per_step"])
    tokens = f"{summary['generated_tokens']} generated, {summary['trained_tokens']} trained"
    left_out = _counted(summary["dropped_tokens"])
    measures = dict(list(summary["measures"].items())[:MOST_NAMED])
    further = len(summary["measures"]) - len(measures)
    canaries = summary["canaries"]
    model = below_root(summary["model"])
    rows = [
        ("model, device, store", f"{model}, {summary['device']}, {summary['store']}"),
        *(("note", note) for note in summary["environment"].get("notes", [])),
        (
            "seconds",
            f"{seconds['total']:.0f} in all, {to_first} to the first step, {per_step} a step",
        ),
        ("tokens", f"{tokens}, left out: {left_out}" if left_out else tokens),
        ("learned from", _learned_from(summary)),
        ("counters", _counted(summary["counters"], MOST_NAMED)),
        ("measures", _named(measures) + (f", {further} more" if further > 0 else "")),
        (
            "known-bad answers",
            f"{canaries['accepted']} of {canaries['judged']} accepted"
            if canaries["judged"]
            else "",
        ),
        ("rollouts", _counted(summary["rollouts"]) or "none"),
        # Terms of one name in several agents are not one term
        ("reward", _reward_line(summary["reward"], with_terms="agents" not in summary)),
        ("validation reward", _validation_line(summary["validation"])),
        *((agent, _agent_line(found)) for agent, found in summary.get("agents", {}).items()),
    ]
    return [row for row in rows if row[1]]


def _learned_from(summary: dict[str, Any]) -> str:
    signal, empty = summary["signal"], summary["steps_without_signal"]
    parts = [f"{summary['weight_updates']} weight updates"]
    if empty:
        parts.append(f"{empty} steps taught nothing")
    if signal["groups"]:
        parts.append(
            f"{signal['learnable_groups']} of {signal['groups']} groups with different rewards"
        )
    if signal["sequences_per_episode"] is not None:
        parts.append(f"{_number(signal['sequences_per_episode'])} sequences an episode")
    if signal["log_prob_mismatch"] is not None:
        parts.append(
            f"vLLM and trainer differ by a KL of {signal['log_prob_mismatch']:.1g} a token at most"
        )
    return ", ".join(parts)


def _reward_line(reward: dict[str, Any], with_terms: bool) -> str:
    terms = f" ({_named(reward['terms'])})" if reward["terms"] and with_terms else ""
    return f"{_number(reward['mean'])}{terms}"


def _validation_line(validation: dict[str, Any]) -> str:
    first = _number(validation["first_reward"]["mean"])
    last = _number(validation["reward"]["mean"])
    return last if first == last else f"{first} -> {last}"


def _agent_line(found: dict[str, Any]) -> str:
    validation = _validation_line(found["validation"])
    return (
        f"reward {_number(found['reward']['mean'])}, validation "
        f"{validation}, {_counted(found['rollouts'])}"
    )


def _counted(values: dict[str, float], most: int = 99) -> str:
    """Return the counts that are not 0 by name, the largest number of them `most`."""
    counts = [f"{value:g} {name}" for name, value in values.items() if value]
    further = len(counts) - most
    return ", ".join([*counts[:most], *([f"{further} more"] if further > 0 else [])])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _named(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in values.items())
