"""A few faults of `make faults`, nightly; the books that decide what was lost, on every commit."""

from pathlib import Path
from typing import Any

import pytest

from bench.faults.__main__ import FAULTS, PAGE, measured, play_scene
from bench.faults.measure import books, right
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


def episode(session: int, cause: str | None = None, **changes: Any) -> dict[str, Any]:
    played = {"mode": "train", "step": 1, "group": "g", "sample": session, "status": "succeeded"}
    scored = {"reward": 0.0, "terms": {"rule": 0.0}} if cause is None else {"reward": None}
    return {**played, "generated_tokens": 10, "cause": cause, "terms": {}, **scored, **changes}


LOST = [episode(0), episode(1), episode(2, "judge_failed")]


@pytest.mark.parametrize(
    ("rows", "trained", "tokens", "zero", "twice"),
    [
        (LOST, 2, 20, 0, 0),
        (LOST, 3, 20, 1, 0),  # one without a score was trained
        ([episode(0), episode(1, reward=None)], 2, 20, 1, 0),
        ([episode(0), episode(1, terms={})], 2, 20, 1, 0),
        ([episode(0), episode(0)], 2, 20, 0, 1),
        ([episode(0), episode(1)], 2, 30, 0, 1),  # its tokens twice
        ([episode(0), episode(1, step=2)], 1, 10, 0, 0),  # of another step
    ],
)
def test_the_books_show_what_was_trained_as_zero_or_twice(rows, trained, tokens, zero, twice):
    found = books(rows, {1: {"books/episodes": trained, "books/trained_tokens": tokens}})
    assert (found["zero"], found["twice"]) == (zero, twice)


def test_the_page_is_what_was_measured():
    """Nothing on it is typed by hand, and what was not done says so."""
    assert PAGE.read_text(encoding="utf-8") == page(FAULTS, measured())
