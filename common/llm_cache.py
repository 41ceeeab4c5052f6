"""Replies of LLMs on disk, by content: an SQLite file that many processes may use at once.

SQLite because it is in the standard library and its write-ahead log survives a killed process and concurrent writers;
diskcache, the library for this, has had no release since 2023 and reads pickles. common/llm.py is the only user.

    cache = ReplyCache(Path("outputs/llm_cache.sqlite"))
    cache.put("key", "reply")
    cache.get("key")
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

PATIENCE = 30.0  # seconds to wait for another process's write


class ReplyCache:
    """Text by key, in a file only its owner can read. Methods raise sqlite3.Error, the constructor also OSError."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)  # questions of patients are in there
        self._database = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        self._database.execute("PRAGMA journal_mode=WAL")
        self._database.execute("PRAGMA synchronous=NORMAL")
        self._database.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")

    def get(self, key: str) -> str | None:
        """The reply kept under this key, None if there is none."""
        found = self._database.execute("SELECT reply FROM replies WHERE key = ?", (key,)).fetchone()
        return found[0] if found else None

    def put(self, key: str, reply: str) -> None:
        """Keep a reply; one that is there already is replaced. On disk for every other process when this returns."""
        self._database.execute("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, reply))
