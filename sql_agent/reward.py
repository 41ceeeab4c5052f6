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
import re
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, permutations
from typing import Any, NamedTuple

from common.command import UsageError
from common.settings import SettingsError
from episodes.episode import Episode
from scoring.case import Case, Judge, Verdict
from scoring.rubric import Reward, Rubric, parse_rubric
from scoring.text import stands_in, words_only
from sql_agent.judge.nothing import says_nothing
from sql_agent.own_words import Column, columns_of
from sql_agent.prompts import COLUMNS
from sql_agent.settings import SqlSettings
from sql_agent.task import SqlTask
from tools.sql.guard import Refused, check
from tools.sql.query import QueryTool
from tools.sql.result import QueryResult, compact

CODE = re.compile(r"[+-]?0\d|\w*_")  # 007 and 1_0 are no numbers
CUT = "…"  # what ends a cell that the tool shortened
MOST_COLUMNS = 6  # results wider than this are compared in the order of their columns only
# Tool calls, chat tokens, code fences and JSON, of which prose has none
MARKUP = re.compile(
    r"<\s*/?\s*(?:tool|think|function|\|)|```|^\s*(?:\{|\[\s*(?:[\[\]{\"']|[^\[\]]*,))|\{\s*[\"']|\"(?:sql|name|arguments)\"\s*:",
    re.IGNORECASE,
)


class Cell(NamedTuple):
    """A value of a result, and whether the tool cut it."""

    value: Any
    cut: bool = False


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
        rows = []
        for row in self.result.rows:
            cells = zip(self.columns, row, strict=False)
            rows.append([column.without_own(cell) for column, cell in cells])
        return rows

    def cells(self, rows: Sequence[Sequence[Any]]) -> list[list[Cell]]:
        """Return the rows, all of them or what was read, with what the tool cut."""
        found = []
        for at, row in enumerate(rows):
            cut = [(at, place) in self.result.cut for place in range(len(row))]
            found.append(list(map(Cell, row, cut)))
        return found

    @property
    def is_made_up(self) -> bool:
        """Whether the rows hold values, and all of them are the statement's own."""
        has_values = any(cell is not None for cell in chain(*self.result.rows))
        return has_values and all(cell is None for cell in chain(*self.read))

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
    """Return 1 if the last result is the gold result (`same_result`), 0 or None without gold.

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
    return float(same_result(result.columns, last.cells(result.rows), gold))


def evidence_recall(task: SqlTask, episode: Episode) -> float | None:
    """Return the share of the gold evidence that the queries returned."""
    evidence = (task.gold or {}).get("evidence") or []
    if not evidence:
        return None
    cells: list[Cell] = []
    for query in _ran(episode):
        cells += chain(*query.cells(query.read))
    fields = {item.get("field") for item in evidence}
    if task.result and not fields & set(task.result["columns"]):
        # Of a search or a count. Its rows are what can be returned
        wanted = [str(cell).strip() for cell in chain(*task.result["rows"]) if cell is not None]
        there = {str(cell.value).strip() for cell in cells if cell.value is not None}
        return sum(text in there for text in wanted) / len(wanted) if wanted else None
    texts = [cell for cell in cells if isinstance(cell.value, str)]
    return evidence_found([item["quote"] for item in evidence], texts)


def has_format(task: SqlTask, episode: Episode) -> float:
    """Return 1 if the answer is prose and ended by itself."""
    is_whole = episode.stop_reason == "answered" and not MARKUP.search(episode.answer or "")
    return float(is_whole and not says_nothing(case_of(task, episode)))


TERMS: dict[str, Callable[[SqlTask, Episode], float | None] | None] = {
    "rule": rule,
    "judge": None,  # its value comes with the verdict
    "execution": execution,
    "evidence_recall": evidence_recall,
    "format": has_format,
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


async def score_episode(task: SqlTask, episode: Episode, judge: Judge, rubric: Rubric) -> Reward:
    """Score an episode. The judge is asked only if the rubric has it. Terms are already weighted."""
    values = term_values(task, episode, rubric.names)
    counters: dict[str, float] = {"sql_calls": len(episode.events), "sql_ok": len(_ran(episode))}
    if "judge" not in rubric.names:
        weighted = rubric.weigh(values)
        return Reward(math.fsum(weighted.values()), weighted, counters=counters)
    start = time.perf_counter()
    case = case_of(task, episode)
    verdict = Verdict(0.0, {"degenerate": 1.0}) if says_nothing(case) else await judge.judge(case)
    parts = {f"judge_{name}": part for name, part in verdict.parts.items() if name != "degenerate"}
    counters |= {
        "judge_seconds": round(time.perf_counter() - start, 6),
        "judge_calls": verdict.usage.calls,
        "judge_cached": verdict.usage.cached,
        "degenerate": float("degenerate" in verdict.parts),
    }
    factors = {name: value for name, value in values.items() if name not in rubric.weights}
    factor = 1.0
    if verdict.score is not None:
        factor = rubric.factor("judge", values)
        values["judge"] = verdict.score
    weighted = rubric.weigh(values)
    total = None if verdict.cause else math.fsum(weighted.values())
    measures = parts | verdict.checks | factors
    return Reward(total, weighted, verdict.cause, verdict.score, factor, measures, counters)


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


def same_result(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], gold: dict[str, Any]
) -> bool:
    """Return whether a result has gold's rows, each as often, in gold's order if it is "ordered".

    Columns may have other names and another order. A cut cell equals any text that begins with it.
    """
    wanted = gold["rows"]
    width = len(gold["columns"])
    if len(rows) != len(wanted) or (rows and len(columns) != width):
        return False
    for order in permutations(range(width)) if width <= MOST_COLUMNS else [range(width)]:
        turned = [[row[column] for column in order] for row in rows]
        if _same_rows(turned, wanted, bool(gold.get("ordered"))):
            return True
    return False


def _same_rows(rows: list[list[Cell]], wanted: list[list[Any]], ordered: bool) -> bool:
    left = list(wanted)
    for row in rows:
        same = [want for want in (left[:1] if ordered else left) if _is_same(row, want)]
        if not same:
            return False
        left.remove(same[0])
    return True


def _is_same(row: Sequence[Cell], wanted: Sequence[Any]) -> bool:
    for cell, want in zip(row, wanted, strict=True):
        shown = _plain(cell.value)
        text = _plain(want)
        beginning = shown.removesuffix(CUT).strip()
        if shown != text and not (cell.cut and beginning and text.startswith(beginning)):
            return False
    return True


def _plain(cell: Any) -> str:
    """Return a cell as comparable text: 3, 3.0 and "3" are equal, and so are null and ""."""
    if cell is None:
        return ""
    text = unicodedata.normalize("NFKC", str(cell)).strip().replace("...", CUT)
    if CODE.match(text):
        return text
    try:
        if re.fullmatch(r"[+-]?\d+", text):
            return str(int(text))  # every digit of a long key counts
        return f"{float(text):.15g}" if not isinstance(cell, bool) else text
    except ValueError:
        return text


def evidence_found(quotes: Iterable[str], cells: Iterable[Cell]) -> float:
    """Return the share of the quotes that are in a returned cell."""
    wanted = [words_only(quote) for quote in quotes]
    shown = [(words_only(cell.value), cell.cut) for cell in cells]
    found = 0
    for quote in filter(None, wanted):
        found += any(
            stands_in(quote, words) or (was_cut and bool(words) and quote.startswith(words))
            for words, was_cut in shown
        )
    return found / len(wanted)
