"""Check that the gold of question rows agrees with the database.

    findings = Checker("sqlite:///data/medical.db").check(rows)
    report = report_on(check_files([Path("train.parquet")], "sqlite:///data/medical.db"))

Four checks a row: its gold SQL runs through the agent's own tool; it returns `structured_gt`; every evidence quote is
in the cell it names; and the gold answer, given by an agent, would score 1. Text is compared without HTML, white space,
case and width. A check that needs a row the database lacks could not be made, which is not a failure.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from data.load import DataError, Note, Row, nested, normalise, read_records, statements
from data.questions.cited import Cited, CitedCells, Missing
from data.questions.markup import comparable, plain_cell, without_markup
from data.questions.split import in_several
from scoring.judge import Case, ReferenceJudge
from scoring.reference.text import closeness, fragments, words_only
from tools.sql.query import DEFAULT_TABLES, Limits, QueryResult, QueryTool

# The tool's own rules, but cells are compared whole; 20 rows, as for the agent.
LIMITS = Limits(max_cell=40_000, max_chars=2_000_000)
EXACT = 1 - 1e-9
STATES = ("valid", "not_checkable", "invalid")
SHOWN = 60  # characters of a value in a message


@dataclass
class Finding:
    """What is wrong with a row, and which checks could not be made; its number from 0, and its file among several."""

    row: Row
    problems: list[Note] = field(default_factory=list)
    unchecked: list[Note] = field(default_factory=list)
    number: int = 0
    file: str = ""

    def value(self, column: str) -> str:
        """The text of a column, "" where it is wrong."""
        return "" if any(name == column for name, _ in self.problems) else self.row.get(column, "")

    @property
    def split(self) -> str:
        """The row's split; a row without one belongs to the split of its file."""
        return self.value("split") or f"\n{self.file}"

    @property
    def state(self) -> str:
        """One of STATES."""
        return STATES[2 if self.problems else 1 if self.unchecked else 0]

    def __str__(self) -> str:
        return f"row {self.number} of {self.file}" if self.file else f"row {self.number}"

    def entities(self) -> set[str]:
        """The entities by name; without names, the rows the evidence cites."""
        if {"row", "entities", "evidence"} & {name for name, _ in self.problems}:
            return set()
        names = {words_only(name) for name in nested(self.row, "entities")} - {""}
        return names or {f"{item.get('table')}\n{item.get('row_id')}" for item in nested(self.row, "evidence")}


def gold_tool(database_url: str, tables: Iterable[str] = DEFAULT_TABLES) -> QueryTool:
    """The agent's tool without its limits on cells; it opens the database when it is first used."""
    return QueryTool(database_url, tables, LIMITS, cache=False, hints=False)


class Checker:
    """Checks rows against one database.

    Raises:
        DatabaseError: the database cannot be opened or read.
    """

    def __init__(self, database_url: str, tables: Iterable[str] = DEFAULT_TABLES) -> None:
        self.tool = gold_tool(database_url, tables)
        self.cells = CitedCells(self.tool.database(), self.tool.allowed_tables)
        self.judge = ReferenceJudge()

    def check(self, records: Iterable[Mapping[str, Any] | DataError]) -> list[Finding]:
        """One finding a record, in order. Records may be rows, or as `data.load.read_records` gives them."""

        async def check_all() -> list[Finding]:
            return [await self._check(record) for record in records]

        return asyncio.run(check_all())

    async def _check(self, record: Mapping[str, Any] | DataError) -> Finding:
        if isinstance(record, DataError):
            return Finding({}, [("row", str(record))])
        finding = Finding(*normalise(dict(record)))
        if finding.problems:
            return finding
        names = nested(finding.row, "entities")
        self._check_evidence(finding, names)
        results = self._run_sql(finding)
        if results is not None:
            self._check_gold(finding, names, results)
            await self._check_answer(finding, results)
        return finding

    def _check_evidence(self, finding: Finding, names: list[str]) -> None:
        for item in nested(finding.row, "evidence"):
            cited = self.cells.find(item)
            missing = cited if isinstance(cited, Missing) else self._not_quoted(item, cited, names)
            if missing:
                (finding.problems if missing.wrong else finding.unchecked).append(("evidence", missing.reason))

    def _not_quoted(self, item: dict[str, Any], cited: Cited, names: list[str]) -> Missing | None:
        """Why the quote of an evidence item is not in the cell it names; None if it is."""
        quote, place = item["quote"], f"{item['table']}.{item['field']} of row {item['row_id']}"
        if quote in cited.text or comparable(quote) in comparable(cited.text):
            return None
        if cited.cut:
            return Missing(f"{place} is longer than the tool reads", wrong=False)
        if names and comparable(cited.name) not in map(comparable, names) and not self.cells.has_entity(names):
            said = f"row {item['row_id']} of {item['table']} is {cited.name!r} here, not {', '.join(names)}"
            return Missing(said, wrong=False)
        return Missing(f"{_short(quote)} is not in {place}", wrong=True)

    def _run_sql(self, finding: Finding) -> list[QueryResult] | None:
        """The results of the gold statements; None when one of them fails."""
        results = [self.tool.run(statement) for statement in statements(finding.row)]
        for result in results:
            shown = f"{result.count} rows, shown {len(result.rows)}"
            if not result.ok:
                finding.problems.append(("sql", f"gold SQL fails: {result.error}"))
            elif result.count > len(result.rows):
                finding.problems.append(("sql", f"gold SQL returns more than the tool shows: {shown}"))
        return results if all(result.ok for result in results) else None

    def _check_gold(self, finding: Finding, names: list[str], results: list[QueryResult]) -> None:
        gold = nested(finding.row, "structured_gt")
        lines = [line for result in results for line in result.rows]
        if gold and not results:
            finding.unchecked.append(("structured_gt", "there is no gold SQL to recompute it from"))
        elif gold and not _is_recomputed(gold, results):
            said = f"gold SQL returns {_short(lines)}, structured_gt says {_short(gold['rows'])}"
            self._contradiction(finding, names, said)
        elif not gold and results and not lines and finding.row["task_type"] != "unanswerable":
            self._contradiction(finding, names, "gold SQL returns no rows")

    def _contradiction(self, finding: Finding, names: list[str], message: str) -> None:
        """A problem, unless the database has not the rows that the question is about."""
        lacks_rows = any(field == "evidence" for field, _ in finding.unchecked)
        lacks_names = bool(names) and not nested(finding.row, "evidence") and not self.cells.has_entity(names)
        field = "structured_gt" if finding.row["structured_gt"] else "sql"
        (finding.unchecked if lacks_rows or lacks_names else finding.problems).append((field, message))

    async def _check_answer(self, finding: Finding, results: list[QueryResult]) -> None:
        """Compare with what training compares with: structured_gt and evidence, else what the gold SQL returns."""
        row = without_markup(finding.row)
        gold = {column: said for column in ("structured_gt", "evidence") if (said := nested(row, column))}
        if not gold and not results:
            finding.unchecked.append(("answer", "there is neither SQL nor evidence to check it with"))
        elif row["answer"]:
            gold = gold or {"structured_gt": without_key(results[-1])}
            context = [result.to_json() for result in results]
            verdict = await self.judge.judge(Case(row["question"], row["answer"], row["answer"], context, gold))
            if verdict.score is None or verdict.score < EXACT:
                score = "is not scored" if verdict.score is None else f"scores {verdict.score:.2f}, expected 1"
                lacking = _lacking(gold, row["question"], row["answer"])
                finding.problems.append(("answer", f"{lacking} ({score})"))


def _is_recomputed(gold: dict[str, Any], results: Sequence[QueryResult]) -> bool:
    """Whether one result is the gold, or all of them together are; a result may have further columns."""
    wanted = [tuple(map(_cell, line)) for line in gold["rows"]]
    found = [_project(result, gold["columns"]) for result in results]
    candidates = [rows for rows in found if rows is not None]
    together = [line for rows in candidates for line in rows]
    arranged = list if gold.get("ordered") else sorted
    return bool(candidates) and any(arranged(rows) == arranged(wanted) for rows in (*candidates, together))


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


def without_key(result: QueryResult) -> dict[str, Any]:
    """The result as gold, without the key: nobody asks for it, and answers do not say it."""
    kept = [place for place, name in enumerate(result.columns) if name.lower() != "id"] or [*range(len(result.columns))]
    rows = [[plain_cell(line[place]) for place in kept] for line in result.rows]
    return {"columns": [result.columns[place] for place in kept], "rows": rows}


def _lacking(gold: dict[str, Any], question: str, answer: str) -> str:
    """The piece of gold that the answer has least of."""
    cells = [str(cell) for line in gold.get("structured_gt", {}).get("rows", []) for cell in line if cell is not None]
    texts = cells or [item["quote"] for item in gold.get("evidence", [])]
    said, asked = words_only(answer), words_only(question)
    parts = [part for text in texts for part in fragments(text) if part not in asked]
    worst = min(parts, key=lambda part: closeness(part, said), default="")
    lacks = worst and closeness(worst, said) < EXACT
    return f"lacks the gold value {_short(worst)}" if lacks else "is not what the score expects of this gold"


def _short(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text[:SHOWN] + "…" if len(text) > SHOWN else text


def check_files(
    files: list[Path], database_url: str, sample: int | None = None, tables: Iterable[str] = DEFAULT_TABLES
) -> list[Finding]:
    """Check every row, or the first `sample` of each file.

    Raises:
        DataError: a file cannot be read.
        DatabaseError: the database cannot be opened or read.
    """
    checker, findings = Checker(database_url, tables), []
    for path in files:
        found = checker.check(record for _, record in islice(read_records(path), sample))
        if not found:
            raise DataError(f"{path} has no rows")
        for number, finding in enumerate(found):
            finding.number, finding.file = number, str(path) if len(files) > 1 else ""
        findings += found
    _find_repetitions(findings)
    return findings


def _find_repetitions(findings: list[Finding]) -> None:
    """An id used twice, and a question asked in two splits, become problems of the later row."""
    ids: dict[str, Finding] = {}
    questions: dict[str, Finding] = {}
    for finding in findings:
        key, question = finding.value("id"), words_only(finding.value("question"))
        earlier, asked = ids.get(key), questions.get(question)
        ids[key], questions[question] = finding, finding
        if key and earlier:
            finding.problems.append(("id", f"is already the id of {earlier}"))
        if question and asked and asked.split != finding.split:
            finding.problems.append(("question", f"{asked}, of another split, asks the same"))


def report_on(findings: list[Finding]) -> dict[str, Any]:
    """The report: rows, valid, not_checkable, entity_overlap, problems and by_task_type.

    `problems` are {row, id, field, message}, with `file` when there are several files.
    """
    states = Counter(finding.state for finding in findings)
    return {
        "rows": len(findings),
        "valid": states["valid"],
        "not_checkable": states["not_checkable"],
        "entity_overlap": len(in_several((entity, one.split) for one in findings for entity in one.entities())),
        "problems": [
            ({"file": one.file} if one.file else {})
            | {"row": one.number, "id": one.value("id"), "field": name, "message": message}
            for one in findings
            for name, message in one.problems
        ],
        "by_task_type": _by_task_type(findings),
    }


def _by_task_type(findings: list[Finding]) -> dict[str, dict[str, int]]:
    report: dict[str, dict[str, int]] = {}
    for finding in findings:
        kind = finding.value("task_type") or "unknown"
        counts = report.setdefault(kind, dict.fromkeys(("rows", *STATES, "without_answer"), 0))
        for name in ("rows", finding.state, *(() if finding.row.get("answer") else ("without_answer",))):
            counts[name] += 1
    return dict(sorted(report.items()))


def reasons_of(findings: list[Finding]) -> Counter[str]:
    """Why checks could not be made, and how often, without what differs from row to row."""
    return Counter(f"{name}: {_kind(message)}" for finding in findings for name, message in finding.unchecked)


def _kind(message: str) -> str:
    return " ".join("…" if word.isdigit() else word for word in message.split(":")[0].split())
