"""EHRSQL's questions as rows of the SQL agent, with a drawn database or the user's own.

folder = prepare([Path("train/label.json"), Path("valid/label.json")], schema=Path("mimic_iv.sql"))
folder = prepare([Path("label.json")], database=Path("mimic_iv.sqlite"))
prepared = PreparedSet.read(folder)                  # or PreparedSet.of(prepared.questions[0])
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

from common.command import UsageError
from common.files import file_digest
from common.settings import WORK
from data.records import compact
from episodes.agent import Row
from sql_agent.ehrsql.database import draw_database
from sql_agent.ehrsql.published import IMPOSSIBLE, VERSIONS, Published, Version, read_questions
from sql_agent.ehrsql.schema import read_schema
from sql_agent.intake.question_files import COLUMNS, write_rows
from tools.sql.query import Limits, QueryTool
from tools.sql.result import QueryResult

FOLDER = WORK / "outputs" / "ehrsql"
DATABASE = "database.db"
SET = "set.json"
DRAWING = "2"  # raised when the same files would give another database or another set.json
WHOLE = Limits(deadline=10.0, max_rows=100_000, max_cell=100_000, max_chars=100_000_000)
CONSTANT = ([[0]], [[1]])  # results that a statement without a question gives as well


@dataclass(frozen=True)
class PreparedSet:
    """A prepared folder: its files of questions, benchmark, database and tables."""

    folder: Path
    questions: tuple[Path, ...]
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
                f"{folder} has no questions of EHRSQL with their database; give --schema or "
                "--database together with the published questions"
            ) from None
        return cls(
            folder,
            tuple(folder / name for name in found["questions"]),
            VERSIONS[found["version"]],
            folder / found["database"],  # a user's own is an absolute path
            tuple(found["tables"]),
        )

    @classmethod
    def of(cls, questions: Path) -> PreparedSet | None:
        """Return the set that a file of questions belongs to, if there is one."""
        folder = questions.resolve().parent
        prepared = cls.read(folder) if (folder / SET).is_file() else None
        return prepared if prepared and folder / questions.name in prepared.questions else None

    @property
    def is_drawn(self) -> bool:
        return self.database.parent == self.folder

    def tool(self, limits: Limits | None = None) -> QueryTool:
        """Return the tool on the database. With wider limits no result is cut."""
        url = f"sqlite:///{quote(str(self.database))}"
        return QueryTool(url, self.tables, limits) if limits else QueryTool(url, self.tables)


def prepare(
    files: Sequence[Path], schema: Path | None = None, database: Path | None = None
) -> Path:
    """Return the folder of the questions and their database, made once for the same files."""
    published = {file: read_questions(file) for file in files}
    version, *others = {found.version.name: found.version for found in published.values()}.values()
    if others:
        names = ", ".join(map(str, files))
        raise UsageError(f"{names} are questions of EHRSQL and of EHRSQL-2024; give files of one")
    asked = map(asdict, chain(*(found.questions for found in published.values())))
    known = compact([version.name, DRAWING, *asked]).encode()
    if database:
        tables: Iterable[str] = _tables_of(database)
        known += f"{database.resolve()}\0{file_digest(database)}".encode()
    else:
        assert schema is not None
        schemas = read_schema(schema)
        tables = schemas
        known += schema.read_bytes()
    folder = FOLDER / f"{files[0].stem}-{hashlib.sha256(known).hexdigest()[:8]}"
    if not (folder / SET).is_file():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as draft:
            made = Path(draft, "made")
            made.mkdir()
            if not database:
                questions = chain(*(found.questions for found in published.values()))
                gold = [version.as_run(one.sql) for one in questions if one.sql]
                draw_database(made / DATABASE, schemas, gold, version.now)
            _write(made, published, version, sorted(tables), database)
            shutil.rmtree(folder, ignore_errors=True)
            made.replace(folder)
    described = json.loads((folder / SET).read_text(encoding="utf-8"))
    for file, name, recognised in zip(
        files, described["questions"], described["recognised"], strict=True
    ):
        print(f"{file}: {recognised}; rows in {folder / name}", file=sys.stderr)
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


def _write(
    folder: Path,
    published: Mapping[Path, Published],
    version: Version,
    tables: list[str],
    database: Path | None,
) -> None:
    """Write the rows of each file and the set's description.

    A drawn database drops questions whose gold result says nothing. A user's own keeps them all, as
    the benchmark's scorer does.
    """
    where = database.resolve() if database else folder / DATABASE
    tool = PreparedSet(folder, (), version, where, tuple(tables)).tool(WHOLE)
    facts: dict[str, Any] = {
        "version": version.name,
        "tables": tables,
        "database": str(where) if database else DATABASE,
        "questions": [],
        "recognised": [],
    }
    for file, found in published.items():
        name = f"{file.stem}.jsonl"
        if len(published) > 1:
            name = f"{file.resolve().parent.name}_{name}"  # EHRSQL-2024 calls all of them label
        rows, unusable = _usable(found, tool, keeps_all=bool(database))
        answerable = sum(bool(row["sql"]) for row in rows)
        reasons = ", ".join(f"{count} {reason}" for reason, count in unusable.most_common())
        recognised = (
            f"recognised as {version.name}: {len(rows)} rows are usable, {len(rows) - answerable} "
            f"of them without an answer in the database; {unusable.total()} are not: "
            f"{reasons or 'none'}"
        )
        if not answerable:
            raise UsageError(f"{file} has no usable question with this schema; {recognised}")
        write_rows(rows, folder / name)
        facts["questions"].append(name)
        facts["recognised"].append(recognised)
    if len(set(facts["questions"])) < len(published):
        raise UsageError(
            f"{', '.join(map(str, published))} have one name in folders of one name; rename a folder"
        )
    (folder / SET).write_text(compact(facts), encoding="utf-8")


def _usable(
    published: Published, tool: QueryTool, keeps_all: bool
) -> tuple[list[Row], Counter[str]]:
    """Return rows of the usable questions, and how many others there are of each reason."""
    rows = []
    unusable = Counter[str]()
    version = published.version
    for question in published.questions:
        asked = {"id": question.id, "question": question.text, "answer": IMPOSSIBLE}
        row = {**dict.fromkeys(COLUMNS, ""), **asked, "task_type": "unanswerable"}
        if question.sql is not None:
            row["task_type"] = "answerable"
            row["sql"] = version.as_run(question.sql)
            result = tool.run(row["sql"])
            reason = "" if keeps_all else why_unusable(result)
            if reason:
                unusable[reason] += 1
                continue
            row["answer"] = compact(version.answer(result.rows))
        rows.append(row)
    return rows, unusable


def why_unusable(result: QueryResult) -> str:
    """Return why a gold result says nothing about an answer, or ""."""
    if not result.ok:
        return f"with gold that fails there ({result.error})"
    if all(cell is None for cell in chain(*result.rows)):
        return "with gold that is empty there"
    if result.rows in CONSTANT:
        return "with gold that a constant query gives (0 or 1)"
    return ""
