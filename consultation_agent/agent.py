"""The consultation agent: a doctor who questions a patient and ends with a diagnosis and advice.

from episodes import registry
agent = registry.get("consultation")

Everything here is light; the tables, the patient and the judge come with `task` and `open`.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

from common.settings import ROOT, Settings
from consultation_agent.doctoragent_format import doctoragent
from episodes.agent import (
    Agent,
    Column,
    Environment,
    Flags,
    Format,
    Lessons,
    Options,
    Record,
    Row,
    Service,
    Showing,
    Sizes,
)
from episodes.episode import Conversation, Episode, Task
from episodes.partners import PARTNERS, RECORD, PromptedTeaching
from episodes.shown import Shown
from episodes.turns import drawn_turns

DEAD_URL = "http://127.0.0.1:9"


class ConsultationFlags(Flags):
    """The flags of the consultation agent: patient, reward, prompts."""

    unreachable: Mapping[str, str] = {
        "reward_model_url": f"{DEAD_URL}/score",
        "patient": "llm",
        "patient_model": "openai/none",
        "patient_base_url": f"{DEAD_URL}/v1",
    }

    def add(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "--patient",
            choices=PARTNERS,
            default="record",
            help="who answers; default: the record itself",
        )
        models = (
            "its model, over PATIENT_MODEL: litellm's name (llm), a model folder or hub id (served)"
        )
        add("--patient-model", metavar="MODEL", help=models)
        add(
            "--patient-gpus",
            metavar="N,...",
            help="GPUs for a served patient alone; default: a share of the policy's",
        )
        schemes = (
            "terms, doctoragent, walkthrough "
            "(consultation_agent/rewards.toml), or weights: NAME=WEIGHT,..."
        )
        add("--reward", metavar="SCHEME", default="terms", help=f"what is paid: {schemes}")
        add(
            "--prompts",
            metavar="FILE",
            help="other words for the doctor, as in consultation_agent/prompts.toml",
        )

    def services(self, settings: Settings, options: Options) -> Sequence[Service]:
        if options.get("patient") != "served":
            return []
        from consultation_agent.llm_patient import ADDRESS, model_of

        return [
            Service(
                ADDRESS, model_of(settings.under(options), "served"), options.get("patient_gpus")
            )
        ]

    def check(self, tasks: Sequence[Task], options: Options) -> list[str]:
        from consultation_agent.task import ConsultationTask, check_recorded

        if (options.get("patient") or RECORD) != RECORD:
            return []
        return check_recorded([task for task in tasks if isinstance(task, ConsultationTask)])


class ConsultationShowing(Showing):
    """How evaluations show consultations, and what a person may type."""

    headline = "diagnosis_accuracy"
    columns = (
        Column("diagnosis", "diagnosis_accuracy", interval=True),
        Column("facets", "facet_recall", interval=True),
        Column("useful", "useful_questions"),
        Column("repeated", "repeated_questions"),
    )
    baselines = ("at_once", "commonest", "checklist")
    formats: Mapping[str, Format] = MappingProxyType({"doctoragent": doctoragent})
    failures = ("right", "wrong_advice", "asked_too_little", "wrong_diagnosis", "no_diagnosis")
    # In 20 steps it learns to ask and reads worse; in the others it reads nearly as before
    demo = ("trainer.total_training_steps=60",)

    def summarise(self, records: Sequence[Record]) -> Mapping[str, Any]:
        from episodes.rules import judged_diagnoses

        return judged_diagnoses(records)

    def gain_groups(self, record: Record) -> Mapping[str, int | None]:
        from consultation_agent.facts import facets_found

        return {"gain_by_asking": facets_found(record)}

    def failure(self, record: Record) -> str:
        from consultation_agent.facts import failure

        return failure(record)

    def shown(self, record: Record) -> Sequence[Shown]:
        from consultation_agent.shown import shown

        return shown(record)

    def typed(self, text: str) -> str:
        from consultation_agent.protocol import framed

        return framed(text)


class ConsultationTeaching(PromptedTeaching):
    """Gold consultations, dialogues of others, and what the bundled model is made from."""

    def gold(self, row: Row, settings: Settings) -> Episode:
        from consultation_agent.prompts import OWN, load_prompts
        from consultation_agent.rehearsal import gold_episode
        from consultation_agent.task import task_of

        task = task_of(row)
        turns = drawn_turns(settings, task.id) or settings.max_turns
        return gold_episode(task, load_prompts(self.prompts or OWN), turns)

    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> Iterable[Conversation]:
        if role != "patient":
            return super().demonstrations(role, rows, settings)
        from consultation_agent.demonstrations import patient_lessons
        from consultation_agent.task import task_of

        return patient_lessons(task_of(row) for row in rows)

    def dialogues(self, path: Path, agent: str, settings: Settings) -> Iterable[Conversation]:
        from consultation_agent.demonstrations import framed_dialogues
        from consultation_agent.prompts import OWN, load_prompts

        return framed_dialogues(path, load_prompts(self.prompts or OWN), settings.max_turns)

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        """Return lessons about patients drawn from the tables. `rows` are not used, because they
        are too few to learn from.
        """
        from consultation_agent.lessons import lessons

        return lessons(right, flawed, random)


class ConsultationAgent(Agent):
    """Invented patients of `data/consultation`, no tools, a patient as partner."""

    name = "consultation"
    prompt_version = "1"
    splits: Mapping[str, Path] = {
        split: ROOT / "data" / "consultation" / f"{split}.parquet"
        for split in ("train", "val", "test")
    }
    turns = 6
    draws_turns = True
    flags = ConsultationFlags()
    showing = ConsultationShowing()
    teaching = ConsultationTeaching()

    def sizes(self, device: str) -> Sizes:
        return (
            Sizes(prompt=224, response=800, reply=112)
            if device == "cpu"
            else Sizes(2048, 6144, 512)
        )

    def rows(self, path: Path | str) -> list[Row]:
        from consultation_agent.task import read_rows

        return read_rows(path)

    def task(self, row: Row, settings: Settings) -> Task:
        from consultation_agent.task import task_of

        task = task_of(row)
        return replace(task, max_turns=drawn_turns(settings, task.id))

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        from consultation_agent.environment import ConsultationEnvironment

        return ConsultationEnvironment(settings, options, evaluating)


AGENT = ConsultationAgent()
