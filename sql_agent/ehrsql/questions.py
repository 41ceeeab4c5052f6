"""EHRSQL's published questions as rows of the SQL agent, with a database that is drawn for them.

    folder = prepare(Path("valid.json"), Path("mimic_iii.sql"))
    drawn = DrawnSet.read(folder)
    load_rows(drawn.questions)                   # the usable ones, and those without an answer
    drawn.tool()                                 # runs statements on the drawn database

The folder lies in outputs/ehrsql/, and is made once for a pair of files.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from common.command import UsageError
from common.settings import ROOT
from data.records import compact
from episodes.agent import Row
from sql_agent.ehrsql.database import draw_database
from sql_agent.ehrsql.published import (
    IMPOSSIBLE,
    VERSIONS,
    Published,
    PublishedError,
    Question,
    Version,
    read_questions,
)
from sql_agent.ehrsql.schema import read_schema
from sql_agent.intake.question_files import write_rows
from tools.sql.query import Limits, QueryTool
from tools.sql.result import QueryResult

FOLDER = ROOT / "outputs" / "ehrsql"
DATABASE, SET = "database.db", "set.json"
DRAWING = "1"  # raised when the same files would give another database
WHOLE = Limits(deadline=10.0, max_rows=100_000, max_cell=100_000, max_chars=100_000_000)
CONSTANT = ([0], [1])  # results that a statement without a question gives as well
ANSWERABLE, UNANSWERABLE = "answerable", "unanswerable"


@dataclass(frozen=True)
class DrawnSet:
    """A folder that was prepared: its file of questions, which benchmark they are of, and the
    tables of the database.
    """

    folder: Path
    questions: Path
    version: Version
    tables: tuple[str, ...]

    @classmethod
    def read(cls, folder: Path) -> DrawnSet:
        """Return what a folder holds. Raises UsageError: it was not made by `prepare`."""
        try:
            found = json.loads((folder / SET).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise UsageError(
                f"--schema {folder} is read by evaluation.evaluate, together with --data and "
                "EHRSQL's questions; this command has no use for it"
            ) from None
        return cls(
            folder,
            folder / found["questions"],
            VERSIONS[found["version"]],
            tuple(found["tables"]),
        )

    def tool(self, limits: Limits | None = None) -> QueryTool:
        """Return the tool on the drawn database; with wider limits no result is cut."""
        url = f"sqlite:///{self.folder / DATABASE}"
        return QueryTool(url, self.tables, limits) if limits else QueryTool(url, self.tables)


def prepare(data: Path, schema: Path) -> Path:
    """Return the folder of the questions and their database, made where it is not there yet; print
    what was recognised.

    Raises:
        PublishedError: a file that cannot be read as what it should be, or no usable question.
    """
    published, tables = read_questions(data), read_schema(schema)
    known = compact([published.version.name, DRAWING, *map(asdict, published.questions)])
    digest = hashlib.sha256(known.encode() + schema.read_bytes()).hexdigest()[:8]
    folder = FOLDER / f"{data.stem}-{digest}"
    if not (folder / SET).is_file():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as draft:
            made = Path(draft, "made")
            made.mkdir()
            _make(made, published, tables, data)
            shutil.rmtree(folder, ignore_errors=True)
            made.replace(folder)
    found = json.loads((folder / SET).read_text(encoding="utf-8"))
    print(f"{data}: {found['recognised']}", file=sys.stderr)
    return folder


def _make(folder: Path, published: Published, tables: dict, data: Path) -> None:
    version = published.version
    gold = {
        question.id: version.as_run(question.sql)
        for question in published.questions
        if question.sql
    }
    draw_database(folder / DATABASE, tables, list(gold.values()), version.now)
    drawn = DrawnSet(folder, folder / f"{data.stem}.jsonl", version, tuple(tables))
    tool = drawn.tool(WHOLE)
    rows, unusable = [], Counter[str]()
    for question in published.questions:
        if question.sql is None:
            rows.append(_row(question, "", IMPOSSIBLE))
            continue
        result = tool.run(gold[question.id])
        reason = why_unusable(result)
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
        raise PublishedError(f"{data} has no usable question with this schema; {recognised}")
    write_rows(rows, drawn.questions)
    facts = {"version": version.name, "tables": sorted(tables), "questions": drawn.questions.name}
    facts["recognised"] = recognised
    (folder / SET).write_text(compact(facts), encoding="utf-8")


def why_unusable(result: QueryResult) -> str:
    """Return why a gold result says nothing about an answer; "" where it does."""
    if not result.ok:
        return "with gold that fails there"
    cells = [cell for row in result.rows for cell in row]
    if all(cell is None for cell in cells):
        return "with gold that is empty there"
    return "with gold that a constant query gives (0 or 1)" if cells in CONSTANT else ""


def _row(question: Question, sql: str, answer: str) -> Row:
    row = dict.fromkeys(("difficulty", "split", "wording", "evidence", "entities"), "")
    kind = ANSWERABLE if sql else UNANSWERABLE
    asked = {"id": question.id, "question": question.text, "answer": answer, "task_type": kind}
    return {**row, **asked, "sql": sql, "structured_gt": ""}
