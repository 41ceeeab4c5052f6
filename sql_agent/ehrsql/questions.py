"""EHRSQL's questions as rows of the SQL agent, with a drawn database or the user's own.

folder = prepare(Path("valid.json"), schema=Path("mimic_iii.sql"))
folder = prepare(Path("label.json"), database=Path("mimic_iv.sqlite"))
prepared = PreparedSet.read(folder)
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from common.command import UsageError
from common.files import file_digest
from common.settings import ROOT
from data.records import compact
from episodes.agent import Row
from sql_agent.ehrsql.database import draw_database
from sql_agent.ehrsql.published import (
    IMPOSSIBLE,
    VERSIONS,
    Published,
    Question,
    Version,
    read_questions,
)
from sql_agent.ehrsql.schema import read_schema
from sql_agent.intake.question_files import COLUMNS, write_rows
from tools.sql.query import Limits, QueryTool
from tools.sql.result import QueryResult

FOLDER = ROOT / "outputs" / "ehrsql"
DATABASE = "database.db"
SET = "set.json"
DRAWING = "1"  # raised when the same files would give another database
WHOLE = Limits(deadline=10.0, max_rows=100_000, max_cell=100_000, max_chars=100_000_000)
CONSTANT = ([[0]], [[1]])  # results that a statement without a question gives as well


@dataclass(frozen=True)
class PreparedSet:
    """A prepared folder: its file of questions, benchmark, database and tables."""

    folder: Path
    questions: Path
    version: Version
    database: Path
    tables: tuple[str, ...]

    @classmethod
    def read(cls, folder: Path) -> PreparedSet:
        """Read a folder. Raises UsageError: `prepare` did not make it."""
        try:
            found = json.loads((folder / SET).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise UsageError(
                f"{folder} is read by evaluation.evaluate, together with --data and EHRSQL's "
                "questions; this command has no use for --schema and --database"
            ) from None
        version = VERSIONS[found["version"]]
        database = folder / found["database"]  # a user's own is an absolute path
        return cls(folder, folder / found["questions"], version, database, tuple(found["tables"]))

    @property
    def is_drawn(self) -> bool:
        return self.database.parent == self.folder

    def tool(self, limits: Limits | None = None) -> QueryTool:
        """Return the tool on the database. With wider limits no result is cut."""
        url = f"sqlite:///{quote(str(self.database))}"
        return QueryTool(url, self.tables, limits) if limits else QueryTool(url, self.tables)


def prepare(data: Path, schema: Path | None = None, database: Path | None = None) -> Path:
    """Return the folder of the questions and their database, made once for a pair of files.

    Raises UsageError: a file has the wrong form, or no question is usable.
    """
    published = read_questions(data)
    known = compact([published.version.name, DRAWING, *map(asdict, published.questions)]).encode()
    if database:
        tables: Iterable[str] = _tables_of(database)
        known += f"{database.resolve()}\0{file_digest(database)}".encode()
    else:
        assert schema is not None
        schemas = read_schema(schema)
        tables = schemas
        known += schema.read_bytes()
    folder = FOLDER / f"{data.stem}-{hashlib.sha256(known).hexdigest()[:8]}"
    if not (folder / SET).is_file():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as draft:
            made = Path(draft, "made")
            made.mkdir()
            if not database:
                gold = list(_statements(published).values())
                draw_database(made / DATABASE, schemas, gold, published.version.now)
            _write(made, data, published, sorted(tables), database)
            shutil.rmtree(folder, ignore_errors=True)
            made.replace(folder)
    found = json.loads((folder / SET).read_text(encoding="utf-8"))
    print(f"{data}: {found['recognised']}", file=sys.stderr)
    return folder


def _tables_of(database: Path) -> list[str]:
    """Return the tables and views of an SQLite file, without its own (sqlite_sequence). Raises
    UsageError: it is another file, or has none.
    """
    expected = "expected an SQLite file, such as the benchmark's mimic_iv.sqlite"
    try:
        url = f"{database.resolve(strict=True).as_uri()}?mode=ro"
        with closing(sqlite3.connect(url, uri=True)) as connection:
            found = connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            )
            names = [name.lower() for (name,) in found]
    except (OSError, sqlite3.Error) as error:
        raise UsageError(f"--database {database} cannot be read: {error}; {expected}") from None
    names = [name for name in names if not name.startswith("sqlite_")]
    if not names:
        raise UsageError(f"--database {database} has no tables; {expected}")
    return names


def _statements(published: Published) -> dict[str, str]:
    gold = {}
    for question in published.questions:
        if question.sql:
            gold[question.id] = published.version.as_run(question.sql)
    return gold


def _write(
    folder: Path, data: Path, published: Published, tables: list[str], database: Path | None
) -> None:
    """Write the rows and the set's description.

    A drawn database drops questions whose gold result says nothing. A user's own keeps them all, as
    the benchmark's scorer does.
    """
    version = published.version
    where = database.resolve() if database else folder / DATABASE
    name = f"{data.stem}.jsonl"
    tool = PreparedSet(folder, folder / name, version, where, tuple(tables)).tool(WHOLE)
    gold = _statements(published)
    rows = []
    unusable = Counter[str]()
    for question in published.questions:
        if question.sql is None:
            rows.append(_row(question, "", IMPOSSIBLE))
            continue
        result = tool.run(gold[question.id])
        reason = "" if database else why_unusable(result)
        if reason:
            unusable[reason] += 1
        else:
            rows.append(_row(question, gold[question.id], compact(version.answer(result.rows))))
    answerable = sum(bool(row["sql"]) for row in rows)
    reasons = ", ".join(f"{count} {reason}" for reason, count in unusable.most_common())
    recognised = (
        f"recognised as {version.name}: {len(rows)} rows are usable, {len(rows) - answerable} of "
        f"them without an answer in the database; {unusable.total()} are not: {reasons or 'none'}"
    )
    if not answerable:
        raise UsageError(f"{data} has no usable question with this schema; {recognised}")
    write_rows(rows, folder / name)
    kept = str(where) if database else DATABASE
    facts = {"version": version.name, "tables": tables, "questions": name, "database": kept}
    (folder / SET).write_text(compact(facts | {"recognised": recognised}), encoding="utf-8")


def why_unusable(result: QueryResult) -> str:
    """Return why a gold result says nothing about an answer, or ""."""
    if not result.ok:
        return "with gold that fails there"
    if all(cell is None for row in result.rows for cell in row):
        return "with gold that is empty there"
    if result.rows in CONSTANT:
        return "with gold that a constant query gives (0 or 1)"
    return ""


def _row(question: Question, sql: str, answer: str) -> Row:
    kind = "answerable" if sql else "unanswerable"
    asked = {"id": question.id, "question": question.text, "answer": answer, "task_type": kind}
    return {**dict.fromkeys(COLUMNS, ""), **asked, "sql": sql}
