"""MedAgentGym's twelve sets, read from the folder that `data_path` names.

gym_set.toml says what each set permits and shows, and which files it needs.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from code_agent.task import CodeTask
from code_agent.tasks.base import TaskSet
from common.jsonl import read_jsonl
from common.toml import table_beside
from episodes.agent import Row
from episodes.episode import AgentError

TABLE: dict[str, dict[str, Any]] = table_beside(__file__)
# Names of a mode's file in the reference's folders, the first that is there counts. mimic_iii and
# eicu ship the tasks of their tests as valid_tasks.
FILES = {
    "train": ("train_tasks", "train_tasks_all"),
    "val": ("valid_tasks", "val_tasks"),
    "test": ("test_tasks", "valid_tasks"),
}


class MedAgentGymSet(TaskSet):
    """One of the twelve sets. known: its part of gym_set.toml."""

    known: ClassVar[dict[str, Any]]
    folder: Path

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in cls.__dict__:
            cls.known = TABLE[cls.name]
            cls.actions = tuple(cls.known["actions"])
            cls.overview = cls.known["overview"].strip()
            cls.shown = tuple(cls.known["shown"])

    def read(self) -> Sequence[Row]:
        if self.folder is None:
            raise AgentError(f"{self.name} is not part of this repository; {self.known['needs']}")
        path = self._file()
        try:
            if path.suffix == ".json":
                rows = json.loads(path.read_text(encoding="utf-8-sig"))
            else:
                rows = [row for _, row in read_jsonl(path)]
            if not rows or not isinstance(rows, list):
                raise ValueError("it has no rows, or is no list of them")
            return [json.loads(row) if isinstance(row, str) else row for row in rows]
        except (OSError, TypeError, ValueError) as error:
            raise AgentError(
                f"{self.name}: {path} cannot be read ({error}); {self.known['needs']}"
            ) from None

    def _file(self) -> Path:
        stems = (self.known["only"],) if "only" in self.known else FILES[self.mode]
        for stem in stems:
            for end in ("jsonl", "json"):
                path = self.folder / f"{stem}.{end}"
                if path.is_file():
                    return path
        raise AgentError(
            f"{self.name}: there is no {stems[0]}.jsonl in {self.folder}; {self.known['needs']}"
        )

    def task(self, index: int) -> CodeTask:
        row = self.rows[index]
        try:
            forms = self.known.get("fields", {})
            said = {name: "" if value is None else value for name, value in row.items()}
            fields = {name: form.format_map(said) for name, form in forms.items()}
            fields |= self.read_row(row)
            return CodeTask(id=f"{self.name}/{index}", task_set=self.name, **fields)
        except (AttributeError, KeyError, SyntaxError, TypeError, ValueError) as error:
            seen = f"{type(error).__name__}: {error}"
            raise AgentError(
                f"{self.name}: row {index} of {self._file()} does not have the set's form ({seen})"
            ) from None

    def read_row(self, row: Row) -> dict[str, Any]:
        """Return fields that gym_set.toml leaves out. Raises KeyError, TypeError, ValueError."""
        return {}
