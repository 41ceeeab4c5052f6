"""Reward arithmetic: what earns the rule term, what the total is, and when there is none."""

from __future__ import annotations

import asyncio

import pytest

from scoring.judge import Case, ReferenceJudge, Verdict
from sql_agent.agent import Episode
from sql_agent.reward import score_episode
from sql_agent.task import Task
from tools.query import QueryResult, QueryTool

TASK = Task("t", "朵莎洛片怎么保存？", "密封", "drug_field", None)


class FixedJudge:
    """Gives the verdict it was made with and keeps the case."""

    name = "fixed"

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    async def judge(self, case: Case) -> Verdict:
        self.case = case
        return self.verdict


def result(ok: bool = True, tables: frozenset[str] = frozenset({"drugs_info"})) -> QueryResult:
    return QueryResult(["a"], [["b"]], 1, error=None if ok else "x", tables_read=tables)


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
@pytest.mark.parametrize("score", [0.0, 0.4, 1.0])
def test_the_total_is_rule_plus_judge(results: list[QueryResult], rule: float, score: float) -> None:
    episode = Episode(answer="密封", tool_results=results)
    reward = asyncio.run(score_episode(TASK, episode, FixedJudge(Verdict(score))))
    assert reward.terms == {"rule": pytest.approx(rule), "judge": pytest.approx(score)}
    assert reward.total == pytest.approx(rule + score)
    assert reward.unscored is None


def test_a_judge_without_a_score_leaves_no_total() -> None:
    judge = FixedJudge(Verdict(None, cause="judge_failed"))
    reward = asyncio.run(score_episode(TASK, Episode(answer="密封", tool_results=[result()]), judge))
    assert (reward.total, reward.unscored) == (None, "judge_failed")
    assert reward.terms == {"rule": pytest.approx(0.1)}


def test_the_judge_sees_question_answer_reference_and_what_was_read() -> None:
    judge = FixedJudge(Verdict(1.0))
    asyncio.run(score_episode(TASK, Episode(answer="密封", tool_results=[result()]), judge))
    assert judge.case == Case(TASK.question, "密封", "密封", [result().to_json()], None)


def test_select_one_earns_no_rule_term(database_url: str) -> None:
    answered = QueryTool(database_url).run("SELECT 1")
    reward = asyncio.run(score_episode(TASK, Episode(answer="密封", tool_results=[answered]), FixedJudge(Verdict(1.0))))
    assert reward.terms["rule"] == 0


def test_no_answer_is_worth_nothing_to_the_offline_judge() -> None:
    reward = asyncio.run(score_episode(TASK, Episode(), ReferenceJudge()))
    assert reward.total == 0
