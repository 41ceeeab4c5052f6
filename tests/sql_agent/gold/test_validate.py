"""Every kind of trouble is named by row and field; what cannot be checked is not called wrong."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.settings import ROOT
from recipes.build_database import write_database
from sql_agent.gold import validate
from sql_agent.gold.checker import Checker
from sql_agent.gold.markup import plain
from sql_agent.intake.question_files import load_rows
from tests.corpora import cases_of, write_lines
from tests.messages import missing
from tools.sql.settings import DEFAULT_DATABASE

FIELD = "口服，一次 4 片，一日 3 次。<br/>\n饭后<a class = 'x' data-id = '39'>温水</a>送服。"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """Two drugs, one with HTML in its field, and a cell longer than the tool reads."""
    path = tmp_path_factory.mktemp("database") / "small.db"
    names = ("id", "med_name", "dosage", "storage", "precautions")
    first = (1, "甲片", FIELD, "密封", "慎用" * 20_000)
    second = (2, "乙丸", "含服", "避光", "慎用" * 200_000)
    disease = {"id": 1, "disease_name": "丙症", "cause": "受凉"}
    rows = [dict(zip(names, drug, strict=True)) for drug in (first, second)]
    write_database(path, {"drugs_info": rows, "disease": [disease]})
    return f"sqlite:///{path}"


QUOTE = {"table": "drugs_info", "row_id": 1, "field": "storage", "quote": "密封"}
ROW = {
    "id": "r",
    "question": "甲片怎么保存？",
    "answer": "甲片的贮藏：密封",
    "task_type": "drug_field",
    "sql": "SELECT storage FROM drugs_info WHERE med_name = '甲片'",
    "structured_gt": {"columns": ["storage"], "rows": [["密封"]]},
    "evidence": [QUOTE],
    "entities": ["甲片"],
}


def row(**changes):
    return ROW | changes


def write(path: Path, *rows) -> Path:
    return write_lines(path, rows)


def report(capsys, *arguments) -> tuple[int, dict]:
    """The exit code and the report of a run with --json, which prints nothing else."""
    code = validate.main([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("changes", cases_of(__file__, "good_rows"))
def test_good_rows_are_valid(url, tmp_path, capsys, changes):
    code, found = report(capsys, write(tmp_path / "a.jsonl", row(**changes)), "--db", url)
    assert (code, found["problems"], found["valid"], found["not_checkable"]) == (0, [], 1, 0)


@pytest.mark.parametrize(("changes", "field", "message"), cases_of(__file__, "problems"))
def test_each_problem_is_named_by_row_and_field(url, tmp_path, capsys, changes, field, message):
    good = row(id="good", question="甲片的贮藏是什么？")
    path = write(tmp_path / "a.jsonl", good, row(**changes))
    code, found = report(capsys, path, "--db", url)
    assert (code, found["rows"], found["valid"], found["not_checkable"]) == (1, 2, 1, 0)
    assert {problem["row"] for problem in found["problems"]} == {1}
    assert field in {problem["field"] for problem in found["problems"]}
    assert message in " ".join(problem["message"] for problem in found["problems"])


@pytest.mark.parametrize(("changes", "reason"), cases_of(__file__, "uncheckable_rows"))
def test_what_the_database_lacks_is_not_checkable(url, changes, reason):
    (finding,) = Checker(url).check([row(**changes)])
    assert finding.problems == []
    assert reason in " ".join(message for _, message in finding.unchecked)


def test_the_report_counts_every_row_once(url, tmp_path, capsys):
    rows = [row(id=str(number), question=f"{number}号问题？") for number in range(20)]
    rows[7]["answer"] = "不知道"
    rows[8]["evidence"] = [QUOTE | {"row_id": 50}]
    rows[9]["answer"] = ""
    rows[11]["id"] = "3"
    rows[12] |= {"split": "test", "question": "2号 问题"}
    path = write(tmp_path / "a.jsonl", *rows)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"id": "torn", "quest')
    code, found = report(capsys, path, "--db", url)
    assert code == 1
    assert (found["rows"], found["valid"], found["not_checkable"]) == (21, 16, 1)
    named = [(problem["row"], problem["field"]) for problem in found["problems"]]
    assert named == [(7, "answer"), (11, "id"), (12, "question"), (20, "row")]
    assert "row 3" in found["problems"][1]["message"]
    assert (found["invalid"], found["without_answer"]) == (4, 2)


def test_a_row_without_a_split_belongs_to_its_file_s(url, tmp_path, capsys):
    files = [write(tmp_path / "a.jsonl", row()), write(tmp_path / "b.jsonl", row(id="s"))]
    code, found = report(capsys, *files, "--db", url)
    assert (code, [problem["field"] for problem in found["problems"]]) == (1, ["question"])


@pytest.mark.system
def test_our_own_files_are_valid(capsys):
    files = [ROOT / "data" / f"{split}.parquet" for split in ("train", "val", "test")]
    code, found = report(capsys, *files, "--db", DEFAULT_DATABASE)
    assert code == 0
    assert found["problems"] == []
    assert found["not_checkable"] == 0
    assert found["rows"] == found["valid"] == sum(len(load_rows(file)) for file in files)


def test_rows_of_a_database_nobody_has_are_not_checkable(tmp_path, capsys):
    path = write(tmp_path / "foreign.jsonl", *cases_of(__file__, "foreign"))
    code, found = report(capsys, path, "--db", DEFAULT_DATABASE)
    assert (code, found["rows"], found["not_checkable"], found["problems"]) == (0, 1, 1, [])
    assert validate.main([str(path), "--db", DEFAULT_DATABASE]) == 0
    assert not missing(capsys.readouterr().out, "1 rows", "not checkable", "90001")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ["<" * 200_000, "<a b='" * 200_000, "=" * 200_000 + ">"])
def test_hostile_markup_takes_no_quadratic_time(text):
    plain(text)


STATEMENTS = ["SELECT * FROM disease", "';--", "\0", "<script>", "SELECT 1"]
TEXT = st.text(max_size=30) | st.sampled_from(STATEMENTS)
VALUE = TEXT | st.lists(TEXT, max_size=2) | st.dictionaries(TEXT, TEXT, max_size=2)
FIELDS = ("answer", "sql", "entities", "split", "task_type", "structured_gt", "evidence")
NEEDED, OTHERS = {"id": st.text(max_size=4), "question": TEXT}, dict.fromkeys(FIELDS, VALUE)
HOSTILE = st.fixed_dictionaries(NEEDED, optional=OTHERS)


@settings(max_examples=15, deadline=None)
@given(rows=st.lists(HOSTILE, min_size=1, max_size=3))
def test_hostile_files_give_a_report(url, tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("hostile")
    path = write_lines(folder / "a.jsonl", rows)
    found = validate.report_on(validate.check_files([path], url))
    assert found["rows"] == len(rows)
    assert all(problem.keys() == {"row", "id", "field", "message"} for problem in found["problems"])
    json.dumps(found, ensure_ascii=False).encode("utf-8")
