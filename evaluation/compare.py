"""Two evaluations of the same tasks, paired: what B does better or worse than A, and on which of
them.

    .venv/bin/python -m evaluation.compare outputs/evaluations/BEFORE outputs/evaluations/AFTER
    .venv/bin/python -m evaluation.compare BEFORE AFTER --json

A difference is B minus A of a task's mean score (or whatever number the agent's headline is), so
what is hard for both cancels out; the 95 % interval comes from resampling tasks. On a terminal it
prints tables, into a pipe Markdown. Exit codes: 0 done, 2 wrong usage.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from common.command import UsageError, new_parser, run_command
from episodes import registry
from episodes.agent import Record
from evaluation.metrics import GROUPINGS, groups_of, headline_of, interval
from evaluation.results import read_episodes, read_scores
from evaluation.tables import FEW, IDENTITY, MEASURED, Report, Rows, groups_in, points, span

SHOWN = 20  # questions listed in each direction; --json has all
SIDES = ("a", "b")
NAMES = ("A", "B")  # of the sides, for a reader
SAME = 1e-9
ANSWER_LENGTH = 60


@dataclass(frozen=True)
class Evaluation:
    """An evaluation's folder: its scores, and of every question with a score the mean and the first
    episode.
    """

    folder: Path
    scores: dict[str, Any]
    means: dict[str, float]
    episodes: dict[str, dict[str, Any]]

    def asked(self, name: str) -> tuple[str, str]:
        """Return a question's words and its gold answer."""
        return self.episodes[name]["question"], self.episodes[name]["reference"]

    def summary(self) -> dict[str, Any]:
        """Return the folder, the model, the data and the number of unscored episodes."""
        model, data, unscored = (
            self.scores["model"],
            self.scores["data"],
            self.scores["overall"]["unscored"],
        )
        return {
            "folder": str(self.folder),
            "model": model,
            "data": data,
            "unscored": sum(unscored.values()),
        }


def read_evaluation(folder: Path) -> Evaluation:
    """Read what `evaluation.evaluate` wrote.

    Raises UsageError: it is not there, or of an agent that is not here.
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
    means = {name: fmean(found) for name, found in values.items()}
    return Evaluation(folder, scores, means, episodes)


def compare(a: Evaluation, b: Evaluation, seed: int) -> dict[str, Any]:
    """Return the paired difference, overall and by group, and the questions that changed.

    Raises UsageError: the evaluations are of two agents, or have no task in common.
    """
    of_a, of_b = a.scores["agent"], b.scores["agent"]
    if of_a != of_b:
        raise UsageError(f"{a.folder} is of the {of_a} agent, {b.folder} of the {of_b} agent")
    both = [name for name in a.means if name in b.means and a.asked(name) == b.asked(name)]
    if not both:
        raise UsageError(
            f"{a.folder} and {b.folder} have no question in common (same id, same text)"
        )
    episodes = [b.episodes[name] for name in both]
    groups = {f"by_{column}": groups_of(episodes, column) for column in GROUPINGS}
    changes = sorted((b.means[name] - a.means[name], name) for name in both)
    return {
        "a": a.summary(),
        "b": b.summary(),
        "same_data": a.scores["data"]["sha256"] == b.scores["data"]["sha256"],
        "left_out": len(a.means.keys() | b.means.keys()) - len(both),
        "different_conditions": _different_conditions(a.scores, b.scores),
        "overall": _difference(a, b, episodes, seed),
        **{
            by: {name: _difference(a, b, part, seed) for name, part in parts.items()}
            for by, parts in groups.items()
        },
        "better": [_change(a, b, name) for change, name in reversed(changes) if change > SAME],
        "worse": [_change(a, b, name) for change, name in changes if change < -SAME],
    }


def _different_conditions(a: dict[str, Any], b: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the settings that differ. If there are any, the difference is not due to the models
    alone.

    A player that is not a model has no sampling, and its name says so already.
    """
    unsampled = a.get("sampling") is None or b.get("sampling") is None
    passed = (*IDENTITY, *MEASURED, *(["sampling"] if unsampled else []))
    pairs = {name: [a.get(name), b.get(name)] for name in a | b if name not in passed}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _difference(
    a: Evaluation, b: Evaluation, episodes: Sequence[Record], seed: int
) -> dict[str, Any]:
    names = [episode["id"] for episode in episodes]
    changes = [b.means[name] - a.means[name] for name in names]
    return {
        "n": len(names),
        **{
            side: fmean(of.means[name] for name in names)
            for side, of in zip(SIDES, (a, b), strict=True)
        },
        "difference": fmean(changes),
        "ci95": interval(changes, seed, bounds=(-1.0, 1.0)),
        "better": sum(change > SAME for change in changes),
        "worse": sum(change < -SAME for change in changes),
    }


def _change(a: Evaluation, b: Evaluation, name: str) -> dict[str, Any]:
    """Return a question that changed, with the first scored episode's answer on both sides."""
    first = a.episodes[name]
    sides = {
        side: {
            "score": of.means[name],
            **{key: of.episodes[name][key] for key in ("answer", "stop_reason")},
        }
        for side, of in zip(SIDES, (a, b), strict=True)
    }
    return {
        "id": name,
        **{key: first[key] for key in ("task_type", "question", "reference")},
        **sides,
    }


def report_of(result: dict[str, Any], names: Sequence[str] = NAMES) -> Report:
    """Return the result of `compare` as a report in points: differences overall and by group, then
    the questions that changed most.

    names: of the two sides.
    """
    a, b = names
    header = ("group", "tasks", a, b, f"{b} - {a}", "95 % interval", "better", "worse")
    changed = ("question", "id", a, b, f"answer of {a}", f"answer of {b}")
    tables: dict[str, Rows] = {
        "": [header, *(_row(name, part) for name, part in groups_in(result).items())]
    }
    for name in ("better", "worse"):
        if changes := result[name]:
            most = f", the {SHOWN} that changed most" if len(changes) > SHOWN else ""
            tables[f"{len(changes)} questions {name}{most}"] = [
                changed,
                *map(_changed_row, changes[:SHOWN]),
            ]
    sides = [
        f"{name}: {result[side]['model']} ({result[side]['folder']})"
        for name, side in zip(names, SIDES, strict=True)
    ]
    facts = [*sides, *conditions(result, names), _verdict(result, names)]
    return Report(f"{b} against {a}", facts, tables)


def conditions(result: dict[str, Any], names: Sequence[str] = NAMES) -> list[str]:
    """Return warnings to read before the numbers; [] if all conditions are the same."""
    lines = []
    if not result["same_data"]:
        files = " and ".join(result[side]["data"]["file"] for side in SIDES)
        lines.append(
            f"THE DATA FILES DIFFER ({files}): only questions "
            "with the same id, text and answer are compared"
        )
    if result["left_out"]:
        lines.append(
            f"{result['left_out']} questions are left out: only one of the two has a score for them"
        )
    for name, (first, second) in result["different_conditions"].items():
        lines.append(
            f"CONDITIONS DIFFER: {name} was {first} in {names[0]} and {second} in {names[1]}"
        )
    return lines


def _verdict(result: dict[str, Any], names: Sequence[str]) -> str:
    """Return whether the second side is better, and by how much at least and at most."""
    low, high = result["overall"]["ci95"]
    verdict = (
        "better" if low > 0 else "worse" if high < 0 else "no difference that chance could not make"
    )
    interval = f"95 % interval of the difference in points: {_span([low, high])}"
    return f"{names[1]} against {names[0]}: {verdict} ({interval})"


def _span(shares: Sequence[float], n: int = FEW) -> str:
    return span([100 * share for share in shares], n)


def _row(name: str, part: dict[str, Any]) -> list[str]:
    means = [points(part[side]) for side in SIDES]
    counts = [str(part[name]) for name in ("better", "worse")]
    return [
        name,
        str(part["n"]),
        *means,
        points(part["difference"], "+.1f"),
        _span(part["ci95"], part["n"]),
        *counts,
    ]


def _changed_row(change: dict[str, Any]) -> list[str]:
    episodes = [change[side] for side in SIDES]
    answers = [episode["answer"] or f"({episode['stop_reason']})" for episode in episodes]
    short = [
        text if len(text) <= ANSWER_LENGTH else text[: ANSWER_LENGTH - 1] + "…" for text in answers
    ]
    return [
        change["question"],
        change["id"],
        *(points(episode["score"]) for episode in episodes),
        *short,
    ]


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__, prog="python -m evaluation.compare")
    parser.add_argument(
        "a", type=Path, metavar="A", help="folder of an evaluation, such as before training"
    )
    parser.add_argument("b", type=Path, metavar="B", help="folder of another one, such as after it")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON object")
    parser.add_argument("--seed", type=int, default=0, help="of the intervals")
    arguments = parser.parse_args(argv)

    def body() -> None:
        result = compare(read_evaluation(arguments.a), read_evaluation(arguments.b), arguments.seed)
        print(json.dumps(result, ensure_ascii=False)) if arguments.json else report_of(
            result
        ).show()

    return run_command("compare", body)


if __name__ == "__main__":
    # A reader that has seen enough, such as head, is not an error
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
