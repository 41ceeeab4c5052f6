"""What stops a run, skips a step or only warns."""

from pathlib import Path

import pytest

from common.settings import Settings
from training.records import RolloutRecord
from training.watch import (
    CANARY_WINDOW,
    EVENTS,
    MAX_SKIPS_IN_A_ROW,
    MAX_UNSCORED_SHARE,
    MISMATCH,
    MISMATCH_WARNS,
    MISSING_SPANS_WINDOW,
    REWARD_MISSING,
    SPANS_MISSING,
    RunStopped,
    Watch,
    silence_limit,
)


def records(n: int, cause: str | None = None, calls: int = 2, triplets: int = 2) -> list[RolloutRecord]:
    return [
        RolloutRecord("r", "g", i, "train", 1, "succeeded", reward=0.5, cause=cause, calls=calls, triplets=triplets)
        for i in range(n)
    ]


def test_a_step_with_few_unscored_rollouts_is_trained_on() -> None:
    assert Watch().judge(records(7) + records(3, "judge_failed")) is None


def test_a_step_with_many_is_skipped_and_three_in_a_row_stop() -> None:
    watch = Watch()
    bad = records(6) + records(4, "judge_failed")
    for _ in range(MAX_SKIPS_IN_A_ROW - 1):
        assert "judge_failed: 4" in str(watch.judge(bad))
    with pytest.raises(RunStopped, match="in a row"):
        watch.judge(bad)


def test_a_good_step_forgives_skips() -> None:
    watch = Watch()
    bad = records(1, "timeout")
    for _ in range(4):
        assert watch.judge(bad)
        assert watch.judge(records(4)) is None


def test_rollouts_that_replace_a_failed_group_are_judged_with_their_step() -> None:
    few = records(2, "timeout") + records(2)
    assert Watch().judge(few)
    assert Watch().judge(few, delivered=records(12)) is None


def test_zero_triplets_stop() -> None:
    with pytest.raises(RunStopped, match="zero triplets"):
        Watch().judge(records(4, SPANS_MISSING, triplets=0))


def test_missing_rewards_stop() -> None:
    with pytest.raises(RunStopped, match="rewards missing"):
        Watch().judge(records(4, REWARD_MISSING, calls=0))


def test_a_steady_loss_of_spans_stops_only_over_a_full_window() -> None:
    watch = Watch()
    lossy = records(90) + records(10, SPANS_MISSING, triplets=1)
    for _ in range(MISSING_SPANS_WINDOW // len(lossy) - 1):
        assert watch.judge(lossy) is None
    with pytest.raises(RunStopped, match="spans missing"):
        watch.judge(lossy)


def test_silence_is_never_waited_for_without_limit() -> None:
    assert silence_limit(1) >= 60
    assert silence_limit(1000) == 2000


def test_the_documented_table_is_the_code_s() -> None:
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("| event | rate and window | action |")[1].split("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert rows == [f"| {event.name} | {event.window} | {event.action} |" for event in EVENTS]


def judged(n: int, accepted: int = 0) -> list[RolloutRecord]:
    found = records(n)
    for number, record in enumerate(found):
        record.canaries = {"judged": 1, "accepted": int(number < accepted)}
    return found


def test_accepted_canaries_warn_and_then_stop(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    watch.judge(judged(CANARY_WINDOW, accepted=4))
    assert "canaries" not in caplog.text
    watch.judge(judged(CANARY_WINDOW, accepted=5))
    assert "took 2.5% of the last 200 known-bad answers" in caplog.text
    with pytest.raises(RunStopped, match=r"canaries accepted: the judge took 5\.5%"):
        watch.judge(judged(11, accepted=11))


def test_canaries_are_counted_over_a_full_window_only() -> None:
    watch = Watch()
    assert watch.judge(judged(CANARY_WINDOW - 1, accepted=CANARY_WINDOW - 1)) is None
    with pytest.raises(RunStopped, match="canaries accepted"):
        watch.judge(judged(1))


def test_disagreeing_log_probs_warn(caplog: pytest.LogCaptureFixture) -> None:
    watch = Watch()
    watch.compare_log_probs({})
    watch.compare_log_probs({MISMATCH: MISMATCH_WARNS})
    assert not caplog.text
    watch.compare_log_probs({MISMATCH: 0.02})
    watch.compare_log_probs({MISMATCH: float("nan")})
    assert caplog.text.count("log-probabilities differ") == 2


def test_the_share_of_unscored_rollouts_is_a_setting() -> None:
    half = records(5) + records(5, "judge_failed")
    assert Watch(0.5).judge(half) is None
    assert Watch(0.4).judge(half)
    assert Settings(_env_file=None).max_unscored_share == MAX_UNSCORED_SHARE
