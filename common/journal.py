"""Keep the finished rows of a long job in `OUT.journal` (SQLite), so that a killed job goes on."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from common.command import Failure, UsageError
from common.files import refuse_existing
from common.terminal import progress
from common.text_store import TextStore

Item = TypeVar("Item")

FINGERPRINT = "\0fingerprint"  # the key of what the results depend on
TOO_MANY_FAILURES = 20  # one after the other: the endpoint is at fault, not the rows
MISSING: Any = object()  # what Journal.get gives for a key that was not put


class JournalError(UsageError):
    """A journal that cannot be used: it belongs to other work, is in use, or is damaged."""


class RunError(Failure):
    """A run that it makes no sense to continue."""


@dataclass(frozen=True)
class Failed:
    """Stands in place of a result and holds the reason. The next run tries the row again."""

    reason: str


class Journal(AbstractContextManager["Journal"]):
    """Results by key, with the fingerprint of their work, locked against other processes."""

    def __init__(self, path: Path, fingerprint: Mapping[str, Any], *, fresh: bool = False) -> None:
        """Open or make the journal. `fresh` throws earlier results away.

        `fingerprint` is what the results depend on, as JSON values. Raises JournalError: another
        fingerprint, open in another process, not a journal, or damaged.
        """
        self.path = path
        self._store = TextStore(path, self._explained, exclusive=True)
        try:
            if fresh:
                self._store.clear()
            self._compare(json.loads(json.dumps(fingerprint)))
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self._store.count() - 1

    def __contains__(self, key: str) -> bool:
        return self._store.get(key) is not None

    def get(self, key: str) -> Any:
        """Return the value put under this key, or MISSING."""
        text = self._store.get(key)
        return MISSING if text is None else json.loads(text)

    def put(self, key: str, value: Any) -> None:
        """Add a JSON value, which survives the death of this process. Raises RunError: no room."""
        self._store.put(key, json.dumps(value))

    def remove(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        self._store.close()

    def _compare(self, expected: dict[str, Any]) -> None:
        kept = self.get(FINGERPRINT)
        if kept is MISSING:
            self._store.put(FINGERPRINT, json.dumps(expected))
            return
        if changes := differences(kept, expected):
            raise JournalError(
                f"{self.path} is of an unfinished run that differs: {changes}; give that "
                "run's options to finish it, --force to start over, or another output"
            )

    def _explained(self, error: Exception) -> Exception:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_BUSY"):
            return JournalError(f"{self.path} is in use; wait, or use another output")
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            return JournalError(
                f"{self.path} is not a journal of this project, or damaged ({error}); move it away"
            )
        return RunError(f"{self.path} cannot be used: {error}")


def differences(kept: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Return in words what differs between what was kept and what is expected, or ""."""
    changes = []
    for name in {**expected, **kept}:
        if kept.get(name) != expected.get(name):
            changes.append(f"{name} was {kept.get(name)!r}, now {expected.get(name)!r}")
    return "; ".join(changes)


def open_journal(
    output: Path, fingerprint: Mapping[str, Any], *, force: bool, others: Iterable[Path] = ()
) -> Journal:
    """Return the journal of a program that writes `output` and `others`, to begin or to continue.
    Raises FileError: an output exists without an unfinished run or `force`. Raises JournalError.
    """
    path = output.with_name(output.name + ".journal")
    for file in (output, *others):
        refuse_existing(file, force or path.exists())
    return Journal(path, fingerprint, fresh=force)


async def run_all(
    items: Sequence[Item],
    key: Callable[[Item], str],
    work: Callable[[Item], Awaitable[Any]],
    journal: Journal,
    *,
    concurrency: int,
    title: str,
    describe: Callable[[], str] | None = None,
    failures: type[Exception] | tuple[type[Exception], ...] = (),
    bounded: bool = True,
) -> Iterator[Any]:
    """Do the work of every item that the journal lacks. Return an iterator over results, in order.

    A failed row gives `Failed`. Equal keys are done once. `work` returns a JSON value. An
    exception of `failures` costs the row, any other ends the run. `describe` adds to the progress.
    Raises RunError: with `bounded`, TOO_MANY_FAILURES rows failed with no success between.
    """
    rows: dict[str, Item] = {}
    for item in items:
        rows.setdefault(key(item), item)
    missing = [name for name in rows if name not in journal]
    waiting = iter(missing)
    failed: dict[str, str] = {}
    in_a_row = 0

    async def worker() -> None:
        nonlocal in_a_row
        for name in waiting:
            try:
                value = await work(rows[name])
            except failures as error:
                failed[name] = str(error)
                in_a_row += 1
                if bounded and in_a_row >= TOO_MANY_FAILURES:
                    said = f"{in_a_row} rows failed in a row, the last one: {error}"
                    raise RunError(said) from None
            else:
                journal.put(name, value)
                in_a_row = 0
            lost = f"{len(failed):,} failed, " if failed else ""
            bar.set_postfix_str(lost + (describe() if describe else ""), refresh=False)
            bar.update()

    def result(item: Item) -> Any:
        name = key(item)
        value = journal.get(name)
        return Failed(failed[name]) if value is MISSING else value

    with progress(title, len(rows)) as bar:
        bar.initial = len(rows) - len(missing)  # rows of an earlier run do not enter the speed
        bar.update(bar.initial)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(concurrency):
                    group.create_task(worker())
        except BaseExceptionGroup as errors:
            first = errors.exceptions[0]
            raise first from first.__cause__
    return map(result, items)
