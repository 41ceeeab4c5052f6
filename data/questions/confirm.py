"""Run the gold SQL of drafts the way the agent's own tool does and keep what the database and the judge confirm.

A draft is confirmed when its SQL passes the tool's guard and returns, within the tool's limits and unshortened, exactly
the rows it promises, and its answer earns 1 from the project's own judge. The tool goes without hints, which take far
longer than the query and which nothing here reads. Large numbers of drafts are shared among processes, one a core,
while more are drawn.

    with Confirmer(url) as confirmer:
        for draft, rows in confirmer.confirm(drafts): ...    # rows: what the SQL returned, None: not confirmed
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from typing import Any

from data.questions.questions import Draft
from scoring.case import Case
from scoring.reference.offline import ReferenceJudge
from tools.sql.query import QueryTool

CHUNK = 250
PARALLEL_FROM = 2_000  # drafts; fewer are done before a second process has started

Rows = list[list[Any]]


class Confirmer:
    """Confirms drafts against one database; leaving the context ends its processes.

    Raises, from `confirm`:
        DatabaseError: the database cannot be used.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Confirmer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(cancel_futures=True)

    def confirm(self, drafts: Iterable[Draft], expected: int) -> Iterator[tuple[Draft, Rows | None]]:
        """Each draft, in order, with the rows its SQL returned; None if it is not confirmed.

        All drafts are drawn before the first comes back. `expected` is about how many there are.
        """
        source = iter(drafts)
        chunks = iter(lambda: list(islice(source, CHUNK)), [])
        if expected < PARALLEL_FROM:
            done: Iterable[tuple[list[Draft], list[Rows | None]]] = [(c, confirm_here(c, self.url)) for c in chunks]
        else:
            self._pool = self._pool or ProcessPoolExecutor(os.cpu_count())
            waiting = [(chunk, self._submit(chunk)) for chunk in chunks]
            done = ((chunk, future.result()) for chunk, future in waiting)
        for chunk, found in done:
            yield from zip(chunk, found, strict=True)

    def _submit(self, chunk: list[Draft]) -> Future[list[Rows | None]]:
        assert self._pool is not None
        return self._pool.submit(confirm_here, chunk, self.url)


def confirm_here(drafts: Sequence[Draft], url: str) -> list[Rows | None]:
    """The same in this process."""
    return asyncio.run(_confirm_all(drafts, url))


async def _confirm_all(drafts: Sequence[Draft], url: str) -> list[Rows | None]:
    tool, judge = QueryTool(url, cache=False, hints=False), ReferenceJudge()
    return [await _confirm(draft, tool, judge) for draft in drafts]


async def _confirm(draft: Draft, tool: QueryTool, judge: ReferenceJudge) -> Rows | None:
    result = tool.run(draft.sql)
    if not result.ok or result.truncated or result.columns != list(draft.columns):
        return None
    if sorted(result.rows, key=repr) != sorted(map(list, draft.rows), key=repr):
        return None
    gold = {
        "structured_gt": {"columns": result.columns, "rows": result.rows},
        "evidence": [{"quote": quote} for *_, quote in draft.evidence],
    }
    verdict = await judge.judge(Case(draft.question, draft.answer, draft.answer, [result.to_json()], gold))
    return result.rows if verdict.score == 1 else None
