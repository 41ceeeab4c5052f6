"""A step is one update, however many sequences its episodes become."""

import pytest

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def broken(start):
    """The consultation agent's `--ci-fast`, of more sequences than episodes."""
    flags = ("--ci-fast", "--no-trajectory-level", "trainer.test_freq=-1")
    run = start(*flags, program="train_consultation_agent.py")
    assert run.wait() == 0, run.output
    return run


def test_the_optimizer_made_one_step(broken):
    import torch

    summary = broken.summary()
    assert summary["sequences"] > 40
    assert summary["weight_updates"] == 1
    shard = "checkpoints/global_step_1/actor/optim_world_size_1_rank_0.pt"
    states = torch.load(broken.run_dir / shard, weights_only=False)["state"]
    assert {float(state["step"]) for state in states.values()} == {1.0}


def test_an_agent_of_words_trains_all_that_it_said(broken):
    summary = broken.summary()
    assert summary["rollouts"] == {"finished": 32, "failed": 0, "unscored": 0}
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    assert broken.alive() == []
