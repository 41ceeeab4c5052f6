"""A store that keeps what it holds in an SQLite file, and goes on there after a kill.

Changes are written before the request that made them is answered, and read once, at the start. The
queue follows from the rollouts' states. Endings are handed out once more.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agentlightning.store.base import is_queuing
from agentlightning.store.collection.memory import InMemoryLightningCollections, ListBasedCollection

from training.setup.plan import ConfigError
from training.store.live_store import RunStore, make_server

__all__ = ["KeptStore", "RunStore", "make_server"]

FILE = "store.sqlite"
# From the start until silent runners are given up: three of their heartbeats
GRACE_SECONDS = 30.0
KINDS = ("rollouts", "attempts", "spans", "resources", "workers")
OPEN = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "CREATE TABLE IF NOT EXISTS items "
    # In the order they came
    "(number INTEGER PRIMARY KEY, kind TEXT, key TEXT, value TEXT, UNIQUE (kind, key))",
    "BEGIN IMMEDIATE",  # takes the lock
    "COMMIT",
)
PUT = (
    "INSERT INTO items (kind, key, value) VALUES (?, ?, "
    "?) ON CONFLICT DO UPDATE SET value = excluded.value"
)
DROP = "DELETE FROM items WHERE kind = ? AND key = ?"


class KeptCollection(ListBasedCollection[Any]):
    """agent-lightning's, in memory. Notes what changes as statements with their arguments."""

    changes: list[tuple[str, tuple[Any, ...]]] | None = None

    def _mutate_single(
        self, item: Any, mode: Any, update_fields: Sequence[str] | None = None
    ) -> Any:
        """Change an item and note the change. Every change of a collection passes here."""
        changed = super()._mutate_single(item, mode, update_fields)
        if self.changes is not None:
            key = self.collection_name, json.dumps(self._extract_primary_key_values(item))
            self.changes.append((DROP, key) if changed is None else (PUT, (*key, changed)))
        return changed


class KeptCollections(InMemoryLightningCollections):
    """Collections read from the database, which gets the changes of a block at its end."""

    def __init__(self, database: sqlite3.Connection) -> None:
        super().__init__(lock_type="thread")
        self.database = database
        self._changes: list[tuple[str, tuple[Any, ...]]] = []
        for kind in KINDS:
            plain: ListBasedCollection[Any] = getattr(self, kind)
            rows = database.execute(
                "SELECT value FROM items WHERE kind = ? ORDER BY number", (kind,)
            )
            held = [plain.item_type().model_validate(json.loads(value)) for (value,) in rows]
            kept = KeptCollection(held, plain.item_type(), plain.primary_keys(), id=kind)
            kept.changes = self._changes
            setattr(self, f"_{kind}", kept)

    @asynccontextmanager
    async def atomic(self, **options: Any) -> AsyncIterator[Any]:
        async with super().atomic(**options) as collections:
            try:
                yield collections
            finally:  # what failed halfway has changed the memory, too
                self._write()

    def _write(self) -> None:
        """Write all changes, or none of them until the next time. Raises sqlite3.Error."""
        if not self._changes:
            return
        with self.database:
            self.database.execute("BEGIN")
            for statement, (kind, key, *item) in self._changes:
                self.database.execute(
                    statement, (kind, key, *(json.dumps(one.model_dump()) for one in item))
                )
        self._changes.clear()


class KeptStore(RunStore):
    """Lives on its server's event loop, as its base does. `open` makes one."""

    database: sqlite3.Connection
    scans_from: float  # when silent runners are first looked for, in seconds of time.monotonic()

    @classmethod
    async def open(cls, folder: Path) -> KeptStore:
        """Return the store of a folder. Raises ConfigError: it is in use, or cannot be read."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).touch(mode=0o600)  # questions of patients are in there
        store = cls()
        store.database = sqlite3.connect(
            folder / FILE, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            for statement in OPEN:
                store.database.execute(statement)
            store.collections = KeptCollections(store.database)
        except (sqlite3.Error, ValueError) as error:  # ValueError: of json and pydantic
            store.database.close()
            busy = getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY")
            why = "another store runs on it" if busy else f"{FILE} is damaged, or another version's"
            raise ConfigError(f"--persist {folder}: {why} ({str(error).splitlines()[0]})") from None
        await store._go_on()
        return store

    async def _go_on(self) -> None:
        self.last_ending = time.time_ns()  # endings are numbered on above those of earlier starts
        held = list((await self.collections.rollouts.query()).items)
        ended_first = sorted(held, key=lambda rollout: rollout.end_time or 0.0)
        await self._post_update_rollout(
            [(rollout, ("status",)) for rollout in ended_first], skip_enqueue=True
        )
        # In the order they came, so that those that were given back are in front
        waiting = [rollout.rollout_id for rollout in held if is_queuing(rollout)]
        await self.collections.rollout_queue.enqueue(waiting)
        for span in (await self.collections.spans.query()).items:
            await self._sync_span_sequence_id(span.rollout_id, span.sequence_id)
            await self._account_span_size(span)
        self.scans_from = time.monotonic() + GRACE_SECONDS

    async def _should_scan_for_unhealthy_rollouts(self) -> bool:
        """Return whether it is time to look for silent runners. After a start they must be heard
        again first.
        """
        if time.monotonic() < self.scans_from:
            return False
        return await super()._should_scan_for_unhealthy_rollouts()
