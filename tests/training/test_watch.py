"""What stops a run, skips a step or only warns."""

from dataclasses import replace
from typing import Any

import pytest

from tests.messages import missing
from tests.training.rollouts import rolled_out
from training.engine.records import RolloutRecord
from training.engine.watchdog import (
    CANARY_WINDOW,
    MAX_SKIPS_IN_A_ROW,
    MISMATCH,
    MISMATCH_WARNS,
    MISSING_SPANS_WINDOW,
    REWARD_MISSING,
    SPANS_MISSING,
    Watch,
)
from training.setup.plan import RunStopped


def records(n: int, cause: str | None = None, calls: int = 2, triplets: int = 2) -> list[Any]:
    return [rolled_out(sample=i, cause=cause, turns=calls, triplets=triplets) for i in range(n)]


def test_a_step_with_many_is_skipped_and_three_in_a_row_stop():
    watch = Watch(10)
    assert watch.judge(records(7) + records(3, "judge_failed")) is None, "a few are borne"
    bad = records(6) + records(3, "judge_failed") + records(1, "timeout")
    for _ in range(MAX_SKIPS_IN_A_ROW - 1):
        watch.note_update()
        assert not missing(str(watch.judge(bad)), "40%", "judge_failed: 3", "timeout: 1")
    with pytest.raises(RunStopped, match="in a row"):
        watch.judge(bad)


def test_a_run_whose_prompts_fill_the_context_says_which_settings_to_raise():
    watch = Watch(4)
    for _ in range(MAX_SKIPS_IN_A_ROW - 1):
        watch.judge(records(4, "no_calls", calls=0))
    with pytest.raises(RunStopped) as stopped:
        watch.judge(records(4, "no_calls", calls=0))
    raised = ("data.max_prompt_length", "actor_rollout_ref.rollout.max_model_len")
    assert not missing(str(stopped.value), "no_calls: 4", *raised)


def test_a_window_is_all_that_was_played_since_the_update():
    """For one bad group at the end of a step, the whole step would be thrown away."""
    watch = Watch(4)
    for _ in range(3):
        assert watch.judge(records(4)) is None
    assert watch.judge(records(4, "timeout")) is None, "a quarter of sixteen"
    assert "40% of 20" in str(watch.judge(records(4, "timeout")))
    assert "100% of 4" in str(watch.judge(records(4, "timeout"))), "a skip begins another window"


LOST = [
    pytest.param(records(4, SPANS_MISSING, triplets=0), "zero triplets", id="zero triplets"),
    pytest.param(records(4, REWARD_MISSING, calls=0), "rewards missing", id="rewards missing"),
    pytest.param(records(2, "timeout") + records(2), None, id="half unscored"),
]


@pytest.mark.parametrize(("lost", "stops"), LOST)
def test_a_lost_group_that_replaces_a_failed_one_is_judged_with_its_step(lost, stops):
    watch = Watch(16)
    assert watch.judge(records(16)) is None
    assert watch.judge(lost) is None
    watch.note_update()
    after = records(11) + records(5, "timeout")
    assert watch.judge(after), "a whole step is judged without the one before it"


@pytest.mark.parametrize(("lost", "stops"), LOST)
def test_groups_that_arrive_alone_are_judged_over_as_many_rollouts_as_a_step_has(lost, stops):
    watch = Watch(16)
    for _ in range(3):
        assert watch.judge(lost) is None, "fewer rollouts than a step has"
        watch.note_update()
    if stops is None:
        assert "50% of 16" in str(watch.judge(lost))
    else:
        with pytest.raises(RunStopped, match=stops):
            watch.judge(lost)


def test_spans_are_counted_over_the_last_rollouts_and_to_the_share_in_the_table():
    watch = Watch(1000)
    assert watch.judge(records(20, SPANS_MISSING, triplets=1)) is None, "no full window yet"
    for _ in range(3):
        assert watch.judge(records(MISSING_SPANS_WINDOW)) is None
    assert watch.judge(records(10, SPANS_MISSING, triplets=1)) is None
    assert watch.judge(records(MISSING_SPANS_WINDOW)) is None
    assert watch.judge(records(10, SPANS_MISSING, triplets=1)) is None, "earlier ones are forgotten"
    with pytest.raises(RunStopped, match="11 of the last 200"):
        watch.judge(records(1, SPANS_MISSING, triplets=1))


def judged(n: int, accepted: int = 0) -> list[RolloutRecord]:
    found = records(n)
    for number, record in enumerate(found):
        record.canaries = {"judged": 1, "accepted": int(number < accepted)}
    return found


def test_accepted_canaries_warn_and_then_stop(caplog):
    watch = Watch(1)
    watch.judge(judged(CANARY_WINDOW, accepted=4))
    assert "canaries" not in caplog.text
    watch.judge(judged(CANARY_WINDOW, accepted=5))
    watch.judge(judged(CANARY_WINDOW, accepted=10))
    assert not missing(caplog.text, "2.5%", "5.0%", "200")
    with pytest.raises(RunStopped, match=r"5\.5%"):
        watch.judge(judged(11, accepted=11))


def test_disagreeing_log_probs_warn(caplog):
    watch = Watch(1)
    assert not watch.compare_log_probs({}, "float32")
    assert not watch.compare_log_probs({MISMATCH: MISMATCH_WARNS}, "float32")
    assert not watch.compare_log_probs({MISMATCH: 0.0022}, "bfloat16"), "both sides round"
    assert not caplog.text
    assert watch.compare_log_probs({MISMATCH: 0.0022}, "float32")
    assert watch.compare_log_probs({MISMATCH: 0.02}, "bfloat16")
    assert watch.compare_log_probs({MISMATCH: float("nan")}, "bfloat16")
    assert caplog.text.count("log-probabilities differ") == 3


def of(agent: str, found: list[RolloutRecord]) -> list[RolloutRecord]:
    return [replace(record, agent=agent) for record in found]


def test_the_failed_judge_of_one_agent_does_not_hide_behind_the_others():
    good, bad = of("sql", records(80)), of("code", records(8) + records(8, "judge_failed"))
    assert not missing(str(Watch(96).judge(good + bad)), "50% of 16", "code", "judge_failed: 8")
    few = of("code", records(4) + records(4, "judge_failed"))
    assert Watch(96).judge(of("sql", records(88)) + few) is None, "a few prove little"


def test_canaries_are_counted_by_agent():
    watch = Watch(4)
    fooled = {"judged": CANARY_WINDOW, "accepted": CANARY_WINDOW}
    honest = {"judged": 10 * CANARY_WINDOW, "accepted": 0}
    both = [replace(record, canaries=fooled) for record in of("code", records(2))]
    both += [replace(record, canaries=honest) for record in of("sql", records(2))]
    with pytest.raises(RunStopped, match=r"of code .*100\.0%"):
        watch.judge(both)
