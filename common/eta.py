"""How far a long job is: rows done, failed, a second, time left; a moving bar on a terminal, else a line now and then.

with Eta("filter", total=1000, describe=lambda: str(client.usage)) as eta:
    eta.add(resumed=1)
    eta.add(done=1)
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

LINE_EVERY = 15.0  # seconds between two lines where there is no terminal


class Eta:
    """Counts rows and shows them on stderr. Rows an earlier run finished do not enter the speed."""

    def __init__(self, title: str, total: int | None, describe: Callable[[], str] | None = None) -> None:
        self.done = self.failed = self.resumed = 0
        self._title, self._total, self._describe = title, total, describe
        self._start = self._shown = time.monotonic()
        self._bar: Any = None

    def __enter__(self) -> Eta:
        if sys.stderr.isatty():
            self._bar = self._open_bar()
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()
        print(self.line(), file=sys.stderr, flush=True)

    def add(self, *, done: int = 0, failed: int = 0, resumed: int = 0) -> None:
        """Count rows; now and then a line is printed."""
        self.done += done
        self.failed += failed
        self.resumed += resumed
        if self._bar:
            self._bar.update(self._bar.task_ids[0], completed=self.done + self.failed + self.resumed)
        elif time.monotonic() - self._shown >= LINE_EVERY:
            self._shown = time.monotonic()
            print(self.line(), file=sys.stderr, flush=True)

    def line(self) -> str:
        """All counts and the time left in one line."""
        finished = self.done + self.failed + self.resumed
        parts = [f"{self._title}: {finished:,}" + (f" of {self._total:,} rows" if self._total is not None else " rows")]
        if self.resumed:
            parts.append(f"{self.resumed:,} done before")
        if self.failed:
            parts.append(f"{self.failed:,} failed")
        passed, fresh = time.monotonic() - self._start, self.done + self.failed
        if fresh and passed > 0:
            parts.append(f"{fresh / passed:.1f}/s")
            if self._total is not None and finished < self._total:
                parts.append(f"{timedelta(seconds=round((self._total - finished) * passed / fresh))} left")
        if self._describe:
            parts.append(self._describe())
        return ", ".join(parts)

    def _open_bar(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, Task
        from rich.text import Text

        eta = self

        class Line(ProgressColumn):
            max_refresh = 0.5

            def render(self, task: Task) -> Text:
                return Text(eta.line())

        bar = Progress(BarColumn(20), Line(), console=Console(stderr=True), transient=True)
        bar.add_task("", total=self._total)
        return bar
