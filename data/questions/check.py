"""Check that question rows agree with the database: all rows for `data.validate`, a sample before training.

    findings = Checker("sqlite:///data/medical.db").check(rows)

Four checks a row: its gold SQL runs through the agent's own tool; it returns `structured_gt`; every evidence quote is
in the cell it names; and the gold answer, given by an agent, would score 1. Text is compared without HTML, white space,
case and width. A check that needs a row the database lacks could not be made, which is not a failure.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from data.load import Row, normalise_record
from data.questions.cited import Cited, CitedCells
from data.questions.markup import comparable, plain
from scoring.judge import Case, ReferenceJudge
from scoring.reference.text import closeness, fragments, words_only
from tools.sql.query import Limits, QueryResult, QueryTool

BATCH_ROWS = 500
# The tool's own rules, but cells are compared whole; 20 rows, as for the agent.
LIMITS = Limits(max_cell=40_000, max_chars=2_000_000)
EXACT = 1 - 1e-9
SHOWN = 60  # characters of a value in a message

Note = tuple[str, str]  # field, message


@dataclass
class Finding:
    """What is wrong with a row, and which checks could not be made, as (field, message)."""

    row: Row
    problems: list[Note] = field(default_factory=list)
    unchecked: list[Note] = field(default_factory=list)


class Checker:
    """Checks rows against one database; memory stays that of one batch.

    Raises:
        DatabaseError: the database cannot be opened or read.
    """

    def __init__(self, database_url: str) -> None:
        self.tool = QueryTool(database_url, limits=LIMITS, cache=False, hints=False)
        self.cells = CitedCells(self.tool.database())
        self.judge = ReferenceJudge()

    def check(self, records: Iterable[Mapping[str, Any]]) -> list[Finding]:
        """One finding a record, in order. Records may be as files have them or as `load_rows` gives them."""
        findings = []
        for record in records:
            row, problems = normalise_record(dict(record))
            findings.append(Finding(row, problems))
        whole = [finding for finding in findings if not finding.problems]
        self.cells.fetch(json.loads(finding.row["evidence"] or "[]") for finding in whole)
        asyncio.run(self._check_whole(whole))
        return findings

    async def _check_whole(self, findings: Sequence[Finding]) -> None:
        for finding in findings:
            names = json.loads(finding.row["entities"] or "[]")
            self._check_evidence(finding, names)
            results = self._run_sql(finding)
            if results is not None:
                self._check_gold(finding, names, results)
                await self._check_answer(finding, results)

    def _check_evidence(self, finding: Finding, names: list[str]) -> None:
        row = finding.row
        for item in json.loads(row["evidence"] or "[]"):
            cited = self.cells.find(item)
            if isinstance(cited, Cited):
                self._check_quote(finding, item, cited, names)
            else:
                (finding.problems if cited.wrong else finding.unchecked).append(("evidence", cited.reason))

    def _check_quote(self, finding: Finding, item: dict[str, Any], cited: Cited, names: list[str]) -> None:
        quote, place = item["quote"], f"{item['table']}.{item['field']} of row {item['row_id']}"
        if quote in cited.text or comparable(quote) in comparable(cited.text):
            return
        if cited.cut:
            finding.unchecked.append(("evidence", f"{place} is longer than the tool reads"))
        elif names and not _mentions(names, cited.name) and not self.cells.has_entity(names):
            said = f"row {item['row_id']} of {item['table']} is {cited.name!r} here, not {', '.join(names)}"
            finding.unchecked.append(("evidence", said))
        else:
            finding.problems.append(("evidence", f"{_short(quote)} is not in {place}"))

    def _run_sql(self, finding: Finding) -> list[QueryResult] | None:
        """The results of the gold statements; None when one of them fails."""
        results = [self.tool.run(statement) for statement in finding.row["sql"]]
        for result in results:
            if not result.ok:
                finding.problems.append(("sql", f"gold SQL fails: {result.error}"))
            elif result.count > len(result.rows):
                finding.problems.append(
                    ("sql", f"gold SQL returns more than the tool shows: {result.count} rows, shown {len(result.rows)}")
                )
        return results if all(result.ok for result in results) else None

    def _check_gold(self, finding: Finding, names: list[str], results: list[QueryResult]) -> None:
        row = finding.row
        gold = json.loads(row["structured_gt"] or "null")
        if gold and not results:
            finding.unchecked.append(("structured_gt", "there is no gold SQL to recompute it from"))
        elif gold:
            if not _is_recomputed(gold, results):
                found = _short([line for result in results for line in result.rows])
                self._contradiction(
                    finding, names, f"gold SQL returns {found}, structured_gt says {_short(gold['rows'])}"
                )
        elif results and not any(result.rows for result in results) and row["task_type"] != "unanswerable":
            self._contradiction(finding, names, "gold SQL returns no rows")

    def _contradiction(self, finding: Finding, names: list[str], message: str) -> None:
        """A problem, unless the database has not the rows that the question is about."""
        lacks_rows = any(field == "evidence" for field, _ in finding.unchecked)
        lacks_names = bool(names) and finding.row["evidence"] in ("", "[]") and not self.cells.has_entity(names)
        field = "structured_gt" if finding.row["structured_gt"] else "sql"
        (finding.unchecked if lacks_rows or lacks_names else finding.problems).append((field, message))

    async def _check_answer(self, finding: Finding, results: list[QueryResult]) -> None:
        row = finding.row
        gold = _gold_for_judge(row, results)
        if gold is None:
            finding.unchecked.append(("answer", "there is neither SQL nor evidence to check it with"))
        elif row["answer"]:
            question, answer = plain(row["question"]), plain(row["answer"])
            context = [result.to_json() for result in results]
            verdict = await self.judge.judge(Case(question, answer, answer, context, gold))
            if verdict.score is None or verdict.score < EXACT:
                score = "is not scored" if verdict.score is None else f"scores {verdict.score:.2f}, expected 1"
                finding.problems.append(("answer", f"{_lacking(gold, question, answer)} ({score})"))


def batches(rows: Iterable[Any], size: int = BATCH_ROWS) -> Iterator[list[Any]]:
    """The rows in lists of `size`, the last one shorter."""
    source = iter(rows)
    while batch := list(islice(source, size)):
        yield batch


def _is_recomputed(gold: dict[str, Any], results: Sequence[QueryResult]) -> bool:
    """Whether one result is the gold, or all of them together are; a result may have further columns."""
    wanted = [tuple(map(_cell, line)) for line in gold["rows"]]
    found = [_project(result, gold["columns"]) for result in results]
    candidates = [rows for rows in found if rows is not None]
    if len(candidates) > 1:
        candidates.append([line for rows in candidates for line in rows])
    if gold.get("ordered"):
        return any(rows == wanted for rows in candidates)
    return any(sorted(rows) == sorted(wanted) for rows in candidates)


def _project(result: QueryResult, columns: Sequence[str]) -> list[tuple[str, ...]] | None:
    names = [name.lower() for name in result.columns]
    if not {column.lower() for column in columns} <= set(names):
        return None
    places = [names.index(column.lower()) for column in columns]
    return [tuple(_cell(line[place]) for place in places) for line in result.rows]


def _cell(value: Any) -> str:
    """The value in comparable form; an empty cell and NULL are the same to a reader, and so are 1, 1.0 and "1"."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else comparable(str(value))


def _mentions(names: Iterable[str], name: str) -> bool:
    return comparable(name) in {comparable(one) for one in names}


def _gold_for_judge(row: Row, results: Sequence[QueryResult]) -> dict[str, Any] | None:
    """What training compares with, without HTML: structured_gt and evidence, else what the gold SQL returns."""
    gold: dict[str, Any] = {}
    if row["structured_gt"]:
        table = json.loads(row["structured_gt"])
        gold["structured_gt"] = table | {"rows": [[_plain_cell(cell) for cell in line] for line in table["rows"]]}
    quotes = json.loads(row["evidence"] or "[]")
    if quotes:
        gold["evidence"] = [item | {"quote": plain(item["quote"])} for item in quotes]
    if not gold and results:
        gold["structured_gt"] = without_key(results[-1])
    return gold or None


def without_key(result: QueryResult) -> dict[str, Any]:
    """The result as gold, without the key: nobody asks for it, and answers do not say it."""
    kept = [place for place, name in enumerate(result.columns) if name.lower() != "id"] or [*range(len(result.columns))]
    columns = [result.columns[place] for place in kept]
    return {"columns": columns, "rows": [[_plain_cell(line[place]) for place in kept] for line in result.rows]}


def _plain_cell(value: Any) -> Any:
    return plain(value) if isinstance(value, str) else value


def _lacking(gold: dict[str, Any], question: str, answer: str) -> str:
    """The piece of gold that the answer has least of."""
    cells = [str(cell) for line in gold.get("structured_gt", {}).get("rows", []) for cell in line if cell is not None]
    texts = cells or [item["quote"] for item in gold.get("evidence", [])]
    said, asked = words_only(answer), words_only(question)
    parts = [part for text in texts for part in fragments(text) if part not in asked]
    worst = min(parts, key=lambda part: closeness(part, said), default="")
    if worst and closeness(worst, said) < EXACT:
        return f"lacks the gold value {_short(worst)}"
    return "is not what the score expects of this gold"


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text[:SHOWN] + "…" if len(text) > SHOWN else text
