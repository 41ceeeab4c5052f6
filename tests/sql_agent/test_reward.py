"""Reward arithmetic: what earns each term, what the total is, and when there is none."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from common.llm.client import Usage
from common.settings import SettingsError
from episodes.episode import Episode
from scoring.case import Case, Verdict
from scoring.rubric import Rubric
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.reward import (
    TERMS,
    Cell,
    Query,
    evidence_found,
    execution,
    is_unanswerable,
    rubric_from,
    same_result,
    score_episode,
    term_values,
)
from sql_agent.settings import SqlSettings
from sql_agent.task import SqlTask
from tests.corpora import cases_of
from tests.judges import Fixed
from tests.messages import missing
from tools.sql.query import QueryResult

DEFAULT_RUBRIC = rubric_from(SqlSettings())
TASK = SqlTask(id="t", question="朵莎洛片怎么保存？", reference="密封")


def result(ok: bool = True, tables: frozenset[str] = frozenset({"drugs_info"})) -> QueryResult:
    return QueryResult(["a"], [["b"]], 1, error=None if ok else "x", tables_read=tables)


def played(answer: str, *results: QueryResult, stop_reason: str = "answered") -> Episode:
    queries = [Query("", found) for found in results]
    return Episode(answer=answer, stop_reason=stop_reason, events=queries, turns=2)


@pytest.mark.parametrize(
    ("results", "rule"),
    [
        ([], 0.0),
        ([result(ok=False)], 0.0),
        ([result(tables=frozenset())], 0.0),
        ([result(tables=frozenset({"sqlite_master"}))], 0.0),
        ([result()], 0.1),
        ([result(tables=frozenset({"disease"}))], 0.1),
        ([result(ok=False), result()], 0.1),
        ([result(), result(), result()], 0.1),
    ],
)
@pytest.mark.parametrize("score", [0.0, 0.4])
def test_the_total_is_rule_plus_judge(results, rule, score):
    judge = Fixed(Verdict(score))
    reward = asyncio.run(score_episode(TASK, played("密封", *results), judge, DEFAULT_RUBRIC))
    assert reward.terms == {"rule": pytest.approx(rule), "judge": score}
    assert (reward.total, reward.unscored) == (pytest.approx(rule + score), None)


def test_a_judge_without_a_score_leaves_no_total():
    judge = Fixed(Verdict(None, cause="judge_failed", usage=Usage(4)))
    reward = asyncio.run(score_episode(TASK, played("密封", result()), judge, DEFAULT_RUBRIC))
    assert (reward.total, reward.unscored) == (None, "judge_failed")
    assert reward.terms == {"rule": pytest.approx(0.1)}
    assert reward.counters["judge_calls"] == 4, "they were made all the same"
    assert reward.counters["sql_ok"] == 1


def test_the_judge_sees_question_answer_reference_and_what_was_read():
    judge = Fixed(Verdict(1.0))
    asyncio.run(score_episode(TASK, played("密封", result()), judge, DEFAULT_RUBRIC))
    asyncio.run(score_episode(GOLDEN, played("密封", FOUND), judge, DEFAULT_RUBRIC))
    plain, golden = judge.asked
    assert replace(plain, context=[]) == Case(TASK.question, "密封", "密封", [], None)
    assert '"rows":[["b"]]' in plain.context[0]
    assert golden.gold == GOLD
    assert STORAGE in golden.context[0]


STORAGE = "密封，20℃以下干燥处保存"
EVIDENCE = [{"table": "drugs_info", "row_id": 1, "field": "storage", "quote": STORAGE}]
GOLD = {"structured_gt": {"columns": ["storage"], "rows": [[STORAGE]]}, "evidence": EVIDENCE}
GOLDEN = SqlTask(
    id="g", question="朵莎洛片怎么保存？", reference=f"朵莎洛片的贮藏方法：{STORAGE}", gold=GOLD
)
EMPTY = {"structured_gt": {"columns": ["storage"], "rows": []}}
MISSING = SqlTask(
    id="m", question="无名片怎么保存？", reference="数据库中没有找到无名片。", gold=EMPTY
)
FOUND = QueryResult(["storage"], [[STORAGE]], 1, tables_read=frozenset({"drugs_info"}))
NOTHING = QueryResult(["storage"], [], 0, tables_read=frozenset({"drugs_info"}))
WRONG = replace(FOUND, rows=[["避光保存，避免受潮"]])

# An episode that does not earn a term, and is otherwise like the one that earns all.
LACKING = {
    "rule": played(STORAGE),
    "judge": played("避光即可", FOUND),
    "execution": played(STORAGE, FOUND, WRONG),
    "evidence_recall": played(STORAGE, WRONG),
    "format": played(STORAGE, FOUND, stop_reason="length"),
}


def total(task: SqlTask, episode: Episode, rubric: Rubric) -> float:
    found = asyncio.run(score_episode(task, episode, ReferenceJudge(), rubric)).total
    assert found is not None
    return found


@pytest.mark.parametrize("name", TERMS)
def test_a_term_changes_the_total_by_its_weight(name):
    rubric = Rubric({**DEFAULT_RUBRIC.weights, name: 0.5})  # without factors
    others = Rubric({other: rubric.weights[other] for other in rubric.weights if other != name})
    earned = []
    for episode in (played(STORAGE, FOUND), LACKING[name]):
        earned.append(total(GOLDEN, episode, rubric) - total(GOLDEN, episode, others))
    assert earned[0] == pytest.approx(0.5)
    assert 0 <= earned[1] < 0.5 - 1e-6


def test_an_honest_abstention_after_looking_earns_both_and_before_looking_no_rule():
    assert is_unanswerable(MISSING)
    assert total(MISSING, played(MISSING.reference, NOTHING), DEFAULT_RUBRIC) == pytest.approx(1.1)
    unseen = asyncio.run(
        score_episode(MISSING, played(MISSING.reference), ReferenceJudge(), DEFAULT_RUBRIC)
    )
    assert unseen.terms["rule"] == 0


def test_terms_without_gold_are_left_out():
    names = {"execution", "evidence_recall"}
    assert not names & term_values(TASK, played("密封", FOUND)).keys()
    assert term_values(GOLDEN, played(STORAGE, FOUND)).keys() == TERMS.keys() - {"judge"}


def test_a_count_of_zero_is_an_answer():
    for rows, nothing in (
        ([[None, " "]], True),
        ([[None, " ", 0]], False),
        ([[None], ["x"]], False),
    ):
        gold = {"structured_gt": {"columns": ["a", "b"], "rows": rows}}
        assert is_unanswerable(replace(GOLDEN, gold=gold)) is nothing, rows
    assert not is_unanswerable(replace(GOLDEN, gold=None)), "nothing is known of it"


def test_rows_that_are_not_shown_do_not_match():
    assert execution(GOLDEN, played(STORAGE, replace(FOUND, count=2))) == 0


def test_the_breakdown_says_what_the_judge_saw_and_took():
    verdict = Verdict(0.5, {"accuracy": 0.25}, usage=Usage(2))
    reward = asyncio.run(score_episode(TASK, played("密封", FOUND), Fixed(verdict), DEFAULT_RUBRIC))
    assert reward.score == 0.5
    assert reward.measures == {"judge_accuracy": 0.25, "format": 1}
    counted = {"sql_calls": 1, "sql_ok": 1, "judge_calls": 2, "judge_cached": 0, "degenerate": 0}
    assert {**reward.counters, "judge_seconds": 0} == {**counted, "judge_seconds": 0}


def test_a_term_that_there_is_not_is_named_with_those_there_are():
    with pytest.raises(SettingsError) as caught:
        rubric_from(SqlSettings(_env_file=None, reward_terms="rule=0.1,judgement=1"))
    assert not missing(str(caught.value), "'judgement'", *TERMS)


JSON = FOUND.to_json()


@pytest.mark.parametrize(
    ("answer", "stop_reason", "paid"),
    [
        ("密封", "answered", 0.75),
        (JSON, "answered", 0),
        (f"结果：{JSON}", "answered", 0),
        ("密封", "length", 0),
    ],
)
def test_by_default_the_judge_s_score_is_paid_to_prose_only(answer, stop_reason, paid):
    episode = played(answer, FOUND, stop_reason=stop_reason)
    reward = asyncio.run(score_episode(GOLDEN, episode, Fixed(Verdict(0.75)), DEFAULT_RUBRIC))
    assert (reward.terms, reward.total) == ({"rule": 0.1, "judge": paid}, pytest.approx(0.1 + paid))
    assert (reward.score, reward.worth) == (0.75, paid)
    assert reward.measures == {"format": float(paid > 0)}
    before = rubric_from(SqlSettings(_env_file=None, reward_terms="rule=0.1,judge=1.0"))
    plain = asyncio.run(score_episode(GOLDEN, episode, Fixed(Verdict(0.75)), before))
    assert (plain.terms, plain.worth, plain.measures) == ({"rule": 0.1, "judge": 0.75}, 0.75, {})


def test_the_evidence_of_a_search_or_a_count_is_what_its_query_returns():
    quote = [{"table": "drugs_info", "row_id": 1, "field": "indication", "quote": "头痛"}]
    for column, right, wrong in (("med_name", "朵莎洛片", "维诺散"), ("count", 3, 13)):
        gold = {"structured_gt": {"columns": [column], "rows": [[right]]}, "evidence": quote}
        task = SqlTask(id="s", question="治头痛的药？", reference=str(right), gold=gold)
        for cell, value in ((right, 1.0), (wrong, 0.0)):
            found = QueryResult([column], [[cell]], 1, tables_read=frozenset({"drugs_info"}))
            assert term_values(task, played("x", found))["evidence_recall"] == value


def test_the_evidence_of_a_field_is_what_is_quoted_and_not_all_of_gold():
    """A policy that asks for the field alone would earn half of it."""
    named = {"columns": ["med_name", "storage"], "rows": [["朵莎洛片", STORAGE]]}
    gold = {**GOLD, "structured_gt": named}
    assert term_values(replace(GOLDEN, gold=gold), played(STORAGE, FOUND))["evidence_recall"] == 1


TWO = {"columns": ["med_name", "dosage"], "rows": [["甲片", "一次1片"], ["乙片", "一次2片"]]}


def same(rows: list[list[Any]], gold: dict[str, Any]) -> bool:
    columns = [f"c{place}" for place in range(len(rows[0]) if rows else 2)]
    return same_result(columns, [list(map(Cell, row)) for row in rows], gold)


@pytest.mark.parametrize(("rows", "is_same", "in_order"), cases_of(__file__, "result_sets"))
def test_result_sets(rows, is_same, in_order):
    assert same(rows, TWO) is is_same
    assert same(rows, TWO | {"ordered": True}) is in_order


@pytest.mark.parametrize(("shown", "gold", "is_same"), cases_of(__file__, "cells"))
def test_cells(shown, gold, is_same):
    """Two long numbers differ, which are one as floats."""
    assert same([[shown]], {"columns": ["y"], "rows": [[gold]]}) is is_same


def test_an_empty_result_is_the_gold_of_an_unanswerable_question():
    assert same([], {"columns": ["dosage"], "rows": []})
    assert not same([["x"]], {"columns": ["dosage"], "rows": []})


def test_evidence():
    quotes = ["密封，阴凉处保存", "一次1片"]
    assert evidence_found(quotes, [Cell("密封, 阴凉处保存"), Cell("别的")]) == 0.5
    assert evidence_found(quotes, [Cell("密封，阴…", cut=True), Cell("一次1片，饭后")]) == 1
    for shown, share in (("150毫克", 0), ("11.5", 0), ("一次15毫克", 1)):
        assert evidence_found(["15"], [Cell(shown)]) == share
    for cells in ([], [Cell("密封，阴…")], [Cell("…", cut=True)], [Cell("片1次一")]):
        assert evidence_found(quotes, cells) == 0


@pytest.mark.parametrize(("answer", "plain"), cases_of(__file__, "prose"))
def test_prose(answer, plain):
    assert term_values(GOLDEN, played(answer, FOUND))["format"] == plain
