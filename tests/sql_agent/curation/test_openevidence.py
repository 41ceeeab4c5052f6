"""Answers from the database: the agent's own, kept where they quote what was read."""

import json
import shutil

import pytest

from common.settings import load_settings
from recipes.build_database import write_database
from sql_agent.curation.openevidence import main
from sql_agent.gold.checker import Checker
from tests.common.llm_server import KEY, Fault
from tests.corpora import cases_of, write_lines
from tests.sql_agent.curation.questions import rows_of

DOSAGE = "口服。一次15毫克，一日3次，饭后服用"
DRUGS = cases_of(__file__, "drugs")
SQL = "SELECT dosage FROM drugs_info WHERE med_name = '甲片'"


@pytest.fixture
def database(tmp_path):
    disease = {"id": 1, "disease_name": "乙病", "cause": "原因不明"}
    columns = dict.fromkeys(name for row in DRUGS for name in row)
    tables = {"drugs_info": [columns | row for row in DRUGS], "disease": [disease]}
    write_database(tmp_path / "m.db", tables)
    return f"sqlite:///{tmp_path / 'm.db'}"


def play(llm, sqls, answer):
    """The stand-in asks these queries and gives this answer."""

    def reply(body):
        with llm.lock:
            if llm.faults:
                return llm.faults.pop(0)
        done = sum(message["role"] == "tool" for message in body["messages"])
        if done >= len(sqls):
            return Fault(200, text=answer)
        function = {"name": "query_database_by_sql", "arguments": json.dumps({"sql": sqls[done]})}
        call = {"id": f"c{done}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        reply = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
        return Fault(200, body=json.dumps(reply | {"choices": [choice]}))

    llm.reply_to = reply


@pytest.fixture
def draft(tmp_path, teacher, database, monkeypatch, capfd):
    """Runs the program on some questions; returns exit code, output file, stdout and stderr."""
    for name, value in teacher.items():
        monkeypatch.setenv(name, value)

    def run(*questions, db=database):
        monkeypatch.setenv("DATABASE_URL", db)
        load_settings.cache_clear()
        source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
        rows = [
            {"id": f"q{n}", "question": text, "session": "s"} for n, text in enumerate(questions)
        ]
        write_lines(source, rows)
        code = main([str(source), "--output", str(output)])
        shown = capfd.readouterr()
        assert KEY not in shown.out + shown.err
        assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.glob("*.jsonl*"))
        return code, output, shown

    return run


ANSWER = f"甲片的用法用量为：{DOSAGE}。"


def test_an_answer_that_quotes_its_rows_becomes_a_row_that_validation_accepts(llm, draft, database):
    play(llm, ["SELECT nothing FROM drugs_info", SQL], ANSWER)
    code, output, shown = draft("甲片怎么吃？")
    assert code == 0, shown.err
    (row,) = rows_of(output)
    assert (row["answer"], row["sql"], row["session"]) == (ANSWER, SQL, "s")
    assert json.loads(row["structured_gt"]) == {"columns": ["dosage"], "rows": [[DOSAGE]]}
    assert {body["temperature"] for body in llm.requests} == {0.0}
    (finding,) = Checker(database).check([row])
    assert (finding.problems, finding.unchecked) == ([], [])
    assert "3 calls" in shown.out
    assert not output.with_name("out.jsonl.journal").exists()


@pytest.mark.parametrize(
    ("sqls", "answer", "reason"),
    [
        ([], ANSWER, "no_rows"),
        (["DROP TABLE drugs_info"], ANSWER, "no_rows"),
        ([f"SELECT '{DOSAGE}' FROM drugs_info"], ANSWER, "no_rows"),
        ([SQL, f"{SQL} AND id < 0"], ANSWER, "no_rows"),
        ([SQL], "一次20毫克", "not_quoted"),
        ([SQL], f"{ANSWER}可放心服用。", "not_quoted"),
        ([SQL], "数据库中没有找到相关信息。", "not_quoted"),
    ],
)
def test_what_can_not_be_verified_is_refused_with_its_reason(llm, draft, sqls, answer, reason):
    play(llm, sqls, answer)
    code, output, shown = draft("甲片怎么吃？")
    assert code == 0, shown.err
    assert rows_of(output) == []
    (row,) = rows_of(output.with_name("out.dropped.jsonl"))
    assert row["refused"]["reason"] == reason
    assert row["refused"]["detail"]


def test_drafts_of_one_database_are_not_continued_with_another(llm, draft, tmp_path):
    play(llm, [SQL], ANSWER)
    llm.faults = [Fault(400)]
    assert draft("甲片怎么吃？", "甲片怎么服用？")[0] == 1
    shutil.copy(tmp_path / "m.db", tmp_path / "other.db")
    other = f"sqlite:///{tmp_path / 'other.db'}"
    code, _, shown = draft("甲片怎么吃？", "甲片怎么服用？", db=other)
    assert code == 2
    assert "database" in shown.err
