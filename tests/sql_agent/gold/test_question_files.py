"""Question files: every trouble is named by row and field, and foreign files become training's.

What cannot be checked is not called wrong; missing answers are drafted from gold.
"""

import json

import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.settings import ROOT
from recipes.build_database import write_database
from sql_agent.gold import convert, validate
from sql_agent.gold.checker import Checker, gold_tool
from sql_agent.gold.draft import draft_answer, fill_answers
from sql_agent.gold.markup import plain
from sql_agent.intake.question_files import COLUMNS, count_without_reference, load_rows, statements
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


def report(capsys, *arguments) -> tuple[int, dict]:
    """The exit code and the report of a run with --json, which prints nothing else."""
    code = validate.main([*map(str, arguments), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("changes", cases_of(__file__, "good_rows"))
def test_good_rows_are_valid(url, tmp_path, capsys, changes):
    code, found = report(capsys, write_lines(tmp_path / "a.jsonl", [row(**changes)]), "--db", url)
    assert (code, found["problems"], found["valid"], found["not_checkable"]) == (0, [], 1, 0)


@pytest.mark.parametrize(("changes", "field", "message"), cases_of(__file__, "problems"))
def test_each_problem_is_named_by_row_and_field(url, tmp_path, capsys, changes, field, message):
    good = row(id="good", question="甲片的贮藏是什么？")
    path = write_lines(tmp_path / "a.jsonl", [good, row(**changes)])
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
    path = write_lines(tmp_path / "a.jsonl", rows)
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
    first = write_lines(tmp_path / "a.jsonl", [row()])
    files = [first, write_lines(tmp_path / "b.jsonl", [row(id="s")])]
    code, found = report(capsys, *files, "--db", url)
    assert (code, [problem["field"] for problem in found["problems"]]) == (1, ["question"])


@pytest.mark.system
def test_our_own_files_are_valid(capsys):
    files = [ROOT / "data" / f"{split}.parquet" for split in ("train", "val", "test")]
    code, found = report(capsys, *files, "--db", DEFAULT_DATABASE)
    assert (code, found["problems"], found["not_checkable"]) == (0, [], 0)
    assert found["rows"] == found["valid"] == sum(len(load_rows(file)) for file in files)


def test_rows_of_a_database_nobody_has_are_not_checkable(tmp_path, capsys):
    path = write_lines(tmp_path / "foreign.jsonl", cases_of(__file__, "foreign"))
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


[FOREIGN] = cases_of(__file__, "foreign_answered")


def test_a_foreign_file_becomes_the_parquet_of_training(tmp_path, capsys):
    out = tmp_path / "out.parquet"
    source = write_lines(tmp_path / "in.jsonl", [FOREIGN])
    assert convert.main([str(source), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert not missing(said, "1 rows", "0 without", "meta")
    schema = parquet.read_schema(out)
    assert tuple(schema.names) == COLUMNS
    assert {str(kind) for kind in schema.types} == {"string"}
    (found,) = load_rows(out)
    assert found["question"] == "戊颗粒的适应症\n是什么？"
    assert found["answer"] == "**戊颗粒**：目赤头痛"
    assert statements(found) == FOREIGN["sql"]
    quote = {"row_id": 90001, "field": "indication", "quote": "目赤头痛"}
    assert json.loads(found["evidence"])[0] == QUOTE | quote
    assert json.loads(found["structured_gt"])["rows"] == [["目赤头痛"]]
    assert json.loads(found["entities"]) == ["戊颗粒"]


def test_our_own_files_stay_as_they_are(tmp_path):
    source, out = ROOT / "data" / "val.parquet", tmp_path / "out.parquet"
    assert convert.main([str(source), "--out", str(out)]) == 0
    assert load_rows(out) == load_rows(source)


@pytest.mark.parametrize(("changes", "answer"), cases_of(__file__, "drafts"))
def test_the_words_of_a_draft(changes, answer):
    bare = dict.fromkeys(COLUMNS, "") | {"id": "r", "question": "q"}
    assert draft_answer(bare | changes, gold_tool(DEFAULT_DATABASE)) == answer


@pytest.mark.system
@pytest.mark.parametrize("without", [(), ("structured_gt", "evidence"), ("structured_gt", "sql")])
def test_drafts_of_our_own_rows_earn_the_full_score(without):
    rows = load_rows(ROOT / "data" / "test.parquet")
    for one in rows:
        one |= dict.fromkeys(("answer", *without), "")
    drafted = fill_answers(rows, DEFAULT_DATABASE)
    assert drafted == len(rows) - count_without_reference(rows)
    assert drafted >= 0.9 * len(rows)
    assert not any(finding.problems for finding in Checker(DEFAULT_DATABASE).check(rows))
