"""Three faults of the harness on every commit; `make faults` does all of them.

Keeps of docs/faults.md: what goes on by itself, what a killed run leaves, and that the page has every row.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.__main__ import FAULTS, PAGE, measured, play_scene
from tests.faults.measure import right
from tests.faults.page import page

CI = ("a runner is killed", "the agent's database is locked", "the main process alone is killed")


@pytest.mark.engine
def test_a_run_survives_or_is_resumed(tmp_path: Path) -> None:
    results = play_scene("one", [fault for fault in FAULTS if fault["name"] in CI], tmp_path, note=print)
    assert [result["name"] for result in results if right(result)] == list(CI), results
    assert "and is started again; 4 play" in results[0]["said"]
    assert sum(results[0]["lost"].values()) == 0, "all its episodes are played by others"
    assert results[-1]["resumed"] > 0


def test_the_page_is_what_was_measured() -> None:
    """Nothing on it is typed by hand, and what was not done says so."""
    assert PAGE.read_text(encoding="utf-8") == page(FAULTS, measured())
