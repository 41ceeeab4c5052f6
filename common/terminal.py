"""What programs show on stderr while they work: a moving bar on a terminal, else lines."""

import asyncio
import sys
from collections.abc import Awaitable, Iterable, Sequence, Sized
from shutil import get_terminal_size
from typing import Any, TypeVar

from tqdm import tqdm

Item = TypeVar("Item")

SECONDS_A_LINE = 15.0  # where there is no terminal
QUICK_SECONDS = 3.0  # work that is done by then is not worth a bar
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def progress(
    title: str, total: int | None, unit: str = "rows", items: Any = None, quick: float = 0.0
) -> Any:
    """Return a tqdm bar for `total` units (None: unknown), after `quick` seconds."""
    # The monitor's thread serves bars that skip updates, and would exist when processes are forked
    tqdm.monitor_interval = 0
    moves = sys.stderr.isatty()
    line = None  # tqdm's own, with a bar
    if not unit:
        line = "{desc} [{elapsed}]"
    elif not moves and total is None:
        line = "{desc}: {n_fmt}{unit} [{elapsed}, {rate_fmt}{postfix}]"
    elif not moves:
        line = "{desc}: {n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
    width, height = get_terminal_size()  # tqdm shows nothing where a terminal does not say its size
    return tqdm(
        items,
        title,
        total,
        unit=f" {unit}",
        ncols=width,
        nrows=height,
        bar_format=line if moves else f"{line}\n",
        mininterval=0.2 if moves else quick or SECONDS_A_LINE,
        miniters=1,
        delay=quick,
    )


def watched(
    items: Iterable[Item], title: str, unit: str = "rows", total: int | None = None
) -> Iterable[Item]:
    """Return the items as an iterable that shows progress after QUICK_SECONDS."""
    known = len(items) if total is None and isinstance(items, Sized) else total
    found: Iterable[Item] = progress(title, known, unit, items, QUICK_SECONDS)
    return found


async def gathered(work: Sequence[Awaitable[Item]], title: str, unit: str = "rows") -> list[Item]:
    """Return the results of asyncio.gather, with a progress bar."""
    with progress(title, len(work), unit, quick=QUICK_SECONDS) as bar:

        async def one(awaited: Awaitable[Item]) -> Item:
            found = await awaited
            bar.update()
            return found

        return await asyncio.gather(*map(one, work))


def printable(text: str) -> str:
    """Return the text with a visible sign for invisible characters but line breaks and tabs."""
    return "".join(char if char.isprintable() or char in "\n\t" else UNKNOWN for char in text)
