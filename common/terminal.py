"""What programs show while they work, on stderr: how far they are and how long it takes; others'
words made harmless.

    for row in watched(rows, "checking", "rows"): ...           # quick work shows nothing
    with progress("episodes", total=320) as bar: bar.update()
    print(printable(reply))                                     # no escape sequence reaches the terminal

On a terminal a bar that moves, else a line now and then. The only file that imports tqdm.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Iterable, Sequence, Sized
from shutil import get_terminal_size
from typing import Any, TypeVar

Item = TypeVar("Item")

SECONDS_A_LINE = 15.0  # where there is no terminal
QUICK_SECONDS = 3.0  # work that is done by then is not worth a bar
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def progress(
    title: str, total: int | None, unit: str = "rows", items: Any = None, quick: float = 0.0
) -> Any:
    """A tqdm bar for `total` units; None: not known, and no end is promised; without a unit: the
    time alone.

    `quick` seconds long it shows nothing.
    """
    from tqdm import tqdm

    tqdm.monitor_interval = (
        0  # its thread is for bars that skip updates, and would be there when processes are forked
    )
    moves = sys.stderr.isatty()
    line = "{desc} [{elapsed}]" if not unit else None
    if not moves:
        of, left = ("", "") if total is None else ("/{total_fmt}", "<{remaining}")
        counted = f"{{desc}}: {{n_fmt}}{of} {unit} [{{elapsed}}{left}, {{rate_fmt}}{{postfix}}]"
        line = (line or counted) + "\n"
    width, height = get_terminal_size()  # tqdm shows nothing where a terminal does not say its size
    speed = {
        "mininterval": 0.2 if moves else quick or SECONDS_A_LINE,
        "miniters": 1,
        "delay": quick,
    }
    return tqdm(
        items, title, total, unit=f" {unit}", ncols=width, nrows=height, bar_format=line, **speed
    )


def watched(
    items: Iterable[Item], title: str, unit: str = "rows", total: int | None = None
) -> Iterable[Item]:
    """The items, one after the other; while they last longer than QUICK_SECONDS, how many are done
    and what is left.
    """
    known = len(items) if total is None and isinstance(items, Sized) else total
    found: Iterable[Item] = progress(title, known, unit, items, QUICK_SECONDS)
    return found


async def gathered(work: Sequence[Awaitable[Item]], title: str, unit: str = "rows") -> list[Item]:
    """asyncio.gather, watched."""
    with progress(title, len(work), unit, quick=QUICK_SECONDS) as bar:

        async def one(awaited: Awaitable[Item]) -> Item:
            found = await awaited
            bar.update()
            return found

        return await asyncio.gather(*map(one, work))


def printable(text: str) -> str:
    """The text with everything that is not seen, but for line breaks and tabs, made visible as one
    sign.
    """
    return "".join(char if char.isprintable() or char in "\n\t" else UNKNOWN for char in text)
