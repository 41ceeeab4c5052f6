"""Texts seen before, and in which order they first came; memory does not grow with their number.

with Seen() as seen:
    seen.add("a")        # True: new
    seen.add("a")        # False
    seen.number("b")     # 2: the second text
"""

from __future__ import annotations

import hashlib
import sqlite3


class Seen:
    """A set of texts in a temporary SQLite file, kept by digest; `label` is kept with the first of each."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)  # "": a temporary file, deleted when closed
        self._file.execute("PRAGMA journal_mode=OFF")
        self._file.execute("CREATE TABLE seen (digest BLOB PRIMARY KEY, number INT, label TEXT) WITHOUT ROWID")
        self._file.execute("BEGIN")
        self._count = 0

    def __enter__(self) -> Seen:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, text: str, label: str = "") -> bool:
        """Whether the text is new; if so it is seen now."""
        row = (_digest(text), self._count + 1, label)
        added = self._file.execute("INSERT OR IGNORE INTO seen VALUES (?, ?, ?)", row).rowcount == 1
        self._count += added
        return added

    def label(self, text: str) -> str | None:
        """The label of the first such text, None if there was none."""
        row = self._file.execute("SELECT label FROM seen WHERE digest = ?", (_digest(text),)).fetchone()
        return row and row[0]

    def number(self, text: str) -> int:
        """The text's place among the different texts, from 1; it is seen now."""
        self.add(text)
        return self._file.execute("SELECT number FROM seen WHERE digest = ?", (_digest(text),)).fetchone()[0]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
