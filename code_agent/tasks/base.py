"""A set of tasks: where its rows are, how to read them, and what programs may see and do."""

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
    """One set in one mode (train, val or test). `actions`: those of MedAgentGym that it permits."""

    name: ClassVar[str]
    actions: ClassVar[tuple[str, ...]] = READING
    overview: str = ""  # describes the set's files, tables and columns for a policy
    shown: ClassVar[tuple[str, ...]] = ()  # the files of its folder that programs see, by name
    answered: ClassVar[bool] = True  # False: judged by what a program left, so it may print nothing

    def __init__(self, data_path: Path | str | None = None, mode: str = "test") -> None:
        """Read the rows. Raises AgentError: the mode does not exist, or its rows cannot be read."""
        self.data_path = None if data_path is None else Path(data_path)
        self.mode = mode
        self.rows = self.read()

    @property
    def folder(self) -> Path | None:
        """The folder that programs see as read-only data, or None if the set has no files."""
        return self.data_path

    @abstractmethod
    def read(self) -> Sequence[Row]:
        """Return the rows of the mode."""

    @abstractmethod
    def task(self, index: int) -> CodeTask:
        """Return the checked row at `index`. Raises AgentError if it does not exist."""

    def __len__(self) -> int:
        return len(self.rows)

    def tables(self) -> Sequence[Path]:
        """Return the files that `shown` names, in any case. Others may hold answers."""
        names = {name.lower() for name in self.shown}
        there = self.folder.iterdir() if names and self.folder and self.folder.is_dir() else ()
        return sorted(path for path in there if path.name.lower() in names and path.is_file())

    def visible(self, task: CodeTask) -> Sequence[Path]:
        """Return the files that a program sees below /data."""
        return self.tables()

    def unusable(self, task: CodeTask) -> str:
        """Return why the task cannot be played here, or ""."""
        if self.shown and self.folder and not self.tables():
            return f"{self.folder} has none of the set's tables ({', '.join(self.shown[:3])} ...)"
        return ""

    def missing(self) -> str:
        """Return what the whole set lacks here, such as a server, or ""."""
        return ""

    def look_up(self, name: str, kind: str, keyterm: str = "") -> str:
        """Answer `request_info`. Raises LookupRefused, OSError, sqlite3.Error, ValueError."""
        if not self.shown:
            raise LookupRefused("this task has no tables")
        return look_up(self.tables(), name, kind, keyterm)

    def success_above(self, task: CodeTask) -> float:
        """Return the score above which an answer is a success."""
        return 0.0

    def check(self, task: CodeTask) -> Check:
        """Return the judge of answers without a gold value."""
        raise NotImplementedError(self.name)

    def score(self, task: CodeTask, answer: str) -> float:
        """Return the value of an answer, 0 to 1."""
        assert task.gold is not None
        return float(grade(answer, task.gold))
