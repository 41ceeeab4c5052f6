"""Users' files become the Parquet of training; missing answers are drafted from gold."""

import json

import pyarrow.parquet as parquet
import pytest

from common.settings import ROOT
from sql_agent.gold import convert
from sql_agent.gold.checker import Checker, gold_tool
from sql_agent.gold.draft import draft_answer, fill_answers
from sql_agent.intake.question_files import COLUMNS, count_without_reference, load_rows, statements
from tests.corpora import cases_of, write_lines
from tests.messages import missing
from tools.sql.settings import DEFAULT_DATABASE

[FOREIGN] = cases_of(__file__, "foreign_answered")


def write(path, *rows):
    return str(write_lines(path, rows))


def row(**changes):
    return dict.fromkeys(COLUMNS, "") | {"id": "r", "question": "q"} | changes


def test_a_foreign_file_becomes_the_parquet_of_training(tmp_path, capsys):
    out = tmp_path / "out.parquet"
    assert convert.main([write(tmp_path / "in.jsonl", FOREIGN), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert not missing(said, "1 rows", "0 without", "meta")
    schema = parquet.read_schema(out)
    assert tuple(schema.names) == COLUMNS
    assert {str(kind) for kind in schema.types} == {"string"}
    (found,) = load_rows(out)
    assert found["question"] == "戊颗粒的适应症\n是什么？"
    assert found["answer"] == "**戊颗粒**：目赤头痛"
    assert statements(found) == FOREIGN["sql"]
    assert json.loads(found["evidence"])[0] == {
        "table": "drugs_info",
        "row_id": 90001,
        "field": "indication",
        "quote": "目赤头痛",
    }
    assert json.loads(found["structured_gt"])["rows"] == [["目赤头痛"]]
    assert json.loads(found["entities"]) == ["戊颗粒"]


def test_our_own_files_stay_as_they_are(tmp_path):
    source, out = ROOT / "data" / "val.parquet", tmp_path / "out.parquet"
    assert convert.main([str(source), "--out", str(out)]) == 0
    assert load_rows(out) == load_rows(source)


@pytest.mark.parametrize(("changes", "answer"), cases_of(__file__, "drafts"))
def test_the_words_of_a_draft(changes, answer):
    assert draft_answer(row(**changes), gold_tool(DEFAULT_DATABASE)) == answer


@pytest.mark.system
@pytest.mark.parametrize("without", [(), ("structured_gt", "evidence"), ("structured_gt", "sql")])
def test_drafts_of_our_own_rows_earn_the_full_score(without):
    rows = [
        dict(one, answer="", **dict.fromkeys(without, ""))
        for one in load_rows(ROOT / "data" / "test.parquet")
    ]
    drafted = fill_answers(rows, DEFAULT_DATABASE)
    assert drafted == len(rows) - count_without_reference(rows)
    assert drafted >= 0.9 * len(rows)
    problems = [
        finding.problems for finding in Checker(DEFAULT_DATABASE).check(rows) if finding.problems
    ]
    assert problems == []


def test_wrong_usage_is_one_message_and_leaves_no_file(tmp_path, capsys):
    source = write(tmp_path / "in.jsonl", FOREIGN, {"qid": "2", "question": 3})
    before = sorted(tmp_path.iterdir())
    assert convert.main([source, "--out", str(tmp_path / "out.parquet")]) == 2
    assert f"{source}, row 1, column question: 3 is int" in capsys.readouterr().err
    for arguments in (["--out", source], ["--out", str(tmp_path / "no" / "a.parquet")]):
        assert convert.main([source, *arguments]) == 2
    assert sorted(tmp_path.iterdir()) == before
