"""Only the files that a set lists are below /data: no program finds a gold answer in another."""

import csv
import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from code_agent.protocol import Action
from code_agent.tasks import SETS, get_task_class
from common.settings import ROOT
from tests.code_agent.conftest import played
from tests.corpora import cases_of

CANARY = "canary-5b1f0c"
# Each has a set, a row of it, files that its programs may see, and others that seem alike
CASES = cases_of(__file__, "corpus/hidden")
PLANTED = (  # in the folder of every set, beside its tasks
    *("test_tasks.csv", "train_tasks.csv", "test-temp.csv", "train_tasks_all.jsonl", "tasks.db"),
    *("test_tasks.parquet", "gold.sqlite", "answers.pkl", "patients.csv.csv", "labels/gold.csv"),
)
SEARCH = f"""
import pathlib
found = [path for path in sorted(pathlib.Path('/data').rglob('*')) if path.is_file()]
print([path.name for path in found])
assert not [path for path in found if b'{CANARY}' in path.read_bytes()]
"""


def planted(path: Path) -> None:
    """A file that holds the gold answer, as a table where it is one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix in (".db", ".sqlite"):
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE tasks (sol)")
            database.execute("INSERT INTO tasks VALUES (?)", (CANARY,))
    else:
        header = "id,sol,patient_id,subject_id,value,los_3"
        path.write_text(f"{header}\ntask1_1,{CANARY},1,1,2,2\n", encoding="utf-8")


def folder_of(folder: Path, row: dict[str, Any], shown: list[str], hidden: list[str]) -> Path:
    for name in ("test_tasks.jsonl", "task.jsonl"):
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"{json.dumps(row)}\n", encoding="utf-8")
    for name in (*PLANTED, *hidden):
        planted(folder / name)
    for name in shown:
        (folder / name).parent.mkdir(exist_ok=True)
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("subject_id", "value"), (1, 2)])
    return folder


@pytest.fixture(params=CASES, ids=lambda case: case["set"])
def planted_set(request, tmp_path):
    case = request.param
    folder = folder_of(tmp_path / "set", case["row"], case["shown"], case["hidden"])
    yield get_task_class(case["set"])(folder, "test"), folder, case["shown"], case["hidden"]
    shutil.rmtree(folder)


@pytest.mark.usefixtures("bubblewrap")
def test_a_gold_answer_in_another_file_of_the_folder_is_not_below_data(planted_set):
    tasks, _, shown, _ = planted_set
    search = Action("validate_code", {"code": SEARCH})
    grep = Action("terminal", {"cmd": f"grep -r {CANARY} /data; ls -R /data"})
    found, grepped = played(tasks, search, grep)[0].events
    names = sorted(Path(name).name for name in shown)
    assert (found.status, found.printed) == ("SUCCESS", str(names))
    if "terminal" in tasks.actions:
        assert CANARY not in grepped.printed


def test_request_info_reads_no_other_file_of_the_folder(planted_set):
    tasks, folder, _, hidden = planted_set
    others = [str(path) for path in folder.rglob("*.*") if path.is_file()]
    for name in (*PLANTED, *hidden, *others, "tasks.db/tasks", "gold.sqlite/tasks"):
        if name in others and Path(name).name in {Path(one).name for one in tasks.shown}:
            continue
        for kind, keyterm in (("column_values", "sol"), ("term", CANARY), ("column_names", "")):
            try:
                said = tasks.look_up(name, kind, keyterm)
            except ValueError as refused:
                said = str(refused).replace(repr(keyterm), "")
            assert CANARY not in said, name
            assert "sol" not in said.replace(name, ""), name


def test_no_set_lists_its_tasks_or_labels_and_the_hospital_lists_all_its_files():
    for tasks in SETS.values():
        assert not [name for name in tasks.shown if re.search("task|label|gold", name)]
    tables = ROOT / "data" / "ehr" / "tables"
    assert {path.name for path in tables.iterdir()} == set(SETS["ehr_demo"].shown)
