"""EHRSQL's questions as rows of the SQL agent, with a drawn database or the user's own.

prepare([Path("train/label.json"), Path("valid/label.json")], schema=Path("mimic_iv.sql"))
prepared = prepare([Path("label.json")], database=Path("mimic_iv.sqlite"))
PreparedSet.read(prepared.folder)                    # or PreparedSet.of(prepared.questions[0])
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from common.command import UsageError
from common.files import file_digest, replacing
from common.settings import WORK
from data.records import compact, refusing
from episodes.agent import Row
from sql_agent.ehrsql.database import draw_database
from sql_agent.ehrsql.published import IMPOSSIBLE, VERSIONS, Question, Version, read_questions
from sql_agent.ehrsql.schema import read_schema
from sql_agent.intake.question_files import COLUMNS, write_rows
from tools.sql.database import open_database
from tools.sql.query import DEFAULT_LIMITS, Limits, QueryTool
from tools.sql.result import QueryResult

FOLDER = WORK / "outputs" / "ehrsql"
DATABASE = "database.db"
SET = "set.json"
DRAWING = "2"  # raised when the same files would give another database or other rows
WHOLE = Limits(deadline=10.0, max_rows=100_000, max_cell=100_000, max_chars=100_000_000)
CONSTANT = ([[0]], [[1]])  # results that a statement without a question gives as well


@dataclass(frozen=True)
class PreparedSet:
    """A prepared folder: its files of questions, benchmark, database, and what was recognised."""

    folder: Path
    questions: tuple[Path, ...]
    version: Version
    database: Path
    recognised: tuple[str, ...] = ()

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
        files = tuple(folder / name for name in found["questions"])
        database = folder / found["database"]  # or a user's own, whose path is absolute
        recognised = tuple(found["recognised"])
        return cls(folder, files, VERSIONS[found["version"]], database, recognised)

    @classmethod
    def of(cls, questions: Path) -> PreparedSet | None:
        """Return the set that a file of questions belongs to, if there is one."""
        folder = questions.resolve().parent
        prepared = cls.read(folder) if (folder / SET).is_file() else None
        return prepared if prepared and folder / questions.name in prepared.questions else None

    def tool(self, limits: Limits = DEFAULT_LIMITS) -> QueryTool:
        """Return the tool on the database's tables and views. With wider limits nothing is cut."""
        url = f"sqlite:///{quote(str(self.database))}"
        tables = open_database(url).tables
        return QueryTool(url, [name for name in tables if not name.startswith("sqlite_")], limits)


def prepare(
    files: Sequence[Path], schema: Path | None = None, database: Path | None = None
) -> PreparedSet:
    """Return the questions with their database, made once for the same files."""
    version, asked = _read(files)
    questions = [*chain.from_iterable(asked.values())]
    known = compact([version.name, DRAWING, *map(asdict, questions)]).encode()
    if database:
        known += f"{database.resolve()}\0{file_digest(database)}".encode()
    else:
        assert schema is not None
        tables = read_schema(schema)
        known += schema.read_bytes()
    folder = FOLDER / f"{files[0].stem}-{hashlib.sha256(known).hexdigest()[:8]}"
    if not (folder / SET).is_file():
        with replacing(folder) as made:
            made.mkdir()
            if not database:
                gold = [version.as_run(question.sql) for question in questions if question.sql]
                draw_database(made / DATABASE, tables, gold, version.now)
            used = database.resolve() if database else made / DATABASE
            with refusing(f"--database {used} cannot be read, expected an SQLite file", UsageError):
                tool = PreparedSet(made, (), version, used).tool(WHOLE)
            if not tool.allowed_tables:
                raise UsageError(f"--database {used} has no tables; give the benchmark's own")
            recognised = []
            for file, (name, found) in zip(files, asked.items(), strict=True):
                rows, said = _usable(version, found, tool, keeps_all=bool(database))
                if not any(row["sql"] for row in rows):
                    raise UsageError(f"{file} has no usable question with this schema; {said}")
                write_rows(rows, made / name)
                recognised.append(said)
            facts = {
                "version": version.name,
                "database": str(used) if database else DATABASE,
                "questions": [*asked],
                "recognised": recognised,
            }
            (made / SET).write_text(compact(facts), encoding="utf-8")
    prepared = PreparedSet.read(folder)
    for file, made, said in zip(files, prepared.questions, prepared.recognised, strict=True):
        print(f"{file}: {said}; rows in {made}", file=sys.stderr)
    return prepared


def _read(files: Sequence[Path]) -> tuple[Version, dict[str, list[Question]]]:
    """Return the benchmark of files, and their questions by the name of the file of rows."""
    asked = {}
    versions = set()
    for file in files:
        version, questions = read_questions(file)
        versions.add(version)
        folder = f"{file.resolve().parent.name}_" if len(files) > 1 else ""
        asked[f"{folder}{file.stem}.jsonl"] = questions  # EHRSQL-2024 calls all of them label
    given = ", ".join(map(str, files))
    if len(versions) > 1:
        raise UsageError(f"{given} are questions of EHRSQL and of EHRSQL-2024; give files of one")
    if len(asked) < len(files):
        raise UsageError(f"{given} have one name in folders of one name; rename a folder")
    return version, asked


def _usable(
    version: Version, questions: Sequence[Question], tool: QueryTool, keeps_all: bool
) -> tuple[list[Row], str]:
    """Return rows of the usable questions, and how many there are and why others are not.

    A drawn database drops questions whose gold result says nothing. A user's own keeps them all, as
    the benchmark's scorer does.
    """
    rows = []
    unusable = Counter[str]()
    for question in questions:
        row = dict.fromkeys(COLUMNS, "") | {
            "id": question.id,
            "question": question.text,
            "answer": IMPOSSIBLE,
            "task_type": "unanswerable",
        }
        if question.sql is not None:
            sql = version.as_run(question.sql)
            result = tool.run(sql)
            reason = "" if keeps_all else why_unusable(result)
            if reason:
                unusable[reason] += 1
                continue
            answer = compact(version.answer(result.rows))
            row |= {"sql": sql, "answer": answer, "task_type": "answerable"}
        rows.append(row)
    silent = sum(not row["sql"] for row in rows)
    reasons = ", ".join(f"{count} {reason}" for reason, count in unusable.most_common())
    said = (
        f"recognised as {version.name}: {len(rows)} rows are usable, {silent} of them without an "
        f"answer in the database; {unusable.total()} are not: {reasons or 'none'}"
    )
    return rows, said


def why_unusable(result: QueryResult) -> str:
    """Return why a gold result says nothing about an answer, or ""."""
    if not result.ok:
        return f"with gold that fails there ({result.error})"
    if all(cell is None for cell in chain(*result.rows)):
        return "with gold that is empty there"
    if result.rows in CONSTANT:
        return "with gold that a constant query gives (0 or 1)"
    return ""
