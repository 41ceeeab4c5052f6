"""The consultation agent: a doctor who questions a patient and ends with a diagnosis and advice."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.settings import Settings
from conditions.published import case_rows
from consultation_agent.demonstrations import framed_dialogues
from consultation_agent.environment import ConsultationEnvironment
from consultation_agent.protocol import OWN
from consultation_agent.settings import ConsultationSettings
from consultation_agent.task import PUBLISHED, row_of, task_of
from episodes.agent import Column, Record, Row, Sizes
from episodes.episode import AgentError, Conversation, Task
from episodes.partner_agent import PartnerAgent, split_files
from episodes.prompts import load_prompts
from episodes.row_files import read_rows
from episodes.shown import Shown, annotated, exchanges

WAYS = "choose --patient llm or --patient served"
RIGHT_FROM = 0.5  # of the advice


class ConsultationAgent(PartnerAgent):
    """Invented patients of `data/consultation`, no tools, a patient as partner."""

    name = "consultation"
    recipe = "recipes.doctors.consultation_lessons"
    partner_recipe = "recipes.doctors.patient_lessons"
    splits: Mapping[str, Path] = split_files("consultation")
    turns = 6
    settings = ConsultationSettings
    environment = ConsultationEnvironment
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
        rows = read_rows(path, "consultations")
        return case_rows(rows, str(path), PUBLISHED, row_of, ("index",), "department")

    def task(self, row: Row, settings: Settings) -> Task:
        return task_of(row)

    def check_recorded(self, tasks: Sequence[Any]) -> list[str]:
        foreign = [task for task in tasks if not task.words]
        empty = sum(not (task.exchanges or task.description) for task in foreign)
        if empty and empty == len(tasks):
            seen = f"{empty} of {len(tasks)} cases hold no facts, exchanges or description"
            raise AgentError(f"{seen}, which is all that --patient record tells; {WAYS}")
        seen = f"{len(foreign)} of {len(tasks)} cases hold no facts by name"
        note = (
            f"{seen}: their patients answer a question that was once asked in the record, "
            f'and are "not sure" of every other; {WAYS}, which is meant for such rows'
        )
        return [note] if foreign else []

    def failure(self, record: Record) -> str:
        """Return the kind of a scored episode: the first that applies."""
        facts = record["facts"]
        if not any("diagnosis" in turn for turn in record["dialogue"]):
            return "no_diagnosis"
        if facts["diagnosis_accuracy"] >= 1:
            advice = facts["advice"]
            return "right" if advice is None or advice >= RIGHT_FROM else "wrong_advice"
        recall = facts["facet_recall"]
        if recall is None or recall >= 1:
            return "wrong_diagnosis"
        return "asked_too_little"

    def shown(self, record: Record) -> Sequence[Shown]:
        notes = []
        for doctor, patient in exchanges(record["dialogue"], "doctor"):
            told = {"kind": patient.get("kind"), "mentioned": ", ".join(patient.get("facets", ()))}
            notes.append(({"problem": doctor.get("problem")}, told))
        return annotated(record, notes)

    def dialogues(self, path: Path, settings: Settings) -> Iterable[Conversation]:
        return framed_dialogues(path, load_prompts(OWN), settings.max_turns)


AGENT = ConsultationAgent()
