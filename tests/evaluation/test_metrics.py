"""The arithmetic of evaluations: clusters, intervals, pass@k; None is what was not measured."""

import random
from itertools import combinations
from typing import Any

import pytest

from evaluation import metrics
from evaluation.metrics import SUCCESS, interval, pass_at
from sql_agent.agent import AGENT
from tests.episodes.guessing_agent import GuessingAgent
from tests.evaluation.evaluations import evaluation, record


def scores_of(records: list[dict[str, Any]]) -> dict[str, Any]:
    return metrics.scores_of(AGENT, records)


def test_the_facts_of_an_agent_stand_beside_the_score_with_the_intervals_it_asks_for():
    facts = ((0.0, 1.0), (1.0, 4.0), (None, 4.0))
    told = [{"silent": silent, "guesses": guesses} for silent, guesses in facts]
    records = [record(str(number), 1.0, facts=own) for number, own in enumerate(told)]
    scores = metrics.scores_of(GuessingAgent(), records)
    assert (scores["silent"], scores["guesses"]) == (0.5, 3.0)
    assert scores["silent_ci95"] == pytest.approx([0.095, 0.905], abs=0.001)
    assert "guesses_ci95" not in scores
    assert [metrics.headline_of(GuessingAgent(), found) for found in records] == [0.0, 1.0, None]
    assert metrics.headline_of(AGENT, records[0]) == 1.0
    assert metrics.headline_of(GuessingAgent(), record(score=None)) is None


def test_an_unscored_episode_is_counted_and_is_not_0():
    broken = [record(name, None, stop_reason="") for name in "ab"]
    scores = scores_of([record("a", 1.0), *broken])
    assert scores["score"] == 1.0
    assert scores["unfinished"] == 0.0, "what the machine broke, the policy did not leave undone"
    assert scores["n"] == 1
    assert scores["unscored"] == {"judge_failed": 2}


def test_what_nothing_was_there_to_measure_for_is_none():
    for records in ([record()], [record(score=None)]):
        scores = scores_of(records)
        for name in ("execution_accuracy", "execution_accuracy_ci95", "evidence_recall"):
            assert scores[name] is None
    assert (scores["n"], scores["pass@k"]) == (0, {})
    assert (scores["score"], scores["ci95"], scores["latency"]) == (None, None, None)


def test_groups_and_other_numbers():
    hard = record("a", 0.2, task_type="t", difficulty="hard", seconds=3.0, turns=5)
    cut = record("b", 0.8, stop_reason="length")
    uncounted = record("c", 0.5, seconds=2.0, prompt_tokens=0, completion_tokens=0)
    records = [hard, cut, cut, uncounted]
    scores = metrics.summarise(AGENT, records)
    assert scores["by_task_type"].keys() == {"drug_field", "t"}
    assert scores["by_task_type"]["t"]["score"] == scores["by_difficulty"]["hard"]["score"] == 0.2
    assert scores["by_wording"] == {}
    overall = scores["overall"]
    assert (overall["n"], overall["episodes"], overall["score"]) == (3, 4, pytest.approx(0.5))
    assert overall["stop_reasons"] == {"answered": 2, "length": 2}
    assert overall["unfinished"] == pytest.approx(1 / 3), "of the questions, not of the episodes"
    assert overall["turns"] == 3.0
    assert overall["tokens"] == {"prompt": 100, "completion": 10}, "of those that were counted"
    assert scores_of([uncounted])["tokens"] == {"prompt": None, "completion": None}
    assert overall["latency"] == pytest.approx({"mean": 1.75, "p50": 1.5, "p95": 2.85})
    assert overall["terms"] == {"rule": pytest.approx(0.1)}


@pytest.mark.parametrize(("samples", "successes"), [(4, 0), (5, 2), (3, 3)])
@pytest.mark.parametrize("k", [1, 3])
def test_pass_at_k_is_the_share_of_draws(samples, successes, k):
    draws = list(combinations([True] * successes + [False] * (samples - successes), k))
    assert pass_at(samples, successes, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_passes_go_up_to_the_samples_every_question_has(tmp_path):
    of_a = [record("a", SUCCESS), record("a", 0.0), record("a", 0.0)]
    records = [*of_a, record("b", SUCCESS), record("b", SUCCESS), record("b", None)]
    passes = scores_of(records)["pass@k"]
    assert passes == pytest.approx({"1": (1 / 3 + 1) / 2, "2": (2 / 3 + 1) / 2})
    table = (evaluation(tmp_path / "out", records, k=3) / "table.md").read_text(encoding="utf-8")
    assert "83.3 (k=2)" in table, "which is no pass@3"


@pytest.mark.parametrize(("truth", "n"), [(0.7, 100), (0.97, 10), (0.97, 30), (0.9, 10)])
def test_intervals_cover_the_truth_as_often_as_they_say(truth, n):
    """Of 200 samples of coin throws a 95 % interval misses 10; 22 is 3.9 sigma away."""
    chance = random.Random(0)
    covered = 0
    for _ in range(200):
        low, high = interval([float(chance.random() < truth) for _ in range(n)])
        covered += low <= truth <= high
    assert covered >= 178


def test_scores_that_spread_less_than_shares_have_a_narrower_interval():
    shares = interval([0.0, 1.0] * 20)
    scores = interval([0.4, 0.6] * 20)
    assert shares == pytest.approx([0.352, 0.648], abs=0.001), "Wilson's"
    assert scores == pytest.approx([0.468, 0.532], abs=0.001)


@pytest.mark.parametrize(("truth", "n", "k"), [(0.8, 10, 4), (0.3, 12, 16), (0.5, 20, 8)])
def test_intervals_of_few_tasks_with_samples_cover_as_often_as_they_say(truth, n, k):
    """Of 1000 a 95 % interval misses 50; 70 is 2.9 sigma away. They covered 88 to 92 %."""
    chance = random.Random(0)
    covered = 0
    for _ in range(1000):
        means = []
        for _ in range(n):
            share = chance.betavariate(2 * truth, 2 * (1 - truth))
            means.append(sum(chance.random() < share for _ in range(k)) / k)
        low, high = interval(means)
        covered += low <= truth <= high
    assert covered >= 930


@pytest.mark.parametrize(
    ("changes", "p"),
    [
        ([1.0] * 4 + [0.0] * 50, 0.125),
        ([1.0] * 9 + [-1.0], 22 / 1024),
        ([0.0, 0.0], 1.0),
        ([1.0, -1.0], 1.0),
    ],
)
def test_the_randomisation_test_is_exact_for_right_and_wrong_answers(changes, p):
    assert metrics.randomisation_test(changes) == pytest.approx(p)


@pytest.mark.parametrize(
    ("change", "n", "bounds"),
    [(1.0, 10, [0.445, 1.0]), (-1.0, 10, [-1.0, -0.445]), (0.0, 50, [-0.071, 0.071])],
)
def test_tasks_that_all_changed_alike_leave_some_doubt(change, n, bounds):
    """Resampled they left none: [100, 100] for ten tasks."""
    judged = metrics.judge_changes([[change] * n])
    assert judged["ci95"] == pytest.approx(bounds, abs=0.001)
    assert judged["verdict"] == {1.0: "better", -1.0: "worse", 0.0: "unclear"}[change]


def test_samples_of_one_question_do_not_narrow_the_interval():
    """Ten copies of every episode say no more about questions than one."""
    facts = {"execution_accuracy": 1.0, "evidence_recall": None, "queried": 0.0}
    other = {**facts, "execution_accuracy": 0.0}
    pairs = enumerate([facts, other] * 10)
    once = [record(str(number), float(number % 2), facts=own) for number, own in pairs]
    few, many = scores_of(once), scores_of(once * 10)
    for name in ("ci95", "execution_accuracy_ci95"):
        assert few[name][1] - few[name][0] > 0.3, "values that vary"
        assert few[name] == many[name]


def test_one_question_says_nothing_about_the_spread():
    assert interval([0.5]) == [0.0, 1.0]
    assert interval([]) is None
    assert interval([1.2]) is None, "of another scale"
