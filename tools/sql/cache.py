"""Results of identical SQL, kept per process and bounded in memory.

The rollouts of a GRPO group ask the same things again and again, and the database is read-only.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Hashable

from tools.sql.result import QueryResult

MAX_BYTES = 64 * 2**20
BYTES_PER_CHARACTER = 6  # of SQL and JSON text: two for the text, the rest for the rows it was made from
ENTRY_BYTES = 1_500  # of one entry, whatever its size


class ResultCache:
    """Least recently used results go when the estimate of what all of them hold exceeds `max_bytes`."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[QueryResult, int]] = OrderedDict()
        self.bytes = 0

    def get(self, key: Hashable) -> QueryResult | None:
        """The result kept under the key, or None."""
        with self._lock:
            entry = self._kept.get(key)
            if entry is None:
                return None
            self._kept.move_to_end(key)
            return entry[0]

    def put(self, key: Hashable, result: QueryResult, characters: int) -> None:
        """Keep a result whose key and text have so many characters."""
        size = ENTRY_BYTES + BYTES_PER_CHARACTER * characters
        with self._lock:
            _, old = self._kept.pop(key, (None, 0))
            self._kept[key] = (result, size)
            self.bytes += size - old
            while self.bytes > self.max_bytes:
                _, (_, freed) = self._kept.popitem(last=False)
                self.bytes -= freed


RESULTS = ResultCache()

# A fork while another thread holds the lock would leave it locked for ever in the child.
os.register_at_fork(after_in_child=RESULTS.clear)
