"""Check whole question files, however long: two processes, a few batches at a time, in order.

tally = check_files([Path("train.parquet")], "sqlite:///data/medical.db")
report = tally.finish()
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path

from data.questions.check import Checker, Finding, batches
from data.questions.tally import Mark, Tally, mark_of
from data.rows import DataError, Record, read_records

WORKERS = 2
BATCHES_AHEAD = 2  # handed out, a worker

Numbered = tuple[int, int, Record | DataError]  # file, row, record


def check_files(files: list[Path], database_url: str, sample: int | None = None) -> Tally:
    """Check every row, or the first `sample` of each file; call `finish` on the result for the report.

    Raises:
        DataError: a file cannot be read.
        DatabaseError: the database cannot be opened or read.
    """
    Checker(database_url)  # one message before workers start
    tally = Tally([str(path) for path in files])
    for batch, marks in _check_all(batches(_numbered(files, sample)), database_url):
        for (file, row, _), mark in zip(batch, marks, strict=True):
            tally.add(mark, file, row)
    return tally


def _numbered(files: list[Path], sample: int | None) -> Iterator[Numbered]:
    for number, path in enumerate(files):
        row = -1
        for row, record in islice(read_records(path), sample):
            yield number, row, record
        if row < 0:
            raise DataError(f"{path} has no rows")


def _check_all(source: Iterator[list[Numbered]], url: str) -> Iterator[tuple[list[Numbered], list[Mark]]]:
    """Batches with their marks, in order; more than one batch is shared by worker processes, a few at a time."""
    first = list(islice(source, 2))
    if len(first) < 2:
        yield from ((batch, check_batch(url, _records(batch))) for batch in first)
        return
    from concurrent.futures import Future, ProcessPoolExecutor

    waiting: deque[tuple[list[Numbered], Future[list[Mark]]]] = deque()
    with ProcessPoolExecutor(WORKERS, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as workers:
        for batch in chain(first, source):
            waiting.append((batch, workers.submit(check_batch, url, _records(batch))))
            if len(waiting) >= WORKERS * BATCHES_AHEAD:
                done, future = waiting.popleft()
                yield done, future.result()
        for done, future in waiting:
            yield done, future.result()


def _records(batch: list[Numbered]) -> list[Record | str]:
    return [str(record) if isinstance(record, DataError) else record for _, _, record in batch]


def check_batch(url: str, records: list[Record | str]) -> list[Mark]:
    """The marks of some records, in order; a text in place of a record is why there is none."""
    findings = iter(_checker(url).check(record for record in records if isinstance(record, dict)))
    made = [next(findings) if isinstance(one, dict) else Finding({}, [("row", one)]) for one in records]
    return [mark_of(finding) for finding in made]


_checker = lru_cache(maxsize=1)(Checker)  # one a process
