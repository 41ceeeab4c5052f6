"""A set of tasks: its rows, and what programs may see and do. The two bundled sets."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from code_agent.actions import EpisodeContext
from code_agent.graders import grade
from code_agent.judging import Handed
from code_agent.lookup import LookupRefused, look_up
from code_agent.task import CodeTask, read_rows, task_of
from common.settings import ROOT
from episodes.agent import Row
from episodes.episode import AgentError

CODING = ("validate_code", "debug", "terminal")
READING = ("request_info", *CODING)
MODES = ("train", "val", "test")
TABLES = (
    *("admissions", "chartevents", "cost", "d_icd_diagnoses", "d_icd_procedures", "d_items"),
    *("d_labitems", "diagnoses_icd", "icustays", "inputevents_cv", "labevents", "outputevents"),
    *("patients", "prescriptions", "procedures_icd"),
)


class TaskSet(ABC):
    """One set in one mode (train, val or test). `actions`: those of MedAgentGym that it permits.

    folder: what programs see as read-only data, or None if the set has no files.
    """

    name: ClassVar[str]
    actions: ClassVar[tuple[str, ...]] = READING
    overview: str = ""  # describes the set's files, tables and columns for a policy
    shown: ClassVar[tuple[str, ...]] = ()  # the files of its folder that programs see, by name
    answered: ClassVar[bool] = True  # False: judged by what a program left, so it may print nothing
    folder: Path | None = None

    def __init__(self, data_path: Path | str | None = None, mode: str = "test") -> None:
        """Read the rows. Raises AgentError: the mode does not exist, or its rows cannot be read."""
        if data_path is not None:
            self.folder = Path(data_path)
        self.mode = "val" if mode == "valid" else mode  # MedAgentGym's name
        if self.mode not in MODES:
            raise AgentError(f"{self.name} has no mode {mode!r}; it has {', '.join(MODES)}")
        self.rows = self.read()

    @abstractmethod
    def read(self) -> Sequence[Row]:
        """Return the rows of the mode."""

    @abstractmethod
    def task(self, index: int) -> CodeTask:
        """Return the checked row at `index`. Raises AgentError if it does not exist."""

    def __len__(self) -> int:
        return len(self.rows)

    def tables(self) -> list[Path]:
        """Return the files that `shown` names, in any case. Others may hold answers."""
        names = {name.lower() for name in self.shown}
        there = self.folder.iterdir() if names and self.folder and self.folder.is_dir() else ()
        return sorted(path for path in there if path.name.lower() in names and path.is_file())

    def files(self, task: CodeTask) -> list[Path]:
        """Return the files that a program sees below /data, where they exist."""
        return self.tables()

    def needed(self, task: CodeTask) -> list[Path]:
        """Return the files without which the task cannot be played."""
        return []

    def unusable(self, task: CodeTask) -> str:
        """Return why the task cannot be played here, or ""."""
        if self.shown and self.folder and not self.tables():
            return f"{self.folder} has none of the set's tables ({', '.join(self.shown[:3])} ...)"
        absent = [str(path) for path in self.needed(task) if not path.is_file()]
        return f"there is no {', '.join(absent)}" if absent else ""

    def missing(self) -> str:
        """Return what the whole set lacks here, such as a server, or ""."""
        return ""

    def look_up(self, name: str, kind: str, keyterm: str = "") -> str:
        """Answer `request_info`. Raises LookupRefused, OSError, sqlite3.Error, ValueError."""
        if not self.shown:
            raise LookupRefused("this task has no tables")
        return look_up(self.tables(), name, kind, keyterm)

    def score(self, task: CodeTask, answer: str) -> float:
        """Return the value of an answer, 0 to 1, to a task with a gold."""
        assert task.gold is not None
        return float(grade(answer, task.gold))

    async def worth(self, task: CodeTask, handed: Handed, context: EpisodeContext) -> float:
        """Return the value of what was handed in, 0 to 1. Raises EpisodeError: not found out."""
        return self.score(task, handed.answer)

    def succeeds(self, task: CodeTask, worth: float) -> bool:
        """Return whether an answer of such worth counts as a success."""
        return worth > 0


class Bundled(TaskSet):
    """Rows of `questions`, a folder with one Parquet file for each mode (docs/code.md, Tasks)."""

    questions: ClassVar[Path]

    def __init__(
        self, data_path: Path | str | None = None, mode: str = "test", questions: Path | None = None
    ) -> None:
        self.source = questions or self.questions
        super().__init__(data_path, mode)

    def read(self) -> Sequence[Row]:
        return read_rows(self.source / f"{self.mode}.parquet")

    def task(self, index: int) -> CodeTask:
        return task_of(self.rows[index])


class EhrDemo(Bundled):
    """Questions about the invented hospital. `data_path`: another folder with the same tables."""

    name = "ehr_demo"
    overview = "Tables are CSV files, such as /data/admissions.csv."
    questions = ROOT / "data" / "code"
    shown = (*(f"{table}.csv" for table in TABLES), "hospital.db")
    folder = ROOT / "data" / "ehr" / "tables"


class Calculators(Bundled):
    """Published formulas applied to invented notes. The set has no files."""

    name = "calculators"
    actions = CODING
    questions = ROOT / "data" / "calculators"


BUNDLED: dict[str, type[Bundled]] = {each.name: each for each in (EhrDemo, Calculators)}
