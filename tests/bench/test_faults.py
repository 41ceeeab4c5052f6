"""A few faults of `make faults`, nightly."""

from pathlib import Path
from typing import Any

import pytest

from bench.faults.__main__ import FAULTS, PAGE, measured, play_scene
from bench.faults.measure import right
from bench.faults.page import page

PATH = ("spans arrive twice", "a runner below the runners' command is killed")
ENGINE = (
    "a runner is killed",
    "the agent's database is locked",
    "the main process alone is killed",
)


def done(scene: str, names: tuple[str, ...], folder: Path) -> dict[str, dict[str, Any]]:
    """These faults, all of which must do what is expected, by name."""
    faults = [fault for fault in FAULTS if fault["name"] in names]
    results = play_scene(scene, faults, folder, note=print)
    assert sorted(result["name"] for result in results if right(result)) == sorted(names), results
    return {result["name"]: result for result in results}


@pytest.mark.nightly
def test_faults_of_the_path_cost_no_episode(tmp_path):
    """Without verl and vLLM. tests/training/test_handover.py kills a runner on every commit."""
    assert all(result["lost"] == {} for result in done("path", PATH, tmp_path).values())


@pytest.mark.engine
@pytest.mark.nightly
def test_a_run_survives_or_is_resumed(tmp_path):
    results = done("one", ENGINE, tmp_path)
    assert results["a runner is killed"]["lost"] == {}, "all its episodes are played by others"
    assert results["the main process alone is killed"]["resumed"] > 0


def test_the_page_is_what_was_measured():
    """Nothing on it is typed by hand, and what was not done says so."""
    assert PAGE.read_text(encoding="utf-8") == page(FAULTS, measured())
