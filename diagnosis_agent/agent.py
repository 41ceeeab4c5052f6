"""The diagnosis agent: a doctor who orders one examination after another and stops with a
diagnosis.

from episodes import registry
agent = registry.get("diagnosis")

Everything here is light; the tables, the simulator and the judge come with `task` and `open`.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from common.settings import ROOT, Settings
from episodes.agent import (
    Agent,
    Column,
    Environment,
    Flags,
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


class DiagnosisFlags(Flags):
    """The flags of the diagnosis agent: simulator, reward, prompts."""

    unreachable: Mapping[str, str] = {
        "reward_model_url": f"{DEAD_URL}/score",
        "simulator": "llm",
        "simulator_model": "openai/none",
        "simulator_base_url": f"{DEAD_URL}/v1",
    }

    def add(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add(
            "--simulator",
            choices=PARTNERS,
            default="record",
            help="who answers orders; default: the record itself",
        )
        models = (
            "its model, over SIMULATOR_MODEL: the name it is "
            "served by (llm), a model folder or hub id (served)"
        )
        add("--simulator-model", metavar="MODEL", help=models)
        schemes = "terms (diagnosis_agent/rewards.toml), or weights: NAME=WEIGHT,.."
        add("--reward", metavar="SCHEME", default="terms", help=f"what is paid: {schemes}")
        penalty = "what each turn beyond so many costs, such as 0.05@12; default: nothing"
        add("--turn-penalty", type=turn_penalty, metavar="AMOUNT@TURNS", help=penalty)
        single = (
            "evaluations: ask for the next examination and the "
            "diagnosis at each point of the recommended history"
        )
        add("--single-turn", action="store_true", help=single)
        add(
            "--rubrics",
            metavar="FILE",
            help="evaluations: criteria by case (JSON) that TEACHER_MODEL scores",
        )
        add(
            "--prompts",
            metavar="FILE",
            help="other words for the doctor, as in diagnosis_agent/prompts.toml",
        )

    def services(self, settings: Settings, options: Options) -> Sequence[Service]:
        if options.get("simulator") != "served":
            return []
        from diagnosis_agent.llm_simulator import ADDRESS, model_of

        return [Service(ADDRESS, model_of(settings.under(options), "served"))]

    def check(self, tasks: Sequence[Task], options: Options) -> list[str]:
        from diagnosis_agent.record_simulator import check_recorded
        from diagnosis_agent.task import DiagnosisTask

        if (options.get("simulator") or RECORD) != RECORD:
            return []
        return check_recorded([task for task in tasks if isinstance(task, DiagnosisTask)])


class DiagnosisShowing(Showing):
    """How evaluations show visits, and what a person may type."""

    headline = "accuracy"
    columns = (
        Column("accuracy", "accuracy", interval=True),
        Column("concluded", "accuracy_concluded"),
        Column("precision", "exam_precision"),
        Column("recall", "exam_recall"),
        Column("F1", "exam_f1", interval=True),
        Column("repeated", "repeated_examinations"),
    )
    baselines = ("at_once", "commonest", "checklist")
    failures = ("right", "ordered_too_little", "wrong_diagnosis", "no_diagnosis")

    def summarise(self, records: Sequence[Record]) -> Mapping[str, Any]:
        from episodes.rules import judged_diagnoses

        return judged_diagnoses(records)

    def gain_groups(self, record: Record) -> Mapping[str, int | None]:
        return {"gain_by_ordering": len(record["key_seen"]) if record["key"] else None}

    def failure(self, record: Record) -> str:
        from diagnosis_agent.facts import failure

        return failure(record)

    def shown(self, record: Record) -> Sequence[Shown]:
        from diagnosis_agent.shown import shown

        return shown(record)

    def typed(self, text: str) -> str:
        from diagnosis_agent.protocol import framed

        return framed(text)


class DiagnosisTeaching(PromptedTeaching):
    """Gold visits, and what the bundled models are made from."""

    def gold(self, row: Row, settings: Settings) -> Episode:
        from diagnosis_agent.prompts import OWN, load_prompts
        from diagnosis_agent.rehearsal import gold_episode
        from diagnosis_agent.task import task_of

        task = task_of(row)
        turns = drawn_turns(settings, task.id) or settings.max_turns
        return gold_episode(task, load_prompts(self.prompts or OWN), turns)

    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> Iterable[Conversation]:
        if role != "simulator":
            return super().demonstrations(role, rows, settings)
        from diagnosis_agent.task import task_of
        from diagnosis_agent.world_model import world_lessons

        return world_lessons(task_of(row) for row in rows)

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        """Return lessons about patients drawn from the tables. `rows` are not used, because they
        are too few to learn from.
        """
        from diagnosis_agent.lessons import lessons

        return lessons(right, flawed, random)


class DiagnosisAgent(Agent):
    """Invented patients of `data/diagnosis`, no tools, a simulator of examinations as partner."""

    name = "diagnosis"
    prompt_version = "1"
    splits: Mapping[str, Path] = {
        split: ROOT / "data" / "diagnosis" / f"{split}.parquet"
        for split in ("train", "val", "test")
    }
    turns = 6
    draws_turns = True
    flags = DiagnosisFlags()
    showing = DiagnosisShowing()
    teaching = DiagnosisTeaching()

    def sizes(self, device: str) -> Sizes:
        return (
            Sizes(prompt=256, response=1184, reply=64)
            if device == "cpu"
            else Sizes(3072, 8192, 1024)
        )

    def rows(self, path: Path | str) -> list[Row]:
        from diagnosis_agent.task import read_rows

        return read_rows(path)

    def task(self, row: Row, settings: Settings) -> Task:
        from diagnosis_agent.task import task_of

        task = task_of(row)
        return replace(task, max_turns=drawn_turns(settings, task.id))

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        from diagnosis_agent.environment import DiagnosisEnvironment

        return DiagnosisEnvironment(settings, options, evaluating)


def turn_penalty(text: str) -> tuple[float, int]:
    """Return amount and turns of "0.05@12"; a type for argparse."""
    found = re.fullmatch(r"(0?\.\d{1,6}|\d{1,3}(?:\.\d{1,6})?)@(\d{1,3})", text)
    if not found:
        raise ArgumentTypeError(f"expected AMOUNT@TURNS, such as 0.05@12, got {text!r}")
    return float(found[1]), int(found[2])


AGENT = DiagnosisAgent()
