"""Rows in the forms of MedAgentGym's sets, on invented data of the same schema: read, played in the
sandbox, scored.
"""

from __future__ import annotations

import asyncio
import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from code_agent import validate
from code_agent.actions import HERE
from code_agent.environment import CodeEnvironment
from code_agent.protocol import Action
from code_agent.tasks import SETS, get_task_class
from code_agent.tasks.gym_set import MedAgentGymSet
from code_agent.tasks.sets import REFERENCE
from episodes.episode import AgentError
from episodes.outcomes import EpisodeError
from tests.code_agent.conftest import SETTINGS, played
from tests.messages import missing
from tests.own_processes import OwnProcesses
from tools.sandbox import Sandbox

MIMIC = {
    "PATIENTS": [
        ("SUBJECT_ID", "GENDER", "DOB"),
        (1, "f", "2040-01-02 00:00:00"),
        (2, "m", "2050-03-04 00:00:00"),
    ],
    "ADMISSIONS": [
        ("SUBJECT_ID", "HADM_ID", "ADMITTIME"),
        (1, 11, "2101-05-06 01:00:00"),
        (2, 12, "2102-01-01 02:00:00"),
    ],
    "PRESCRIPTIONS": [
        ("SUBJECT_ID", "HADM_ID", "DRUG"),
        (1, 11, "insulin"),
        (1, 11, "d5w"),
        (2, 12, "insulin"),
    ],
    "D_LABITEMS": [("ITEMID", "LABEL"), (5, "glucose")],
    "LABEVENTS": [
        ("SUBJECT_ID", "HADM_ID", "ITEMID", "VALUENUM"),
        (1, 11, 5, 110.5),
        (1, 11, 5, 98.0),
    ],
}
TREQS = {
    "DEMOGRAPHIC": [
        ("SUBJECT_ID", "HADM_ID", "NAME", "DIAGNOSIS", "GENDER"),
        (1, 11, "ann lee", "SEPSIS", "F"),
    ],
    "DIAGNOSES": [
        ("SUBJECT_ID", "HADM_ID", "ICD9_CODE", "SHORT_TITLE"),
        (1, 11, "00845", "Int inf clstrdium dfcile"),
    ],
}
# set, tables, query, a program that answers it, one that does not
QUERIES = [
    ("mimic_iii", MIMIC, "select count(distinct prescriptions.subject_id) from prescriptions where drug = 'insulin'",
     "answer = d.loc[d.DRUG == 'insulin', 'SUBJECT_ID'].nunique()", "answer = list(range(50))", "PRESCRIPTIONS"),
    ("mimic_iii", MIMIC, "select distinct prescriptions.drug from prescriptions where subject_id = 1",
     "answer = list(d.loc[d.SUBJECT_ID == 1, 'DRUG'])[::-1]", "answer = d.to_string()", "PRESCRIPTIONS"),
    ("mimic_iii", MIMIC, "select count(*)>0 from prescriptions where drug = 'aspirin'",
     "answer = bool((d.DRUG == 'aspirin').any())", "answer = True", "PRESCRIPTIONS"),
    ("mimic_iii", MIMIC, "select labevents.valuenum from labevents order by valuenum",
     "answer = sorted(d.VALUENUM)", "answer = sorted(d.VALUENUM)[::-1]", "LABEVENTS"),
    ("mimic_iii", MIMIC, "select patients.dob from patients where subject_id = 2",
     "answer = d.loc[d.SUBJECT_ID == 2, 'DOB'].item()", "answer = list(d.DOB)", "PATIENTS"),
    ("treqs", TREQS, "select demographic.diagnosis, diagnoses.icd9_code from demographic inner join diagnoses on "
     "demographic.hadm_id = diagnoses.hadm_id where demographic.name = 'ann lee'",
     "answer = [d.DIAGNOSIS.iloc[0], '00845']", "answer = d.DIAGNOSIS.iloc[0]", "DEMOGRAPHIC"),
]  # fmt: skip


def write_set(
    folder: Path,
    rows: list[dict[str, Any]],
    tables: dict[str, list[tuple[Any, ...]]] | None = None,
    name: str = "test_tasks.jsonl",
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    for table, lines in (tables or {}).items():
        with (folder / f"{table}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)
    return folder


def selected(tables: dict[str, list[tuple[Any, ...]]], query: str) -> list[str]:
    """What a query returns, as the sets' files have it: texts, one row after the other."""
    with sqlite3.connect(":memory:") as database:
        for table, (header, *lines) in tables.items():
            database.execute(f"CREATE TABLE {table} ({', '.join(header)})")
            database.executemany(
                f"INSERT INTO {table} VALUES ({', '.join('?' * len(header))})", lines
            )
        return [str(value) for line in database.execute(query) for value in line]


def score(tasks: MedAgentGymSet, *programs: str, index: int = 0) -> float | None:
    """What an episode earns that runs programs and hands in what the last one printed."""
    runs = [Action("validate_code", {"code": program}) for program in programs]
    return played(tasks, *runs, Action("submit"), index=index)[1].score


def opened(name: str, folder: Path) -> Any:
    return get_task_class(name)(folder, "test")


@pytest.mark.parametrize(("name", "tables", "query", "right", "wrong", "table"), QUERIES)
@pytest.mark.usefixtures("bubblewrap")
def test_answers_of_queries(
    tmp_path: Path,
    name: str,
    tables: Any,
    query: str,
    right: str,
    wrong: str,
    table: str,
) -> None:
    row = {
        "db_id": name,
        "question": "?",
        "query": query,
        "answer": selected(tables, query),
        "is_impossible": False,
    }
    tasks = opened(name, write_set(tmp_path, [row], tables))
    read = f"import pandas as pd\nd = pd.read_csv('/data/{table}.csv')\n"
    assert score(tasks, read + right) == 1.0
    assert score(tasks, read + wrong) == 0.0


@pytest.mark.usefixtures("bubblewrap")
def test_a_question_after_others_and_a_contradiction(tmp_path: Path) -> None:
    seq = {
        "seed_question": "Count patients.",
        "question": "Of them, those on insulin?",
        "ans": ["2"],
        "query": "select count(*)",
    }
    tasks = opened("ehr_seqsql", write_set(tmp_path / "seq", [seq], MIMIC))
    assert tasks.task(0).question == "Count patients. Of them, those on insulin?"
    assert score(tasks, "answer = 2") == 1.0
    assert score(tasks, "answer = [2]") == 1.0
    assert score(tasks, "answer = [1, 2]") == 0.0
    con = {
        "Hospital admission": "11.0",
        "Medical entity": "NRB",
        "Has error": True,
        "split": "test",
    }
    notes = {"clinical_notes": [("HADM_ID", "TEXT"), (11, "None.")]}
    tasks = opened("ehrcon", write_set(tmp_path / "con", [con], notes))
    assert "admission 11 " in tasks.task(0).question
    assert (score(tasks, "print(True)"), score(tasks, "print('True or False')")) == (1.0, 0.0)


@pytest.mark.usefixtures("bubblewrap")
def test_a_calculation_keeps_to_both_limits(tmp_path: Path) -> None:
    row = {
        "Row Number": 1, "Calculator ID": 5, "Calculator Name": "MAP", "Patient Note": "BP 120/80.",
        "Question": "What is the mean arterial pressure?", "Ground Truth Answer": "93.333",
        "Lower Limit": "88.66", "Upper Limit": "98.0",
    }  # fmt: skip
    tasks = opened("medcalcbench", write_set(tmp_path, [row]))
    assert score(tasks, "answer = (120 + 2 * 80) / 3") == 1.0
    for wrong in ("answer = 1e9", "answer = 120", "answer = 'inf'", "answer = list(range(200))"):
        assert score(tasks, wrong) == 0.0
    for truth, said in (
        ("02/08/2021", ("02/08/2021", "2/8/2021", "2021-02-08")),
        ("('14 weeks', '1 days')", ("('14 weeks', '1 days')", "(14 weeks, 1 days)")),
    ):
        tasks = opened("medcalcbench", write_set(tmp_path, [row | {"Ground Truth Answer": truth}]))
        task = tasks.task(0)
        assert [tasks.score(task, one) for one in said] == [1.0] * len(said)
        for wrong in ("02/09/2021", "8/2/2021", "(14 weeks, 2 days)", "", f"{truth} or {truth}"):
            assert tasks.score(task, wrong) == 0.0


@pytest.mark.usefixtures("bubblewrap")
def test_a_size_is_exact_and_a_power_nearly(tmp_path: Path) -> None:
    known = {"task_type": "Paired t-test", "question": "?"}
    rows = [
        known | {"estimate_target": "size", "answer": 46},
        known | {"estimate_target": "power", "answer": 0.8},
    ]
    tasks = opened("npowerai", write_set(tmp_path, rows))
    assert score(tasks, "answer = 46.0") == 1.0
    assert score(tasks, "answer = 46.4") == 0.0
    assert score(tasks, "answer = 47") == 0.0
    assert score(tasks, "answer = 0.807", index=1) == 1.0
    assert score(tasks, "answer = 0.81", index=1) == 0.0


CONTEXT = "import {package}\nclass Box:\n    <<insert solution here>>\ndef main():\n    print(Box().sides)\nmain()\n"


@pytest.mark.usefixtures("bubblewrap")
def test_a_function_is_put_into_its_place_and_compared_by_what_is_printed(
    tmp_path: Path,
) -> None:
    solution = "@property\ndef sides(self):\n    return 4"
    row = {
        "idx": "1",
        "problem": "Write sides.",
        "signature": "def sides(self)",
        "solution": solution,
    }
    rows = [row | {"context": CONTEXT.format(package=name)} for name in ("math", "no_such_package")]
    tasks = opened("biocoder", write_set(tmp_path, rows))
    assert score(tasks, solution) == 1.0
    assert score(tasks, "    @property\n    def sides(self):\n        return 2 + 2") == 1.0
    assert score(tasks, solution.replace("4", "5")) == 0.0
    assert score(tasks, "def sides(self): return 4") == 0.0  # prints a method
    assert score(tasks, solution.replace("return", "print(4, 5)\n    return")) == 0.0, "more beside"
    assert tasks.unusable(tasks.task(0)) == ""
    assert "no_such_package" in tasks.unusable(tasks.task(1))
    with pytest.raises(EpisodeError, match="task_unusable"):
        score(tasks, solution, index=1)


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    ("context", "solution", "why"),
    [
        ("{here}\nprint(area(2))", "def area(x):\n    return x * x", ""),
        ("{here}\nprint(area())", "def area(x):\n    return x", "fails here"),
        (
            "import random\n{here}\nprint(area(2))",
            "def area(x):\n    return random.random()",
            "each time",
        ),
        ("{here}\narea(2)\nprint('done')", "def area(x):\n    return x", "print the same"),
    ],
)
def test_a_program_that_tells_nothing_is_named_before_any_call(
    tmp_path: Path, context: str, solution: str, why: str
) -> None:
    row = {
        "problem": "An area.",
        "signature": "def area(x)",
        "solution": solution,
        "context": context.format(here=HERE),
    }
    tasks = opened("biocoder", write_set(tmp_path, [row]))
    environment = CodeEnvironment(SETTINGS, {}, task_sets={"biocoder": tasks})
    found = asyncio.run(environment.why_unusable(tasks.task(0)))
    assert why in found
    assert bool(found) == bool(why)


def test_looking_at_a_task_leaves_no_interpreter(tmp_path: Path, plain_processes: None) -> None:
    solution = "def area(x):\n    return x * x"
    row = {"problem": "An area.", "signature": "def area(x)", "solution": solution}
    tasks = opened("biocoder", write_set(tmp_path, [row | {"context": f"{HERE}\nprint(area(2))"}]))
    environment = CodeEnvironment(SETTINGS, {}, task_sets={"biocoder": tasks})

    def look() -> None:
        assert asyncio.run(environment.why_unusable(tasks.task(0))) == ""

    assert OwnProcesses().more_after(look) <= 0
    environment.close()


def test_an_identifier_is_not_its_neighbour(tmp_path: Path) -> None:
    row = {"question": "Which stay?", "query": "select stay from visits", "answer": ["723458231"]}
    tasks = opened("eicu", write_set(tmp_path, [row]))
    task = tasks.task(0)
    answers = ("723458231", "723458231.0", "723458230", "723458900")
    assert [tasks.score(task, answer) for answer in answers] == [1.0, 1.0, 0.0, 0.0]


def test_an_answer_without_rows_is_answered_by_an_empty_list(tmp_path: Path) -> None:
    row = {"question": "Which?", "query": "select drug from prescriptions", "answer": []}
    tasks = opened("mimic_iii", write_set(tmp_path, [row]))
    task = tasks.task(0)
    right = ("[]", "()", "None", "nan")
    assert [tasks.score(task, answer) for answer in right] == [1.0] * len(right)
    wrong = ("0", "['aspirin']", "[0]", "[None]", "no", "Empty DataFrame")
    assert [tasks.score(task, answer) for answer in wrong] == [0.0] * len(wrong)


@pytest.mark.parametrize(
    ("name", "mode", "file"),
    [
        ("mimic_iii", "test", "valid_tasks.jsonl"),
        ("treqs", "train", "train_tasks_all.jsonl"),
        ("mimic_iii", "test", "test_tasks.json"),
    ],
)
def test_files_have_the_names_that_the_reference_ships(
    tmp_path: Path, name: str, mode: str, file: str
) -> None:
    row = {"question": "Which?", "query": "select drug from prescriptions", "answer": ["a"]}
    if file.endswith(".json"):  # the test's own file, one list, goes before that of the validation
        (tmp_path / file).write_text(json.dumps([row], indent=1), encoding="utf-8")
        write_set(tmp_path, [row] * 2, name="valid_tasks.jsonl")
    else:
        write_set(tmp_path, [row], name=file)
    assert len(get_task_class(name)(tmp_path, mode)) == 1


def test_a_set_without_its_server_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("code_agent.tasks.medagentbench.base_url", lambda: "http://127.0.0.1:9/")
    tasks = opened("medagentbench", write_set(tmp_path, []))
    assert "http://127.0.0.1:9/" in tasks.missing()


@pytest.mark.usefixtures("bubblewrap")
def test_values_in_variables_pass_the_rows_tests(tmp_path: Path) -> None:
    row = {
        "queries": "Save the mean age as `mean_age`.", "dataframes": "A table in `/workdir/ages.csv`.",
        "study_ids": "7",
        "test_cases": "assert mean_age == 50",
        "reference_answer": "import pandas as pd\nmean_age = pd.read_csv('/workdir/ages.csv').age.mean()\n",
        "code_histories": "['x = 1']", "chat_histories": "[]",
    }  # fmt: skip
    folder = write_set(tmp_path, [row])
    write_set(folder / "7", [], {"ages": [("age",), (40,), (60,)]}, "nothing.jsonl")
    tasks = opened("biodsbench", folder)
    task = tasks.task(0)
    assert "/data/ages.csv" in task.note
    assert "x = 1" in task.note
    assert score(tasks, f"{task.program}\nprint(mean_age)") == 1.0
    assert score(tasks, task.program) == 1.0, "what the variables hold counts, printed or not"
    assert tasks.unusable(task) == ""
    (folder / "7" / "ages.csv").rename(folder / "7" / "others.csv")
    assert tasks.unusable(task).endswith("7 has no ages.csv")
    (folder / "7" / "others.csv").rename(folder / "7" / "ages.csv")
    assert score(tasks, "mean_age = 49\nprint(mean_age)") == 0.0


PREDICT = """import csv
with open('/scratch/predictions.csv', 'w', newline='') as f:
    csv.writer(f).writerows({rows})
print('done')"""


@pytest.mark.usefixtures("bubblewrap")
def test_predictions_are_scored_by_accuracy_over_all_test_cases(
    tmp_path: Path,
) -> None:
    row = {"task_id": 0, "task_name": "guo_los", "task_description": "Will the stay be long?"}
    folder = write_set(tmp_path, [row], None, "task.jsonl")
    labels = [
        ("patient_id", "value"),
        ("1", "True"),
        ("2", "False"),
        ("tensor(3)", "True"),
        ("4", "False"),
    ]
    write_set(
        folder / "guo_los", [], {"test_labels": labels, "train_labels": labels}, "nothing.jsonl"
    )
    (folder / "clmbr_train.pkl").write_bytes(b"")
    tasks = opened("ehrshot", folder)
    rows = [("patient_id", "prediction"), (1, 1), (2, 0), (3, True), (4, 1)]
    assert score(tasks, PREDICT.format(rows=rows)) == 0.75
    assert score(tasks, PREDICT.format(rows=rows[:2])) == 0.25
    assert score(tasks, "print('done')") == 0.0
    for none in ("write(b'\\x00\\xff\\n\\x00')", "write(b'patient_id,prediction\\n\"1,')"):
        assert score(tasks, f"open('/scratch/predictions.csv', 'wb').{none}\nprint(1)") == 0.0
    assert tasks.success_above(tasks.task(0)) == 0.5, "what one label for all would be worth"
    assert tasks.unusable(tasks.task(0)) == ""
    (folder / "clmbr_train.pkl").unlink()
    assert tasks.unusable(tasks.task(0)) != ""
    (folder / "clmbr_train.pkl").write_bytes(b"")
    (folder / "guo_los" / "test_labels.csv").unlink()
    assert tasks.unusable(tasks.task(0)).endswith("guo_los/test_labels.csv")


@pytest.mark.usefixtures("bubblewrap")
def test_predictions_by_window(tmp_path: Path) -> None:
    row = {
        "task_name": "ventilation", "task_description": "?", "feature_label_directory": "./windows", "model": "forest",
        "performance": {"AUC": 0.9, "ACC": 0.8},
    }  # fmt: skip
    folder = write_set(tmp_path, [row])
    labels = [("subject_id", "6_hour_window_id", "intervention_category"), (1, 0, 1), (1, 1, 4)]
    files = {f"{part}_ventilation_labels": labels for part in ("train", "val", "test")}
    write_set(folder / "windows", [], files, "nothing.jsonl")
    tasks = opened("mimic_extract", folder)
    assert tasks.unusable(tasks.task(0)).endswith("windows/X_lab_train.pkl")
    (folder / "windows" / "X_lab_train.pkl").write_bytes(b"")
    tasks = opened("mimic_extract", folder)
    assert tasks.task(0).reference.startswith("ACC; a forest had 0.800")
    rows = [("subject_id", "window_idx", "prediction"), (1, 0, 1), (1, 1, 2)]
    assert score(tasks, PREDICT.format(rows=rows)) == 0.5


@pytest.mark.usefixtures("bubblewrap")
def test_the_limits_of_a_program_are_settings_and_said_where_models_are_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SANDBOX_SECONDS", "0.5")
    monkeypatch.setenv("SANDBOX_MEMORY", "3")
    row = {"task_name": "guo_los", "task_description": "Predict."}
    tasks = opened("ehrshot", write_set(tmp_path, [row], None, "task.jsonl"))
    assert not missing(tasks.overview, "0.5 s", "3 GiB")
    run = asyncio.run(Sandbox().run("import time; time.sleep(60)", "slow"))
    assert run.status == "timeout"
    assert run.seconds < 60


@pytest.mark.parametrize("name", REFERENCE)
def test_a_set_says_what_to_put_where(tmp_path: Path, name: str) -> None:
    with pytest.raises(AgentError, match="data_path"):
        get_task_class(name)()
    with pytest.raises(AgentError, match="data_path"):
        opened(name, tmp_path)
    assert {"validate_code", "debug"} <= set(SETS[name].actions)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_row_of_another_form_is_named(tmp_path: Path, name: str) -> None:
    only = "task.jsonl" if name == "ehrshot" else "test_tasks.jsonl"
    tasks = opened(name, write_set(tmp_path, [{"something": "else"}], None, only))
    with pytest.raises(AgentError, match="row 0"):
        tasks.task(0)


@pytest.mark.usefixtures("bubblewrap")
def test_a_folder_is_checked_row_by_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = {"question": "?", "query": "select drug from prescriptions", "answer": ["a, b", "c"]}
    folder = write_set(tmp_path, [good, {**good, "answer": None}], MIMIC)
    assert validate.main(["mimic_iii", "--data", str(folder)]) == 1
    said = capsys.readouterr().out
    assert "mimic_iii: row 1 of" in said
    assert said.splitlines()[-1] == "test: 2 rows, 1 problems"
    assert "cannot be played" not in said
    write_set(tmp_path, [good], MIMIC)
    assert validate.main(["mimic_iii", "--data", str(folder)]) == 0
    for table in MIMIC:
        (folder / f"{table}.csv").unlink()
    assert validate.main(["mimic_iii", "--data", str(folder)]) == 0
    assert "1 rows cannot be played: " in capsys.readouterr().out
