"""What a process sets before its heavy imports: how text files are read, and how often Python's
cyclic garbage collector works.

    read_as_utf8()
    collect_rarely()

Importing the engine makes about a million objects that stay. By default the collector looks at all
of them whenever their number has grown by a quarter: 2 to 3 of the 10 seconds such a process takes
to start, and a pause of half a second now and then when it works.
"""

from __future__ import annotations

import codecs
import gc
import io
import locale
import os
import sys

# Objects that outlive the calls that made them, between two looks at the youngest: 700 by default.
# The two older generations keep their 10, so that all objects are looked at after five million:
# some hundred MB if all were garbage.
YOUNGEST = 50_000


def collect_rarely() -> None:
    """Let the collector look at new objects every YOUNGEST, and at all of them a hundred times more
    rarely.
    """
    gc.set_threshold(YOUNGEST, 10, 10)


def read_as_utf8() -> None:
    """Let this process and those it starts read and write text files as UTF-8 where the locale has
    another encoding: libraries open a model's files without naming one.

    The terminal keeps the locale's encoding. What that does not have is shown as its number.
    """
    if sys.flags.utf8_mode or codecs.lookup(locale.getencoding()).name == "utf-8":
        return
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    os.environ["PYTHONUTF8"] = "1"
    locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
