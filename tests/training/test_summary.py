"""summary.json is computed from a run's plain files, whatever state they are in.

Keeps of docs/runs.md, "The files": what was left out is counted under its cause and
enters no mean.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.messages import missing
from training.engine.records import RolloutRecord
from training.engine.watchdog import MISMATCH
from training.report.summary import (
    ENVIRONMENT,
    HIGHEST,
    PHASES,
    build_summary,
    curve,
    show,
    write_summary,
)

ABOUT = {"device": "cpu", "model": "model", "store": "managed"}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return tmp_path


def record(
    mode: str, step: int, reward: float | None, cause: str | None = None, tokens: int = 10
) -> RolloutRecord:
    return RolloutRecord(
        rollout_id=f"{mode}{step}{reward}",
        group="g",
        mode=mode,
        step=step,
        status="succeeded",
        reward=reward,
        cause=cause,
        generated_tokens=tokens,
    )


def write(run_dir: Path, records: list[RolloutRecord], steps: list[dict[str, float]]) -> None:
    (run_dir / "episodes.jsonl").write_text("".join(record.to_json() + "\n" for record in records))
    rows = [
        json.dumps({"step": number, "data": step}) + "\n" for number, step in enumerate(steps, 1)
    ]
    (run_dir / "metrics.jsonl").write_text("".join(rows))


def test_what_a_run_did_not_come_to_is_no_0(run_dir: Path) -> None:
    summary = write_summary(run_dir, ABOUT, "failed", "题", started=0.0)
    assert summary["reward"]["mean"] is None
    assert summary["seconds"]["to_first_step"] is summary["seconds"]["per_step"] is None
    signal = summary["signal"]
    assert signal["sequences_per_episode"] is signal["log_prob_mismatch"] is None
    assert summary["rollouts"] == {"finished": 0, "failed": 0, "unscored": 0}
    write_summary(run_dir, ABOUT, "failed", "again", started=0.0)
    assert json.loads((run_dir / "summary.json").read_text())["message"] == "again"


def played(run_dir: Path) -> None:
    """A run of three steps and two validations, of which every number differs from the others."""
    trained = record("train", 1, 0.7, tokens=11)
    trained.terms = {"rule": 0.1, "judge": 0.6}
    trained.measures, trained.counters = {"accuracy": 0.5}, {"queries": 4}
    trained.stop_reason, trained.canaries = "answered", {"judged": 3, "accepted": 1}
    other = record("train", 2, 0.0, tokens=7)
    other.terms, other.counters = {"rule": 0.2, "judge": 0.0}, {"queries": 1}
    other.stop_reason = "length"
    left = record("train", 2, 0.9, "judge_failed", tokens=5)
    left.terms = {"rule": 0.9, "judge": 0.9}
    lost = record("train", 3, None, "timeout", tokens=0)
    lost.status = "failed"
    checked = [record("val", 0, 0.25), record("val", 3, 0.5), record("val", 3, 1.0)]
    checked[1].canaries = {"judged": 2, "accepted": 0}
    unscored = record("val", 3, None, "timeout")
    first = {MISMATCH: 0.5, "books/groups": 3, "books/learnable_groups": 2}
    second = {MISMATCH: 0.25, "books/groups": 2, "books/learnable_groups": 0}
    third = {"books/groups": 1, "books/learnable_groups": 1, "timing_s/testing": 0.5}
    first |= {"timing_s/gen": 1.25, "timing_s/step": 2.0, "books/weight_updates": 1}
    second |= {"timing_s/gen": 2.0, "timing_s/step": 3.0}
    third |= {"timing_s/step": 6.5}
    for step in (first, second):
        step["timing_s/update_weights"] = 0.25
    counted = {"triplets": 8, "sequences": 7, "episodes": 3}
    counted |= {"generated_tokens": 6, "trained_tokens": 6}
    counts = {f"books/{name}": count for name, count in counted.items()}
    steps = [step | counts for step in (first, second, third)]
    write(run_dir, [trained, other, left, lost, *checked, unscored], [*steps, {"val/reward": 1.0}])
    (run_dir / "timeline.json").write_text(json.dumps({"first_step": 112.5678}))


def test_every_number_of_a_summary_is_the_run_s(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mean over all validations, or of left-out rollouts, would be reported as what training
    reached.
    """
    played(run_dir)
    monkeypatch.setattr("time.time", lambda: 161.6178)
    summary = build_summary(run_dir, ABOUT, "done", "all well", started=100.0)
    seconds = summary.pop("seconds")
    assert summary == {
        "exit_reason": "done",
        "message": "all well",
        "device": "cpu",
        "model": "model",
        "store": "managed",
        "environment": {},
        "rollouts": {"finished": 3, "failed": 1, "unscored": 1},
        "triplets": 24,
        "sequences": 21,
        "generated_tokens": 18,
        "trained_tokens": 18,
        "dropped_tokens": {"judge_failed": 5, "timeout": 0},
        "weight_updates": 1,
        "steps_without_signal": 1,
        "signal": {
            "episodes": 9,
            "groups": 6,
            "learnable_groups": 3,
            "sequences_per_episode": 2.3333,
            "log_prob_mismatch": 0.5,
        },
        "reward": {"mean": 0.35, "terms": {"rule": pytest.approx(0.15), "judge": 0.3}},
        "course": {},
        "counters": {"queries": 5},
        "measures": {"accuracy": 0.5},
        "canaries": {"judged": 5, "accepted": 1},
        "stop_reasons": {"answered": 1, "length": 1},
        "validation": {
            "rollouts": {"finished": 4, "failed": 0, "unscored": 1},
            "tasks": 1,
            "reward": {"mean": 0.75, "terms": {}},
            "first_reward": {"mean": 0.25, "terms": {}},
        },
    }
    assert (seconds["total"], seconds["to_first_step"], seconds["per_step"]) == (61.62, 12.57, 3.83)
    spent = {"rollout": 3.25, "sync": 0.5, "validation": 0.5}
    assert seconds["by_phase"] == {**dict.fromkeys(PHASES, 0), **spent}


def test_tokens_left_out_are_counted_by_cause(run_dir: Path) -> None:
    books = {"books/generated_tokens": 10, "books/trained_tokens": 10, "books/weight_updates": 1}
    step = {"timing_s/step": 2.0, "timing_s/update_weights": 0.1, **books}
    records = [
        record("train", 1, 1.0),
        record("train", 1, None, "judge_failed", tokens=4),
        record("train", 1, 0.0, "step_skipped", tokens=3),
        record("train", 1, 0.1, "too_long", tokens=9),
        record("train", 2, 0.5, tokens=5),
    ]
    write(run_dir, records, [step])
    summary = build_summary(run_dir, ABOUT, "failed", "", started=0.0)
    left_out = {"judge_failed": 4, "step_skipped": 3, "too_long": 9, "no_update": 5}
    assert summary["dropped_tokens"] == left_out
    assert summary["generated_tokens"] == summary["trained_tokens"] == 10
    assert summary["reward"]["mean"] == 0.75, (
        "what was left out has a reward, and is not in the mean"
    )
    assert summary["rollouts"] == {"finished": 5, "failed": 0, "unscored": 3}
    assert summary["weight_updates"] == 1


def test_each_agent_of_several_has_its_own_reward_and_validation(run_dir: Path) -> None:
    told = (("a", "train", 0.25), ("a", "val", 0.75), ("b", "val", 0.5))
    write(
        run_dir, [replace(record(mode, 1, score), agent=agent) for agent, mode, score in told], []
    )
    agents = build_summary(run_dir, ABOUT, "done", "", started=0.0)["agents"]
    found = {
        name: (of["reward"]["mean"], of["validation"]["reward"]["mean"])
        for name, of in agents.items()
    }
    assert found == {"a": (0.25, 0.75), "b": (None, 0.5)}


def test_the_curve_of_a_resumed_run_is_that_of_the_weights_it_went_on_with(run_dir: Path) -> None:
    """Steps that were played again count as played last, and what was not measured is no 0."""
    parts = (
        (
            "metrics.b.jsonl",
            {1: {"episodes/reward/mean": 0.1}, 3: {"episodes/reward/mean": 0.9, "val-core/a": 1.0}},
        ),
        (
            "metrics.a.jsonl",
            {3: {"episodes/reward/mean": 0.5, "val-core/a": 0.25, "val-core/b": 0.75}},
        ),
        (
            "metrics.jsonl",
            {4: {"episodes/reward/mean": 0.75}, 3: {"timing_s/step": 1.0}, 2: {"val-aux/a": 1.0}},
        ),
    )
    for age, (name, steps) in enumerate(parts):
        path = run_dir / name
        path.write_text(
            "".join(json.dumps({"step": step, "data": data}) + "\n" for step, data in steps.items())
        )
        os.utime(path, (age, age))
    assert curve(run_dir) == [
        {"step": 1, "reward": 0.1, "validation": None},
        {"step": 2, "reward": None, "validation": None},
        {"step": 3, "reward": 0.5, "validation": 0.5},
        {"step": 4, "reward": 0.75, "validation": None},
    ]


def test_what_an_operator_reads_is_shown(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who chooses a run by them reads the lines instead of the file."""
    played(run_dir)
    notes = {"database": "x", "notes": ["may write"], HIGHEST: 1.25}
    (run_dir / ENVIRONMENT).write_text(json.dumps(notes))
    summary = build_summary(run_dir, ABOUT, "stopped", "judge [gone]", started=100.0)
    assert summary["environment"]["database"] == "x"
    show(summary, run_dir)
    shown = capsys.readouterr().out
    rewards = ("0.35", "rule 0.15", "judge 0.3", "0.25 -> 0.75", "of 1.25")
    counts = ("judge_failed 5", "1 of 5", "docs/runs.md#the-end-of-a-run")
    assert not missing(shown, "may write", "judge [gone]", *rewards, *counts)


def ends(first: list[float], last: list[float]) -> list[dict[str, float]]:
    """Steps of 8 episodes, of which those of the second list have 2 cut ones."""
    played = {"episodes/rollouts": 8.0, "timing_s/step": 1.0}
    cut = {"episodes/stop_reasons/length": 2.0}
    begin = [{"episodes/reward/mean": reward, **played} for reward in first]
    return begin + [{"episodes/reward/mean": reward, **played, **cut} for reward in last]


@pytest.mark.parametrize(
    ("last", "worse"), [([0.2, 0.4] * 5, True), ([0.4, 0.6] * 5, False), ([0.6, 0.8] * 5, False)]
)
def test_a_run_that_gets_worse_says_so(
    run_dir: Path, capsys: pytest.CaptureFixture[str], last: list[float], worse: bool
) -> None:
    write(run_dir, [], ends([0.45, 0.65] * 5, last))
    summary = build_summary(run_dir, ABOUT, "completed", "", started=0.0)
    assert summary["course"]["worse"] == worse
    assert summary["course"]["reward"] == pytest.approx([0.55, sum(last) / 10])
    assert summary["course"]["cut"] == [0.0, 0.25]
    show(summary, run_dir)
    assert ("got worse" in capsys.readouterr().out) == worse


def test_a_short_run_is_not_compared_with_itself(run_dir: Path) -> None:
    write(run_dir, [], ends([0.5] * 9, [0.1] * 10))
    assert build_summary(run_dir, ABOUT, "completed", "", started=0.0)["course"] == {}


def test_a_run_whose_rewards_do_not_vary_is_not_worse_by_a_rounding(run_dir: Path) -> None:
    write(run_dir, [], ends([0.5] * 10, [0.499999] * 10))
    summary = build_summary(run_dir, ABOUT, "completed", "", started=0.0)
    assert summary["course"]["worse"] is False
