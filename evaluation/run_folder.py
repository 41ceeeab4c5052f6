"""The one reader of run folders: what a training run, an evaluation or a demo left behind, as plain
values.

    runs = open_folders([Path("runs/demo-sql")])          # a demo is three: before, train, after
    runs[1].steps, runs[0].scores, runs[0].missing
    for record in runs[0].episodes(): ...                 # one at a time, however many there are

docs/runs.md lists the files. A run that died, or still goes on, is read as far as it got: a
file that is not there or is torn stands in `missing`. Nothing here needs the agent, the engine or a
model.
"""

from __future__ import annotations

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
from episodes.record import current

TRAINING, EVALUATION = "training", "evaluation"
FILES = {
    TRAINING: (
        "summary.json",
        "metrics.jsonl",
        "episodes.jsonl",
        "config.yaml",
        "versions.json",
        "timeline.json",
    ),
    EVALUATION: ("scores.json", "episodes.jsonl"),
}
MARKS = {  # a file that only this kind of folder has, of a run that died early as well
    EVALUATION: ("scores.json", "episodes.jsonl.journal"),
    TRAINING: ("metrics.jsonl", "config.yaml", "environment.json", "run.log", "data/train.jsonl"),
}
DEMO = ("before", "train", "after")
MOST_LINE = 64 * 2**20  # bytes: no line of ours is that long, and one that is would fill the memory


@dataclass
class Run:
    """A folder of one kind. given: the folder that was asked for, which contains this one if it is
    a demo's.

    label: its short name beside the others. missing: what could not be read, a line each.
    """

    folder: Path
    kind: str
    label: str
    given: Path
    missing: list[str] = field(default_factory=list)

    @cached_property
    def scores(self) -> dict[str, Any]:
        """What an evaluation found; {} where it has not ended."""
        return self._object("scores.json")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What a training run says of itself at its end."""
        return self._object("summary.json")

    @cached_property
    def versions(self) -> dict[str, Any]:
        return self._object("versions.json")

    @cached_property
    def preset(self) -> dict[str, Any]:
        """What a training run's settings began from: `name`, and verl's `keys`; {} where it did not
        write that down.
        """
        return self._object("preset.json")

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
        """verl's metrics, a step each; step 0 is the validation before training."""
        rows = self._lines("metrics.jsonl")
        return [
            (row["step"], numbers(row.get("data")))
            for row in rows
            if isinstance(row.get("step"), int)
        ]

    @property
    def agent(self) -> str:
        """The agent's name; "" where no file says it."""
        name = self.scores.get("agent") or str(
            self.config.get("trainer.project_name", "")
        ).removesuffix("_agent")
        return str(name)

    @property
    def when(self) -> str:
        """When the engine was ready, or when the newest file was written; UTC."""
        written = [
            path.stat().st_mtime
            for name in FILES[self.kind]
            if (path := self.folder / name).is_file()
        ]
        begun = numbers(self._object("timeline.json")).get("engine_ready")
        newest = max(written, default=self.folder.stat().st_mtime)
        moment = begun if begun and 0 < begun < 1e11 else newest
        return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")

    def episodes(self) -> Iterator[dict[str, Any]]:
        """Return the lines of episodes.jsonl, one in memory at a time; those that are torn are
        counted in `missing`.
        """
        return map(current, self._lines("episodes.jsonl"))

    def say(self, line: str) -> None:
        """Note what is missing, once."""
        if line not in self.missing:
            self.missing.append(line)

    def _object(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads(
                (self.folder / name).read_text(encoding="utf-8"), parse_constant=_nothing
            )
        except OSError:
            return {}
        except (ValueError, RecursionError) as error:
            self.say(f"{name} can not be read: {type(error).__name__}")
            return {}
        return found if isinstance(found, dict) else {}

    def _lines(self, name: str) -> Iterator[dict[str, Any]]:
        try:
            file = open(self.folder / name, "rb")  # noqa: SIM115 (closed by the block below)
        except OSError:
            return
        torn, size = 0, (self.folder / name).stat().st_size
        with file, progress(f"reading {name}", size, "bytes", quick=QUICK_SECONDS) as bar:
            while line := file.readline(MOST_LINE):
                bar.update(len(line))
                row = _row(line)
                if row is not None:
                    yield row
                elif line.strip():
                    torn += 1
        if torn:
            self.say(f"{name}: {torn} lines can not be read and are left out (torn, or not JSON)")


def open_folders(folders: Sequence[Path]) -> list[Run]:
    """Return the runs in these folders, each with a label; the three parts of a demo are runs of
    their own.

    Raises UsageError: a folder is missing or empty, or has none of the files that identify its
    kind.
    """
    names = _names(folders)
    runs = [run for folder, name in zip(folders, names, strict=True) for run in _open(folder, name)]
    for run in runs:
        for name in FILES[run.kind]:
            if not (run.folder / name).is_file():
                run.say(f"{name} is not there{_why(run, name)}")
    return runs


def _open(folder: Path, name: str) -> list[Run]:
    if not folder.is_dir():
        raise UsageError(
            f"{folder} is no folder; give the folder of a run, a demo or an evaluation"
        )
    if kind := kind_of(folder):
        return [Run(folder, kind, name, folder)]
    runs = [
        Run(folder / part, kind, f"{name} {part}".strip(), folder)
        for part in DEMO
        if (kind := kind_of(folder / part))
    ]
    if not runs:
        holds = ", ".join(sorted(path.name for path in folder.iterdir())[:6]) or "nothing"
        expected = (
            "expected a run (metrics.jsonl), an evaluation "
            "(scores.json) or a demo (before, train, after)"
        )
        raise UsageError(f"{folder} holds {holds}; {expected}")
    return runs


def kind_of(folder: Path) -> str | None:
    """Return TRAINING or EVALUATION, or None if no file identifies the folder's kind."""
    return next(
        (kind for kind, marks in MARKS.items() if any((folder / mark).exists() for mark in marks)),
        None,
    )


def _names(folders: Sequence[Path]) -> list[str]:
    """Return the shortest ends of the paths that distinguish them; "" for a single path.

    Raises UsageError: a folder is given twice.
    """
    if len(folders) == 1:
        return [""]
    parts = [folder.resolve().parts for folder in folders]
    length = next((n for n in range(1, 64) if len({part[-n:] for part in parts}) == len(parts)), 0)
    if not length:
        raise UsageError("a folder is given twice; name every folder once")
    return ["/".join(part[-length:]) for part in parts]


def _why(run: Run, name: str) -> str:
    if name in ("scores.json", "summary.json"):
        return ": it has not ended, or died before it could write it"
    return ""


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line, parse_constant=_nothing)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _nothing(name: str) -> None:
    """Return None for NaN and Infinity, which are neither JSON nor numbers to show."""


def numbers(found: Any) -> dict[str, float]:
    """Return the finite numbers of a JSON object by name; {} for anything else."""
    items = found.items() if isinstance(found, dict) else ()
    plain = {
        name: value
        for name, value in items
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return {name: value for name, value in plain.items() if abs(value) < float("inf")}


def flat(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree of named values, each with its dotted name."""
    if isinstance(tree, dict) and tree:
        for name, value in tree.items():
            yield from flat(value, f"{prefix}.{name}" if prefix else str(name))
    else:
        yield prefix, tree
