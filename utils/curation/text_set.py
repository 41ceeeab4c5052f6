"""A set of texts that knows in which order they first came; memory does not grow with their number.

with TextSet() as texts:
    texts.add("a")        # True: new
    texts.add("a")        # False
    texts.number("b")     # 2: the second text
"""

from __future__ import annotations

import hashlib
import sqlite3


class TextSet:
    """A set of texts in a temporary SQLite file, kept by digest; `label` is kept with the first of each."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)  # "": a temporary file, deleted when closed
        self._file.execute("PRAGMA journal_mode=OFF")
        self._file.execute("CREATE TABLE texts (digest BLOB PRIMARY KEY, number INT, label TEXT) WITHOUT ROWID")
        self._file.execute("BEGIN")
        self._count = 0

    def __enter__(self) -> TextSet:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, text: str, label: str = "") -> bool:
        """Whether the text is new; if so it is kept."""
        row = (_digest(text), self._count + 1, label)
        added = self._file.execute("INSERT OR IGNORE INTO texts VALUES (?, ?, ?)", row).rowcount == 1
        self._count += added
        return added

    def label(self, text: str) -> str | None:
        """The label of the first such text, None if there was none."""
        row = self._file.execute("SELECT label FROM texts WHERE digest = ?", (_digest(text),)).fetchone()
        return row and row[0]

    def number(self, text: str) -> int:
        """The text's place among the different texts, from 1; it is kept."""
        self.add(text)
        return self._file.execute("SELECT number FROM texts WHERE digest = ?", (_digest(text),)).fetchone()[0]


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
