"""summary.json is computed from a run's plain files, whatever state they are in.

Keeps of docs/architecture.md, "A run's folder": what was left out is counted under its cause and enters no mean.
"""

import json
from pathlib import Path

import pytest

from training.plan import Plan
from training.records import RolloutRecord
from training.summary import ENVIRONMENT, build_summary, show, write_summary
from training.watch import MISMATCH


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(tmp_path, "cpu", "model", 3, "--max-turns", 1.0, 96, 60.0)


def record(mode: str, step: int, reward: float | None, cause: str | None = None, tokens: int = 10) -> RolloutRecord:
    return RolloutRecord(
        f"{mode}{step}{reward}", "g", 0, mode, step, "succeeded", reward=reward, cause=cause, generated_tokens=tokens
    )


def write(plan: Plan, records: list[RolloutRecord], steps: list[dict[str, float]]) -> None:
    (plan.run_dir / "episodes.jsonl").write_text("".join(record.to_json() + "\n" for record in records))
    rows = [json.dumps({"step": number, "data": step}) + "\n" for number, step in enumerate(steps, 1)]
    (plan.run_dir / "metrics.jsonl").write_text("".join(rows))


def test_an_empty_run_has_a_summary(plan: Plan) -> None:
    summary = write_summary(plan, "failed", "why", started=0.0)
    assert summary["reward"]["mean"] is None
    assert summary["rollouts"] == {"finished": 0, "failed": 0, "unscored": 0}
    assert json.loads((plan.run_dir / "summary.json").read_text())["message"] == "why"


def test_tokens_left_out_are_counted_by_cause(plan: Plan) -> None:
    step = {
        "timing_s/step": 2.0,
        "timing_s/update_weights": 0.1,
        "books/generated_tokens": 10,
        "books/trained_tokens": 10,
    }
    records = [
        record("train", 1, 1.0),
        record("train", 1, None, "judge_failed", tokens=4),
        record("train", 1, 0.0, "step_skipped", tokens=3),
        record("train", 1, 0.1, "too_long", tokens=9),
        record("train", 2, 0.5, tokens=5),
    ]
    write(plan, records, [step])
    summary = build_summary(plan, "failed", "", started=0.0)
    assert summary["dropped_tokens"] == {"judge_failed": 4, "step_skipped": 3, "too_long": 9, "no_update": 5}
    assert summary["generated_tokens"] == summary["trained_tokens"] == 10
    assert summary["reward"]["mean"] == 0.75, "what was left out has a reward, and is not in the mean"
    assert summary["rollouts"] == {"finished": 5, "failed": 0, "unscored": 3}
    assert summary["weight_updates"] == 1


def test_a_step_without_signal_is_no_update(plan: Plan) -> None:
    step = {"timing_s/step": 1.0, "timing_s/update_weights": 0.1, "books/episodes": 4, "books/sequences": 5}
    taught = {**step, "books/groups": 2, "books/learnable_groups": 1, MISMATCH: 0.5}
    write(plan, [], [taught, {**step, "books/groups": 2, "books/learnable_groups": 0, MISMATCH: 0.25}])
    summary = build_summary(plan, "done", "", started=0.0)
    assert (summary["weight_updates"], summary["steps_without_signal"]) == (1, 1)
    assert summary["signal"] == {
        "episodes": 8,
        "sequences_per_episode": 1.25,
        "groups": 4,
        "learnable_groups": 1,
        "log_prob_mismatch": 0.5,
    }


def test_without_groups_every_step_counts(plan: Plan) -> None:
    write(plan, [], [{"timing_s/step": 1.0, "timing_s/update_weights": 0.1}])
    summary = build_summary(plan, "done", "", started=0.0)
    assert (summary["weight_updates"], summary["steps_without_signal"]) == (1, 0)


def test_validation_names_the_first_and_the_last(plan: Plan) -> None:
    write(plan, [record("val", 0, 0.2), record("val", 10, 0.4), record("val", 20, 0.9)], [])
    validation = build_summary(plan, "done", "", started=0.0)["validation"]
    assert (validation["first_reward"]["mean"], validation["reward"]["mean"]) == (0.2, 0.9)
    assert validation["rollouts"]["finished"] == 3


def test_a_torn_last_line_is_left_out(plan: Plan) -> None:
    write(plan, [record("train", 1, 1.0)], [])
    with (plan.run_dir / "episodes.jsonl").open("a") as file:
        file.write('{"rollout_id": "to')
    assert build_summary(plan, "failed", "", started=0.0)["rollouts"]["finished"] == 1


def test_the_reward_s_breakdown_and_the_canaries_are_shown(plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    episode = record("train", 1, 0.7)
    episode.terms, episode.measures = {"rule": 0.1, "judge": 0.6}, {"judge_accuracy": 0.5}
    episode.canaries = {"judged": 3, "accepted": 1}
    write(plan, [episode], [])
    summary = build_summary(plan, "done", "", started=0.0)
    assert (summary["reward"]["terms"], summary["measures"]) == (episode.terms, episode.measures)
    show(summary, plan.run_dir)
    shown = capsys.readouterr().out
    for text in ("rule 0.100, judge 0.600", "judge_accuracy 0.500", "1 accepted of 3 known-bad answers"):
        assert text in shown


def test_what_episodes_are_played_with_is_kept_and_its_notes_are_shown(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    (plan.run_dir / ENVIRONMENT).write_text(json.dumps({"database": "x", "notes": ["the account may write"]}))
    summary = build_summary(plan, "done", "", started=0.0)
    show(summary, plan.run_dir)
    assert summary["environment"]["database"] == "x"
    assert "the account may write" in capsys.readouterr().out
