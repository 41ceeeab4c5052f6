"""Start processes without the pauses of Python's cyclic garbage collector; call it before the heavy
imports.

    collect_rarely()

Importing the engine makes about a million objects that stay. By default the collector looks at all
of them whenever their number has grown by a quarter: 2 to 3 of the 10 seconds such a process takes
to start, and a pause of half a second now and then when it works.
"""

from __future__ import annotations

import gc

# Objects that outlive the calls that made them, between two looks at the youngest: 700 by default.
# The two older generations keep their 10, so that all objects are looked at after five million:
# some hundred MB if all were garbage.
YOUNGEST = 50_000


def collect_rarely() -> None:
    """Let the collector look at new objects every YOUNGEST, and at all of them a hundred times more
    rarely.
    """
    gc.set_threshold(YOUNGEST, 10, 10)
