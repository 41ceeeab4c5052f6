"""The diagnosis agent: a doctor who orders examinations and stops with a diagnosis."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.settings import Settings
from conditions.published import case_rows
from diagnosis_agent.environment import DiagnosisEnvironment
from diagnosis_agent.record_simulator import own_name
from diagnosis_agent.settings import DiagnosisSettings
from diagnosis_agent.task import PUBLISHED, row_of, task_of
from episodes.agent import Column, Record, Row, Sizes
from episodes.episode import AgentError, Task
from episodes.partner_agent import PartnerAgent, split_files
from episodes.row_files import read_rows
from episodes.shown import Shown, annotated, exchanges

WAYS = "choose --simulator llm or --simulator served"


class DiagnosisAgent(PartnerAgent):
    """Invented patients of `data/diagnosis`, no tools, a simulator of examinations as partner."""

    name = "diagnosis"
    recipe = "recipes.doctors.diagnosis_lessons"
    partner_recipe = "recipes.doctors.world_lessons"
    splits: Mapping[str, Path] = split_files("diagnosis")
    turns = 6
    settings = DiagnosisSettings
    environment = DiagnosisEnvironment
    columns = (
        Column("accuracy", "accuracy", interval=True),
        Column("concluded", "accuracy_concluded"),
        Column("precision", "exam_precision"),
        Column("recall", "exam_recall"),
        Column("F1", "exam_f1", interval=True),
        Column("repeated", "repeated_examinations"),
    )

    def sizes(self, device: str) -> Sizes:
        if device == "cpu":
            return Sizes(prompt=256, response=1184, reply=64)
        return Sizes(3072, 8192, 1024)

    def rows(self, path: Path) -> list[Row]:
        rows = read_rows(path, "cases")
        return case_rows(rows, str(path), PUBLISHED, row_of, ("id", "index"), "group")

    def task(self, row: Row, settings: Settings) -> Task:
        return task_of(row)

    def add_flags(self, parser: ArgumentParser) -> None:
        super().add_flags(parser)
        single = (
            "evaluations: ask for the next examination and the "
            "diagnosis at each point of the recommended history"
        )
        parser.add_argument("--single-turn", action="store_true", help=single)
        rubrics = "evaluations: criteria by case (JSON) that TEACHER_MODEL scores"
        parser.add_argument("--rubrics", metavar="FILE", help=rubrics)

    def check_recorded(self, tasks: Sequence[Any]) -> list[str]:
        outside = [task for task in tasks if task.condition is None]
        if tasks and len(outside) == len(tasks) and not any(task.results for task in outside):
            seen = f"none of the {len(tasks)} cases records an examination"
            raise AgentError(
                f"{seen} (extra_info.examinations), which is all that --simulator record tells; {WAYS}"
            )
        poor = 0
        for task in outside:
            if not {*map(own_name, task.key)} <= {*map(own_name, task.results)}:
                poor += 1
        seen = f"{poor} of {len(tasks)} cases lack results of recommended examinations"
        return [f'{seen}: these are "not recorded"; {WAYS}'] if poor else []

    def failure(self, record: Record) -> str:
        """Return the kind of a scored episode: the first that applies."""
        ends = [turn for turn in record["dialogue"] if "examination" not in turn]
        if not any("diagnosis" in turn for turn in ends):
            return "no_diagnosis"
        if record["facts"]["accuracy"] >= 1:
            return "right"
        enough = len(record["key_seen"]) == len(record["key"])
        return "wrong_diagnosis" if enough else "ordered_too_little"

    def shown(self, record: Record) -> Sequence[Shown]:
        notes = []
        for doctor, result in exchanges(record["dialogue"], "doctor"):
            said = {"examination": doctor.get("examination"), "problem": doctor.get("problem")}
            notes.append((said, {"kind": result.get("kind")}))
        return annotated(record, notes)


AGENT = DiagnosisAgent()
