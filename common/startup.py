"""What a process sets before its heavy imports: the encoding of files, and Python's collector."""

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
    """Let the garbage collector look rarely: else it takes 2 to 3 of the 10 seconds of a start."""
    gc.set_threshold(YOUNGEST, 10, 10)


def read_as_utf8() -> None:
    """Let this process and its children read and write text files as UTF-8, whatever the locale.
    The terminal keeps the locale's encoding and shows other characters as numbers.
    """
    if sys.flags.utf8_mode or codecs.lookup(locale.getencoding()).name == "utf-8":
        return
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    os.environ["PYTHONUTF8"] = "1"
    locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
