"""Text by key in an SQLite file, which survives kills and is shared by processes.

diskcache, the library for this, has had no release since 2023 and reads pickles.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 30.0  # seconds to wait for another process's write


class TextStore:
    """A file of texts that only its owner can read. `error` wraps sqlite3.Error and OSError."""

    def __init__(
        self, path: Path, error: Callable[[Exception], Exception], *, exclusive: bool = False
    ) -> None:
        """Open or make the file. With `exclusive` another process that opens it fails at once."""
        self._error = error
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)  # the file holds questions of patients
            patience = 0 if exclusive else PATIENCE
            self._database = sqlite3.connect(path, patience, isolation_level=None)
        except (sqlite3.Error, OSError) as problem:
            raise error(problem) from None
        if exclusive:
            self._run("PRAGMA locking_mode=EXCLUSIVE")
        self._run("PRAGMA journal_mode=WAL")
        self._run("PRAGMA synchronous=NORMAL")
        self._run("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")
        if exclusive:
            self._run("BEGIN IMMEDIATE")  # takes the lock
            self._run("COMMIT")

    def get(self, key: str) -> str | None:
        """Return the text of this key or None."""
        rows = self._run("SELECT reply FROM replies WHERE key = ?", key)
        return rows[0][0] if rows else None

    def put(self, key: str, text: str) -> None:
        """Keep a text in place of an earlier one. It survives the death of this process."""
        self._run("INSERT OR REPLACE INTO replies VALUES (?, ?)", key, text)

    def keep(self, key: str, text: str) -> str:
        """Keep a text unless the key has one, from any process, and return the one that is kept."""
        self._run("INSERT OR IGNORE INTO replies VALUES (?, ?)", key, text)
        return str(self.get(key))

    def clear(self) -> None:
        self._run("DELETE FROM replies")

    def count(self) -> int:
        return self._run("SELECT count(*) FROM replies")[0][0]

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._database.close()

    def _run(self, statement: str, *values: str) -> list[Any]:
        try:
            return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as problem:
            raise self._error(problem) from None
