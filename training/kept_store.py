"""A store that keeps what it holds in an SQLite file, so that one that is started again goes on where it was.

    store = await KeptStore.open(Path("store"))        # python -m training.store serve --persist store

The store itself is the one in memory: what changes in its collections is written as it changes, before the request that
changed it is answered, and read once, at the start. So a request costs what it changes, however much there is, and the
file is as small as the memory: rollouts are released from both. agent-lightning 0.3 keeps a store in MongoDB or not at
all.

After a kill nothing is missing but requests that were not answered. Rollouts that are being played go on: runners have
time to be heard again before any is given to another. Endings that are still held are told once more, since nobody can
know who had heard of them; who waits for a rollout takes its ending once (`training.handover`).
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from agentlightning.store.base import is_queuing
from agentlightning.store.collection.memory import (
    DequeBasedQueue,
    DictBasedKeyValue,
    InMemoryLightningCollections,
    ListBasedCollection,
)
from pydantic import BaseModel, ValidationError

from training.live_store import RunStore
from training.plan import ConfigError

FILE = "store.sqlite"
GRACE_SECONDS = 30.0  # after the start, before silent runners are given up: three of their heartbeats
ENDINGS_OF_A_START = 10**12  # endings are numbered on from a multiple of it, above those of earlier starts
OPEN = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "CREATE TABLE IF NOT EXISTS items "
    "(number INTEGER PRIMARY KEY, kind TEXT, key TEXT, value TEXT, UNIQUE (kind, key))",
    "BEGIN IMMEDIATE",  # takes the lock
    "COMMIT",
)
COLLECTIONS = ("rollouts", "attempts", "spans", "resources", "workers")
PUT = "INSERT INTO items (kind, key, value) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
DROP = "DELETE FROM items WHERE kind = ? AND key = ?"


class StoreFile:
    """Items by kind and key, in the order they came; changes gather until `write`, which writes all or none of them."""

    def __init__(self, folder: Path) -> None:
        """Raises ConfigError: another store has the folder, or what is there is none."""
        folder.mkdir(parents=True, exist_ok=True)
        path, self._changes = folder / FILE, list[tuple[str, tuple[Any, ...]]]()
        path.touch(mode=0o600)  # questions of patients are in there
        self._database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            for statement in OPEN:
                self._database.execute(statement)
        except sqlite3.OperationalError as error:
            raise ConfigError(f"--persist {folder}: {error}; is another store running on it?") from None
        except sqlite3.DatabaseError as error:
            raise ConfigError(f"--persist {folder}: {FILE} is damaged, or no store's ({error})") from None

    def put(self, kind: str, key: Iterable[Any], item: Any) -> None:
        """Keep an item, a model or a JSON value, in the place of an earlier one."""
        self._changes.append((PUT, (kind, json.dumps([*key]), item)))

    def drop(self, kind: str, key: Iterable[Any]) -> None:
        self._changes.append((DROP, (kind, json.dumps([*key]))))

    def write(self) -> None:
        """Raises sqlite3.Error: the disk is full, for one; then the changes wait for the next time."""
        if not self._changes:
            return
        with self._database:
            self._database.execute("BEGIN")
            for statement, (kind, key, *item) in self._changes:
                self._database.execute(statement, (kind, key, *map(_text, item)))
        self._changes.clear()

    def read(self, kind: str) -> list[tuple[list[Any], Any]]:
        """Keys and values of a kind."""
        rows = self._database.execute("SELECT key, value FROM items WHERE kind = ? ORDER BY number", (kind,))
        return [(json.loads(key), json.loads(value)) for key, value in rows]

    def close(self) -> None:
        self._database.close()


def _text(item: Any) -> str:
    return json.dumps(item.model_dump() if isinstance(item, BaseModel) else item)


class KeptCollection(ListBasedCollection[Any]):
    """Of one kind, filled from the file."""

    file: StoreFile | None = None

    def __init__(self, file: StoreFile, kind: str, plain: ListBasedCollection[Any]) -> None:
        held = [plain.item_type().model_validate(value) for _, value in file.read(kind)]
        super().__init__(held, plain.item_type(), plain.primary_keys(), id=kind)
        self.file = file

    def _mutate_single(self, item: Any, mode: Any, update_fields: Sequence[str] | None = None) -> Any:
        """All that changes a collection passes here."""
        changed = super()._mutate_single(item, mode, update_fields)
        if self.file is not None:
            key = self._extract_primary_key_values(item)
            if changed is None:
                self.file.drop(self.collection_name, key)
            else:
                self.file.put(self.collection_name, key, changed)
        return changed


class KeptQueue(DequeBasedQueue[str]):
    """Rollouts that wait, the next one first."""

    def __init__(self, file: StoreFile) -> None:
        super().__init__(str, [key for (key,), _ in file.read("queue")], id="rollout_queue")
        self.file = file

    async def enqueue(self, items: Sequence[str]) -> Sequence[str]:
        for item in items:
            self.file.put("queue", [item], None)
        return await super().enqueue(items)

    async def dequeue(self, limit: int = 1) -> Sequence[str]:
        taken = await super().dequeue(limit)
        for item in taken:
            self.file.drop("queue", [item])
        return taken


class KeptNumbers(DictBasedKeyValue[str, int]):
    """The number of the last span of each rollout."""

    def __init__(self, file: StoreFile) -> None:
        super().__init__({key: value for (key,), value in file.read("numbers")}, id="span_sequence_ids")
        self.file = file

    async def inc(self, key: str, amount: int) -> int:
        return self._keep(key, await super().inc(key, amount))

    async def chmax(self, key: str, value: int) -> int:
        return self._keep(key, await super().chmax(key, value))

    async def pop(self, key: str, default: int | None = None) -> int | None:
        self.file.drop("numbers", [key])
        return await super().pop(key, default)

    def _keep(self, key: str, value: int) -> int:
        self.file.put("numbers", [key], value)
        return value


class KeptCollections(InMemoryLightningCollections):
    """agent-lightning's, in memory; what a block changed is in the file when the block ends."""

    def __init__(self, file: StoreFile) -> None:
        super().__init__(lock_type="thread")
        self.file = file
        for kind in COLLECTIONS:
            setattr(self, f"_{kind}", KeptCollection(file, kind, getattr(self, kind)))
        self._rollout_queue, self._span_sequence_ids = KeptQueue(file), KeptNumbers(file)

    @asynccontextmanager
    async def atomic(self, **options: Any) -> AsyncIterator[Any]:
        async with super().atomic(**options) as collections:
            try:
                yield collections
            finally:  # what failed halfway has changed the memory, too
                self.file.write()


class KeptStore(RunStore):
    """Lives on its server's event loop, as its base does."""

    @classmethod
    async def open(cls, folder: Path) -> KeptStore:
        """Raises ConfigError: another store has the folder, or what is there cannot be read."""
        store, file = cls(), StoreFile(folder)
        try:
            store.collections = KeptCollections(file)
        except (ValidationError, sqlite3.DatabaseError, json.JSONDecodeError, KeyError) as error:
            seen = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            raise ConfigError(f"--persist {folder}: {FILE} is damaged, or another version's ({seen})") from None
        await store._go_on(file)
        return store

    async def _go_on(self, file: StoreFile) -> None:
        """Rebuild what the memory knows beside its collections."""
        starts = next((value for _, value in file.read("starts")), 0)
        file.put("starts", [], starts + 1)
        self.last_ending = starts * ENDINGS_OF_A_START
        held = sorted((await self.collections.rollouts.query()).items, key=lambda rollout: rollout.end_time or 0.0)
        await self._post_update_rollout([(rollout, ("status",)) for rollout in held], skip_enqueue=True)
        queued = {key for (key,), _ in file.read("queue")}
        async with self.collections.atomic(labels=["rollout_queue"]) as collections:  # killed between two of its blocks
            lost = [rollout.rollout_id for rollout in held if is_queuing(rollout) and rollout.rollout_id not in queued]
            await collections.rollout_queue.enqueue(lost)
        for span in (await self.collections.spans.query()).items:
            await self._account_span_size(span)
        self._last_scan_entrance_time = time.time() + GRACE_SECONDS - self._scan_debounce_seconds
