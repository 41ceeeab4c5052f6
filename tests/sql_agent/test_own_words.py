"""Words that a policy selects as literals are its own, and not the database's."""

import json
import sqlite3
from dataclasses import replace

import pytest

from episodes.episode import Episode
from sql_agent.judge_words import material
from sql_agent.own_words import columns_of
from sql_agent.reward import Query, case_of, term_values
from sql_agent.task import SqlTask
from tests.corpora import cases_of
from tests.sql_agent.small_database import STORAGE
from tools.sql.query import QueryTool

FALSE = "一次500毫克，一日9次"
GOLD = {
    "structured_gt": {"columns": ["storage"], "rows": [[STORAGE]]},
    "evidence": [{"table": "drugs_info", "row_id": 1, "field": "storage", "quote": STORAGE}],
}
TASK = SqlTask(id="t", question="朵莎洛片怎么保存？", reference=STORAGE, gold=GOLD)
COUNTED = SqlTask(
    id="c",
    question="有几种药？",
    reference="共有1种。",
    gold={"structured_gt": {"columns": ["count"], "rows": [[1]]}},
)


def played(url: str, sql: str, answer: str) -> Episode:
    query = Query.run(sql, QueryTool(url))
    assert query.result.ok, query.result.error
    return Episode(answer=answer, stop_reason="answered", events=[query], turns=2)


@pytest.mark.parametrize(("sql", "reads"), cases_of(__file__, "selected"))
def test_what_was_read_counts_and_no_literal_does_or_reaches_the_judge(database_url, sql, reads):
    episode = played(database_url, sql, f"说明书写明「{FALSE}」。")
    values = term_values(TASK, episode, ("rule", "evidence_recall"))
    assert values == {"rule": reads, "evidence_recall": reads}
    shown = material(case_of(TASK, episode))["工具返回的数据"] or ""
    assert (STORAGE in shown, "500" in shown, "满分" in shown) == (bool(reads), False, False)


@pytest.mark.parametrize(("sql", "paid"), cases_of(__file__, "unread_numbers"))
def test_a_number_that_was_not_read_is_no_count(database_url, sql, paid):
    assert term_values(COUNTED, played(database_url, sql, "共有1种。"), ("execution",)) == {
        "execution": paid
    }


def test_a_name_that_a_search_found_counts_beside_a_literal(database_url):
    gold = GOLD | {"structured_gt": {"columns": ["med_name"], "rows": [["朵莎洛片"]]}}
    episode = played(database_url, "SELECT '药品：' || med_name FROM drugs_info", "朵莎洛片")
    values = term_values(replace(TASK, gold=gold), episode, ("evidence_recall",))
    assert values == {"evidence_recall": 1}


def test_a_gold_statement_may_answer_in_words_of_its_own(database_url):
    sql = "SELECT CASE WHEN storage LIKE '%密封%' THEN '是' ELSE '否' END FROM drugs_info"
    gold = {"structured_gt": {"columns": ["a"], "rows": [["是"]]}}
    task = SqlTask(id="y", question="要密封吗？", reference="是", gold=gold, sql=(sql,))
    assert term_values(task, played(database_url, sql, "是"), ("execution",)) == {"execution": 1}


@pytest.mark.parametrize(
    "gold_sql", ["SELECT 1; SELECT 2", "SELECT storage WHERE (", "DROP TABLE x"]
)
def test_gold_that_cannot_run_pays_no_statement_of_literals(database_url, gold_sql):
    task = replace(TASK, sql=(gold_sql,))
    episode = played(database_url, f"SELECT '{STORAGE}' FROM drugs_info", STORAGE)
    assert term_values(task, episode, ("execution",)) == {"execution": 0}


def test_a_table_s_own_name_of_a_column_is_shown(database_url):
    sql = "SELECT storage AS dosage, COUNT(*) AS cause FROM drugs_info"
    shown = json.loads(played(database_url, sql, "x").events[0].for_judge)
    assert shown["columns"] == ["storage", ""]


def test_only_the_tool_says_which_cells_it_cut(database_url):
    long = "密封" + "，干燥处保存" * 200
    connection = sqlite3.connect(database_url.removeprefix("sqlite:///"))
    connection.execute("UPDATE drugs_info SET storage = ?", [long])
    connection.commit()
    connection.close()
    gold = {
        "structured_gt": {"columns": ["storage"], "rows": [[long]]},
        "evidence": [{"field": "storage", "quote": long}],
    }
    task = SqlTask(id="l", question="朵莎洛片怎么保存？", reference=long, gold=gold)
    names = ("execution", "evidence_recall")
    for sql, paid in {
        "SELECT storage FROM drugs_info": 1,
        "SELECT substr(storage, 1, 1) || '…' FROM drugs_info": 0,
        "SELECT substr(storage, 1, 1) || '...' FROM drugs_info": 0,
        "SELECT '密…' FROM drugs_info": 0,
        f"SELECT '{' ' * 3000}' || med_name FROM drugs_info": 0,
    }.items():
        found = term_values(task, played(database_url, sql, "x"), names)
        assert found == dict.fromkeys(names, paid), sql


@pytest.mark.parametrize("sql", ["DROP TABLE drugs_info", "not SQL (", ""])
def test_a_statement_that_was_refused_has_read_nothing(database_url, sql):
    query = Query.run(sql, QueryTool(database_url))
    assert not query.result.ok
    episode = Episode(answer="密封", stop_reason="answered", events=[query], turns=2)
    task = SqlTask(id="r", question="朵莎洛片怎么保存？", reference="密封", gold=GOLD)
    assert not any(term_values(task, episode, ("rule", "execution", "evidence_recall")).values())
    assert case_of(task, episode).context


@pytest.mark.parametrize(("dialect", "sql", "reads"), cases_of(__file__, "functions_of_servers"))
def test_a_server_s_function_that_puts_text_in_does_not_make_it_read(dialect, sql, reads):
    [column] = columns_of(sql, dialect, {"drugs": ["name"]}, 1)
    assert column.without_own(FALSE) == (FALSE if reads else None)
