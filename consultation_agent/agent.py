"""The consultation agent: a doctor who questions a patient and ends with a diagnosis and advice."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.settings import Settings
from consultation_agent import facts
from consultation_agent.demonstrations import framed_dialogues
from consultation_agent.environment import ConsultationEnvironment
from consultation_agent.llm_patient import MODEL_NAMES
from consultation_agent.prompts import OWN, load_prompts
from consultation_agent.rehearsal import gold_episode
from consultation_agent.settings import ConsultationSettings
from consultation_agent.task import check_recorded, read_rows, task_of
from episodes.agent import Column, Environment, Options, Record, Row, Sizes
from episodes.episode import Conversation, Episode, Task
from episodes.partner_agent import PartnerAgent, split_files
from episodes.shown import Shown, annotated, exchanges


class ConsultationAgent(PartnerAgent):
    """Invented patients of `data/consultation`, no tools, a patient as partner."""

    name = "consultation"
    role = "patient"
    llm_name = MODEL_NAMES
    recipe = "recipes.doctors.consultation_lessons"
    partner_recipe = "recipes.doctors.patient_lessons"
    splits: Mapping[str, Path] = split_files("consultation")
    turns = 6
    settings = ConsultationSettings
    columns = (
        Column("diagnosis", "diagnosis_accuracy", interval=True),
        Column("facets", "facet_recall", interval=True),
        Column("useful", "useful_questions"),
        Column("repeated", "repeated_questions"),
    )
    # In 20 steps it learns to ask and reads worse; in the others it reads nearly as before
    demo = ("trainer.total_training_steps=60",)

    def sizes(self, device: str) -> Sizes:
        if device == "cpu":
            return Sizes(prompt=224, response=800, reply=112)
        return Sizes(2048, 6144, 512)

    def rows(self, path: Path) -> list[Row]:
        return read_rows(path)

    def task(self, row: Row, settings: Settings) -> Task:
        return task_of(row)

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        return ConsultationEnvironment(settings, options, evaluating)

    def check_recorded(self, tasks: Sequence[Any]) -> list[str]:
        return check_recorded(tasks)

    def failure(self, record: Record) -> str:
        return facts.failure(record)

    def shown(self, record: Record) -> Sequence[Shown]:
        notes = []
        for doctor, patient in exchanges(record["dialogue"], "doctor"):
            told = {"kind": patient.get("kind"), "mentioned": ", ".join(patient.get("facets", ()))}
            notes.append(({"problem": doctor.get("problem")}, told))
        return annotated(record, notes)

    def rehearsed(self, task: Any, turns: int) -> Episode:
        return gold_episode(task, load_prompts(OWN), turns)

    def dialogues(self, path: Path, settings: Settings) -> Iterable[Conversation]:
        return framed_dialogues(path, load_prompts(OWN), settings.max_turns)


AGENT = ConsultationAgent()
