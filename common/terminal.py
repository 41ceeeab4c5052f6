"""What programs show while they work, on stderr: how far they are and how long it takes; others' words made harmless.

    for row in watched(rows, "checking", "rows"): ...           # quick work shows nothing
    with progress("episodes", total=320) as bar: bar.update()
    print(printable(reply))                                     # no escape sequence reaches the terminal

On a terminal a bar that moves, else a line now and then. The only file that imports tqdm.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sized
from typing import Any, TypeVar

Item = TypeVar("Item")

SECONDS_A_LINE = 15.0  # where there is no terminal
QUICK_SECONDS = 3.0  # work that is done by then is not worth a bar
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def progress(title: str, total: int | None, unit: str = "rows", items: Any = None, quick: float = 0.0) -> Any:
    """A tqdm bar for `total` units; None: not known, and no end is promised. `quick` seconds long it shows nothing."""
    from tqdm import tqdm

    moves = sys.stderr.isatty()
    of = "/{total_fmt}" if total is not None else ""
    left = "<{remaining}" if total is not None else ""
    line = None if moves else f"{{desc}}: {{n_fmt}}{of} {unit} [{{elapsed}}{left}, {{rate_fmt}}{{postfix}}]\n"
    interval = 0.2 if moves else quick or SECONDS_A_LINE
    return tqdm(items, title, total, unit=f" {unit}", mininterval=interval, miniters=1, delay=quick, bar_format=line)


def watched(items: Iterable[Item], title: str, unit: str = "rows", total: int | None = None) -> Iterable[Item]:
    """The items, one after the other; while they last longer than QUICK_SECONDS, how many are done and what is left."""
    known = len(items) if total is None and isinstance(items, Sized) else total
    found: Iterable[Item] = progress(title, known, unit, items, QUICK_SECONDS)
    return found


def printable(text: str) -> str:
    """The text with everything that is not seen, but for line breaks and tabs, made visible as one sign."""
    return "".join(char if char.isprintable() or char in "\n\t" else UNKNOWN for char in text)
