"""Rollouts while the policy is updated, through the recording endpoint that stands in for litellm."""

import json
from collections.abc import Callable

import pytest

from tests.engine.conftest import Run

pytestmark = pytest.mark.engine

STEPS = ("trainer.total_training_steps=4", "trainer.test_freq=-1", "trainer.save_freq=-1")


def test_asynchronous_steps_train_on_what_they_say(start: Callable[..., Run]) -> None:
    run = start("--ci-fast", "--async", "--proxy", "direct", *STEPS)
    assert run.wait() == 0, run.output
    summary = run.summary()
    assert summary["weight_updates"] == 4
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    episodes = [json.loads(line) for line in (run.run_dir / "episodes.jsonl").read_text().splitlines()]
    assert all(len(episode["weights"]) == episode["calls"] for episode in episodes)
    assert len({version for episode in episodes for version in episode["weights"]}) > 1
    steps = [json.loads(line)["data"] for line in (run.run_dir / "metrics.jsonl").read_text().splitlines()]
    ages = [step["books/weights_age/max"] for step in steps if "books/weights_age/max" in step]
    assert len(ages) == 4
    assert 1 in ages, "a step should train on what was played before the step before it ended"
    assert max(ages) <= 1
    assert run.alive() == []
