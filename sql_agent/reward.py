"""The named reward terms of the SQL agent, and what an episode earns (docs/rewards.md).

    rubric = rubric_from(load_settings().of(SqlSettings))    # REWARD_TERMS, "rule=0.1,judge=1.0*format"
    reward = await score_episode(task, episode, judge, rubric)
    reward.total, reward.terms, reward.unscored, reward.score

A term is a value in [0, 1] times weight and factors, so the default total is 0 to 1.1. A term that
needs missing gold is left out for all episodes of the question alike. Without the judge's score an
episode is unscored, which is not 0: it has a cause instead of a total.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

from common.command import UsageError
from common.settings import SettingsError
from episodes.episode import Episode
from scoring.case import Case, Judge, Verdict
from scoring.rubric import Reward, Rubric, parse_rubric
from sql_agent import terms
from sql_agent.judge.nothing import says_nothing
from sql_agent.own_words import Column, columns_of
from sql_agent.prompts import COLUMNS
from sql_agent.settings import SqlSettings
from sql_agent.task import SqlTask
from sql_agent.terms import Cell
from tools.sql.guard import Refused, check
from tools.sql.query import QueryTool
from tools.sql.result import QueryResult, compact

DEFAULT_RUBRIC = Rubric({"rule": 0.1, "judge": 1.0}, {"judge": ["format"]})


@dataclass(frozen=True)
class Query:
    """A statement that the policy ran, its result, and the columns it might read, by table."""

    sql: str
    result: QueryResult
    tables: Mapping[str, Sequence[str]] = field(default_factory=lambda: COLUMNS)
    dialect: str = "sqlite"

    @classmethod
    def run(cls, sql: str, tool: QueryTool) -> Query:
        """Run a statement."""
        result = tool.run(sql)
        database = tool.database()
        tables = {}
        for table in tool.allowed_tables:
            tables[table] = [column.name for column in database.columns(table)]
        return cls(sql, result, tables, database.dialect)

    @cached_property
    def columns(self) -> list[Column]:
        """What each column of the result is. Without a statement, all of it is the database's."""
        names = self.result.columns
        if not self.sql or not self.result.ok:
            return [Column(True, name=name) for name in names]
        return columns_of(self.sql, self.dialect, self.tables, len(names))

    @cached_property
    def read(self) -> list[list[Any]]:
        """The rows without the words of the statement itself. None: a cell without others."""
        if not self.sql:
            return self.result.rows
        rows = []
        for row in self.result.rows:
            cells = zip(self.columns, row, strict=False)
            rows.append([column.without_own(cell) for column, cell in cells])
        return rows

    @property
    def is_made_up(self) -> bool:
        """Whether the rows hold values, and all of them are the statement's own."""
        return _has_values(self.result.rows) and not _has_values(self.read)

    @property
    def for_judge(self) -> str:
        """The result as JSON, without errors and hints, which repeat the statement's words."""
        result = self.result
        columns = [column.name for column in self.columns]
        shown = {"status": result.status, "columns": columns, "rows": self.read}
        return compact(shown | {"count": result.count, "truncated": result.truncated})

    @classmethod
    def of_gold(cls, task: SqlTask) -> list[Query]:
        """Return the gold rows, else the quotes, as a query's result, or []."""
        gold = task.result
        if not gold:
            evidence = (task.gold or {}).get("evidence") or []
            quotes = [[item.get("field"), item["quote"]] for item in evidence]
            gold = {"columns": ["field", "quote"], "rows": quotes}
            if not quotes:
                return []
        return [cls("", QueryResult(gold["columns"], gold["rows"], len(gold["rows"])))]


Value = Callable[[SqlTask, Episode], float | None]


def rule(task: SqlTask, episode: Episode) -> float:
    """Return 1 if a query that ran read an allowed table, else 0.

    An empty result counts, because an honest look finds one for an unanswerable question. A result
    made of the query's own literals does not.
    """
    for query in episode.events:
        read = query.result.ok and query.result.tables_read & query.tables.keys()
        if read and not query.is_made_up:
            return 1.0
    return 0.0


def execution(task: SqlTask, episode: Episode) -> float | None:
    """Return 1 if the last result is the gold result (`terms.same_result`), 0 or None without gold.

    A result that is not shown in full never matches, nor does one that the statement made up,
    unless gold's does so too.
    """
    gold = task.result
    ran = _ran(episode)
    if gold is None:
        return None
    if not ran:
        return 0.0
    last = ran[-1]
    result = last.result
    if result.count != len(result.rows) or (last.is_made_up and not _makes_up(task, last)):
        return 0.0
    shown = []
    for at, row in enumerate(result.rows):
        shown.append([Cell(value, (at, place) in result.cut) for place, value in enumerate(row)])
    return float(terms.same_result(result.columns, shown, gold))


def evidence_recall(task: SqlTask, episode: Episode) -> float | None:
    """Return the share of the gold evidence that the queries returned."""
    evidence = (task.gold or {}).get("evidence") or []
    fields = {item.get("field") for item in evidence}
    if evidence and task.result and not fields & set(task.result["columns"]):
        # Of a search or a count. Its rows are what can be returned
        wanted = [str(cell) for cell in chain(*task.result["rows"]) if cell is not None]
        there = {str(cell.value) for cell in _cells(episode)}
        return sum(text in there for text in wanted) / len(wanted) if wanted else None
    texts = [cell for cell in _cells(episode) if isinstance(cell.value, str)]
    quotes = [item["quote"] for item in evidence]
    return terms.evidence_found(quotes, texts) if quotes else None


def format(task: SqlTask, episode: Episode) -> float:
    """Return 1 if the answer is prose and ended by itself."""
    if says_nothing(case_of(task, episode)):
        return 0.0
    return float(episode.stop_reason == "answered" and terms.is_plain(episode.answer or ""))


TERMS: dict[str, Value | None] = {
    "rule": rule,
    "judge": None,  # its value comes with the verdict
    "execution": execution,
    "evidence_recall": evidence_recall,
    "format": format,
}


def rubric_from(settings: SqlSettings) -> Rubric:
    """Return the rubric of REWARD_TERMS. Raises SettingsError: it names no usable terms."""
    try:
        return parse_rubric(settings.reward_terms, TERMS)
    except UsageError as error:
        raise SettingsError(f"REWARD_TERMS: {error}") from None


def term_values(task: SqlTask, episode: Episode, names: Any = TERMS) -> dict[str, float]:
    """Return unweighted values of the applicable named terms, without the judge's."""
    values = {}
    for name in names:
        compute = TERMS[name]
        value = compute(task, episode) if compute else None
        if value is not None:
            values[name] = value
    return values


def is_unanswerable(task: SqlTask) -> bool:
    """Return whether the gold result has no rows, or only empty cells."""
    if task.result is None:
        return False
    return not any(cell is not None and str(cell).strip() for cell in chain(*task.result["rows"]))


def case_of(task: SqlTask, episode: Episode) -> Case:
    """Return what the judge sees. A missing answer is judged as the empty text."""
    context = [query.for_judge for query in episode.events]
    return Case(task.question, episode.answer or "", task.reference, context, task.gold)


async def score_episode(
    task: SqlTask, episode: Episode, judge: Judge, rubric: Rubric = DEFAULT_RUBRIC
) -> Reward:
    """Score an episode. The judge is asked only if the rubric has it. Terms are already weighted."""
    values = term_values(task, episode, rubric.names)
    counters: dict[str, float] = {"sql_calls": len(episode.events), "sql_ok": len(_ran(episode))}
    if "judge" not in rubric.names:
        weighted = rubric.weigh(values)
        return Reward(math.fsum(weighted.values()), weighted, counters=counters)
    start = time.perf_counter()
    case = case_of(task, episode)
    if says_nothing(case):
        verdict = Verdict(0.0, {"degenerate": 1.0})
    else:
        verdict = await judge.judge(case)
    parts = {f"judge_{name}": part for name, part in verdict.parts.items() if name != "degenerate"}
    counters |= {
        "judge_seconds": round(time.perf_counter() - start, 6),
        "judge_calls": verdict.usage.calls,
        "judge_cached": verdict.usage.cached,
        "degenerate": float("degenerate" in verdict.parts),
    }
    factors = {name: value for name, value in values.items() if name not in rubric.weights}
    notes: dict[str, Any] = {"measures": parts | verdict.checks | factors, "counters": counters}
    if verdict.score is None:
        return Reward(None, rubric.weigh(values), verdict.cause, **notes)
    weighted = rubric.weigh(values | {"judge": verdict.score})
    factor = rubric.factor("judge", values)
    return Reward(
        math.fsum(weighted.values()), weighted, score=verdict.score, factor=factor, **notes
    )


def _ran(episode: Episode) -> list[Query]:
    return [query for query in episode.events if query.result.ok]


def _makes_up(task: SqlTask, query: Query) -> bool:
    """Return whether the gold result is of the statement's own literals too, such as 有 and 无."""
    if not task.sql or not task.result:
        return False
    try:
        check(task.sql[-1], query.dialect, query.tables)
    except Refused:  # nothing is known of it
        return False
    result = replace(query.result, columns=task.result["columns"], rows=task.result["rows"])
    return replace(query, sql=task.sql[-1], result=result).is_made_up


def _has_values(rows: Iterable[Sequence[Any]]) -> bool:
    return any(cell is not None for cell in chain(*rows))


def _cells(episode: Episode) -> list[Cell]:
    found = []
    for query in _ran(episode):
        for at, row in enumerate(query.read):
            for place, value in enumerate(row):
                if value is not None:
                    found.append(Cell(value, (at, place) in query.result.cut))
    return found
