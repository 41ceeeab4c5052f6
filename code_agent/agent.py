"""The code agent: questions about records and calculations, answered by running programs."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from random import Random

from code_agent import facts
from code_agent.environment import CodeEnvironment
from code_agent.protocol import ENDINGS
from code_agent.rehearsal import gold_steps
from code_agent.settings import CodeSettings
from code_agent.shown import shown
from code_agent.task import read_rows, task_of
from common.settings import ROOT, Settings
from episodes.agent import (
    Agent,
    Column,
    Environment,
    Lessons,
    Options,
    Record,
    Row,
    Sizes,
)
from episodes.episode import Conversation, Task
from episodes.shown import Shown

# What the bundled model was made from. It is found by name, because recipes stand above agents.
RECIPE = "recipes.hospital.lessons"


class CodeAgent(Agent):
    """Questions about the invented hospital, answered by programs in a sandbox."""

    name = "code"
    splits: Mapping[str, Path] = {
        split: ROOT / "data" / "code" / f"{split}.parquet" for split in ("train", "val", "test")
    }
    turns = 4
    settings = CodeSettings
    columns = (
        Column("success", "success", interval=True),
        Column("raised", "raised", interval=True),
        Column("loops", "loops"),
    )

    def sizes(self, device: str) -> Sizes:
        if device == "cpu":
            return Sizes(prompt=448, response=640, reply=160)
        return Sizes(4096, 12288, 2048)

    def rows(self, path: Path) -> list[Row]:
        return read_rows(path)

    def task(self, row: Row, settings: Settings) -> Task:
        return task_of(row)

    def open(self, settings: Settings, options: Options, evaluating: bool = False) -> Environment:
        return CodeEnvironment(settings, options, evaluating)

    def add_flags(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        endings = "submit (default): one answer is handed in; oracle: until an output is right"
        add("--ending", choices=ENDINGS, default="submit", help=endings)
        tables = "tables that the questions are about; default: data/ehr/tables"
        add("--hospital", metavar="DIR", help=tables)
        model = "litellm's name of a model that explains errors; default: offline"
        add("--debugger", metavar="MODEL", help=model)

    def failure(self, record: Record) -> str:
        return facts.failure(record)

    def shown(self, record: Record) -> Sequence[Shown]:
        return shown(record)

    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> Iterable[Conversation]:
        if role != "policy":
            return super().demonstrations(role, rows, settings)
        environment = CodeEnvironment(settings, {})
        conversations = []
        for row in rows:
            task = task_of(row)
            episode = environment.rehearsed(task, gold_steps(task))
            conversations.append(Conversation(episode.messages, [True] * episode.turns))
        return conversations

    def lessons(
        self, rows: Sequence[Row], settings: Settings, right: int, flawed: int, random: Random
    ) -> Lessons:
        made: Lessons = import_module(RECIPE).lessons(rows, right, flawed, random)
        return made


AGENT = CodeAgent()
