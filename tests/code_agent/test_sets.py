"""Rows in the forms of MedAgentGym's sets are read, played in the sandbox and scored."""

import asyncio
import csv
import json
from functools import partial
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
from tests.corpora import cases_of
from tests.messages import missing
from tests.own_processes import OwnProcesses


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


def score(tasks: MedAgentGymSet, *programs: str) -> float | None:
    """What an episode earns that runs programs and hands in what the last one printed."""
    runs = [Action("validate_code", {"code": program}) for program in programs]
    return played(tasks, *runs, Action("submit"))[1].score


def opened(name: str, folder: Path) -> Any:
    return get_task_class(name)(folder, "test")


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize("case", cases_of(__file__, "corpus/sets"), ids=lambda case: case["why"])
def test_programs_earn_what_their_answers_are_worth(tmp_path, case):
    tasks = opened(case["set"], write_set(tmp_path, [case["row"]], case["tables"]))
    assert tasks.unusable(tasks.task(0)) == ""
    assert case["question"] in tasks.task(0).question
    for program, worth in case["programs"]:
        assert score(tasks, program) == worth, program


@pytest.mark.parametrize(
    "case", cases_of(__file__, "corpus/set_answers"), ids=lambda case: case["why"]
)
def test_answers_in_a_sets_own_forms(tmp_path, case):
    tasks = opened(case["set"], write_set(tmp_path, [case["row"]]))
    task = tasks.task(0)
    assert [answer for answer in case["right"] if tasks.score(task, answer) != 1] == []
    assert [answer for answer in case["wrong"] if tasks.score(task, answer) != 0] == []


def test_a_question_about_a_table_that_is_not_there_is_unusable(tmp_path):
    """Its policy would be charged for what was forgotten in the folder."""
    queries = ("select drug from prescriptions", "select dob from patients")
    rows = [{"question": "?", "query": query, "answer": ["1"]} for query in queries]
    tasks = opened("mimic_iii", write_set(tmp_path, rows, {"patients": [("SUBJECT_ID", "DOB")]}))
    assert "prescriptions" in tasks.unusable(tasks.task(0))
    assert tasks.unusable(tasks.task(1)) == ""


def test_a_program_that_needs_an_absent_package_is_unusable(tmp_path):
    context = f"import __main__\nimport absent\n{HERE}"
    row = {"problem": "", "signature": "", "solution": "", "context": context}
    tasks = opened("biocoder", write_set(tmp_path, [row]))
    assert tasks.unusable(tasks.task(0)) == "needs the packages absent"
    with pytest.raises(EpisodeError, match="task_unusable"):
        score(tasks, "n = 1")


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    ("context", "solution", "why"), cases_of(__file__, "corpus/telling_programs")
)
def test_a_program_that_tells_nothing_is_named_before_any_call(tmp_path, context, solution, why):
    row = {"problem": "An area.", "signature": "def area(x)", "solution": solution}
    row["context"] = context.format(here=HERE)
    tasks = opened("biocoder", write_set(tmp_path, [row]))
    environment = CodeEnvironment(SETTINGS, {}, task_sets={"biocoder": tasks})
    found = asyncio.run(environment.why_unusable(tasks.task(0)))
    assert why in found
    assert bool(found) == bool(why)
    if "each time" in why:
        with pytest.raises(EpisodeError, match="each time"):
            score(tasks, solution)


def test_looking_at_a_task_leaves_no_interpreter(tmp_path, plain_processes):
    solution = "def area(x):\n    return x * x"
    row = {"problem": "An area.", "signature": "def area(x)", "solution": solution}
    tasks = opened("biocoder", write_set(tmp_path, [row | {"context": f"{HERE}\nprint(area(2))"}]))
    environment = CodeEnvironment(SETTINGS, {}, task_sets={"biocoder": tasks})

    def look() -> None:
        assert asyncio.run(environment.why_unusable(tasks.task(0))) == ""

    assert OwnProcesses().more_after(look) <= 0
    environment.close()


@pytest.mark.parametrize(
    ("name", "mode", "file"),
    [("mimic_iii", "test", "valid_tasks.jsonl"), ("treqs", "train", "train_tasks_all.jsonl"),
     ("treqs", "valid", "val_tasks.jsonl"), ("mimic_iii", "test", "test_tasks.json")],
)  # fmt: skip
def test_files_have_the_names_that_the_reference_ships(tmp_path, name, mode, file):
    row = {"question": "Which?", "query": "select drug from prescriptions", "answer": ["a"]}
    if file.endswith(".json"):  # the test's own file, one list, goes before that of the validation
        (tmp_path / file).write_text(json.dumps([row], indent=1), encoding="utf-8-sig")
        write_set(tmp_path, [row] * 2, name="valid_tasks.jsonl")
    else:
        write_set(tmp_path, [row], name=file)
    assert len(get_task_class(name)(tmp_path, mode)) == 1


def test_a_set_without_its_server_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("code_agent.tasks.medagentbench.base_url", lambda: "http://127.0.0.1:9/")
    tasks = opened("medagentbench", write_set(tmp_path, [{}]))
    assert "http://127.0.0.1:9/" in tasks.missing()


@pytest.mark.usefixtures("bubblewrap")
def test_values_in_variables_pass_the_rows_tests(tmp_path, monkeypatch):
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
    assert score(tasks, task.program) == 1.0, "what the variables hold counts, printed or not"
    assert score(tasks, "mean_age = 49\nprint(mean_age)") == 0.0
    for flaw in ({"reference_answer": "mean_age = 49"}, {"test_cases": "assert mean_age =="}):
        write_set(folder, [row | flaw])
        with pytest.raises(EpisodeError, match="task_unusable: its own program"):
            score(opened("biodsbench", folder), "mean_age = 49")
    assert tasks.unusable(task) == ""
    monkeypatch.setenv("PATH", "")
    environment = CodeEnvironment(SETTINGS, {}, task_sets={"biodsbench": tasks})
    assert "bubblewrap" in asyncio.run(environment.why_unusable(task))
    (folder / "7" / "ages.csv").rename(folder / "7" / "others.csv")
    assert tasks.unusable(task).endswith("7/ages.csv")


@pytest.mark.parametrize("histories", ["None", "[]", "", None])
def test_a_row_may_have_no_program_before_its_own(tmp_path, histories):
    row = {"queries": "?", "dataframes": "", "study_ids": "7", "test_cases": "assert n == 1"}
    row |= {"reference_answer": "n = 1", "code_histories": histories}
    assert opened("biodsbench", write_set(tmp_path, [row])).task(0).note == ""
    row["code_histories"] = "not a list"
    with pytest.raises(AgentError, match="row 0"):
        opened("biodsbench", write_set(tmp_path, [row])).task(0)


PREDICT = """import csv
with open('/scratch/predictions.csv', 'w', newline='') as f:
    csv.writer(f).writerows({rows})
print('done')"""


@pytest.mark.usefixtures("bubblewrap")
def test_predictions_are_scored_by_accuracy_over_all_test_cases(tmp_path):
    row = {"task_id": 0, "task_name": "guo_los", "task_description": "Will the stay be long?"}
    folder = write_set(tmp_path, [row], None, "task.jsonl")
    labels = [("patient_id", "value"), (1, True), (2, False), ("tensor(3)", True), (4, False)]
    files = {"test_labels": labels, "train_labels": labels}
    write_set(folder / "guo_los", [], files, "nothing.jsonl")
    (folder / "clmbr_train.pkl").write_bytes(b"")
    tasks = opened("ehrshot", folder)
    rows = [("patient_id", "prediction"), (1, 1), (2, 0), (3, True), (4, 1)]
    assert score(tasks, PREDICT.format(rows=rows)) == 0.75
    assert score(tasks, PREDICT.format(rows=rows[:2])) == 0.25
    others = [(number, 0) for number in range(10_000, 16_000)]
    assert score(tasks, PREDICT.format(rows=[rows[0], *others, *rows[1:]])) == 0.75
    indexed = [("", "prediction", "patient_id"), (0, 1, 1.0), (1, 0, 2.0), (2, 1, 3.0), (3, 1, 4.0)]
    assert score(tasks, PREDICT.format(rows=indexed)) == 0.75, "columns count by their names"
    assert score(tasks, "print('done')") == 0.0
    for none in ("write(b'\\x00\\xff\\n\\x00')", "write(b'patient_id,prediction\\n\"1,')"):
        assert score(tasks, f"open('/scratch/predictions.csv', 'wb').{none}\nprint(1)") == 0.0
    succeeds = partial(tasks.succeeds, tasks.task(0))
    assert [*map(succeeds, (0.5, 0.75))] == [False, True], "0.5 is one label for all"
    (folder / "guo_los" / "test_labels.csv").write_text("patient_id,value\n1,1\n", encoding="utf-8")
    assert [*map(succeeds, (0.5, 1.0))] == [False, True], "nothing beats one label that all have"
    assert tasks.unusable(tasks.task(0)) == ""
    (folder / "clmbr_train.pkl").unlink()
    assert tasks.unusable(tasks.task(0)) != ""
    (folder / "clmbr_train.pkl").write_bytes(b"")
    (folder / "guo_los" / "test_labels.csv").write_text("person_id,value\n1,1\n", encoding="utf-8")
    assert not missing(tasks.unusable(tasks.task(0)), "test_labels.csv", "patient_id", "person_id")
    (folder / "guo_los" / "test_labels.csv").unlink()
    assert tasks.unusable(tasks.task(0)).endswith("guo_los/test_labels.csv")


@pytest.mark.usefixtures("bubblewrap")
def test_predictions_by_window(tmp_path):
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
    labels += [(2, window, window % 4) for window in range(30_000)]
    write_set(folder / "windows", [], {"test_ventilation_labels": labels}, "nothing.jsonl")
    many = """
with open('/scratch/predictions.csv', 'w') as file:
    print('subject_id,window_idx,prediction,note', file=file)
    for window in range(30_000):
        print(f'2,{window},{window % 4},{"x" * 160}', file=file)
"""
    assert score(tasks, many) == 30_000 / 30_002


def test_the_limits_of_a_program_are_said_where_models_are_trained(tmp_path, monkeypatch):
    monkeypatch.setenv("SANDBOX_SECONDS", "0.5")
    monkeypatch.setenv("SANDBOX_MEMORY", "3")
    row = {"task_name": "guo_los", "task_description": "Predict."}
    tasks = opened("ehrshot", write_set(tmp_path, [row], None, "task.jsonl"))
    assert not missing(tasks.overview, "0.5 s", "3 GiB")


@pytest.mark.parametrize("name", REFERENCE)
def test_a_set_says_what_to_put_where(tmp_path, name):
    with pytest.raises(AgentError, match="data_path"):
        get_task_class(name)()
    with pytest.raises(AgentError, match="data_path"):
        opened(name, tmp_path)
    assert {"validate_code", "debug"} <= set(SETS[name].actions)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_row_of_another_form_is_named(tmp_path, name):
    only = "task.jsonl" if name == "ehrshot" else "test_tasks.jsonl"
    tasks = opened(name, write_set(tmp_path, [{"something": "else"}], None, only))
    with pytest.raises(AgentError, match="row 0"):
        tasks.task(0)


def test_a_note_that_is_null_is_not_shown(tmp_path):
    row = {"Question": "Which?", "Patient Note": None, "Calculator Name": None}
    row |= {"Ground Truth Answer": "1", "Lower Limit": "1", "Upper Limit": "1"}
    tasks = opened("medcalcbench", write_set(tmp_path, [row, row | {"Lower Limit": None}]))
    assert (tasks.task(0).note, tasks.task(0).task_type) == ("", "")
    with pytest.raises(AgentError, match="row 1"):  # a number without limits
        tasks.task(1)


@pytest.mark.usefixtures("bubblewrap")
def test_a_folder_is_checked_row_by_row(tmp_path, capsys):
    good = {"question": "?", "query": "select dob from patients", "answer": ["a, b", "c"]}
    tables = {"PATIENTS": [("SUBJECT_ID",), (1,)]}
    folder = write_set(tmp_path, [good, {**good, "answer": None}], tables)
    assert validate.main(["mimic_iii", "--data", str(folder)]) == 1
    said = capsys.readouterr().out
    assert "mimic_iii: row 1 of" in said
    assert said.splitlines()[-1] == "test: 2 rows, 1 problems"
    assert "cannot be played" not in said
    write_set(tmp_path, [good], tables)
    (folder / "PATIENTS.csv").unlink()
    assert validate.main(["mimic_iii", "--data", str(folder)]) == 0
    assert "1 rows cannot be played: " in capsys.readouterr().out
    write_set(tmp_path, [], tables)
    assert validate.main(["mimic_iii", "--data", str(folder)]) == 2
    assert "no rows" in capsys.readouterr().err
