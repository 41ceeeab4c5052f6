"""Read the folders of training runs, evaluations and demos (docs/runs.md lists the files).

A run that died, or still goes on, is read as far as it got.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from common.command import UsageError
from common.terminal import QUICK_SECONDS, progress

TRAINING, EVALUATION = "training", "evaluation"
FILES = {
    TRAINING: (
        *("summary.json", "metrics.jsonl", "episodes.jsonl"),
        *("config.yaml", "versions.json", "timeline.json"),
    ),
    EVALUATION: ("scores.json", "episodes.jsonl"),
}
AT_THE_END = ("summary.json", "scores.json")
MARKS = {  # a file that only this kind of folder has, of a run that died early as well
    EVALUATION: ("scores.json", "episodes.jsonl.journal"),
    TRAINING: ("metrics.jsonl", "config.yaml", "environment.json", "run.log", "data/train.jsonl"),
}
# A demo's parts, and their folders; the first only where the model was warmed up
DEMO = ("published", "before", "train", "after")
MOST_LINE = 64 * 2**20  # bytes: no line of ours is that long, and one that is would fill the memory


@dataclass
class Run:
    """A folder of one kind. given: the folder that was asked for. label: its short name.

    missing: what could not be read, a line each.
    """

    folder: Path
    kind: str
    label: str
    given: Path
    missing: list[str] = field(default_factory=list)

    @cached_property
    def scores(self) -> dict[str, Any]:
        """What an evaluation found, or {} where it has not ended."""
        return self.object_in("scores.json")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What a training run says of itself at its end."""
        return self.object_in("summary.json")

    @cached_property
    def config(self) -> dict[str, Any]:
        """verl's resolved settings as a flat table by dotted key."""
        try:
            tree = yaml.safe_load((self.folder / "config.yaml").read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError, RecursionError):
            return {}
        return dict(flat(tree)) if isinstance(tree, dict) else {}

    @cached_property
    def steps(self) -> list[tuple[int, dict[str, float]]]:
        """verl's metrics, a step each. Step 0 is the validation before training."""
        steps = []
        for row in self._lines("metrics.jsonl"):
            if isinstance(row.get("step"), int):
                steps.append((row["step"], numbers(row.get("data"))))
        return steps

    @property
    def agent(self) -> str:
        """The agent's name, or "" where no file says it."""
        project = str(self.config.get("trainer.project_name", ""))
        return str(self.scores.get("agent") or project.removesuffix("_agent"))

    @property
    def moment(self) -> float:
        """When the engine was ready, or when the newest file was written, in Unix seconds."""
        begun = numbers(self.object_in("timeline.json")).get("engine_ready", 0)
        if 0 < begun < 1e11:
            return begun
        files = [self.folder / name for name in FILES[self.kind]]
        written = [path.stat().st_mtime for path in files if path.is_file()]
        return max(written, default=self.folder.stat().st_mtime)

    @property
    def when(self) -> str:
        return datetime.fromtimestamp(self.moment, UTC).strftime("%Y-%m-%d %H:%M UTC")

    def episodes(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of episodes.jsonl one by one. Torn ones are counted in `missing`."""
        return self._lines("episodes.jsonl")

    def say(self, line: str) -> None:
        if line not in self.missing:
            self.missing.append(line)

    def object_in(self, name: str) -> dict[str, Any]:
        """Return a file's JSON object, or {} where it has none."""
        try:
            text = (self.folder / name).read_text(encoding="utf-8")
            found = json.loads(text, parse_constant=_nothing)
        except OSError:
            return {}
        except (ValueError, RecursionError) as error:
            self.say(f"{name} cannot be read: {type(error).__name__}")
            return {}
        return mapping(found)

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        try:
            file = open(self.folder / name, "rb")  # noqa: SIM115 (closed by the block below)
        except OSError:
            return
        torn = 0
        size = (self.folder / name).stat().st_size
        with file, progress(f"reading {name}", size, "bytes", quick=QUICK_SECONDS) as bar:
            while line := file.readline(MOST_LINE):
                bar.update(len(line))
                try:
                    row = json.loads(line, parse_constant=_nothing)
                except (ValueError, RecursionError):
                    row = None
                if isinstance(row, dict):
                    yield row
                elif line.strip():
                    torn += 1
        if torn:
            self.say(f"{name}: {torn} lines cannot be read and are left out (torn, or not JSON)")


def open_folders(folders: Sequence[Path]) -> list[Run]:
    """Return the runs in these folders with labels. A demo's parts are runs of their own.
    Raises UsageError: a folder is missing or empty, or has no file that identifies its kind.
    """
    runs: list[Run] = []
    for folder, name in zip(folders, labels_of(folders), strict=True):
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder; give that of a run, a demo or an evaluation")
        found = runs_of(folder, name)
        if not found:
            holds = ", ".join(sorted(path.name for path in folder.iterdir())[:6]) or "nothing"
            raise UsageError(
                f"{folder} holds {holds}; expected a run (metrics.jsonl), an evaluation "
                "(scores.json) or a demo (before, train, after)"
            )
        runs += found
    for run in runs:
        for file in FILES[run.kind]:
            if not (run.folder / file).is_file():
                why = ": it has not ended, or died before" if file in AT_THE_END else ""
                run.say(f"{file} is not there{why}")
    return runs


def runs_of(folder: Path, name: str = "") -> list[Run]:
    """Return the run of a folder, or those of a demo's parts, or none. name: begins their labels."""
    runs = []
    for part in ("", *DEMO):
        if kind := kind_of(folder / part):
            runs.append(Run(folder / part, kind, f"{name} {part}".strip(), folder))
    return runs


def kind_of(folder: Path) -> str | None:
    """Return TRAINING or EVALUATION, or None if no file identifies the folder's kind."""
    for kind, marks in MARKS.items():
        if any((folder / mark).exists() for mark in marks):
            return kind
    return None


def labels_of(folders: Sequence[Path]) -> list[str]:
    """Return a short name of each folder. Raises UsageError: one is given twice."""
    if len(folders) == 1:
        return [""]
    paths = [folder.resolve().parts for folder in folders]
    for length in range(1, max(map(len, paths)) + 1):
        names = ["/".join(parts[-length:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    raise UsageError("a folder is given twice; name every folder once")


def _nothing(name: str) -> None:
    """Return None for NaN and Infinity, which JSON does not have."""


def mapping(found: Any) -> dict[str, Any]:
    """Return a JSON object, or {} for anything else."""
    return found if isinstance(found, dict) else {}


def numbers(found: Any) -> dict[str, float]:
    """Return the finite numbers of a JSON object by name, or {} for anything else."""
    known = {}
    for name, value in mapping(found).items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and abs(value) < float("inf"):
            known[name] = value
    return known


def flat(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree of named values, each with its dotted name."""
    if isinstance(tree, dict) and tree:
        for name, value in tree.items():
            yield from flat(value, f"{prefix}.{name}" if prefix else str(name))
    else:
        yield prefix, tree
