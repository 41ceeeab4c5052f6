"""`--ci-fast`: one step of the whole loop with the real engine, and what it leaves behind."""

from itertools import chain

import pytest
from safetensors.torch import load_file

from common.settings import ROOT
from tests.messages import missing
from training.engine.watchdog import MISMATCH

pytestmark = pytest.mark.engine


def test_the_summary_accounts_for_every_token(smoke):
    summary = smoke.summary()
    assert summary["exit_reason"] == "done"
    assert summary["rollouts"] == {"finished": 32, "failed": 0, "unscored": 0}
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    assert summary["dropped_tokens"] == {}
    assert summary["triplets"] == summary["counters"]["turns"] >= summary["sequences"]
    assert summary["sequences"] == 32, "the calls of an episode are one sequence"
    assert summary["weight_updates"] == 1
    assert summary["validation"]["rollouts"]["finished"] == 16


def test_what_was_sampled_is_what_is_trained(smoke):
    """Those of other tokens or weights are far apart: 0.91 where all were one place off."""
    assert [step[MISMATCH] < 1e-6 for step in smoke.steps()] == [True]


def test_the_policy_queries_the_database_and_is_rewarded(smoke):
    summary = smoke.summary()
    assert summary["counters"]["sql_ok"] > 0
    assert 0 < summary["reward"]["mean"] <= 1.1
    assert set(summary["reward"]["terms"]) == {"rule", "judge"}


def test_the_last_line_printed_is_the_run_folder(smoke):
    assert smoke.output.strip().splitlines()[-1] == str(smoke.run_dir)


def test_the_weights_changed(smoke):
    """The checkpoint's Hugging Face folder holds another model than the one training began with."""
    trained = smoke.run_dir / "checkpoints" / "global_step_1" / "actor" / "huggingface"
    assert (trained / "chat_template.jinja").exists()
    assert (trained / "tokenizer.json").exists()
    before = load_file(ROOT / "sql_agent" / "tiny_model" / "model.safetensors")
    after = load_file(trained / "model.safetensors")
    known = before.keys() & after.keys()
    assert any(not before[name].float().equal(after[name].float()) for name in known)


def test_the_worst_and_the_best_episodes_keep_their_tokens(smoke):
    rows = [row for row in smoke.lines("episodes.jsonl") if row["mode"] == "train"]
    kept = [row for row in rows if row["tokens"]]
    rewards = sorted(row["reward"] for row in rows)
    assert sorted(row["reward"] for row in kept) == [*rewards[:2], *rewards[-2:]]
    for row in kept:
        trained = [stretch for stretch in chain(*row["tokens"]) if stretch["trained"]]
        assert sum(len(stretch["ids"]) for stretch in trained) == row["generated_tokens"]
        assert all(value <= 0 for stretch in trained for value in stretch["log_probs"])


def test_nothing_is_left_running(smoke):
    assert smoke.alive() == []


def test_a_run_is_not_overwritten(smoke, start):
    again = start("--ci-fast", run_dir=smoke.run_dir)
    assert again.wait() == 2
    assert not missing(again.output, smoke.run_dir, "--resume")


def test_resume_continues_in_the_same_folder(smoke, start):
    more = ("trainer.total_training_steps=3", "trainer.test_freq=-1", "trainer.save_freq=2")
    run = start("--ci-fast", "--resume", "--proxy", "direct", *more, run_dir=smoke.run_dir)
    assert run.wait() == 0, run.output
    assert (run.run_dir / "checkpoints" / "global_step_3" / "actor").is_dir()
    assert (run.run_dir / "summary.1.json").exists()
    summary = run.summary()
    steps = summary["weight_updates"] + summary["steps_without_signal"]
    assert steps == 3, "those before the checkpoint are in the books"
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
