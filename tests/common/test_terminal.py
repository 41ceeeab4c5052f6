"""Progress goes to a terminal or a log and not into the output; texts of others cannot touch the
terminal.
"""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.settings import ROOT
from common.terminal import printable

WORK = """
from common import terminal
terminal.QUICK_SECONDS = 0.0
terminal.SECONDS_A_LINE = 0.0
for row in terminal.watched(range(40), "rows of it", "rows"):
    pass
print("done")
"""


@pytest.mark.system
def test_without_one_standard_output_is_what_the_program_says() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORK], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "done\n"
    assert "40/40" in done.stderr


@given(st.text())
def test_what_is_printed_is_seen(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert not [
        char
        for char in shown
        if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co") and char not in "\n\t"
    ]
    assert printable(shown) == shown
    shown.encode()
