"""What stops a run, skips a step or only warns.

Keeps of docs/architecture.md, "What is done about what": every row of its table, at its rate and
over its window.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from common.settings import Settings
from training.setup.plan import MAX_UNSCORED_SHARE, Plan, RunStopped
from training.watch.events import (
    CANARY_WINDOW,
    EVENTS,
    MAX_SKIPS_IN_A_ROW,
    MISMATCH,
    MISMATCH_WARNS,
    MISSING_SPANS_WINDOW,
    REWARD_MISSING,
    SPANS_MISSING,
    Watch,
    silence_limit,
)
from training.watch.records import RolloutRecord


def records(
    n: int, cause: str | None = None, calls: int = 2, triplets: int = 2
) -> list[RolloutRecord]:
    return [
        RolloutRecord(
            rollout_id="r",
            group="g",
            sample=i,
            mode="train",
            step=1,
            status="succeeded",
            reward=0.5,
            cause=cause,
            turns=calls,
            triplets=triplets,
        )
        for i in range(n)
    ]


def test_a_step_with_few_unscored_rollouts_is_trained_on() -> None:
    assert Watch(10).judge(records(7) + records(3, "judge_failed")) is None


def test_a_step_with_many_is_skipped_and_three_in_a_row_stop() -> None:
    watch = Watch(10)
    bad = records(6) + records(3, "judge_failed") + records(1, "timeout")
    for _ in range(MAX_SKIPS_IN_A_ROW - 1):
        assert watch.judge(bad) == "40% of 10 rollouts are unscored (judge_failed: 3, timeout: 1)"
    with pytest.raises(RunStopped, match="in a row"):
        watch.judge(bad)


def test_what_is_away_for_a_minute_has_time_to_come_back() -> None:
    watch, waited = Watch(4), []
    for _ in range(MAX_SKIPS_IN_A_ROW - 1):
        assert watch.judge(records(4, "judge_failed"))
        waited.append(watch.pause)
    assert waited == [20, 40]
    assert watch.judge(records(4)) is None
    assert watch.pause == 0


def test_a_good_step_forgives_skips() -> None:
    watch = Watch(4)
    for _ in range(4):
        for _ in range(MAX_SKIPS_IN_A_ROW - 1):
            assert watch.judge(records(4, "timeout"))
        assert watch.judge(records(4)) is None
        watch.note_update()


def test_a_window_is_all_that_was_played_since_the_update() -> None:
    """Judged over the last groups alone, a good step would be thrown away for one bad group at its
    end.
    """
    watch = Watch(4)
    for _ in range(3):
        assert watch.judge(records(4)) is None
    assert watch.judge(records(4, "timeout")) is None, "a quarter of sixteen"
    assert "40% of 20 rollouts" in str(watch.judge(records(4, "timeout")))
    assert "100% of 4 rollouts" in str(watch.judge(records(4, "timeout"))), (
        "the next window begins after a skip"
    )


def test_rollouts_that_never_called_the_policy_are_skipped_and_do_not_stop_the_run() -> None:
    """A partner that is away before the first call is no lost token."""
    lost = records(4, "endpoint_unreachable", calls=0, triplets=0)
    assert "100% of 4 rollouts are unscored" in str(Watch(4).judge(lost))


LOST = [
    pytest.param(records(4, SPANS_MISSING, triplets=0), "zero triplets", id="zero triplets"),
    pytest.param(records(4, REWARD_MISSING, calls=0), "rewards missing", id="rewards missing"),
    pytest.param(records(2, "timeout") + records(2), None, id="half unscored"),
]


@pytest.mark.parametrize(("lost", "stops"), LOST)
def test_a_lost_group_that_replaces_a_failed_one_is_judged_with_its_step(
    lost: list[RolloutRecord], stops: str | None
) -> None:
    watch = Watch(16)
    assert watch.judge(records(16)) is None
    assert watch.judge(lost) is None
    watch.note_update()
    assert watch.judge(records(11) + records(5, "timeout")), (
        "a whole step is judged without the one before it"
    )


@pytest.mark.parametrize(("lost", "stops"), LOST)
def test_groups_that_arrive_alone_are_judged_over_as_many_rollouts_as_a_step_has(
    lost: list[RolloutRecord], stops: str | None
) -> None:
    watch = Watch(16)
    for _ in range(4):
        assert watch.judge(records(4)) is None
        watch.note_update()
    assert watch.judge(lost) is None
    watch = Watch(16)
    for _ in range(3):
        assert watch.judge(lost) is None, "fewer rollouts than a step has"
        watch.note_update()
    if stops is None:
        assert "50% of 16 rollouts" in str(watch.judge(lost))
    else:
        with pytest.raises(RunStopped, match=stops):
            watch.judge(lost)


def test_three_windows_in_a_row_stop_where_groups_arrive_alone() -> None:
    watch = Watch(16)
    for group in range(11):
        assert bool(watch.judge(records(4, "timeout"))) == (group in (3, 7))
    with pytest.raises(RunStopped, match="in a row"):
        watch.judge(records(4, "timeout"))


def test_a_validation_is_judged_by_itself() -> None:
    watch = Watch(16)
    assert watch.judge(records(16)) is None
    assert watch.judge(records(2, "timeout") + records(2), validate=True)
    with pytest.raises(RunStopped, match="rewards missing"):
        watch.judge(records(4, REWARD_MISSING, calls=0), validate=True)


@pytest.mark.parametrize(("lost", "stops"), LOST[:2])
def test_a_step_that_is_lost_as_a_whole_stops(lost: list[RolloutRecord], stops: str) -> None:
    with pytest.raises(RunStopped, match=stops):
        Watch(4).judge(lost)


def test_a_steady_loss_of_spans_stops_only_over_a_full_window() -> None:
    watch = Watch(100)
    lossy = records(90) + records(10, SPANS_MISSING, triplets=1)
    for _ in range(MISSING_SPANS_WINDOW // len(lossy) - 1):
        assert watch.judge(lossy) is None
    with pytest.raises(RunStopped, match="spans missing"):
        watch.judge(lossy)


@pytest.mark.parametrize(("lost", "stops"), [(10, False), (11, True)])
def test_spans_are_counted_over_the_last_rollouts_and_to_the_share_in_the_table(
    lost: int, stops: bool
) -> None:
    watch = Watch(1000)
    for _ in range(3):
        assert watch.judge(records(MISSING_SPANS_WINDOW)) is None
    found = records(lost, SPANS_MISSING, triplets=1)
    if stops:
        with pytest.raises(RunStopped, match="11 of the last 200"):
            watch.judge(found)
    else:
        assert watch.judge(found) is None
        assert watch.judge(records(MISSING_SPANS_WINDOW)) is None
        assert watch.judge(records(1, SPANS_MISSING, triplets=1)) is None, (
            "the earlier ones are forgotten"
        )


def test_silence_is_never_waited_for_without_limit() -> None:
    assert [silence_limit(seconds) for seconds in (1, 90, 91, 1000)] == [180, 180, 182, 2000]


def test_the_documented_table_is_the_code_s() -> None:
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("| event | rate and window | action |")[1].split("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert rows == [f"| {' | '.join(event)} |" for event in EVENTS]


def judged(n: int, accepted: int = 0) -> list[RolloutRecord]:
    found = records(n)
    for number, record in enumerate(found):
        record.canaries = {"judged": 1, "accepted": int(number < accepted)}
    return found


def test_accepted_canaries_warn_and_then_stop(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(1)
    watch.judge(judged(CANARY_WINDOW, accepted=4))
    assert "canaries" not in caplog.text
    watch.judge(judged(CANARY_WINDOW, accepted=5))
    assert "took 2.5% of the last 200 known-bad answers" in caplog.text
    watch.judge(judged(CANARY_WINDOW, accepted=10))
    assert "took 5.0% of the last 200 known-bad answers" in caplog.text
    assert "over 5% stop the run" in caplog.text
    with pytest.raises(RunStopped, match=r"canaries accepted: the judge took 5\.5%"):
        watch.judge(judged(11, accepted=11))


def test_canaries_are_counted_over_a_full_window_only() -> None:
    watch = Watch(1)
    assert watch.judge(judged(CANARY_WINDOW - 1, accepted=CANARY_WINDOW - 1)) is None
    assert watch.judge(records(2 * CANARY_WINDOW)) is None, (
        "episodes whose turn it was not say nothing"
    )
    with pytest.raises(RunStopped, match="canaries accepted"):
        watch.judge(judged(1))


def test_disagreeing_log_probs_warn(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch(1)
    watch.compare_log_probs({})
    watch.compare_log_probs({MISMATCH: MISMATCH_WARNS})
    assert not caplog.text
    watch.compare_log_probs({MISMATCH: 0.02})
    watch.compare_log_probs({MISMATCH: float("nan")})
    assert caplog.text.count("log-probabilities differ") == 2


def test_the_share_of_unscored_rollouts_is_a_setting() -> None:
    half = records(5) + records(5, "judge_failed")
    assert Watch(10, 0.5).judge(half) is None
    assert Watch(10, 0.4).judge(half)


def test_without_the_setting_the_share_is_the_documented_one() -> None:
    assert MAX_UNSCORED_SHARE == 0.3
    assert Settings(_env_file=None).max_unscored_share == MAX_UNSCORED_SHARE
    assert Plan.max_unscored_share == MAX_UNSCORED_SHARE


def of(agent: str, found: list[RolloutRecord]) -> list[RolloutRecord]:
    return [replace(record, agent=agent) for record in found]


def test_the_failed_judge_of_one_agent_does_not_hide_behind_the_others() -> None:
    good, bad = of("sql", records(72)), of("code", records(8) + records(8, "judge_failed"))
    reason = Watch(96).judge(good + bad + of("sql", records(8)))
    assert reason == "50% of 16 rollouts of code are unscored (judge_failed: 8)"


def test_a_few_lost_rollouts_of_one_agent_prove_little() -> None:
    few = of("code", records(4) + records(4, "judge_failed"))
    assert Watch(96).judge(of("sql", records(88)) + few) is None


def test_canaries_are_counted_by_agent() -> None:
    watch = Watch(4)
    fooled = {"judged": CANARY_WINDOW, "accepted": CANARY_WINDOW}
    honest = {"judged": 10 * CANARY_WINDOW, "accepted": 0}
    both = [
        replace(record, canaries=canaries)
        for agent, canaries in (("code", fooled), ("sql", honest))
        for record in of(agent, records(2))
    ]
    with pytest.raises(RunStopped, match="the judge of code took 100"):
        watch.judge(both)
