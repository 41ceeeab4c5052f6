"""A set of tasks: where its rows lie, how a row becomes a task, what its programs may read and do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from code_agent.graders import grade
from code_agent.judging import Check
from code_agent.lookup import LookupRefused, look_up
from code_agent.task import CodeTask
from episodes.agent import Row

CODING = ("validate_code", "debug", "terminal")
READING = ("request_info", *CODING)


class TaskSet(ABC):
    """One set in one mode (train, val or test). `actions` are those of the reference that it
    permits.
    """

    name: ClassVar[str]
    actions: ClassVar[tuple[str, ...]] = READING
    overview: str = ""  # describes the set's files, tables and columns for a policy
    shown: ClassVar[tuple[str, ...]] = ()  # the files of its folder that programs see, by name
    answered: ClassVar[bool] = True  # False: judged by what a program left, so it may print nothing

    def __init__(self, data_path: Path | str | None = None, mode: str = "test") -> None:
        """Read the rows. Raises AgentError if the set has no such mode, or its rows
        cannot be read.
        """
        self.data_path = None if data_path is None else Path(data_path)
        self.mode = mode
        self.rows = self.read()

    @property
    def folder(self) -> Path | None:
        """The folder that a program sees, read-only, as its data, or None if the set has no files."""
        return self.data_path

    @abstractmethod
    def read(self) -> Sequence[Row]:
        """Return the rows of the mode."""

    @abstractmethod
    def task(self, index: int) -> CodeTask:
        """Return the checked row at `index`. Raises AgentError if there is no such row."""

    def __len__(self) -> int:
        return len(self.rows)

    def tables(self) -> Sequence[Path]:
        """Return the files of the folder that `shown` names, in any case. All others stay hidden,
        because they may hold answers.
        """
        names = {name.lower() for name in self.shown}
        there = self.folder.iterdir() if names and self.folder and self.folder.is_dir() else ()
        return sorted(path for path in there if path.name.lower() in names and path.is_file())

    def visible(self, task: CodeTask) -> Sequence[Path]:
        """Return the files that a program sees, each below /data by its name."""
        return self.tables()

    def unusable(self, task: CodeTask) -> str:
        """Return why the task cannot be played here, or ""."""
        if self.shown and self.folder and not self.tables():
            return f"{self.folder} has none of the set's tables ({', '.join(self.shown[:3])} ...)"
        return ""

    def missing(self) -> str:
        """Return what the set as a whole lacks here, such as a server, or ""."""
        return ""

    def look_up(self, name: str, kind: str, keyterm: str = "") -> str:
        """Return the answer of `request_info` about the set's files.

        Raises LookupRefused, OSError, sqlite3.Error, ValueError.
        """
        if not self.shown:
            raise LookupRefused("this task has no tables")
        return look_up(self.tables(), name, kind, keyterm)

    def success_above(self, task: CodeTask) -> float:
        """Return the score that an answer must exceed to be a success."""
        return 0.0

    def check(self, task: CodeTask) -> Check:
        """Return what judges an answer without a gold value."""
        raise NotImplementedError(self.name)

    def score(self, task: CodeTask, answer: str) -> float:
        """Return what an answer is worth, 0 to 1. A set whose answers are not single values
        overrides this.
        """
        assert task.gold is not None
        return float(grade(answer, task.gold))
