"""Make `summary.json` of a run's plain files, and print its end, also after a crash."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import sqrt
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.cells import cell_len

from common.command import as_typed
from common.jsonl import own_object, read_object
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
from training.engine.watchdog import DIFFER, MISMATCH

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
STEPS = 10  # of each end of the run, which are compared
ERRORS = 2  # standard errors between the two means, by which a run counts as worse
LEAST = 0.01  # of the reward, if its steps do not vary
REWARD = "episodes/reward/mean"
ROLLOUTS = "episodes/rollouts"
CUT = "episodes/stop_reasons/length"
WIDTH = 22  # of the names of the lines that `show` prints


def build_summary(
    run_dir: Path, about: Mapping[str, str], exit_reason: str, message: str, started: float
) -> dict[str, Any]:
    """Return what `summary.json` holds. `started` is the program's start in Unix seconds."""
    records = [RolloutRecord.of_line(row) for row in read_lines(run_dir / "episodes.jsonl")]
    train = [record for record in records if record.mode == "train"]
    metrics = [measured(row) for row in read_lines(run_dir / "metrics.jsonl")]
    steps = [data for data in metrics if "timing_s/step" in data]
    counts = {}
    for name in (*TRAINED, *LEARNED_FROM):
        counts[name] = int(sum(step.get(f"books/{name}", 0) for step in steps))
    dropped = sums({record.cause: record.generated_tokens} for record in train if record.cause)
    scored = sum(record.generated_tokens for record in train if record.cause is None)
    if scored > counts["generated_tokens"]:  # the step that Ctrl-C ended made no update
        dropped["no_update"] = scored - counts["generated_tokens"]
    mismatches = [step[MISMATCH] for step in steps if MISMATCH in step]
    if any(DIFFER in step and MISMATCH not in step for step in steps):
        mismatches = []  # it was no number, so none is the largest
    episodes = counts["episodes"]
    summary: dict[str, Any] = {
        "exit_reason": exit_reason,
        "message": message,
        **about,
        "environment": read_object(run_dir / ENVIRONMENT),
        **_of_records(records),
        **{name: counts[name] for name in TRAINED},
        "dropped_tokens": dropped,
        "weight_updates": int(sum(step.get("books/weight_updates", 0) for step in steps)),
        "steps_without_signal": sum(step.get("books/learnable_groups") == 0 for step in steps),
        "signal": {
            **{name: counts[name] for name in LEARNED_FROM},
            "sequences_per_episode": round(counts["sequences"] / episodes, 4) if episodes else None,
            "log_prob_mismatch": max(mismatches, default=None),
        },
        "course": course_of(steps),
        "counters": sums(record.counters for record in train),
        "measures": means(record.numbers for record in train),
        "stop_reasons": dict(Counter(record.stop_reason for record in train if record.stop_reason)),
        "seconds": _seconds(run_dir, steps, started),
    }
    for agent, own in sorted(by_agent(records).items()):
        summary.setdefault("agents", {})[agent] = _of_records(own)
    return summary


def _of_records(records: list[RolloutRecord]) -> dict[str, Any]:
    train = [record for record in records if record.mode == "train"]
    scored = [record for record in train if record.cause is None]  # every one has a reward
    mean = sum(record.reward or 0.0 for record in scored) / len(scored) if scored else None
    return {
        "rollouts": _rollouts(train),
        "reward": {"mean": mean, "terms": means(record.terms for record in scored)},
        "canaries": sum_canaries(records),
        "validation": _validation([record for record in records if record.mode == "val"]),
    }


def course_of(steps: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return what a run's metrics say of both its ends, {} of a run that is too short.

    steps: the metrics of each step. reward: means of the first and the last steps. cut: shares of
    episodes whose last reply was cut. worse: the reward fell by more than its noise from step to
    step.
    """
    scored = [step for step in steps if REWARD in step]
    if len(scored) < 2 * STEPS:
        return {}
    means = []
    variances = []
    cut = []
    for end in (scored[:STEPS], scored[-STEPS:]):
        rewards = [step[REWARD] for step in end]
        means.append(fmean(rewards))
        # A trend, or a collapse at the end, is no noise
        variances.append(fmean((after - before) ** 2 for before, after in pairwise(rewards)) / 2)
        cut.append(sum(step.get(CUT, 0) for step in end) / sum(step[ROLLOUTS] for step in end))
    error = sqrt(sum(variances) / STEPS)
    worse = means[0] - means[1] > max(LEAST, ERRORS * error)
    return {"reward": means, "cut": cut, "worse": worse}


def told(course: Mapping[str, Any]) -> str:
    """Return the comparison as a person reads it."""
    first, last = course["reward"]
    cut_first, cut_last = course["cut"]
    text = said("reward {first:.3f} -> {last:.3f}", first=first, last=last)
    if cut_first or cut_last:
        cut = ", replies cut {first:.1%} -> {last:.1%}"
        text += said(cut, first=cut_first, last=cut_last)
    if course["worse"]:
        text += said("; the run got worse: try a lower learning rate, or an earlier checkpoint")
    return text


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines of a file, [] if it does not exist. A torn last line is left out.
    Raises FileError: another one is no object.
    """
    lines = path.read_bytes().split(b"\n") if path.exists() else []
    numbered = enumerate(lines[:-1], 1)
    return [own_object(line, f"{path}, line {n}") for n, line in numbered if line.strip()]


def measured(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of a line that are numbers. What was not a number is null there."""
    return {name: value for name, value in row["data"].items() if value is not None}


def curve(run: Path) -> list[dict[str, Any]]:
    """Return `step`, `reward` and `validation` of every step, None where not measured.

    What a resume kept aside was measured of weights that the run went back behind.
    """
    found: dict[int, dict[str, Any]] = {}
    for row in read_lines(run / "metrics.jsonl"):
        step = row["step"]
        known = found.setdefault(step, {"step": step, "reward": None, "validation": None})
        data = measured(row)
        for name, value in (("reward", data.get(REWARD)), ("validation", validation_reward(data))):
            if value is not None:
                known[name] = value
    return [found[step] for step in sorted(found)]


def read_timeline(run_dir: Path) -> dict[str, float]:
    """Return when events first happened (Unix seconds), as far as they have."""
    return read_object(run_dir / "timeline.json")


def _rollouts(records: list[RolloutRecord]) -> dict[str, int]:
    finished = [record for record in records if record.status == "succeeded"]
    return {
        "finished": len(finished),
        "failed": len(records) - len(finished),
        "unscored": sum(record.cause is not None for record in finished),
    }


def _validation(records: list[RolloutRecord]) -> dict[str, Any]:
    by_step: dict[int, list[RolloutRecord]] = {}
    for record in records:
        by_step.setdefault(record.step, []).append(record)
    first = by_step[min(by_step)] if by_step else []
    last = by_step[max(by_step)] if by_step else []
    return {
        "rollouts": _rollouts(records),
        "tasks": len({(record.agent, record.id) for record in last}),
        "reward": validation_of(last),
        "first_reward": validation_of(first),
    }


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


def show(summary: dict[str, Any], run_dir: Path, names: Mapping[str, str] = CHINESE) -> None:
    """Print what was run, what it cost and gave, and its folder. names: of terms, in Chinese."""
    print(said("run {name}: {reason}", name=run_dir.name, reason=said(summary["exit_reason"])))
    for name, text in _lines(summary, names):
        if text:
            print(f"  {name}{' ' * (WIDTH - cell_len(name))}{text}")
    print(f"  {said('what each line means')}: docs/runs.md#the-end-of-a-run")
    if summary["message"]:
        print(as_typed(f"{said(summary['exit_reason'])}: {summary['message']}"))
    print(run_dir, flush=True)


def _lines(summary: dict[str, Any], names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what `show` prints, by name. A line without a text is left out."""
    reward = _number(summary["reward"]["mean"])
    highest = summary["environment"].get(HIGHEST)
    of = ""
    if "agents" not in summary:  # several agents have different terms and highest rewards
        if highest is not None:
            of = said(" of {most:g}", most=highest)
        reward += of
        if terms := counted(summary["reward"]["terms"], names):
            reward += f" ({terms})"
    largest = summary["signal"]["log_prob_mismatch"]
    kl = ""
    if largest is not None:  # one near 0 may be computed as less
        kl = said("KL of at most {value:.2g} a token", value=max(largest, 0.0))
    canaries = summary["canaries"]
    accepted = "accepted {accepted:g} of {judged:g} answers that are known to be wrong"
    lines = [
        (said("model"), f"{below_root(summary['model'])} ({summary['device']})"),
        *((said("note"), note) for note in summary["environment"].get("notes", [])),
        (said("time"), _times(summary["seconds"])),
        (said("episodes"), _episodes(summary["rollouts"]) or said("none")),
        (said("tokens"), _tokens(summary)),
        (said("updates"), _updates(summary)),
        (said("vLLM and trainer"), kl),
        (said("judge"), said(accepted, **canaries) if canaries["judged"] else ""),
        (said("reward"), reward),
        (said("first and last steps"), told(summary["course"]) if summary["course"] else ""),
        (said("validation reward"), _validation_line(summary["validation"], of)),
    ]
    for agent, found in summary.get("agents", {}).items():
        earned = said("reward {value}", value=_number(found["reward"]["mean"]))
        own = said("validation {value}", value=_validation_line(found["validation"], ""))
        lines.append((agent, said(", ").join((earned, _episodes(found["rollouts"]), own))))
    return lines


def _times(seconds: dict[str, Any]) -> str:
    times = [said("{seconds:.0f} s", seconds=seconds["total"])]
    if seconds["to_first_step"] is not None:
        times.append(said("{seconds:.3g} s to the first step", seconds=seconds["to_first_step"]))
    if seconds["per_step"] is not None:
        times.append(said("{seconds:.3g} s a step", seconds=seconds["per_step"]))
    return said(", ").join(times)


def _tokens(summary: dict[str, Any]) -> str:
    dropped = summary["dropped_tokens"]
    tokens = said(
        "{generated} written by the model, {trained} trained on",
        generated=summary["generated_tokens"] + sum(dropped.values()),
        trained=summary["trained_tokens"],
    )
    if left_out := counted(dropped):
        tokens += said(", left out: {named}", named=left_out)
    return tokens


def _updates(summary: dict[str, Any]) -> str:
    signal = summary["signal"]
    updates = said("{count} of the weights", count=summary["weight_updates"])
    if signal["groups"]:
        groups = "; in {count} of {of} groups the rewards differ, and only those teach"
        updates += said(groups, count=signal["learnable_groups"], of=signal["groups"])
    return updates


def _episodes(rollouts: dict[str, int]) -> str:
    words = {
        "finished": "{count} finished",
        "failed": "{count} failed",
        "unscored": "{count} of them not trained on",
    }
    counts = [said(words[name], count=count) for name, count in rollouts.items() if count]
    return said(", ").join(counts)


def _validation_line(validation: dict[str, Any], of: str) -> str:
    first = _number(validation["first_reward"]["mean"])
    last = _number(validation["reward"]["mean"])
    line = f"{last}{of}" if first == last else f"{first} -> {last}{of}"
    tasks = validation["tasks"]
    return line + (said(", {count} tasks", count=tasks) if tasks else "")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
