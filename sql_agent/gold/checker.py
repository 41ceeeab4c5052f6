"""Check that the gold of question rows agrees with the database.

    findings = Checker("sqlite:///data/medical.db").check(rows)

Each row gets four checks: its gold SQL runs through the agent's own tool; it returns
`structured_gt`; every evidence quote is in the cell it names; and the gold answer, given by an
agent, would score 1. Text is compared without HTML, white space, case and width. A check that needs
a row the database lacks cannot be made, which is not a failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from common.terminal import watched
from scoring.judge import Case
from scoring.text import words_only
from sql_agent.gold.cited import KEPT_CHARACTERS, CitedCells, Missing
from sql_agent.gold.markup import comparable, markup_asked, plain_cell, without_markup
from sql_agent.intake.question_files import (
    DataError,
    Note,
    Row,
    nested,
    normalise,
    statements,
)
from sql_agent.judge.fold import fold, pieces
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.tables import NAME_COLUMN
from tools.sql.query import DEFAULT_TABLES, Limits, QueryResult, QueryTool

# The tool's own rules, except that cells are compared completely; 20 rows, as for the agent.
LIMITS = Limits(max_cell=40_000, max_chars=2_000_000)
STATES = ("valid", "not_checkable", "invalid")
SEARCHES = ("drug_search_by_kw", "disease_to_drug")  # task types that are answered by names
STAND_IN = "（名称未知"  # stands for a name in a database made of quotes
EXACT = 1 - 1e-9  # of a score, from which it counts as full
SHOWN = 60  # characters of a value in a message


@dataclass
class Finding:
    """The problems of a row, and the checks that could not be made; with its number from 0, and its
    file if there are several.
    """

    row: Row
    problems: list[Note] = field(default_factory=list)
    unchecked: list[Note] = field(default_factory=list)
    number: int = 0
    file: str = ""

    def note(self, column: str, reason: str, wrong: bool) -> None:
        """Add a problem, or why a check could not be made."""
        (self.problems if wrong else self.unchecked).append((column, reason))

    @property
    def lacks_rows(self) -> bool:
        """Return whether the database lacks the rows that the evidence cites."""
        return any(column == "evidence" for column, _ in self.unchecked)

    def value(self, column: str) -> str:
        """Return the text of a column, "" if it is wrong."""
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
        """Return the entities by name; without names, the rows the evidence cites."""
        if {"row", "entities", "evidence"} & {name for name, _ in self.problems}:
            return set()
        names = {words_only(name) for name in nested(self.row, "entities")} - {""}
        return names or {
            f"{item.get('table')}\n{item.get('row_id')}" for item in nested(self.row, "evidence")
        }


def gold_tool(database_url: str, tables: Iterable[str] = DEFAULT_TABLES) -> QueryTool:
    """Return the agent's tool without its limits on cells. It opens the database when it is first
    used.
    """
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
        """Return one finding a record, in order.

        Records may be rows, or the output of `sql_agent.intake.question_files.read_records`.
        """
        return [self._check(record) for record in watched(records, "checking")]

    def _check(self, record: Mapping[str, Any] | DataError) -> Finding:
        if isinstance(record, DataError):
            return Finding({}, [("row", str(record))])
        finding = Finding(*normalise(dict(record)))
        if finding.problems:
            return finding
        if asked := markup_asked(finding.row):
            finding.problems.append(
                ("question", f"asks for HTML, {short(repr(asked))}; expected words")
            )
        names = nested(finding.row, "entities")
        self._check_evidence(finding, names)
        results = self._run_sql(finding)
        if results is not None:
            self._check_gold(finding, names, results)
            self._check_answer(finding, results)
            # Keys that belong to another database prove nothing about this one.
            if not finding.lacks_rows:
                _check_names(finding, results)
        return finding

    def _check_evidence(self, finding: Finding, names: list[str]) -> None:
        for item in nested(finding.row, "evidence"):
            if missing := self._not_quoted(item, names):
                finding.note("evidence", *missing)

    def _not_quoted(self, item: dict[str, Any], names: list[str]) -> Missing | None:
        """Return why the quote of an evidence item is not in the cell it names; None if it is."""
        cited = self.cells.find(item)
        if isinstance(cited, Missing):
            return cited
        name, text = cited
        quote = item["quote"]
        if quote in text or comparable(quote) in comparable(text):
            return None
        place = f"{item['table']}.{item['field']} of row {item['row_id']}"
        if len(text) >= KEPT_CHARACTERS:
            return Missing(f"{place} is longer than the tool reads", wrong=False)
        if (
            names
            and comparable(name) not in map(comparable, names)
            and not self.cells.has_entity(names)
        ):
            said = (
                f"row {item['row_id']} of {item['table']} is {name!r} here, not {', '.join(names)}"
            )
            return Missing(said, wrong=False)
        return Missing(f"{short(repr(quote))} is not in {place}", wrong=True)

    def _run_sql(self, finding: Finding) -> list[QueryResult] | None:
        """Return the results of the gold statements, or None if one of them fails."""
        results = [self.tool.run(statement) for statement in statements(finding.row)]
        for result in results:
            shown = f"{result.count} rows, shown {len(result.rows)}"
            if not result.ok:
                finding.problems.append(("sql", f"gold SQL fails: {result.error}"))
            elif result.count > len(result.rows):
                finding.problems.append(
                    ("sql", f"gold SQL returns more than the tool shows: {shown}")
                )
        return results if all(result.ok for result in results) else None

    def _check_gold(self, finding: Finding, names: list[str], results: list[QueryResult]) -> None:
        gold = nested(finding.row, "structured_gt")
        lines = [line for result in results for line in result.rows]
        if gold and not results:
            finding.unchecked.append(("structured_gt", "there is no gold SQL to recompute it from"))
        elif gold and not _is_recomputed(gold, results):
            columns = [name for result in results for name in result.columns]
            self._contradiction(finding, names, difference(gold, columns, lines))
        elif not gold and results and not lines and finding.row["task_type"] != "unanswerable":
            self._contradiction(finding, names, "gold SQL returns no rows")

    def _contradiction(self, finding: Finding, names: list[str], message: str) -> None:
        """Note a problem, unless the database lacks the rows that the question is about."""
        lacks_names = (
            bool(names) and not nested(finding.row, "evidence") and not self.cells.has_entity(names)
        )
        column = "structured_gt" if finding.row["structured_gt"] else "sql"
        finding.note(column, message, wrong=not (finding.lacks_rows or lacks_names))

    def _check_answer(self, finding: Finding, results: list[QueryResult]) -> None:
        """Compare the answer with the same gold as training: structured_gt and evidence, else what
        the gold SQL returns.
        """
        row = without_markup(finding.row)
        gold = {
            column: said
            for column in ("structured_gt", "evidence")
            if (said := nested(row, column))
        }
        if not gold and not results:
            finding.unchecked.append(
                ("answer", "there is neither SQL nor evidence to check it with")
            )
        elif row["answer"]:
            gold = gold or {"structured_gt": without_key(results[-1])}
            context = [result.to_json() for result in results]
            verdict = self.judge.bears_out(
                Case(row["question"], row["answer"], row["answer"], context, gold)
            )
            missing = _missing(gold, row)
            # An answer in its own sentences is right, too, if it holds all of gold word for word.
            is_whole = "facts" in verdict.parts and not missing
            if verdict.score is None:
                finding.problems.append(("answer", f"is not scored: {verdict.cause}"))
            elif verdict.score < EXACT and not is_whole:
                scored = f"scores {min(0.99, verdict.score):.2f}, expected 1"
                lacks = f"lacks the gold value {short(repr(missing))} ({scored})"
                finding.problems.append(("answer", lacks if missing else scored))


def _missing(gold: dict[str, Any], row: Row) -> str:
    """Return the first piece of gold that neither the answer nor the question has; "" if there is
    none.
    """
    lines = gold.get("structured_gt", {}).get("rows", [])
    cells = [str(cell) for line in lines for cell in line if cell is not None]
    texts = cells or [item["quote"] for item in gold.get("evidence", [])]
    said = words_only(fold(row["answer"]))
    asked = words_only(fold(row["question"]))
    for text in texts:
        for piece, _ in pieces(text):
            words = words_only(piece)
            if words not in asked and not re.search(_whole(words), said):
                return piece
    return ""


def _whole(words: str) -> str:
    """Return a pattern for the words that does not match inside a number."""
    before = r"(?<![\d.])" if words[:1].isdigit() else ""
    behind = r"(?![\d.])" if words[-1:].isdigit() else ""
    return before + re.escape(words) + behind


def _check_names(finding: Finding, results: Sequence[QueryResult]) -> None:
    """Note that the answer to a search for drugs or diseases names none of those that the gold SQL
    found.
    """
    row = finding.row
    names = [
        str(cell)
        for result in results
        for line in result.rows
        for column, cell in zip(result.columns, line, strict=True)
        if column.lower() in NAME_COLUMN.values() and cell and not str(cell).startswith(STAND_IN)
    ]
    said = fold(row["answer"])
    if row["task_type"] not in SEARCHES or not said or not names:
        return
    if not any(fold(name) in said for name in names):
        message = f"names none of the {len(names)} found, such as {names[0]!r}"
        finding.note("answer", message, wrong=True)


def _is_recomputed(gold: dict[str, Any], results: Sequence[QueryResult]) -> bool:
    """Return whether one result, or all of them together, equals the gold; a result may have
    further columns.
    """
    found = [rows for result in results if (rows := project(result, gold["columns"])) is not None]
    arranged = list if gold.get("ordered") else sorted
    wanted, *tables = (
        arranged([*map(_cell, line)] for line in rows)
        for rows in (gold["rows"], *found, [*chain(*found)])
    )
    return bool(found) and wanted in tables


def project(result: QueryResult, columns: Sequence[str]) -> list[list[Any]] | None:
    """Return the result's rows with these columns alone, by their names in any case; None if it
    lacks one.
    """
    names = [name.lower() for name in result.columns]
    if not {column.lower() for column in columns} <= set(names):
        return None
    places = [names.index(column.lower()) for column in columns]
    return [[line[place] for place in places] for line in result.rows]


def _cell(value: Any) -> str:
    """Return the value in comparable form: an empty cell equals NULL, and 1, 1.0 and "1" are equal,
    as they are for a reader.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else comparable(str(value))


def difference(gold: dict[str, Any], columns: list[str], lines: list[Any]) -> str:
    """Return what the gold SQL returns (`columns` and `lines`) and what structured_gt says, from
    shortly before the first difference.
    """
    names = {name.lower() for name in columns}
    if lines and not {name.lower() for name in gold["columns"]} <= names:
        return (
            f"gold SQL returns the columns {short(str(columns))}, "
            f"structured_gt says {short(str(gold['columns']))}"
        )
    returned, said = (
        json.dumps(rows, ensure_ascii=False, default=str) for rows in (lines, gold["rows"])
    )
    alike = 0
    while alike < min(len(returned), len(said)) and returned[alike] == said[alike]:
        alike += 1
    start = max(0, alike - SHOWN // 2)
    dots = "…" if start else ""
    return (
        f"gold SQL returns {dots}{short(returned[start:])}, "
        f"structured_gt says {dots}{short(said[start:])}"
    )


def short(text: str) -> str:
    """Return a text as a message shows it."""
    return text[:SHOWN] + "…" if len(text) > SHOWN else text


def without_key(result: QueryResult) -> dict[str, Any]:
    """Return the result as gold, without the key, which neither questions nor answers mention."""
    kept = [place for place, name in enumerate(result.columns) if name.lower() != "id"] or [
        *range(len(result.columns))
    ]
    rows = [[plain_cell(line[place]) for place in kept] for line in result.rows]
    return {"columns": [result.columns[place] for place in kept], "rows": rows}
