"""Where imported rows wait until all of them are there: an SQLite file that remembers how far reading came.

A chunk of rows, what was found wrong with others, and the new position are committed together, so an import that was
interrupted goes on after its last chunk. The target database is not touched before everything is staged.

    from data.intake.staging import Staging, StagingError
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

REJECTED, DUPLICATE, EMPTY = "rejected", "duplicate", "empty"

TABLES = """
CREATE TABLE journal (fingerprint TEXT NOT NULL);
CREATE TABLE position (part TEXT PRIMARY KEY, records INTEGER NOT NULL, complete INTEGER NOT NULL);
CREATE TABLE staged (
    part TEXT, number INTEGER, target TEXT, entity INTEGER, digest BLOB, cells TEXT,
    PRIMARY KEY (part, number), UNIQUE (target, digest), UNIQUE (target, entity)
) WITHOUT ROWID;
CREATE TABLE finding (part TEXT, number INTEGER, kind TEXT, place TEXT, reason TEXT);
CREATE INDEX finding_kind ON finding (part, kind);
"""


class StagingError(RuntimeError):
    """The staging file can not be used; the message names it."""


@dataclass(frozen=True)
class Finding:
    """Why a row was left out: its number, the kind, the column (empty: the whole row) and the reason."""

    number: int
    kind: str
    place: str = ""
    reason: str = ""


@dataclass(frozen=True)
class StagedRow:
    """A row ready for a table: its number in the source, its key there if it has one, and its texts by column."""

    number: int
    key: int | None
    cells: dict[str, str]


class Staging:
    """The staging file; opening it with another fingerprint than it was made with begins anew.

    `resumed` is True when rows of an earlier, interrupted import are in it.

    Raises:
        StagingError: the file can not be written, is in use by another import, or is no staging file.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        try:
            self._connection = self._open(fingerprint)
            self.resumed = bool(self._connection.execute("SELECT count(*) FROM position").fetchone()[0])
        except sqlite3.Error as error:
            hint = "another import is using it" if "locked" in str(error) else str(error)
            raise StagingError(f"cannot use the staging file {path}: {hint}") from None

    def _open(self, fingerprint: str) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=0)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if "journal" in names and connection.execute("SELECT fingerprint FROM journal").fetchone() == (fingerprint,):
            connection.commit()
            return connection
        if names and "journal" not in names:
            raise sqlite3.DatabaseError("it is a database of something else")
        for name in names:
            connection.execute(f"DROP TABLE {name}")
        for statement in TABLES.split(";"):
            connection.execute(statement)
        connection.execute("INSERT INTO journal VALUES (?)", (fingerprint,))
        connection.commit()
        return connection

    def position(self, part: str) -> tuple[int, bool]:
        """How many records of a part were taken in, and whether that was all of them."""
        found = self._connection.execute("SELECT records, complete FROM position WHERE part = ?", (part,)).fetchone()
        return (found[0], bool(found[1])) if found else (0, False)

    def add(self, part: str, target: str, rows: Iterable[StagedRow], findings: Iterable[Finding], records: int) -> None:
        """Store a chunk and the new position, all or nothing; rows that repeat an earlier one become findings."""
        with self._connection:
            found = [*findings]
            for row in rows:
                problem = self._insert(part, target, row)
                if problem:
                    found.append(problem)
            self._connection.executemany(
                "INSERT INTO finding VALUES (?, ?, ?, ?, ?)",
                [(part, item.number, item.kind, item.place, item.reason) for item in found],
            )
            self._connection.execute("INSERT OR REPLACE INTO position VALUES (?, ?, 0)", (part, records))

    def complete(self, part: str) -> None:
        """Mark a part as read to its end."""
        with self._connection:
            self._connection.execute("UPDATE position SET complete = 1 WHERE part = ?", (part,))

    def _insert(self, part: str, target: str, row: StagedRow) -> Finding | None:
        cells = json.dumps(row.cells, ensure_ascii=False, sort_keys=True)
        digest = hashlib.blake2b(cells.encode(), digest_size=16).digest()
        values = (part, row.number, target, row.key, digest, cells)
        if self._connection.execute("INSERT OR IGNORE INTO staged VALUES (?, ?, ?, ?, ?, ?)", values).rowcount:
            return None
        earlier = self._connection.execute(
            "SELECT part, number FROM staged WHERE target = ? AND digest = ?", (target, digest)
        ).fetchone()
        if earlier:
            where = f"row {earlier[1]}" + ("" if earlier[0] == part else f" of {earlier[0]}")
            return Finding(row.number, DUPLICATE, reason=f"same as {where}")
        return Finding(row.number, REJECTED, "id", f"{row.key} is already the id of an earlier row")

    def findings(self, part: str, kind: str, limit: int = -1) -> Iterator[Finding]:
        """The findings of one kind in the order of rows; a negative limit means all."""
        chosen = self._connection.execute(
            "SELECT number, kind, place, reason FROM finding WHERE part = ? AND kind = ? ORDER BY number LIMIT ?",
            (part, kind, limit),
        )
        return (Finding(*row) for row in chosen)

    def count(self, part: str, kind: str) -> int:
        """How many rows of a part have a finding of this kind."""
        return self._connection.execute(
            "SELECT count(DISTINCT number) FROM finding WHERE part = ? AND kind = ?", (part, kind)
        ).fetchone()[0]

    def staged(self, part: str) -> int:
        """How many rows of a part are ready."""
        return self._connection.execute("SELECT count(*) FROM staged WHERE part = ?", (part,)).fetchone()[0]

    def rows(self, part: str) -> Iterator[StagedRow]:
        """The rows of a part that are ready, in the order of the source."""
        chosen = self._connection.execute(
            "SELECT number, entity, cells FROM staged WHERE part = ? ORDER BY number", (part,)
        )
        return (StagedRow(number, key, json.loads(cells)) for number, key, cells in chosen)

    def close(self, remove: bool = False) -> None:
        """Close the file; `remove` it once nothing needs it any more."""
        self._connection.close()
        if remove:
            self.path.unlink(missing_ok=True)
