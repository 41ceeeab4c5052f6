"""Named reward terms of the SQL agent and what an episode earns; docs/rewards.md shows the same table.

    rubric = rubric_from(load_settings())                                    # REWARD_TERMS, "rule=0.1,judge=1.0"
    reward = await score_episode(task, episode, judge, rubric)
    reward.total, reward.terms, reward.unscored, reward.score

By default `rule` (0 or 0.1) and `judge` (0 to 1) add up to a total from 0 to 1.1. Every term is a value in [0, 1] times
its weight. A term that needs gold the question does not have is left out for every episode of that question alike. A
judge that gave no score leaves the episode unscored, which is not 0: it has no total, and the cause is named.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from common.llm import Usage
from common.settings import SettingsError
from episodes.agent import Episode
from scoring import terms
from scoring.judge import Case, Judge, Verdict
from scoring.reference.abstention import abstains, honesty
from scoring.reference.degenerate import is_degenerate
from scoring.reference.text import words_only
from scoring.rubric import Reward, Rubric, RubricError, parse_rubric
from sql_agent.prompts import COLUMNS
from sql_agent.task import SqlTask
from tools.sql.result import QueryResult

if TYPE_CHECKING:
    from common.llm import Usage
from common.settings import Settings

DEFAULT_RUBRIC = Rubric({"rule": 0.1, "judge": 1.0})
FEWEST_TURNS = 2  # one query and the answer


@dataclass(frozen=True)
class Query:
    """An event of an episode: a statement the policy ran, and what came back."""

    sql: str
    result: QueryResult

    @classmethod
    def of_gold(cls, gold: dict[str, Any] | None) -> list[Query]:
        """The gold rows as a query would have returned them; none without structured gold."""
        table = (gold or {}).get("structured_gt")
        rows = (table or {}).get("rows") or []
        return [cls("", QueryResult(table.get("columns") or [], rows, len(rows)))] if table else []


def rule(task: SqlTask, episode: Episode) -> float:
    """1 when a query that the guard allowed ran and read an allowed table, else 0; however many there were.

    An empty result counts: on an unanswerable question it is what an honest look finds.
    """
    return float(any(result.tables_read & COLUMNS.keys() for result in _returned(episode)))


def execution(task: SqlTask, episode: Episode) -> float | None:
    """1 when the last query that ran returned the gold result set; None without one.

    Columns may be named and ordered differently, rows come in any order unless gold is "ordered"; a result of which not
    all rows are shown does not match.
    """
    gold = _structured(task)
    if gold is None:
        return None
    ran = _returned(episode)
    if not ran or ran[-1].count != len(ran[-1].rows):
        return 0.0
    return float(terms.same_result(ran[-1].columns, ran[-1].rows, gold))


def evidence_recall(task: SqlTask, episode: Episode) -> float | None:
    """The share of the gold evidence that the queries returned; None without evidence."""
    quotes = _quotes(task)
    return terms.evidence_found(quotes, _cells(episode)) if quotes else None


def evidence_precision(task: SqlTask, episode: Episode) -> float | None:
    """The share of the cells returned that are gold evidence, names asked for aside; None without evidence."""
    quotes = _quotes(task)
    return terms.evidence_among(quotes, _cells(episode), task.question) if quotes else None


def numbers(task: SqlTask, episode: Episode) -> float:
    """The share of the answer's numbers, with their units, that are in the rows returned or in the question."""
    gold = " ".join(str(cell) for row in (_structured(task) or {}).get("rows", []) for cell in row)
    return _if_answered(task, episode, lambda answer: terms.quantities_agree(answer, _known(task, episode), gold))


def abstention(task: SqlTask, episode: Episode) -> float | None:
    """On an unanswerable question how honestly the answer says, after looking, that nothing was found; else None.

    1 for that and courtesies, 0 for an answer that states something all the same
    (`abstention.honesty`).
    """
    if not is_unanswerable(task):
        return None
    looked, known = rule(task, episode) == 1, f"{task.question}\n{task.reference}"
    return honesty(episode.answer or "", known, map(words_only, _cells(episode))) if looked else 0.0


def citations(task: SqlTask, episode: Episode) -> float:
    """The share of quoted passages and references in the answer that the rows returned contain; 1 without any."""
    return _if_answered(task, episode, lambda answer: terms.claims_hold(answer, _known(task, episode)))


def format(task: SqlTask, episode: Episode) -> float:
    """1 for an answer in prose that ended by itself: no tool call, chat token, code or JSON in it."""
    ended = episode.stop_reason == "answered"
    return _if_answered(task, episode, lambda answer: float(ended and terms.is_plain(answer)))


def length(task: SqlTask, episode: Episode) -> float:
    """1 up to twice the reference's length (at least 60 characters), falling evenly to 0 at twice that."""
    return _if_answered(task, episode, lambda answer: terms.fits_length(answer, len(task.reference)))


def turns(task: SqlTask, episode: Episode) -> float:
    """1 for an answer in at most two calls of the policy, then 2 divided by their number."""
    return _if_answered(task, episode, lambda _: min(1.0, FEWEST_TURNS / max(1, episode.turns)))


@dataclass(frozen=True)
class Term:
    """One term: its value of an episode, None where it does not apply; the judge's comes from the verdict."""

    range: str
    earns: str
    value: Callable[[SqlTask, Episode], float | None] | None


TERMS = {
    "rule": Term(
        "0 or 1", "a query that the guard allowed ran and read an allowed table, once; empty results count", rule
    ),
    "judge": Term("0 to 1", "the judge's score of the answer", None),
    "execution": Term("0 or 1", "the last query that ran returned the gold result set", execution),
    "evidence_recall": Term("0 to 1", "share of the gold evidence that the queries returned", evidence_recall),
    "evidence_precision": Term("0 to 1", "share of the cells returned that are gold evidence", evidence_precision),
    "numbers": Term("0 to 1", "share of the answer's numbers with units that are in the rows or the question", numbers),
    "abstention": Term("0 to 1", "on an unanswerable question, after looking: says that nothing was found", abstention),
    "citations": Term("0 to 1", "share of quotes and references in the answer that the rows contain", citations),
    "format": Term("0 or 1", "the answer is prose and ended by itself", format),
    "length": Term("0 to 1", "1 up to twice the reference's length, then falling", length),
    "turns": Term("0 to 1", "1 up to two calls of the policy, then 2 divided by their number", turns),
}
"""Every term by its name; docs/rewards.md has the same table, and a test compares them."""


def rubric_from(settings: Settings) -> Rubric:
    """The rubric of REWARD_TERMS.

    Raises:
        SettingsError: a text that names no usable terms.
    """
    try:
        return parse_rubric(settings.reward_terms, TERMS)
    except RubricError as error:
        raise SettingsError(f"REWARD_TERMS: {error}") from None


def term_values(task: SqlTask, episode: Episode, names: Any = TERMS) -> dict[str, float]:
    """The values, before weights, of the named terms that apply to the question; the judge's is not among them."""
    values = {}
    for name in names:
        compute = TERMS[name].value
        value = compute(task, episode) if compute else None
        if value is not None:
            values[name] = value
    return values


def is_unanswerable(task: SqlTask) -> bool:
    """Whether the gold result is empty: no rows, or nothing in them."""
    gold = _structured(task)
    return gold is not None and not any(cell is not None and str(cell).strip() for row in gold["rows"] for cell in row)


def abstained(episode: Episode) -> bool:
    """Whether the answer says that the database does not have it."""
    return abstains(episode.answer or "")


def case_of(task: SqlTask, episode: Episode) -> Case:
    """What the judge sees of an episode; one without an answer is judged on the empty text."""
    context = [query.result.to_json() for query in episode.events]
    return Case(task.question, episode.answer or "", task.reference, context, task.gold)


async def score_episode(task: SqlTask, episode: Episode, judge: Judge, rubric: Rubric = DEFAULT_RUBRIC) -> Reward:
    """Score an episode; the judge is asked only where the rubric has it. The terms are weighted already."""
    values = term_values(task, episode, rubric.weights)
    counters: dict[str, float] = {"sql_calls": len(episode.events), "sql_ok": len(_returned(episode))}
    if "judge" not in rubric.weights:
        weighted = rubric.weigh(values)
        return Reward(math.fsum(weighted.values()), weighted, counters=counters)
    start = time.perf_counter()
    verdict = await judge.judge(case_of(task, episode))
    parts = {f"judge_{name}": part for name, part in verdict.parts.items() if name != "degenerate"}
    counters |= _counters(verdict, time.perf_counter() - start)
    notes: dict[str, Any] = {"measures": parts | verdict.checks, "counters": counters}
    if verdict.score is None:
        return Reward(None, rubric.weigh(values), verdict.cause, **notes)
    weighted = rubric.weigh(values | {"judge": verdict.score})
    return Reward(math.fsum(weighted.values()), weighted, score=verdict.score, **notes)


def _counters(verdict: Verdict, seconds: float) -> dict[str, float]:
    """Sums worth having: time and cost of the judge. A cost nobody knows is not 0, so it is not there."""
    usage: Usage = verdict.usage
    counters = {
        "judge_seconds": round(seconds, 6),
        "judge_calls": usage.calls,
        "judge_cached": usage.cached,
        "degenerate": float("degenerate" in verdict.parts),
        "second_judged": float("second_judge_difference" in verdict.checks),
    }
    return counters if usage.cost_usd is None else counters | {"judge_cost_usd": usage.cost_usd}


def _if_answered(task: SqlTask, episode: Episode, value: Callable[[str], float]) -> float:
    """0 without an answer, or for one that says nothing: manner is paid only where there is matter."""
    answer = episode.answer or ""
    return 0.0 if is_degenerate(case_of(task, episode)) else value(answer)


def _structured(task: SqlTask) -> dict[str, Any] | None:
    gold = (task.gold or {}).get("structured_gt")
    return gold if isinstance(gold, dict) and isinstance(gold.get("rows"), list) else None


def _quotes(task: SqlTask) -> list[str]:
    evidence = (task.gold or {}).get("evidence") or []
    return [item["quote"] for item in evidence if isinstance(item, dict) and isinstance(item.get("quote"), str)]


def _returned(episode: Episode) -> list[QueryResult]:
    return [query.result for query in episode.events if query.result.ok]


def _cells(episode: Episode) -> list[str]:
    """The text cells of every result."""
    return [cell for result in _returned(episode) for row in result.rows for cell in row if isinstance(cell, str)]


def _known(task: SqlTask, episode: Episode) -> str:
    """Everything the policy may rightly repeat: the rows returned and the question."""
    cells = [str(cell) for result in _returned(episode) for row in result.rows for cell in row if cell is not None]
    return "\n".join([*cells, task.question])
