"""Long jobs that may be killed at any moment: a journal of finished rows, and a runner of many rows at once.

Every finished row is one line of `OUT.journal`. The same command given again reads it and goes on; when all rows are
done the output is written at once and the journal removed. What is kept when: a record is handed to the system
before its row counts as done, so a killed process loses nothing but rows in flight. After a power loss the last
seconds may be missing; they are done again. (An fsync for each record would save them, but takes milliseconds.)

    with open_journal(Path("out.jsonl"), {"program": "x", "input": file_digest(source)}, force=False) as journal:
        outcome = await run_all(rows, key=row_key, work=ask, journal=journal, concurrency=8, title="filter")
        write_jsonl(Path("out.jsonl"), (value for value in outcome if not isinstance(value, Failed)), force=True)
        journal.remove()
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from common.command import Failure, UsageError
from common.eta import Eta
from common.jsonl import refuse_existing

Item = TypeVar("Item")

FORMAT = b'{"journal": 1'  # how every journal begins
TOO_MANY_FAILURES = 20  # one after the other: the endpoint is at fault, not the rows
MISSING: Any = object()  # what Journal.get gives for a key that was not put


class JournalError(UsageError):
    """A journal that cannot be used: of other work, in use, or damaged."""


class RunError(Failure):
    """A run that makes no sense to continue."""


@dataclass(frozen=True)
class Failed:
    """In place of a result: why there is none. The row is tried again when the same command is given again."""

    reason: str


class Journal:
    """Append-only JSONL of results by key; the first line says of which work. Locked against a second process.

    Memory does not grow with the number of rows: values stay in the file, and where each begins is in a temporary
    SQLite file. A line that a kill cut short is removed on opening.
    """

    def __init__(self, path: Path, fingerprint: Mapping[str, Any], *, fresh: bool = False) -> None:
        """`fingerprint` is what the results depend on, as JSON values; `fresh` throws earlier results away.

        Raises:
            JournalError: another fingerprint, another process has it open, not a journal, or damaged in the middle.
        """
        self.path = path
        self._file = _open_locked(path)
        self._places = sqlite3.connect("", isolation_level=None)  # "": a temporary file, deleted when closed
        self._places.execute("PRAGMA journal_mode=OFF")
        self._places.execute("CREATE TABLE places (key TEXT PRIMARY KEY, start INT, size INT) WITHOUT ROWID")
        self._places.execute("BEGIN")
        self._count = self._end = 0
        try:
            if fresh:
                os.ftruncate(self._file, 0)
            self._read(fingerprint)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: str) -> bool:
        return self._place(key) is not None

    def get(self, key: str) -> Any:
        """The value put under this key, MISSING if there is none."""
        place = self._place(key)
        if place is None:
            return MISSING
        return json.loads(os.pread(self._file, place[1], place[0]).decode("utf-8", "surrogatepass"))["value"]

    def put(self, key: str, value: Any) -> None:
        """Append a JSON value. It survives the death of this process once this returns.

        Raises:
            KeyError: the key has a value already.
            OSError: the disk is full; the journal stays as it was.
        """
        if key in self:
            raise KeyError(f"{key} is in {self.path} already")
        line = json.dumps({"key": key, "value": value}, ensure_ascii=False) + "\n"
        start, size = self._end, self._append(line.encode("utf-8", "surrogatepass"))
        self._remember(key, start, size)

    def remove(self) -> None:
        """Delete the file: the work is done and its output is written."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another process have it."""
        self._places.close()
        os.close(self._file)

    def _place(self, key: str) -> tuple[int, int] | None:
        return self._places.execute("SELECT start, size FROM places WHERE key = ?", (key,)).fetchone()

    def _remember(self, key: str, start: int, size: int) -> None:
        changed = self._places.execute("INSERT OR IGNORE INTO places VALUES (?, ?, ?)", (key, start, size)).rowcount
        self._count += changed

    def _append(self, data: bytes) -> int:
        written = os.pwrite(self._file, data, self._end)
        if written != len(data):
            os.ftruncate(self._file, self._end)
            raise OSError(f"{self.path}: the disk is full")
        self._end += written
        return written

    def _read(self, fingerprint: Mapping[str, Any]) -> None:
        expected = json.dumps({"journal": 1, **fingerprint}, ensure_ascii=False)
        with open(self._file, "rb", closefd=False) as lines:
            first = lines.readline()
            if not first.endswith(b"\n") and (first.startswith(FORMAT) or FORMAT.startswith(first)):
                os.ftruncate(self._file, 0)  # new, or cut in its very first line
                self._append(expected.encode() + b"\n")
                return
            self._compare(first, json.loads(expected))
            self._end = len(first)
            for line in lines:
                self._read_record(line)

    def _compare(self, first: bytes, expected: dict[str, Any]) -> None:
        try:
            found = json.loads(first)
        except ValueError:
            found = None
        if not first.startswith(FORMAT) or found is None:
            raise JournalError(f"{self.path} is not a journal of this project; move it away")
        names = [name for name in {**expected, **found} if found.get(name) != expected.get(name)]
        if names:
            text = "; ".join(f"{name} was {found.get(name)!r}, now {expected.get(name)!r}" for name in names)
            raise JournalError(
                f"{self.path} belongs to an unfinished run that differs: {text}. "
                "Give that run's options to finish it, --force to start over, or another output"
            )

    def _read_record(self, line: bytes) -> None:
        try:
            record = json.loads(line.decode("utf-8", "surrogatepass")) if line.endswith(b"\n") else None
            key = record["key"] if record and "value" in record else None
        except (ValueError, TypeError, KeyError):
            key = None
        if isinstance(key, str):
            self._remember(key, self._end, len(line))
            self._end += len(line)
        elif self._end + len(line) == os.fstat(self._file).st_size:
            os.ftruncate(self._file, self._end)  # the last line, cut short
        else:
            raise JournalError(
                f"{self.path} is damaged at byte {self._end}, which a killed run does not cause; --force starts over"
            )


def _open_locked(path: Path) -> int:
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise JournalError(f"{path} can not be opened: {error.strerror}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise JournalError(f"{path} is in use by another process; wait for it, or use another output") from None
        if path.exists() and os.path.samestat(os.fstat(file), path.stat()):
            return file
        os.close(file)  # its owner finished and removed it between the two calls


def open_journal(output: Path, fingerprint: Mapping[str, Any], *, force: bool, others: Iterable[Path] = ()) -> Journal:
    """The journal of a program that writes `output` and `others`: an unfinished run goes on, else nothing may be there.

    Raises:
        FileError: an output exists, there is no unfinished run that explains it, and not `force`.
        JournalError: see Journal.
    """
    path = output.with_name(output.name + ".journal")
    for file in (output, *others):
        refuse_existing(file, force or path.exists())
    return Journal(path, fingerprint, fresh=force)


class Outcome(Generic[Item]):
    """Results in the order of the items, read from the journal anew at each iteration; `Failed` where there is none."""

    def __init__(self, items: Iterable[Item], key: Callable[[Item], str], journal: Journal) -> None:
        self.failed: dict[str, str] = {}
        self.items, self.key, self.journal = items, key, journal

    def __iter__(self) -> Iterator[Any]:
        for item in self.items:
            name = self.key(item)
            value = self.journal.get(name)
            yield Failed(self.failed.get(name, "not done")) if value is MISSING else value


async def run_all(
    items: Iterable[Item],
    key: Callable[[Item], str],
    work: Callable[[Item], Awaitable[Any]],
    journal: Journal,
    *,
    concurrency: int,
    title: str,
    describe: Callable[[], str] | None = None,
    failures: type[Exception] | tuple[type[Exception], ...] = (),
) -> Outcome[Item]:
    """Do the work of every item that the journal does not hold yet; results are read from what is returned.

    `items` is iterated here and again for each pass over the outcome, so it is a list or a class with `__iter__`, not a
    generator; nothing is kept of it. `key` says what an item is: equal keys are done once. `work` returns a JSON
    value. An exception of `failures` costs the row, is counted and tried again by the next run; any other ends the run.
    `describe` adds its words to the progress, such as tokens and cost.

    Raises:
        RunError: TOO_MANY_FAILURES rows failed with no success between.
    """
    outcome = Outcome(items, key, journal)
    total = len(items) if isinstance(items, Sized) else None
    with Eta(title, total, describe) as eta:
        crew = _Crew(outcome, work, failures, eta)
        waiting = iter(items)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(crew.work_through(waiting))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
    return outcome


class _Crew(Generic[Item]):
    """The workers of one run: they share the waiting items and the count of failures in a row."""

    def __init__(
        self,
        outcome: Outcome[Item],
        work: Callable[[Item], Awaitable[Any]],
        failures: type[Exception] | tuple[type[Exception], ...],
        eta: Eta,
    ) -> None:
        self._outcome, self._work, self._failures, self._eta = outcome, work, failures, eta
        self._running: set[str] = set()
        self._in_a_row = 0

    async def work_through(self, waiting: Iterator[Item]) -> None:
        for item in waiting:
            name = self._outcome.key(item)
            if name in self._outcome.journal or name in self._running:
                self._eta.add(resumed=1)
                continue
            self._running.add(name)
            try:
                await self._one(name, item)
            finally:
                self._running.discard(name)

    async def _one(self, name: str, item: Item) -> None:
        failed, journal = self._outcome.failed, self._outcome.journal
        try:
            value = await self._work(item)
        except self._failures as error:
            failed[name] = str(error)
            self._in_a_row += 1
            self._eta.add(failed=1)
            if self._in_a_row >= TOO_MANY_FAILURES:
                raise RunError(f"{self._in_a_row} rows failed one after the other, the last one: {error}") from None
            return
        journal.put(name, value)
        failed.pop(name, None)
        self._in_a_row = 0
        self._eta.add(done=1)
