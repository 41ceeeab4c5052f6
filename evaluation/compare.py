"""Two evaluations of the same tasks, paired: what B does better or worse than A, and on which.

    .venv/bin/python -m evaluation.compare outputs/evaluations/BEFORE outputs/evaluations/AFTER
    .venv/bin/python -m evaluation.compare BEFORE AFTER --json

A difference is B minus A of a task's mean headline. B is called better if the 95 % interval of the
difference leaves 0 out and a randomisation test agrees. Exit codes: 0 done, 2 wrong usage.
"""

import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from common.command import UsageError, new_parser, run_command
from common.language import said
from episodes import registry
from episodes.agent import Agent, Record, folder_of
from episodes.words import words_of
from evaluation.metrics import FEW, GROUPINGS, SAME, TOO_FEW, groups_of, headline_of, judge_changes
from evaluation.results import EPISODES, MALFORMED, read_episodes, read_scores
from evaluation.tables import IDENTITY, PARTS, Report, Rows, groups_in, points, span

SHOWN = 20  # questions listed in each direction; --json has all
SIDES = ("a", "b")
NAMES = ("A", "B")  # of the sides, for a reader
ANSWER_LENGTH = 60
TASK = ("id", "task_type", "question", "reference")  # what is read of an episode
ENDING = ("answer", "stop_reason")
VERDICTS = {
    "better": "better",
    "worse": "worse",
    "unclear": "no difference that chance could not make",
    TOO_FEW: "fewer than {few} tasks say nothing",
}


@dataclass
class Evaluation:
    """An evaluation's folder: its scores, and each scored question's values and first episode."""

    folder: Path
    scores: dict[str, Any]
    values: dict[str, list[float]] = field(default_factory=dict)
    episodes: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, agent: Agent, record: Record) -> None:
        """Note an episode. Raises MALFORMED: it is of another version."""
        value = headline_of(agent, record)
        if value is not None:
            known = {name: record[name] for name in (*TASK, *ENDING)}
            known |= {name: record.get(name) or "" for name in GROUPINGS}
            odd = [name for name, text in known.items() if not isinstance(text or "", str)]
            if odd or not isfinite(value):
                raise ValueError(f"expected texts and a finite number, got {odd or value}")
            self.values.setdefault(known["id"], []).append(value)
            self.episodes.setdefault(known["id"], known)

    @cached_property
    def means(self) -> dict[str, float]:
        """The mean of each scored question."""
        return {name: fmean(values) for name, values in self.values.items()}

    def asked(self, name: str) -> tuple[str, str]:
        """Return a question's words and its gold answer."""
        return self.episodes[name]["question"], self.episodes[name]["reference"]

    def summary(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "model": self.scores["model"],
            "data": self.scores["data"],
            "unscored": sum(self.scores["overall"]["unscored"].values()),
        }


def read_evaluation(folder: Path) -> Evaluation:
    """Read what `evaluation.evaluate` wrote. Raises UsageError: not there, or no agent of here."""
    found = Evaluation(folder, read_scores(folder))
    agent = registry.get(found.scores["agent"])
    for record in read_episodes(folder):
        try:
            found.add(agent, record)
        except MALFORMED as error:
            why = f"{type(error).__name__}: {error}"
            raise UsageError(
                f"{folder / EPISODES} is of another version ({why}); evaluate again with --force"
            ) from None
    return found


def compare(a: Evaluation, b: Evaluation) -> dict[str, Any]:
    """Return the paired difference, overall and by group, and the questions that changed.
    Raises UsageError: the evaluations are of two agents, or have no task in common.
    """
    if a.scores["agent"] != b.scores["agent"]:
        agents = [f"{one.folder} is of the {one.scores['agent']} agent" for one in (a, b)]
        raise UsageError(", ".join(agents))
    both = [name for name in a.means if name in b.means and a.asked(name) == b.asked(name)]
    if not both:
        raise UsageError(f"{a.folder} and {b.folder} have no question in common (id and text)")
    episodes = [b.episodes[name] for name in both]
    result = {
        "headline": registry.get(a.scores["agent"]).columns[0].metric,
        "a": a.summary(),
        "b": b.summary(),
        "same_data": a.scores["data"]["sha256"] == b.scores["data"]["sha256"],
        "left_out": len(a.means.keys() | b.means.keys()) - len(both),
        "different_conditions": _different_conditions(a.scores, b.scores),
        "overall": _difference(a, b, episodes),
    }
    for column in GROUPINGS:
        parts = groups_of(episodes, column).items()
        result[f"by_{column}"] = {name: _difference(a, b, part) for name, part in parts}
    changes = sorted((b.means[name] - a.means[name], name) for name in both)
    falling = reversed(changes)
    result["better"] = [_change(a, b, name) for change, name in falling if change > SAME]
    result["worse"] = [_change(a, b, name) for change, name in changes if change < -SAME]
    return result


def _different_conditions(a: dict[str, Any], b: dict[str, Any]) -> dict[str, list[Any]]:
    passed = {*IDENTITY, *PARTS}
    if a.get("sampling") is None or b.get("sampling") is None:
        passed.add("sampling")  # a player that is not a model has none, and its name says so
    names = [name for name in a | b if name not in passed]
    return {name: [a.get(name), b.get(name)] for name in names if a.get(name) != b.get(name)}


def _difference(a: Evaluation, b: Evaluation, episodes: Sequence[Record]) -> dict[str, Any]:
    names = [episode["id"] for episode in episodes]
    changes = [b.means[name] - a.means[name] for name in names]
    return {
        "n": len(names),
        "a": fmean(a.means[name] for name in names),
        "b": fmean(b.means[name] for name in names),
        "difference": fmean(changes),
        **judge_changes([changes]),
    }


def _change(a: Evaluation, b: Evaluation, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {key: a.episodes[name][key] for key in TASK}
    for side, evaluation in zip(SIDES, (a, b), strict=True):
        ended = {key: evaluation.episodes[name][key] for key in ENDING}
        found[side] = {"score": evaluation.means[name], **ended}
    return found


def report_of(result: dict[str, Any], names: Sequence[str] = NAMES) -> Report:
    """Return the result of `compare` as a report in points. names: of the two sides."""
    a, b = names
    header = ("group", "tasks", a, b, f"{b} - {a}", "95 % interval", "better", "worse", "p")
    groups: list[Sequence[str]] = [header]
    for name, part in groups_in(result).items():
        means = [points(part[side]) for side in SIDES]
        interval = span([100 * bound for bound in part["ci95"]], part["n"])
        counts = [str(part["better"]), str(part["worse"]), f"{part['sign_p']:.2g}"]
        change = points(part["difference"], "+.1f")
        groups.append([name, str(part["n"]), *means, change, interval, *counts])
    tables: dict[str, Rows] = {"": groups}
    changed = ("question", a, b, f"answer of {a}", f"answer of {b}", "id")
    for name in ("better", "worse"):
        rows: list[Sequence[str]] = [changed]
        for change in result[name][:SHOWN]:
            sides = [change[side] for side in SIDES]
            scores = [points(episode["score"]) for episode in sides]
            answers = [shortened(one["answer"] or f"({one['stop_reason']})") for one in sides]
            rows.append([change["question"], *scores, *answers, change["id"]])
        if len(rows) > 1:
            tables[f"questions {name}, at most {SHOWN}"] = rows
    facts = [said("compared is the {measure}", measure=result["headline"].replace("_", " "))]
    for name, side in zip(names, SIDES, strict=True):
        facts.append(f"{name}: {result[side]['model']} ({result[side]['folder']})")
    facts += [*conditions(result, names), verdict_line(result, names)]
    return Report(said("{b} against {a}", a=a, b=b), facts, tables)


def conditions(result: dict[str, Any], names: Sequence[str] = NAMES) -> list[str]:
    """Return warnings to read before the numbers, or [] if all conditions are the same."""
    lines = []
    if not result["same_data"]:
        files = said(", ").join(result[side]["data"]["file"] for side in SIDES)
        other = (
            "THE DATA FILES DIFFER ({files}): only questions with the same id, text and answer are "
            "compared"
        )
        lines.append(said(other, files=files))
    if result["left_out"]:
        lacking = (
            "{count} questions are left out: not both have a score for the same text and answer"
        )
        lines.append(said(lacking, count=result["left_out"]))
    for name, side in zip(names, SIDES, strict=True):
        if lost := result[side]["unscored"]:
            lacking = "NOT COMPLETE: {count} episodes of {name} have no score"
            lines.append(said(lacking, count=lost, name=name))
    differ = "CONDITIONS DIFFER: {name} was {first} in {a} and {second} in {b}"
    a, b = names
    for name, (first, second) in result["different_conditions"].items():
        lines.append(said(differ, name=name, first=first, second=second, a=a, b=b))
    return lines


def verdict_line(result: dict[str, Any], names: Sequence[str] = NAMES) -> str:
    """Return whether the second side is better, and by how much at least and at most."""
    overall = result["overall"]
    interval = span([100 * bound for bound in overall["ci95"]], overall["n"])
    return said(
        "{after} against {before}: {verdict} "
        "(95 % interval of the difference in points: {interval}; randomisation test: p = {p:.2g})",
        before=names[0],
        after=names[1],
        verdict=said(VERDICTS[overall["verdict"]], few=FEW),
        interval=said(interval).replace(" to ", said(" to ")),
        p=overall["sign_p"],
    )


def shortened(text: str) -> str:
    """Return an answer as it fits into a table's cell."""
    return text if len(text) <= ANSWER_LENGTH else text[: ANSWER_LENGTH - 1] + "…"


def main(argv: Sequence[str] | None = None) -> int:
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("a", type=Path, metavar="A", help="folder of an evaluation, such as before training")
    add("b", type=Path, metavar="B", help="folder of another one, such as after it")
    add("--json", action="store_true", help="print everything as one JSON object")
    arguments = parser.parse_args(argv)

    def body() -> None:
        first = read_evaluation(arguments.a)
        result = compare(first, read_evaluation(arguments.b))
        if arguments.json:
            print(json.dumps(result, ensure_ascii=False))
        else:
            words = words_of(folder_of(registry.get(first.scores["agent"])))
            replace(report_of(result), words=words.chinese).show()

    return run_command("compare", body)


if __name__ == "__main__":
    # A reader that has seen enough, such as head, is not an error
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
