"""The arithmetic of evaluations: clusters, intervals, pass@k, and what is None because nothing was there to measure."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.metrics import SUCCESS, interval, pass_all, pass_at, scores_of, summarise


def record(name: str = "q1", score: float | None = 1.0, **changes: Any) -> dict[str, Any]:
    """A record as `evaluation.jobs.record_of` makes it."""
    plain = {
        "id": name,
        "sample": 0,
        "task_type": "drug_field",
        "difficulty": "easy",
        "stop_reason": "answered",
        "score": score,
        "unscored": None if score is not None else "judge_failed",
        "terms": {"rule": 0.1},
        "measures": {},
        "checks": {},
        "execution_match": True,
        "evidence_recall": 1.0,
        "unanswerable": False,
        "abstained": False,
        "queries": [{"sql": "SELECT 1", "ok": True, "rows": 1, "error": None}],
        "turns": 2,
        "prompt_tokens": 100,
        "completion_tokens": 10,
        "seconds": 1.0,
    }
    return plain | changes


def test_samples_of_a_question_are_one_cluster() -> None:
    scores = scores_of([record("a", 1.0), record("a", 1.0), record("a", 1.0), record("b", 0.0)], seed=0)
    assert (scores["n"], scores["episodes"]) == (2, 4)
    assert scores["score"] == 0.5


def test_an_unscored_episode_is_counted_and_is_not_0() -> None:
    scores = scores_of([record("a", 1.0), record("a", None), record("b", None)], seed=0)
    assert scores["score"] == 1.0
    assert scores["n"] == 1
    assert scores["unscored"] == {"judge_failed": 2}


def test_what_nothing_was_there_to_measure_for_is_none() -> None:
    scores = scores_of([record(execution_match=None, evidence_recall=None, queries=[])], seed=0)
    for name in ("execution_accuracy", "execution_accuracy_ci95", "evidence_recall", "sql_ok"):
        assert scores[name] is None
    assert scores["abstention"] == {"precision": None, "recall": None, "abstained": 0, "unanswerable": 0}
    assert scores["recovery"] == {"share": None, "episodes": 0}
    empty = scores_of([record(score=None)], seed=0)
    assert (empty["n"], empty["score"], empty["ci95"], empty["latency"], empty["pass@k"]) == (0, None, None, None, {})


def test_abstention_precision_and_recall() -> None:
    records = [
        record("a", unanswerable=True, abstained=True),
        record("b", unanswerable=True, abstained=False),
        record("c", unanswerable=True, abstained=False),
        record("d", unanswerable=False, abstained=True),
    ]
    found = scores_of(records, seed=0)["abstention"]
    assert found == {"precision": 1 / 2, "recall": 1 / 3, "abstained": 2, "unanswerable": 3}


def test_recovery_needs_a_query_that_ran_after_the_failed_one() -> None:
    def asked(*flags: bool) -> dict[str, Any]:
        return record(queries=[{"sql": "", "ok": flag, "rows": 0, "error": None} for flag in flags])

    found = scores_of([asked(True), asked(False, True), asked(True, False), asked(False, False)], seed=0)
    assert found["recovery"] == {"share": 1 / 3, "episodes": 3}
    assert found["sql_ok"] == 3 / 7


def test_groups_and_other_numbers() -> None:
    records = [record("a", 0.2, task_type="t", difficulty="hard", seconds=3.0), record("b", 0.8, stop_reason="length")]
    scores = summarise(records, seed=0)
    assert scores["by_task_type"].keys() == {"drug_field", "t"}
    assert scores["by_task_type"]["t"]["score"] == scores["by_difficulty"]["hard"]["score"] == 0.2
    overall = scores["overall"]
    assert overall["stop_reasons"] == {"answered": 1, "length": 1}
    assert overall["unfinished"] == 0.5
    assert overall["tokens"] == {"prompt": 100, "completion": 10}
    assert overall["latency"] == pytest.approx({"mean": 2.0, "p50": 2.0, "p95": 2.9})
    assert overall["terms"] == {"rule": pytest.approx(0.1)}


@pytest.mark.parametrize(("samples", "successes"), [(4, 0), (4, 1), (4, 3), (5, 2), (3, 3)])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_pass_at_k_and_pass_all_k_are_the_shares_of_draws(samples: int, successes: int, k: int) -> None:
    draws = list(combinations([True] * successes + [False] * (samples - successes), k))
    assert pass_at(samples, successes, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_all(samples, successes, k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_passes_go_up_to_the_samples_every_question_has() -> None:
    records = [record("a", SUCCESS), record("a", 0.0), record("a", 0.0), record("b", SUCCESS), record("b", SUCCESS)]
    scores = scores_of(records, seed=0)
    assert scores["pass@k"] == {"1": pytest.approx((1 / 3 + 1) / 2), "2": pytest.approx((2 / 3 + 1) / 2)}
    assert scores["pass^k"] == {"1": pytest.approx((1 / 3 + 1) / 2), "2": pytest.approx((0 + 1) / 2)}


def test_an_interval_is_the_same_for_the_same_seed_and_holds_the_mean() -> None:
    chance = random.Random(1)
    values = [chance.random() for _ in range(60)]
    low, high = interval(values, seed=3)
    assert [low, high] == interval(values, seed=3)
    assert [low, high] != interval(values, seed=4)
    assert low < sum(values) / 60 < high


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """100 samples of 100 coin throws each, p = 0.7: a 95 % interval misses 5 times; 13 is 3.6 sigma away."""
    chance = random.Random(0)
    bounds = [interval([float(chance.random() < 0.7) for _ in range(100)], seed=i) for i in range(100)]
    assert sum(low <= 0.7 <= high for low, high in bounds) >= 87
    assert all(high - low < 0.25 for low, high in bounds)


def test_samples_of_one_question_do_not_narrow_the_interval() -> None:
    """Ten copies of every episode say no more about questions than one."""
    once = [record(str(number), float(number % 2)) for number in range(20)]
    assert scores_of(once, seed=0)["ci95"] == scores_of(once * 10, seed=0)["ci95"]


def test_one_question_says_nothing_about_the_spread() -> None:
    assert interval([0.5], seed=0) == [0.0, 1.0]
    assert interval([], seed=0) is None


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 5))
def test_scores_and_bounds_stay_in_0_to_1(values: list[float], seed: int) -> None:
    scores = scores_of([record(str(number), value) for number, value in enumerate(values)], seed)
    low, high = scores["ci95"]
    assert 0 <= low <= high <= 1
    assert min(values) - 1e-9 <= scores["score"] <= max(values) + 1e-9
