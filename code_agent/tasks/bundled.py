"""The two sets that come with the repository: questions about the invented hospital, and medical calculations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from code_agent.task import CodeTask, read_rows, task_of
from code_agent.tasks.base import CODING, TaskSet
from common.settings import ROOT
from episodes.agent import AgentError, Row

MODES = ("train", "val", "test")


class _Bundled(TaskSet):
    """Rows as data/code/README of the docs tells; `data_path` is another folder with a file of each mode."""

    questions: Path

    def read(self) -> Sequence[Row]:
        if self.mode not in MODES:
            raise AgentError(f"{self.name} has no mode {self.mode!r}; it has {', '.join(MODES)}")
        return read_rows(self.questions / f"{self.mode}.parquet")

    def task(self, index: int) -> CodeTask:
        return task_of(self.rows[index])


class EhrDemo(_Bundled):
    """Questions about the invented hospital of data/ehr; `data_path` is another folder of the same tables."""

    name = "ehr_demo"
    questions = ROOT / "data" / "code"

    @property
    def folder(self) -> Path:
        return self.data_path or ROOT / "data" / "ehr" / "tables"


class Calculators(_Bundled):
    """Published formulas applied to invented notes."""

    name = "calculators"
    actions = CODING
    questions = ROOT / "data" / "calculators"

    @property
    def folder(self) -> None:
        return None
