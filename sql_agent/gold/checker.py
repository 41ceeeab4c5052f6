"""Checks that the gold of question rows agrees with the database.

    findings = Checker("sqlite:///data/medical.db").check(rows)

Text is compared without HTML, white space, case and width. A check that needs a row the database
lacks is skipped, not failed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from common.terminal import watched
from scoring.judge import Case
from scoring.text import words_only
from sql_agent.gold.cited import CitedCells, Missing
from sql_agent.gold.markup import comparable, markup_asked, plain_cell, without_markup
from sql_agent.intake.question_files import DataError, Note, Row, nested, normalise, statements
from sql_agent.judge.fold import fold, pieces
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.tables import NAME_COLUMN
from tools.sql.query import DEFAULT_TABLES, Limits, QueryResult, QueryTool

# The tool's own rules, except that cells are compared completely. 20 rows, as for the agent.
LIMITS = Limits(max_cell=40_000, max_chars=2_000_000)
# The tool keeps 40,000 bytes of a cell. A text shorter than this is complete
KEPT_CHARACTERS = 13_000
SEARCHES = ("drug_search_by_kw", "disease_to_drug")  # task types that are answered by names
STAND_IN = "（名称未知"  # stands for a name in a database made of quotes
EXACT = 1 - 1e-9  # of a score, from which it counts as full
SHOWN = 60  # characters of a value in a message


@dataclass
class Finding:
    """A row's problems and skipped checks. Rows count from 0. file: if there are several."""

    row: Row
    problems: list[Note] = field(default_factory=list)
    unchecked: list[Note] = field(default_factory=list)
    number: int = 0
    file: str = ""

    @property
    def lacks_rows(self) -> bool:
        """Whether the database lacks the rows that the evidence cites."""
        return any(column == "evidence" for column, _ in self.unchecked)

    @property
    def state(self) -> str:
        """One of "valid", "not_checkable" and "invalid"."""
        if self.problems:
            return "invalid"
        return "not_checkable" if self.unchecked else "valid"

    def value(self, column: str) -> str:
        """Return the text of a column, or "" if it is malformed."""
        wrong = any(name == column for name, _ in self.problems)
        return "" if wrong else self.row.get(column, "")


def gold_tool(database_url: str, tables: Iterable[str] = DEFAULT_TABLES) -> QueryTool:
    """Return the agent's tool without limits on cells. It opens the database at first use."""
    return QueryTool(database_url, tables, LIMITS, cache=False, hints=False)


class Checker:
    """Checks rows against one database.

    Raises DatabaseError: the database cannot be opened or read.
    """

    def __init__(self, database_url: str, tables: Iterable[str] = DEFAULT_TABLES) -> None:
        self.tool = gold_tool(database_url, tables)
        self.cells = CitedCells(self.tool.database(), self.tool.allowed_tables)
        self.judge = ReferenceJudge()

    def check(self, records: Iterable[Mapping[str, Any] | DataError]) -> list[Finding]:
        """Return one finding for each row or output of `question_files.read_records`, in order."""
        return [self._check(record) for record in watched(records, "checking")]

    def _check(self, record: Mapping[str, Any] | DataError) -> Finding:
        if isinstance(record, DataError):
            return Finding({}, [("row", str(record))])
        finding = Finding(*normalise(dict(record)))
        if finding.problems:
            return finding
        asked = markup_asked(finding.row)
        if asked:
            problem = f"asks for HTML, {short(repr(asked))}; expected words"
            finding.problems.append(("question", problem))
        self._check_evidence(finding)
        results = [self.tool.run(statement) for statement in statements(finding.row)]
        failed = [result for result in results if not result.ok]
        if failed:
            finding.problems.append(("sql", f"gold SQL fails: {failed[0].error}"))
            return finding
        self._check_table(finding, results)
        self._check_answer(finding, results)
        return finding

    def _check_evidence(self, finding: Finding) -> None:
        for item in nested(finding.row, "evidence"):
            cited = self.cells.find(item)
            if isinstance(cited, Missing):
                notes = finding.problems if cited.wrong else finding.unchecked
                notes.append(("evidence", cited.reason))
                continue
            if comparable(item["quote"]) in comparable(cited):
                continue
            place = f"{item['table']}.{item['field']} of row {item['row_id']}"
            if len(cited) >= KEPT_CHARACTERS:
                finding.unchecked.append(("evidence", f"{place} is longer than the tool reads"))
            else:
                seen = short(repr(item["quote"]))
                finding.problems.append(("evidence", f"{seen} is not in {place}"))

    def _check_table(self, finding: Finding, results: list[QueryResult]) -> None:
        """Compare the gold results with structured_gt. Without the cited rows this proves nothing."""
        row = finding.row
        notes = finding.unchecked if finding.lacks_rows else finding.problems
        for result in results:
            if result.count > len(result.rows):
                cut = f"{result.count} rows, shown {len(result.rows)}"
                problem = f"gold SQL returns more than the tool shows: {cut}"
                finding.problems.append(("sql", problem))
        gold = nested(row, "structured_gt")
        if gold and not results:
            finding.unchecked.append(("structured_gt", "there is no gold SQL to recompute it from"))
        elif gold and not returns(results, gold):
            notes.append(("structured_gt", difference(gold, results)))
        elif gold or not results or row["task_type"] == "unanswerable":
            return
        elif not any(result.rows for result in results):
            notes.append(("sql", "gold SQL returns no rows"))

    def _check_answer(self, finding: Finding, results: list[QueryResult]) -> None:
        """Compare the answer with the gold that training uses."""
        row = without_markup(finding.row)
        gold = {}
        for column in ("structured_gt", "evidence"):
            if said := nested(row, column):
                gold[column] = said
        if not gold and not results:
            unchecked = "there is neither SQL nor evidence to check it with"
            finding.unchecked.append(("answer", unchecked))
            return
        if not row["answer"]:
            return
        gold = gold or {"structured_gt": without_key(results[-1])}
        context = [result.to_json() for result in results]
        case = Case(row["question"], row["answer"], row["answer"], context, gold)
        verdict = self.judge.bears_out(case)
        missing = missing_piece(gold, row)
        # An answer in its own sentences is right, too, if it holds all of gold word for word.
        is_whole = "facts" in verdict.parts and not missing
        if verdict.score is None:
            finding.problems.append(("answer", f"is not scored: {verdict.cause}"))
        elif verdict.score < EXACT and not is_whole:
            scored = f"scores {min(0.99, verdict.score):.2f}, expected 1"
            lacks = f"lacks the gold value {short(repr(missing))} ({scored})"
            finding.problems.append(("answer", lacks if missing else scored))
        names = found_names(results)
        if row["task_type"] in SEARCHES and names and not finding.lacks_rows:
            said = fold(row["answer"])
            if not any(fold(name) in said for name in names):
                problem = f"names none of the {len(names)} found, such as {names[0]!r}"
                finding.problems.append(("answer", problem))


def returns(results: Sequence[QueryResult], gold: Mapping[str, Any]) -> bool:
    """Return whether one result, or all together, equals the gold. Further columns are allowed.

    Order counts where gold says so.
    """
    tables = []
    together = []
    for result in results:
        names = [name.lower() for name in result.columns]
        if all(column.lower() in names for column in gold["columns"]):
            places = [names.index(column.lower()) for column in gold["columns"]]
            rows = [[_comparable_cell(line[place]) for place in places] for line in result.rows]
            tables.append(rows)
            together += rows
    wanted = [list(map(_comparable_cell, line)) for line in gold["rows"]]
    if not gold.get("ordered"):
        wanted.sort()
        for rows in (*tables, together):
            rows.sort()
    return bool(tables) and wanted in [*tables, together]


def _comparable_cell(value: Any) -> str:
    """Return a cell in comparable form: empty equals NULL, and 1, 1.0 and "1" are equal."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else comparable(str(value))


def difference(gold: Mapping[str, Any], results: Sequence[QueryResult]) -> str:
    """Return the first row in which the gold SQL and structured_gt differ."""
    returned = [
        dict(zip(result.columns, row, strict=True)) for result in results for row in result.rows
    ]
    said = [dict(zip(gold["columns"], row, strict=True)) for row in gold["rows"]]
    for number, (one, other) in enumerate(zip_longest(returned, said)):
        if one != other:
            return (
                f"row {number}: gold SQL returns {short(str(one or 'nothing'))}, "
                f"structured_gt says {short(str(other or 'nothing'))}"
            )
    return "gold SQL returns other rows"


def missing_piece(gold: Mapping[str, Any], row: Row) -> str:
    """Return the first piece of gold in neither answer nor question, or ""."""
    texts = []
    for line in gold.get("structured_gt", {}).get("rows", []):
        texts += [str(cell) for cell in line if cell is not None]
    texts = texts or [item["quote"] for item in gold.get("evidence", [])]
    said = words_only(fold(row["answer"]))
    asked = words_only(fold(row["question"]))
    for text in texts:
        for piece, _ in pieces(text):
            words = words_only(piece)
            # Not inside a number
            before = r"(?<![\d.])" if words[:1].isdigit() else ""
            behind = r"(?![\d.])" if words[-1:].isdigit() else ""
            if words not in asked and not re.search(before + re.escape(words) + behind, said):
                return piece
    return ""


def found_names(results: Sequence[QueryResult]) -> list[str]:
    """Return the drugs and diseases in the results, except those whose name nobody knows."""
    names = []
    for result in results:
        for line in result.rows:
            for column, cell in zip(result.columns, line, strict=True):
                is_name = column.lower() in NAME_COLUMN.values()
                if is_name and cell and not str(cell).startswith(STAND_IN):
                    names.append(str(cell))
    return names


def short(text: str) -> str:
    return text[:SHOWN] + "…" if len(text) > SHOWN else text


def without_key(result: QueryResult) -> dict[str, Any]:
    """Return the result without the key, which neither questions nor answers mention."""
    places = [place for place, name in enumerate(result.columns) if name.lower() != "id"]
    places = places or list(range(len(result.columns)))
    rows = [[plain_cell(line[place]) for place in places] for line in result.rows]
    return {"columns": [result.columns[place] for place in places], "rows": rows}
