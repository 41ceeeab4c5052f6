"""Make `summary.json` of a run's plain files, and print its end, also after a crash."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from common.command import as_typed
from common.jsonl import write_text
from common.language import said
from common.settings import below_root
from episodes.outcomes import CHINESE, counted
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
from training.report.course import course_of, told

# The key of what episodes are played with. Its `notes` are for readers of the numbers
ENVIRONMENT = "environment.json"
HIGHEST = "highest_reward"  # in it: the most that an episode can earn
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
WIDTH = 22  # of the names of the lines that `show` prints


def write_summary(
    run_dir: Path, about: Mapping[str, str], exit_reason: str, message: str, started: float
) -> dict[str, Any]:
    """Compute and write `summary.json`. `started` is the program's start in Unix seconds."""
    summary = build_summary(run_dir, about, exit_reason, message, started)
    text = json.dumps(summary, ensure_ascii=False, indent=2)
    write_text(run_dir / "summary.json", text, force=True)
    return summary


def build_summary(
    run_dir: Path, about: Mapping[str, str], exit_reason: str, message: str, started: float
) -> dict[str, Any]:
    """Return the summary. Every number comes from the run folder's files."""
    records = [RolloutRecord.of_line(row) for row in read_lines(run_dir / "episodes.jsonl")]
    train = [record for record in records if record.mode == "train"]
    validation = [record for record in records if record.mode == "val"]
    metrics = [row["data"] for row in read_lines(run_dir / "metrics.jsonl")]
    steps = [data for data in metrics if "timing_s/step" in data]
    counts = {}
    for name in (*TRAINED, *LEARNED_FROM):
        counts[name] = int(sum(step.get(f"books/{name}", 0) for step in steps))
    return {
        "exit_reason": exit_reason,
        "message": message,
        **about,
        "environment": read_object(run_dir / ENVIRONMENT),
        "rollouts": _rollouts(train),
        **{name: counts[name] for name in TRAINED},
        "dropped_tokens": _dropped(train, counts["generated_tokens"]),
        "weight_updates": int(sum(step.get("books/weight_updates", 0) for step in steps)),
        "steps_without_signal": sum(step.get("books/learnable_groups") == 0 for step in steps),
        "signal": _signal(counts, [step[MISMATCH] for step in steps if MISMATCH in step]),
        "reward": _reward(train),
        "course": course_of(steps),
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
    """Return `step`, `reward` and `validation` of every step, None where not measured.

    Parts kept aside by a resume are read, too. A step measured again counts as in the later.
    """
    found: dict[int, dict[str, Any]] = {}
    aside = sorted(run.glob("metrics.*.jsonl"), key=lambda path: path.stat().st_mtime)
    for path in [*aside, run / "metrics.jsonl"]:
        for row in read_lines(path):
            step = row["step"]
            known = found.setdefault(step, {"step": step, "reward": None, "validation": None})
            reward = row["data"].get("episodes/reward/mean")
            validation = validation_reward(row["data"])
            known["reward"] = known["reward"] if reward is None else reward
            known["validation"] = known["validation"] if validation is None else validation
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
    steps = [record.step for record in records]
    first = [record for record in records if record.step == min(steps)]
    last = [record for record in records if record.step == max(steps)]
    return {
        "rollouts": _rollouts(records),
        "tasks": len({(record.agent, record.id) for record in last}),
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
    """Return generated tokens that were not trained, by cause. `no_update`: no step came."""
    dropped = sums({record.cause: record.generated_tokens} for record in records if record.cause)
    scored = sum(record.generated_tokens for record in records if record.cause is None)
    if scored > generated_in_updates:
        dropped["no_update"] = scored - generated_in_updates
    return dropped


def _seconds(run_dir: Path, steps: list[dict[str, Any]], started: float) -> dict[str, Any]:
    first = read_timeline(run_dir).get("first_step")
    times = [step["timing_s/step"] for step in steps]
    by_phase = {}
    for phase, key in PHASES.items():
        by_phase[phase] = round(sum(step.get(key, 0) for step in steps), 2)
    return {
        "total": round(time.time() - started, 2),
        "to_first_step": round(first - started, 2) if first else None,
        "per_step": round(sum(times) / len(times), 2) if times else None,
        "by_phase": by_phase,
    }


def _signal(counts: dict[str, int], mismatches: list[float]) -> dict[str, Any]:
    episodes = counts["episodes"]
    return {
        **{name: counts[name] for name in LEARNED_FROM},
        "sequences_per_episode": round(counts["sequences"] / episodes, 4) if episodes else None,
        "log_prob_mismatch": max(mismatches, default=None),
    }


def show(summary: dict[str, Any], run_dir: Path, names: Mapping[str, str] = CHINESE) -> None:
    """Print what was run, what it cost and what it gave. The last line is the run folder.

    names: what the reward's terms are called in Chinese.
    """
    print(said("run {name}: {reason}", name=run_dir.name, reason=said(summary["exit_reason"])))
    for name, text in _lines(summary, names):
        if text:
            print(f"  {name}{' ' * (WIDTH - cell_len(name))}{text}")
    print(f"  {said('what each line means')}: docs/runs.md#the-end-of-a-run")
    if summary["message"]:
        print(as_typed(f"{said(summary['exit_reason'])}: {summary['message']}"))
    print(run_dir, flush=True)


def _lines(summary: dict[str, Any], names: Mapping[str, str]) -> list[tuple[str, str]]:
    validation = summary["validation"]
    highest = summary["environment"].get(HIGHEST)
    of = "" if highest is None or "agents" in summary else said(" of {most:g}", most=highest)
    lines = [
        (said("model"), f"{below_root(summary['model'])} ({summary['device']})"),
        *((said("note"), note) for note in summary["environment"].get("notes", [])),
        (said("time"), _time(summary["seconds"])),
        (said("episodes"), _episodes(summary["rollouts"]) or said("none")),
        (said("tokens"), _tokens(summary)),
        (said("updates"), _updates(summary)),
        (said("vLLM and trainer"), _mismatch(summary["signal"]["log_prob_mismatch"])),
        (said("judge"), _known_bad(summary["canaries"])),
        (said("reward"), _reward_line(summary, of, names)),
        (said("first and last steps"), told(summary["course"]) if summary["course"] else ""),
        (said("validation reward"), _validation_line(validation, of)),
    ]
    for agent, found in summary.get("agents", {}).items():
        reward = said("reward {value}", value=_number(found["reward"]["mean"]))
        own = said("validation {value}", value=_validation_line(found["validation"], ""))
        lines.append((agent, said(", ").join((reward, _episodes(found["rollouts"]), own))))
    return lines


def _time(seconds: dict[str, Any]) -> str:
    parts = [said("{seconds:.0f} s", seconds=seconds["total"])]
    if seconds["to_first_step"] is not None:
        parts.append(said("{seconds:.3g} s to the first step", seconds=seconds["to_first_step"]))
    if seconds["per_step"] is not None:
        parts.append(said("{seconds:.3g} s a step", seconds=seconds["per_step"]))
    return said(", ").join(parts)


def _episodes(rollouts: dict[str, int]) -> str:
    words = {
        "finished": "{count} finished",
        "failed": "{count} failed",
        "unscored": "{count} of them not trained on",
    }
    counts = [said(words[name], count=count) for name, count in rollouts.items() if count]
    return said(", ").join(counts)


def _tokens(summary: dict[str, Any]) -> str:
    dropped = summary["dropped_tokens"]
    text = said(
        "{generated} written by the model, {trained} trained on",
        generated=summary["generated_tokens"] + sum(dropped.values()),
        trained=summary["trained_tokens"],
    )
    left_out = counted(dropped)
    return text + (said(", left out: {named}", named=left_out) if left_out else "")


def _updates(summary: dict[str, Any]) -> str:
    signal = summary["signal"]
    text = said("{count} of the weights", count=summary["weight_updates"])
    if signal["groups"]:
        groups = "; in {count} of {of} groups the rewards differ, and only those teach"
        text += said(groups, count=signal["learnable_groups"], of=signal["groups"])
    return text


def _mismatch(value: float | None) -> str:
    # A KL of nearly 0 is computed as a little less
    lines = "KL of at most {value:.2g} a token"
    return "" if value is None else said(lines, value=max(value, 0.0))


def _known_bad(canaries: dict[str, float]) -> str:
    if not canaries["judged"]:
        return ""
    accepted = "accepted {accepted:g} of {judged:g} answers that are known to be wrong"
    return said(accepted, **canaries)


def _reward_line(summary: dict[str, Any], of: str, names: Mapping[str, str]) -> str:
    reward = summary["reward"]
    line = f"{_number(reward['mean'])}{of}"
    # Terms of several agents differ
    terms = "" if "agents" in summary else counted(reward["terms"], names)
    return f"{line} ({terms})" if terms else line


def _validation_line(validation: dict[str, Any], of: str) -> str:
    first = _number(validation["first_reward"]["mean"])
    last = _number(validation["reward"]["mean"])
    line = f"{last}{of}" if first == last else f"{first} -> {last}{of}"
    tasks = validation["tasks"]
    return line + (said(", {count} tasks", count=tasks) if tasks else "")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
