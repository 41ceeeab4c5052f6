"""What part of a gain comes from episodes that moved between groups.

Keeps of docs/consultation.md and docs/diagnosis.md: what is told as gained by asking or ordering
was gained by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from episodes.agent import Record, Showing
from evaluation.attribution import gains_by
from tests.episodes.guessing_agent import GuessingAgent


class ByFound(Showing):
    def gain_groups(self, record: Record) -> Mapping[str, int | None]:
        return {"gain_by_asking": record["found"]}


class Asking(GuessingAgent):
    showing = ByFound()


def side(*episodes: tuple[int | None, float | None]) -> list[dict[str, Any]]:
    """Records of tasks 0, 1, ...: the group of each, and its score."""
    return [
        {"id": str(at), "found": found, "score": score, "facts": {}}
        for at, (found, score) in enumerate(episodes)
    ]


def part(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> tuple[float, list[float]]:
    value, bounds = gains_by(Asking(), before, after, seed=0)["gain_by_asking"]
    assert value is not None
    assert bounds is not None
    return value, bounds


def test_by_hand() -> None:
    """Group 0: share 3/4 to 1/4, scores 1/3 and 0; group 1: share 1/4 to 3/4, scores 1 and 2/3."""
    before = side((0, 1.0), (0, 0.0), (0, 0.0), (1, 1.0))
    after = side((0, 0.0), (1, 1.0), (1, 1.0), (1, 0.0))
    value, (low, high) = part(before, after)
    assert value == pytest.approx(-0.5 * (1 / 3 + 0) / 2 + 0.5 * (1 + 2 / 3) / 2)
    assert low < value < high


def test_better_answers_with_the_same_questions_are_no_better_questions() -> None:
    value, bounds = part(side((0, 0.0), (1, 0.0), (2, 1.0)), side((0, 1.0), (1, 0.5), (2, 1.0)))
    assert value == pytest.approx(0)
    assert len(bounds) == 2


def test_a_task_counts_once_however_often_it_was_played() -> None:
    before, after = side((0, 0.0), (0, 0.0)), side((1, 1.0), (0, 0.0))
    assert part(before, [*after, after[0], after[0]])[0] == pytest.approx(part(before, after)[0])


def test_what_is_not_known_is_left_out_and_nothing_is_made_of_one_task() -> None:
    before, after = side((0, 0.0), (0, 0.0), (0, 0.5)), side((1, 1.0), (1, 1.0), (0, 0.5))
    unknown = [
        {"id": name, "found": found, "score": score}
        for name, found, score in (("x", None, 1.0), ("y", 1, None))
    ]
    assert part([*before, *unknown], [*after, *unknown]) == part(before, after)
    assert part([*before, {"id": "z", "found": 4, "score": 1.0}], after) == part(before, after)
    assert gains_by(Asking(), before[:1], after, seed=0) == {"gain_by_asking": (None, None)}
