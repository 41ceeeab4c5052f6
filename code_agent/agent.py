"""The code agent: questions about records and calculations, answered by running programs."""

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from random import Random

from code_agent.environment import CodeEnvironment
from code_agent.protocol import ENDINGS
from code_agent.rehearsal import gold_steps
from code_agent.settings import CodeSettings
from code_agent.task import read_rows, task_of
from common.settings import ROOT, Settings
from episodes.agent import Agent, Column, Environment, Lessons, Options, Record, Row, Sizes
from episodes.episode import Conversation, Task
from episodes.shown import POLICY, Shown, annotated

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
        return CodeEnvironment(settings, options)

    def add_flags(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        endings = "submit (default): one answer is handed in; oracle: until an output is right"
        add("--ending", choices=ENDINGS, default="submit", help=endings)
        tables = "tables that the questions are about; default: data/ehr/tables"
        add("--hospital", metavar="DIR", help=tables)
        model = "litellm's name of a model that explains errors; default: offline"
        add("--debugger", metavar="MODEL", help=model)

    def failure(self, record: Record) -> str:
        """Return the first kind of failure that applies to a scored episode."""
        if (record["score"] or 0) >= 1:
            return "right"
        if record["answer"] is None:
            return "loop" if record["facts"]["loops"] else "nothing_handed_in"
        if not record["facts"]["runs"]:
            return "no_program"
        return "wrong_value" if record["facts"]["printed_a_value"] else "only_errors"

    def shown(self, record: Record) -> Sequence[Shown]:
        """Return the transcript, with actions shown as their program or command."""
        notes = []
        for step in record["steps"]:
            action = {"action": step["action"], "problem": step.get("problem") or None}
            notes.append((action, {"kind": step["kind"], "status": step["status"]}))
        waiting = iter(record["steps"])
        pieces = []
        for piece in annotated(record, notes):
            if piece.who == POLICY:
                params: Record = next(waiting, {"params": {}})["params"]
                program = params.get("code") or params.get("cmd")
                is_action = piece.text.lstrip().startswith("{")  # and nothing else
                if is_action and isinstance(program, str):
                    piece = replace(piece, text=program, form="python")
                elif is_action:
                    piece = replace(piece, form="json")
            pieces.append(piece)
        return pieces

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
