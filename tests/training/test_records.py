"""The engine's books: adds up what agents report without knowing their names."""

import pytest

from tests.training.rollouts import rolled_out
from training.engine.records import RolloutRecord, step_metrics, validation_of, validation_reward


def record(number: int, **fields: object) -> RolloutRecord:
    return rolled_out(**{"group": f"g{number // 2}", "sample": number % 2, **fields})


def test_unknown_terms_and_counters_are_added_up():
    same = {"stop_reason": "diagnosed"}
    records = [
        record(0, reward=1.0, terms={"a": 1.0, "b": 0.0}, counters={"exams": 2}, **same),
        record(1, reward=0.0, terms={"a": 0.0, "b": 1.0}, counters={"exams": 3}, **same),
    ]
    metrics = step_metrics(records, "episodes")
    assert metrics["episodes/terms/a"] == 0.5
    assert metrics["episodes/counters/exams"] == 5
    assert metrics["episodes/stop_reasons/diagnosed"] == 2
    assert metrics["episodes/reward/mean"] == 0.5
    assert (metrics["episodes/rollouts"], metrics["episodes/unscored"]) == (2, 0)


def test_unscored_rollouts_are_counted_and_do_not_lower_the_mean():
    left = {"counters": {"exams": 1}, "terms": {"judge": 0.5}, "reward": 0.25}  # of a retry
    records = [record(0, reward=1.0, terms={"judge": 1.0}), record(1, cause="judge_failed", **left)]
    metrics = step_metrics(records, "episodes")
    assert metrics["episodes/reward/mean"] == 1.0
    assert metrics["episodes/terms/judge"] == 1.0
    assert metrics["episodes/causes/judge_failed"] == 1
    assert metrics["episodes/counters/exams"] == 1


@pytest.mark.parametrize(
    ("rewards", "equal"),
    [([0.1, 0.1, 0.1, 0.9], 1), ([0.0, 1.0, 0.0, 0.0], 1), ([0.5, 0.5, 0.5], 1), ([0.5], 0)],
)
def test_groups_with_equal_reward_are_counted(rewards, equal):
    """A reward of 0 is a reward, and one episode alone has nobody to be equal to."""
    records = [record(number, reward=reward) for number, reward in enumerate(rewards)]
    assert step_metrics(records, "x")["x/equal_reward_groups"] == equal


def test_agents_that_are_trained_together_have_their_own_numbers():
    records = [
        record(0, agent="sql", reward=1.0, terms={"judge": 1.0}),
        record(1, agent="sql", reward=0.0, terms={"judge": 0.0}),
        record(2, agent="code", reward=0.2, terms={"judge": 0.2}),
        record(3, agent="code", reward=None, cause="judge_failed", canaries={"judged": 1}),
    ]
    metrics = step_metrics(records, "episodes")
    assert metrics["episodes/reward/mean"] == pytest.approx(0.4)
    assert metrics["episodes/sql/reward/mean"] == 0.5
    assert metrics["episodes/code/terms/judge"] == pytest.approx(0.2)
    assert (metrics["episodes/code/unscored"], metrics["episodes/sql/unscored"]) == (1, 0)
    assert metrics["episodes/code/causes/judge_failed"] == 1
    assert metrics["episodes/code/canaries/judged"] == 1
    assert metrics["episodes/sql/equal_reward_groups"] == 0
    assert not any("stop_reasons" in name for name in metrics)
    alone = step_metrics(records, "episodes", compared=False)
    assert "episodes/sql/equal_reward_groups" not in alone


def test_a_validation_is_the_mean_over_task_types():
    """Of each the mean over its scored tasks: one with many tasks weighs no more than another."""
    records = [
        record(0, task_type="a", reward=1.0, terms={"judge": 1.0}),
        record(1, task_type="a", reward=0.0, terms={"judge": 0.5}),
        record(2, task_type="b", reward=0.1, terms={"judge": 0.25}),
        record(3, task_type="b", reward=1.0, terms={"judge": 1.0}, cause="judge_failed"),
    ]
    assert validation_of(records) == {"mean": pytest.approx(0.3), "terms": {"judge": 0.5}}
    assert validation_of(records[3:]) == {"mean": None, "terms": {}}
    data = {"val-core/a/reward/mean@1": 0.5, "val-core/b/reward/mean@1": 0.1, "val-aux/c": 9.0}
    assert validation_reward(data) == pytest.approx(0.3)
    assert validation_reward({"val-aux/c": 9.0}) is None
    several = {"val-core/a/reward/mean@4": 0.25, "val-core/a/reward/best@4/mean": 0.7}
    assert validation_reward({**several, "validation/reward": 0.25}) == 0.25
