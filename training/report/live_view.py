"""The live view of a training run in the terminal: drawn by rich, below the lines that scroll.

    with View("sql-agent-ci-20260101-000000") as view:
        view.draw(seen)                                     # training.report.seen.Seen

Nothing is drawn between two calls, and no thread draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from rich.console import Console
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from common.terminal import printable
from training.report.seen import Seen, duration

BARS = "▁▂▃▄▅▆▇█"
POINTS = 40  # of the sparkline; a longer run shows its last steps


class View(ExitStack):
    """A frame at the foot of the terminal while the block runs; what is printed meanwhile appears
    above it.
    """

    def __init__(self, title: str, console: Console | None = None) -> None:
        super().__init__()
        self.title = title
        self._live = Live(
            console=console, auto_refresh=False, transient=True, vertical_overflow="crop"
        )

    def __enter__(self) -> View:
        self.enter_context(self._live)
        return self

    def draw(self, seen: Seen) -> None:
        """Replace the frame's content."""
        self._live.update(
            Panel(table_of(seen), title=Text(self.title), title_align="left"), refresh=True
        )


def table_of(seen: Seen) -> Table:
    """Return a line for everything that is known; texts of the policy and of its tasks are
    shortened and made harmless.
    """
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_row("step", steps_of(seen))
    flight = ", ".join(f"{count} {state}" for state, count in seen.in_flight.items())
    table.add_row("rollouts", flight or "-")
    table.add_row("reward", rewards_of(seen))
    dropped = ", ".join(f"{cause} {count}" for cause, count in seen.dropped.most_common())
    table.add_row("left out", dropped or "none")
    table.add_row("vLLM", vllm_of(seen))
    for name in ("question", "answer"):
        text = " ".join(printable(str(seen.last.get(name) or "-")).split())
        table.add_row(f"last {name}", Text(text))
    return table


def steps_of(seen: Seen) -> Table:
    """Return the progress, on one line with a bar."""
    line = Table.grid(padding=(0, 2))
    left = f"about {duration(seen.left)} left" if seen.left is not None else seen.phase
    bar = ProgressBar(total=max(1, seen.steps), completed=seen.step, width=20)
    line.add_row(f"{seen.step} of {seen.steps}", bar, f"{duration(seen.seconds)} so far, {left}")
    return line


def rewards_of(seen: Seen) -> str:
    """Return the mean of the last step, a sparkline of the steps before, and the last
    validation.
    """
    if not seen.rewards:
        parts = ["-"]
    else:
        first = seen.rewards[0]
        last = seen.rewards[-1]
        parts = [
            f"{last:.3f}",
            sparkline(seen.rewards),
            f"from {first:.3f}, best {max(seen.rewards):.3f}",
        ]
    if seen.validation is not None:
        parts.append(f"validation reward {seen.validation:.3f}")
    return "  ".join(parts)


def vllm_of(seen: Seen) -> str:
    """Return how many tokens vLLM generated a second in the last step, and how long it was idle."""
    if seen.tokens_per_second is None:
        return "-"
    idle = f", nothing to do for {seen.idle:.0%} of the time" if seen.idle is not None else ""
    return f"{seen.tokens_per_second:,.0f} tokens/s in the last step{idle}"


def sparkline(values: Sequence[float]) -> str:
    """Return the last POINTS values, the lowest as the lowest bar; all in the middle where they are
    equal.
    """
    shown = values[-POINTS:]
    low = min(shown)
    high = max(shown)
    if low == high:
        return BARS[len(BARS) // 2] * len(shown)
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1))] for value in shown)
