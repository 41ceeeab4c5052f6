"""The diagnosis agent: a doctor who orders examinations and stops with a diagnosis."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.settings import Settings
from diagnosis_agent.environment import DiagnosisEnvironment
from diagnosis_agent.llm_simulator import MODEL_NAMES
from diagnosis_agent.protocol import load_prompts
from diagnosis_agent.record_simulator import check_recorded
from diagnosis_agent.rehearsal import gold_episode
from diagnosis_agent.settings import DiagnosisSettings
from diagnosis_agent.task import read_rows, task_of
from episodes.agent import Column, Environment, Options, Record, Row, Sizes
from episodes.episode import Episode, Task
from episodes.partner_agent import PartnerAgent, split_files
from episodes.shown import Shown, annotated, exchanges


class DiagnosisAgent(PartnerAgent):
    """Invented patients of `data/diagnosis`, no tools, a simulator of examinations as partner."""

    name = "diagnosis"
    role = "simulator"
    llm_name = MODEL_NAMES
    recipe = "recipes.doctors.diagnosis_lessons"
    partner_recipe = "recipes.doctors.world_lessons"
    splits: Mapping[str, Path] = split_files("diagnosis")
    turns = 6
    settings = DiagnosisSettings
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
        return read_rows(path)

    def task(self, row: Row, settings: Settings) -> Task:
        return task_of(row)

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        return DiagnosisEnvironment(settings, options, evaluating)

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
        return check_recorded(tasks)

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
            ordered = {name: doctor.get(name) for name in ("examination", "problem")}
            notes.append((ordered, {"kind": result.get("kind")}))
        return annotated(record, notes)

    def rehearsed(self, task: Any, turns: int) -> Episode:
        return gold_episode(task, load_prompts(), turns)


AGENT = DiagnosisAgent()
