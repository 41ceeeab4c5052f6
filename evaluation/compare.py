"""Two evaluations of the same tasks, paired: what B does better or worse than A, and on which of them.

    .venv/bin/python -m evaluation.compare outputs/evaluations/BEFORE outputs/evaluations/AFTER
    .venv/bin/python -m evaluation.compare BEFORE AFTER --json

A difference is B minus A of a task's mean score (or whatever number the agent's headline is), so what is hard for both
cancels out; the 95 % interval comes from resampling tasks. On a terminal it prints tables, into a pipe Markdown. Exit
codes: 0 done, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.command import UsageError, run_command
from episodes import registry
from evaluation.metrics import headline_of, interval
from evaluation.results import read_episodes, read_scores
from evaluation.tables import IDENTITY, PARTS, points, show_table, table

SHOWN = 20  # questions listed in each direction; --json has all
HEADER = ("group", "tasks", "A", "B", "B - A", "95 %", "better", "worse")
CHANGED = ("question", "id", "A", "B", "answer of A", "answer of B")
SAME = 1e-9
ANSWER_LENGTH = 60


class CompareError(UsageError):
    """Two evaluations that cannot be compared; one line that says why."""


@dataclass(frozen=True)
class Evaluation:
    """An evaluation's folder: its scores, and of every question with a score the mean and the first episode."""

    folder: Path
    scores: dict[str, Any]
    means: dict[str, float]
    episodes: dict[str, dict[str, Any]]


def read_evaluation(folder: Path) -> Evaluation:
    """Read what `evaluation.evaluate` wrote.

    Raises:
        ResultsError: files are missing or not those of an evaluation.
        AgentError: it is of an agent that is not here.
    """
    scores = read_scores(folder)
    agent = registry.get(scores["agent"])
    values: dict[str, list[float]] = {}
    episodes: dict[str, dict[str, Any]] = {}
    for record in read_episodes(folder):
        value = headline_of(agent, record)
        if value is not None:
            values.setdefault(record["id"], []).append(value)
            episodes.setdefault(record["id"], record)
    means = {name: sum(found) / len(found) for name, found in values.items()}
    return Evaluation(folder, scores, means, episodes)


def compare(a: Evaluation, b: Evaluation, seed: int) -> dict[str, Any]:
    """The paired difference, overall and by task type, and the questions that changed.

    Raises:
        CompareError: they are of two agents, or there is no task both played.
    """
    if a.scores["agent"] != b.scores["agent"]:
        raise CompareError(
            f"{a.folder} is of the {a.scores['agent']} agent, {b.folder} of the {b.scores['agent']} agent"
        )
    both = [name for name in a.means if name in b.means and _asked(a, name) == _asked(b, name)]
    if not both:
        raise CompareError(f"{a.folder} and {b.folder} have no question in common (same id, same text)")
    types = sorted({a.episodes[name]["task_type"] for name in both})
    by_type = {kind: [name for name in both if a.episodes[name]["task_type"] == kind] for kind in types}
    changes = sorted((b.means[name] - a.means[name], name) for name in both)
    return {
        "a": _what(a),
        "b": _what(b),
        "same_data": a.scores["data"]["sha256"] == b.scores["data"]["sha256"],
        "left_out": len(a.means.keys() | b.means.keys()) - len(both),
        "different_conditions": _different_conditions(a.scores, b.scores),
        "overall": _difference(a, b, both, seed),
        "by_task_type": {kind: _difference(a, b, names, seed) for kind, names in by_type.items()},
        "better": [_change(a, b, name) for change, name in reversed(changes) if change > SAME],
        "worse": [_change(a, b, name) for change, name in changes if change < -SAME],
    }


def _different_conditions(a: dict[str, Any], b: dict[str, Any]) -> dict[str, list[Any]]:
    """Settings that differ: where there are any, the difference is not the models' alone.

    One that is not a model has no sampling, which its name says already.
    """
    names = [name for name in a | b if name not in IDENTITY + PARTS]
    unsampled = a.get("sampling") is None or b.get("sampling") is None
    return {
        name: [a.get(name), b.get(name)]
        for name in names
        if a.get(name) != b.get(name) and not (name == "sampling" and unsampled)
    }


def _asked(of: Evaluation, name: str) -> tuple[str, str]:
    return of.episodes[name]["question"], of.episodes[name]["reference"]


def _what(of: Evaluation) -> dict[str, Any]:
    unscored = sum(of.scores["overall"]["unscored"].values())
    return {"folder": str(of.folder), "model": of.scores["model"], "data": of.scores["data"], "unscored": unscored}


def _difference(a: Evaluation, b: Evaluation, names: Sequence[str], seed: int) -> dict[str, Any]:
    changes = [b.means[name] - a.means[name] for name in names]
    return {
        "n": len(names),
        "a": sum(a.means[name] for name in names) / len(names),
        "b": sum(b.means[name] for name in names) / len(names),
        "difference": sum(changes) / len(names),
        "ci95": interval(changes, seed, bounds=(-1.0, 1.0)),
        "better": sum(change > SAME for change in changes),
        "worse": sum(change < -SAME for change in changes),
    }


def _change(a: Evaluation, b: Evaluation, name: str) -> dict[str, Any]:
    """A question that changed; the answers are those of its first scored episode."""
    first, second = a.episodes[name], b.episodes[name]
    return {
        "id": name,
        "task_type": first["task_type"],
        "question": first["question"],
        "reference": first["reference"],
        "a": {"score": a.means[name], "answer": first["answer"], "stop_reason": first["stop_reason"]},
        "b": {"score": b.means[name], "answer": second["answer"], "stop_reason": second["stop_reason"]},
    }


def facts_of(result: dict[str, Any]) -> list[str]:
    """What is compared, and what has to be known before the numbers are believed."""
    lines = [f"{side.upper()}: {result[side]['model']} ({result[side]['folder']})" for side in ("a", "b")]
    if not result["same_data"]:
        files = " and ".join(result[side]["data"]["file"] for side in ("a", "b"))
        lines.append(f"THE DATA FILES DIFFER ({files}): only questions with the same id, text and answer are compared")
    if result["left_out"]:
        lines.append(f"{result['left_out']} questions are left out: only one of the two has a score for them")
    for name, (first, second) in result["different_conditions"].items():
        lines.append(f"CONDITIONS DIFFER: {name} was {first} in A and {second} in B")
    low, high = result["overall"]["ci95"]
    verdict = "better" if low > 0 else "worse" if high < 0 else "no difference that chance could not make"
    return [*lines, f"B against A: {verdict} (95 % interval of the difference in points: {_span([low, high])})"]


def rows_of(result: dict[str, Any]) -> list[list[str]]:
    """The cells of the table of differences, in points."""
    return [
        [
            *(name, str(part["n"]), points(part["a"]), points(part["b"])),
            *(_signed(part["difference"]), _span(part["ci95"]), str(part["better"]), str(part["worse"])),
        ]
        for name, part in (("overall", result["overall"]), *result["by_task_type"].items())
    ]


def changed_rows(changes: Sequence[dict[str, Any]]) -> list[list[str]]:
    """The cells of a list of questions that changed."""
    return [
        [change["question"], change["id"]]
        + [points(change[side]["score"]) for side in ("a", "b")]
        + [_short(change[side]["answer"] or f"({change[side]['stop_reason']})") for side in ("a", "b")]
        for change in changes[:SHOWN]
    ]


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}"


def _span(bounds: Sequence[float]) -> str:
    return f"{_signed(bounds[0])} to {_signed(bounds[1])}"


def _short(text: str) -> str:
    return text if len(text) <= ANSWER_LENGTH else text[: ANSWER_LENGTH - 1] + "…"


def markdown(result: dict[str, Any]) -> str:
    """The comparison as Markdown."""
    lines = ["# B against A", "", *(f"- {fact}" for fact in facts_of(result)), "", *table([HEADER, *rows_of(result)])]
    for name in ("better", "worse"):
        if result[name]:
            lines += ["", f"## {_title(result, name)}", "", *table([CHANGED, *changed_rows(result[name])])]
    return "\n".join(lines)


def _title(result: dict[str, Any], name: str) -> str:
    count = len(result[name])
    return f"{count} questions {name}" + (f", the {SHOWN} that changed most" if count > SHOWN else "")


def show(result: dict[str, Any]) -> None:
    """Print the comparison on a terminal."""
    print("\n".join(facts_of(result)))
    show_table([HEADER, *rows_of(result)])
    for name in ("better", "worse"):
        if result[name]:
            show_table([CHANGED, *changed_rows(result[name])], _title(result, name))


def main(argv: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.compare", description=__doc__.splitlines()[0])
    parser.add_argument("a", type=Path, metavar="A", help="folder of an evaluation, such as before training")
    parser.add_argument("b", type=Path, metavar="B", help="folder of another one, such as after it")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    parser.add_argument("--seed", type=int, default=0, help="of the intervals")
    arguments = parser.parse_args(argv)
    return run_command("compare", lambda: report(arguments))


def report(arguments: argparse.Namespace) -> None:
    """Compare and print."""
    result = compare(read_evaluation(arguments.a), read_evaluation(arguments.b), arguments.seed)
    if arguments.json:
        print(json.dumps(result, ensure_ascii=False))
    elif sys.stdout.isatty():
        show(result)
    else:
        print(markdown(result))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough, such as head, is no error
    sys.exit(main())
