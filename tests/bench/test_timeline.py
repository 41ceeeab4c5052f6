"""The picture of a start: who was there, and who worked when."""

from __future__ import annotations

import os

import pytest

from bench.timeline import Seen, draw, processes_below

pytestmark = pytest.mark.system


def test_a_cell_says_how_much_of_its_second_a_process_worked() -> None:
    worked = [
        0.0,
        1.0,
        1.3,
        1.3,
        2.0,
    ]  # seconds of processor time at seconds 2, 3, 4, 5, 6 after the beginning
    samples = [
        {7: Seen("busy", 102.0, seconds, 102.0 + at), 8: Seen("idle", 100.0, 0.4, 102.0 + at)}
        for at, seconds in enumerate(worked)
    ]
    assert draw(samples, 100.0, 105.5).splitlines()[1:] == [
        f"{'busy':32} {2.0:6.1f} {1.3:6.1f}   #+.."
    ]


def test_this_process_is_below_itself() -> None:
    (seen,) = [seen for pid, seen in processes_below(os.getpid()).items() if pid == os.getpid()]
    assert seen.worked > 0


def test_what_has_ended_is_nothing() -> None:
    assert processes_below(2**22 + 1) == {}
