"""Checks that the gold of question rows agrees with the database.

Text is compared without HTML, white space, case and width.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from common.terminal import watched
from scoring.case import Case
from scoring.text import stands_in, words_only
from sql_agent.gold.markup import comparable, plain_rows, without_markup
from sql_agent.intake.question_files import DataError, Note, Row, nested, normalise, statements
from sql_agent.judge.fold import fold, pieces
from sql_agent.judge.nothing import abstains, honesty, says_nothing
from sql_agent.tables import NAME_COLUMN
from tools.sql.query import DEFAULT_TABLES, Limits, QueryResult, QueryTool

# The tool's own rules, except that cells are compared completely. 20 rows, as for the agent.
LIMITS = Limits(max_cell=40_000, max_chars=2_000_000)
# The tool keeps 40,000 bytes of a cell. A text shorter than this is complete
KEPT_CHARACTERS = 13_000
SEARCHES = ("drug_search_by_kw", "disease_to_drug")  # task types that are answered by names
LARGEST_KEY = 2**63
SIGNED = re.compile(r"[-+<>≤≥±]\d+(?:\.\d+)?%?|\d+(?:\.\d+)?%")  # which words alone would lose
COMPARED = "[于足过]|(?:than|below|above|under|over|least|most) "  # <5 is 小于5, less than 5
SHOWN = 60  # characters of a value in a message


@dataclass
class Finding:
    """A row's problems, and the checks for which the database lacks something.

    results: of its gold SQL. number: of the row, from 0. file: if there are several.
    """

    row: Row
    problems: list[Note] = field(default_factory=list)
    unchecked: list[Note] = field(default_factory=list)
    results: list[QueryResult] = field(default_factory=list)
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
    """Checks rows against one database. Raises DatabaseError: it cannot be read."""

    def __init__(self, database_url: str, tables: Iterable[str] = DEFAULT_TABLES) -> None:
        self.tool = gold_tool(database_url, tables)
        database = self.tool.database()
        self.columns = {}
        for table in sorted(NAME_COLUMN.keys() & self.tool.allowed_tables):
            self.columns[table] = {column.name.lower() for column in database.columns(table)}

    def check(self, records: Iterable[Mapping[str, Any] | DataError]) -> list[Finding]:
        """Return one finding for each row or output of `question_files.read_records`, in order."""
        return [self._check(record) for record in watched(records, "checking")]

    def _check(self, record: Mapping[str, Any] | DataError) -> Finding:
        if isinstance(record, DataError):
            return Finding({}, [("row", str(record))])
        finding = Finding(*normalise(dict(record)))
        if finding.problems:
            return finding
        for item in nested(finding.row, "evidence"):
            self._check_quote(item, finding)
        finding.results = [self.tool.run(statement) for statement in statements(finding.row)]
        failed = [result for result in finding.results if not result.ok]
        if failed:
            finding.problems.append(("sql", f"gold SQL fails: {failed[0].error}"))
        else:
            check_table(finding)
            check_answer(finding)
        return finding

    def _check_quote(self, item: Mapping[str, Any], finding: Finding) -> None:
        """Look for a quote in the cell that it names. Only tables of ours have a known key."""

        def wrong(problem: str) -> None:
            finding.problems.append(("evidence", problem))

        def unchecked(reason: str) -> None:
            finding.unchecked.append(("evidence", reason))

        key = item.get("row_id")
        table = (item.get("table") or "").lower()
        column = (item.get("field") or "").lower()
        if not table or key is None or not column:
            return unchecked("a quote without table, row_id or field cannot be looked up")
        if table in self.tool.allowed_tables - self.columns.keys():
            return unchecked(f"quotes of table {table[:64]} cannot be looked up")
        number = row_key(key)
        if number is None or column not in self.columns.get(table, ()):
            place = f"{short(repr(table))}, column {short(repr(column))}, row {short(repr(key))}"
            known = " and ".join(self.columns or sorted(self.tool.allowed_tables))
            return wrong(f"there is no cell in table {place}; the tables are {known}")
        # Made of known names and a number
        result = self.tool.run(f"SELECT {column} FROM {table} WHERE id = {number}")
        if not result.rows:
            return unchecked(f"the database has no row {number} in {table}")
        cell = str(result.rows[0][0] or "")
        if comparable(item["quote"]) in comparable(cell):
            return None
        if len(cell) >= KEPT_CHARACTERS:
            return unchecked(f"{table}.{column} of row {number} is longer than the tool reads")
        return wrong(f"{short(repr(item['quote']))} is not in {table}.{column} of row {number}")


def row_key(value: Any) -> int | None:
    """Return the key as a whole number that databases can hold, or None."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_KEY
    return value if whole else None


def check_table(finding: Finding) -> None:
    """Compare the gold results with structured_gt. Without the cited rows this proves nothing."""
    notes = finding.unchecked if finding.lacks_rows else finding.problems
    results = finding.results
    for result in results:
        if result.count > len(result.rows):
            cut = f"{result.count} rows, shown {len(result.rows)}"
            problem = f"gold SQL returns more than the tool shows: {cut}"
            finding.problems.append(("sql", problem))
    gold = nested(finding.row, "structured_gt")
    returned = list(chain.from_iterable(result.rows for result in results))
    if gold and not results:
        finding.unchecked.append(("structured_gt", "there is no gold SQL to recompute it from"))
    elif gold and not returns(results, gold):
        seen = [row for row in returned if row not in gold["rows"]] or returned
        said = [row for row in gold["rows"] if row not in returned] or gold["rows"]
        problem = f"gold SQL returns {short(str(seen))}, structured_gt says {short(str(said))}"
        notes.append(("structured_gt", problem))
    elif not gold and results and not returned and finding.row["task_type"] != "unanswerable":
        notes.append(("sql", "gold SQL returns no rows"))


def returns(results: Sequence[QueryResult], gold: Mapping[str, Any]) -> bool:
    """Return whether one result, or all together, equals the gold, in order if gold says so."""
    tables = []
    together = []
    for result in results:
        places = _places(gold["columns"], result.columns)
        if places:
            rows = [[_comparable_cell(line[place]) for place in places] for line in result.rows]
            tables.append(rows)
            together += rows
    wanted = [list(map(_comparable_cell, line)) for line in gold["rows"]]
    if not gold.get("ordered"):
        wanted.sort()
        for rows in (*tables, together):
            rows.sort()
    return bool(tables) and wanted in [*tables, together]


def _places(wanted: Sequence[str], columns: Sequence[str]) -> list[int]:
    """Return where a result has the wanted columns: by their names, else all in their order.

    The tool writes count(a+1) as COUNT(a + 1), and two columns may have one name.
    """
    wanted = [name.lower() for name in wanted]
    names = [name.lower() for name in columns]
    if len({*names}) == len(names) and {*wanted} <= {*names}:
        return [names.index(name) for name in wanted]
    return [*range(len(names))] if len(names) == len(wanted) else []


def _comparable_cell(value: Any) -> str:
    """Return a cell in comparable form: empty equals NULL, and 1, 1.0 and "1" are equal."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else comparable(str(value))


def check_answer(finding: Finding) -> None:
    """Look for every gold value in the answer, or for nothing but "nothing found"."""
    row = without_markup(finding.row)
    table = nested(row, "structured_gt")
    evidence = nested(row, "evidence")
    if not table and not evidence and not finding.results:
        finding.unchecked.append(("answer", "there is neither SQL nor evidence to check it with"))
        return
    question = row["question"]
    answer = row["answer"]
    if not answer:
        return
    if not table and not evidence:
        table = without_key(finding.results[-1])
    gold = {"structured_gt": table, "evidence": evidence}
    texts = [item["quote"] for item in evidence]
    if table:
        texts = [str(cell) for cell in chain(*table["rows"]) if cell is not None]
    is_nothing = not any(map(words_only, texts)) and abstains(answer)
    missing = missing_piece(texts, question, answer)
    problems = []
    if missing:
        problems.append(f"lacks the gold value {short(repr(missing))}")
    elif says_nothing(Case(question, answer, answer, gold=gold)):
        problems.append("says nothing beside the question")
    elif is_nothing and honesty(answer, f"{question}\n{answer}") < 1:
        problems.append("says more than that nothing was found")
    names = found_names(finding.results) if row["task_type"] in SEARCHES else []
    said = fold(answer)
    if names and not finding.lacks_rows and not any(fold(name) in said for name in names):
        problems.append(f"names none of the {len(names)} found, such as {names[0]!r}")
    finding.problems += [("answer", problem) for problem in problems]


def missing_piece(texts: Iterable[str], question: str, answer: str) -> str:
    """Return the first piece of gold that the answer lacks, or "".

    What the question names need not be repeated beside another piece.
    """
    asked = words_only(fold(question))
    said = fold(answer)
    found = [piece for text in texts for piece, _ in pieces(text)]
    missing = [piece for piece in found if not _has(said, piece)]
    unasked = [piece for piece in missing if words_only(piece) not in asked]
    lacks_all = missing[:1] if len(missing) == len(found) else []
    return next(iter(unasked + lacks_all), "")


def _has(said: str, piece: str) -> bool:
    words = words_only(piece)
    if not words or SIGNED.fullmatch(piece):
        told = re.escape(piece)
        if piece[0] in "<>≤≥":
            told = f"(?:{piece[0]}|{COMPARED}){piece[1:]}"
        return re.search(rf"(?<![\d.]){told}(?![\d.])", said) is not None
    # As written, too: the words alone make 4350 of CD4：350
    return stands_in(words, f"{words_only(said)}\n{said}")


def found_names(results: Sequence[QueryResult]) -> list[str]:
    """Return the drugs and diseases in the results."""
    names = []
    for result in results:
        for place, column in enumerate(result.columns):
            if column.lower() in NAME_COLUMN.values():
                names += [str(line[place]) for line in result.rows if line[place]]
    return names


def short(text: str) -> str:
    return text[:SHOWN] + "…" if len(text) > SHOWN else text


def without_key(result: QueryResult) -> dict[str, Any]:
    """Return the result without the key, which neither questions nor answers mention."""
    places = [place for place, name in enumerate(result.columns) if name.lower() != "id"]
    places = places or list(range(len(result.columns)))
    rows = [[line[place] for place in places] for line in result.rows]
    return {"columns": [result.columns[place] for place in places], "rows": plain_rows(rows)}
