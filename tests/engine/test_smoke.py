"""`--ci-fast`: one step of the whole loop with the real engine, and what it leaves behind."""

import json
from collections.abc import Callable

import pytest
from safetensors.torch import load_file

from tests.engine.conftest import Run

pytestmark = pytest.mark.engine


def test_the_summary_accounts_for_every_token(smoke: Run) -> None:
    summary = smoke.summary()
    assert summary["exit_reason"] == "done"
    assert summary["rollouts"] == {"finished": 16, "failed": 0, "unscored": 0}
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    assert summary["dropped_tokens"] == {}
    assert summary["triplets"] == summary["counters"]["turns"] >= summary["sequences"] >= 16
    assert summary["weight_updates"] == 1
    assert summary["validation"]["rollouts"]["finished"] == 16


def test_calls_of_an_episode_are_one_sequence(smoke: Run) -> None:
    """The template and the token ids vLLM returns fit together: at most one break in twenty episodes."""
    assert smoke.summary()["sequences"] <= 1.05 * 16


def test_the_policy_queries_the_database_and_is_rewarded(smoke: Run) -> None:
    summary = smoke.summary()
    assert summary["counters"]["sql_ok"] > 0
    assert 0 < summary["reward"]["mean"] <= 1.1
    assert set(summary["reward"]["terms"]) == {"rule", "judge"}


def test_every_number_of_the_summary_is_a_measured_one(smoke: Run) -> None:
    seconds = smoke.summary()["seconds"]
    assert 0 < seconds["to_first_step"] < seconds["total"]
    assert set(seconds["by_phase"]) == {"rollout", "log_prob", "update", "sync", "validation", "checkpoint"}
    assert all(value > 0 for value in seconds["by_phase"].values())


def test_the_last_line_printed_is_the_run_folder(smoke: Run) -> None:
    assert smoke.output.strip().splitlines()[-1] == str(smoke.run_dir)


def test_the_weights_changed(smoke: Run) -> None:
    """The checkpoint's Hugging Face folder holds another model than the one training began with."""
    from sql_agent.config import TINY_MODEL

    trained = smoke.run_dir / "checkpoints" / "global_step_1" / "actor" / "huggingface"
    assert (trained / "chat_template.jinja").exists()
    assert (trained / "tokenizer.json").exists()
    before = load_file(TINY_MODEL / "model.safetensors")
    after = load_file(trained / "model.safetensors")
    assert any(not before[name].float().equal(after[name].float()) for name in before if name in after)


def test_episodes_are_plain_lines(smoke: Run) -> None:
    rows = [json.loads(line) for line in (smoke.run_dir / "episodes.jsonl").read_text().splitlines()]
    assert len(rows) == 32
    assert {row["mode"] for row in rows} == {"train", "val"}


def test_nothing_is_left_running(smoke: Run) -> None:
    assert smoke.alive() == []


def test_a_run_is_not_overwritten(smoke: Run, start: Callable[..., Run]) -> None:
    again = start("--ci-fast", run_dir=smoke.run_dir)
    assert again.wait() == 2
    assert "is not empty; choose another, or add --resume" in again.output


def test_resume_continues_in_the_same_folder(smoke: Run, start: Callable[..., Run]) -> None:
    resumed = start("--ci-fast", "--resume", run_dir=smoke.run_dir)
    assert resumed.wait() == 0, resumed.output
    assert resumed.summary()["weight_updates"] == 1
    assert (smoke.run_dir / "checkpoints" / "global_step_2" / "actor").is_dir()
    assert (smoke.run_dir / "summary.1.json").exists()
