"""A small set of tasks over invented tables."""

import csv
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from code_agent.graders import Gold
from code_agent.task import CodeTask
from code_agent.tasks.base import TaskSet
from episodes.agent import Row

PATIENTS = [
    ("subject_id", "gender", "city"),
    ("1", "f", "Basel"),
    ("2", "m", "Bern"),
    ("3", "f", "Basle"),
]
RUN = '{"action": "validate_code", "params": {"code": "%s"}}'
COUNT = "import pandas as pd\\nanswer = len(pd.read_csv('/data/patients.csv'))"
SUBMIT = '{"action": "submit", "params": {"answer": "%s"}}'
HAND_IN = '{"action": "submit"}'


def write_tables(folder: Path) -> Path:
    """patients.csv, and the same as a table of hospital.db."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "patients.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(PATIENTS)
    with sqlite3.connect(folder / "hospital.db") as database:
        database.execute("CREATE TABLE patients (subject_id, gender, city)")
        database.executemany("INSERT INTO patients VALUES (?, ?, ?)", PATIENTS[1:])
    return folder


class Small(TaskSet):
    """Two questions about three patients."""

    name = "small"
    shown = ("patients.csv", "hospital.db")

    def read(self) -> Sequence[Row]:
        return [
            {"question": "How many patients are there?", "gold": 3},
            {"question": "How many cities?", "gold": 2},
        ]

    def task(self, index: int) -> CodeTask:
        row = self.rows[index]
        program = COUNT.replace("\\n", "\n")
        gold = Gold("integer", row["gold"])
        return CodeTask(
            id=f"small/{index}",
            question=row["question"],
            task_set="small",
            gold=gold,
            program=program,
        )
