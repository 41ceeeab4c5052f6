"""Progress on a terminal, in a pipe and of quick work; texts of others that cannot touch the
terminal.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import terminal
from common.settings import ROOT
from common.terminal import gathered, printable, progress, watched
from tests.terminals import in_a_terminal

WORK = """
from common import terminal
terminal.QUICK_SECONDS = 0.0
terminal.SECONDS_A_LINE = 0.0
for row in terminal.watched(range(40), "rows of it", "rows"):
    pass
print("done")
"""


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [
        line for line in capsys.readouterr().err.replace("\r", "\n").splitlines() if line.strip()
    ]


def test_quick_work_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(watched(range(1000), "quick")) == list(range(1000))
    assert asyncio.run(gathered([asyncio.sleep(0, number) for number in range(5)], "quick")) == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert capsys.readouterr().err == ""


def test_in_a_pipe_there_are_lines_with_what_is_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("QUICK_SECONDS", "SECONDS_A_LINE"):
        monkeypatch.setattr(terminal, name, 0.0)
    assert list(watched("abc", "letters", "letters")) == ["a", "b", "c"]
    lines = lines_of(capsys)
    assert lines[0] == "letters: 0/3 letters [00:00<?, ? letters/s]"
    assert lines[-1].startswith("letters: 3/3 letters [00:00<00:00, ")


def test_no_end_is_promised_that_is_not_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("QUICK_SECONDS", "SECONDS_A_LINE"):
        monkeypatch.setattr(terminal, name, 0.0)
    assert list(watched(iter("abc"), "letters", "letters")) == ["a", "b", "c"]
    with progress("waiting", None, unit="") as bar:
        bar.update()
    lines = lines_of(capsys)
    assert "<" not in "".join(lines)
    assert lines[-1] == "waiting [00:00]"


def test_an_error_passes_through_and_leaves_no_bar_behind() -> None:
    def broken() -> object:
        yield 1
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(watched(broken(), "broken"))  # type: ignore[arg-type]


def test_in_a_terminal_the_bar_moves_and_ends_its_line() -> None:
    text = in_a_terminal(WORK)
    assert "rows of it: 100%|" in text
    assert "40/40 [00:00<00:00" in text
    assert text.endswith("\r\ndone\r\n")


def test_without_one_standard_output_is_what_the_program_says() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORK], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "done\n"
    assert "rows of it: 40/40 rows [" in done.stderr


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


def test_words_of_any_language_stay_as_they_are() -> None:
    words = "朵莎洛片\t20℃\nнет — ça va? 👍"
    assert printable(words) == words
    assert printable("\x1b[2J\u202e") == "\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}"
