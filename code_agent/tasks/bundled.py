"""The two bundled sets: the invented hospital, and medical calculations."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from code_agent.task import CodeTask, read_rows, task_of
from code_agent.tasks.base import CODING, TaskSet
from common.settings import ROOT
from episodes.agent import Row
from episodes.episode import AgentError

MODES = ("train", "val", "test")
TABLES = (
    *("admissions", "chartevents", "cost", "d_icd_diagnoses", "d_icd_procedures", "d_items"),
    *("d_labitems", "diagnoses_icd", "icustays", "inputevents_cv", "labevents", "outputevents"),
    *("patients", "prescriptions", "procedures_icd"),
)


class Bundled(TaskSet):
    """Rows of `questions`, a folder with one Parquet file for each mode (docs/code.md, Tasks)."""

    questions: ClassVar[Path]

    def __init__(
        self, data_path: Path | str | None = None, mode: str = "test", questions: Path | None = None
    ) -> None:
        self.source = questions or self.questions
        super().__init__(data_path, mode)

    def read(self) -> Sequence[Row]:
        if self.mode not in MODES:
            raise AgentError(f"{self.name} has no mode {self.mode!r}; it has {', '.join(MODES)}")
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
