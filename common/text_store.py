"""Text by key in an SQLite file: what must survive a killed process, and what many processes share.

SQLite because it is in the standard library and its write-ahead log survives kills and concurrent
writers; diskcache, the library for this, has had no release since 2023 and reads pickles. Used for
the replies of LLMs (common/llm) and for journals (common/journal.py).

    store = TextStore(Path("outputs/llm_cache.sqlite"), lambda error: LLMError(f"no cache: {error}", "setup"))
    store.put("key", "reply")
    store.get("key")
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 30.0  # seconds to wait for another process's write


class TextStore:
    """A file of texts that only its owner can read.

    `error` makes the exception that is raised for an sqlite3.Error or OSError.
    """

    def __init__(
        self, path: Path, error: Callable[[Exception], Exception], *, exclusive: bool = False
    ) -> None:
        """Open or make the file. With `exclusive` no other process can open it at the same time;
        one that tries fails at once.
        """
        self._error = error
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)  # the file holds questions of patients
            self._database = sqlite3.connect(
                path, timeout=0 if exclusive else PATIENCE, isolation_level=None
            )
        except (sqlite3.Error, OSError) as problem:
            raise error(problem) from None
        for statement in (
            *(("PRAGMA locking_mode=EXCLUSIVE",) if exclusive else ()),
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=NORMAL",
            "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)",
            *(("BEGIN IMMEDIATE", "COMMIT") if exclusive else ()),  # takes the lock
        ):
            self._run(statement)

    def get(self, key: str) -> str | None:
        """Return the text kept under this key, None if there is none."""
        rows = self._run("SELECT reply FROM replies WHERE key = ?", key)
        return rows[0][0] if rows else None

    def put(self, key: str, text: str) -> None:
        """Keep a text, in place of an earlier one of this key.

        It survives the death of this process once this returns.
        """
        self._run("INSERT OR REPLACE INTO replies VALUES (?, ?)", key, text)

    def keep(self, key: str, text: str) -> str:
        """Keep a text unless the key has one, from any process, and return the one that is kept."""
        self._run("INSERT OR IGNORE INTO replies VALUES (?, ?)", key, text)
        return str(self.get(key))

    def clear(self) -> None:
        """Delete all texts."""
        self._run("DELETE FROM replies")

    def count(self) -> int:
        """Return how many texts there are."""
        return self._run("SELECT count(*) FROM replies")[0][0]

    def close(self) -> None:
        """Close the file, so that another process may open it. A second call does nothing."""
        self._database.close()

    def _run(self, statement: str, *values: str) -> list[Any]:
        try:
            return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as problem:
            raise self._error(problem) from None
