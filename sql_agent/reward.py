"""Named reward terms of the SQL agent and their sum.

`rule`: 0.1, once, when a query that ran read one of the allowed tables; an attempt alone earns nothing. `judge`: 0 to
1, from `scoring/judge.py`. The total is their sum, 0 to 1.1. A judge that gave no score leaves the episode unscored,
which is not 0: it has no total, and the cause is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scoring.judge import Case, Judge
from scoring.rubric import Reward, weighted_sum
from sql_agent.prompts import COLUMNS
from sql_agent.task import Task

if TYPE_CHECKING:
    from sql_agent.agent import Episode

WEIGHTS = {"rule": 0.1, "judge": 1.0}


def rule_score(episode: Episode) -> float:
    """Return 1 when any query ran and read an allowed table, else 0."""
    return float(any(result.ok and result.tables_read & COLUMNS.keys() for result in episode.tool_results))


async def score_episode(task: Task, episode: Episode, judge: Judge) -> Reward:
    """Score an episode; one without an answer is judged on the empty text. The terms are weighted already."""
    context = [result.to_json() for result in episode.tool_results]
    verdict = await judge.judge(Case(task.question, episode.answer or "", task.answer, context, task.gold))
    scores = {"rule": rule_score(episode)}
    if verdict.score is None:
        return Reward(None, _weighted(scores), verdict.cause)
    scores["judge"] = verdict.score
    return Reward(weighted_sum(scores, WEIGHTS), _weighted(scores))


def _weighted(scores: dict[str, float]) -> dict[str, float]:
    return {name: score * WEIGHTS[name] for name, score in scores.items()}
