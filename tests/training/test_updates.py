"""A step makes as many optimizer updates as its settings say, whatever its number of sequences."""

from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from training.engine import updates
from training.engine.updates import required_multiple, shared_out

N = 8


def config_of(prompts: int = 16, mini: int = 16, **actor: Any) -> DictConfig:
    """verl's keys that decide about mini-batches."""
    dynamic = {"log_prob_use_dynamic_bsz": True, "log_prob_micro_batch_size_per_gpu": None}
    trained = {"use_dynamic_bsz": True, "ppo_micro_batch_size_per_gpu": None, **actor}
    trained["ppo_mini_batch_size"] = mini
    parts = {"actor": trained, "rollout": {"n": N, **dynamic}, "ref": dynamic}
    return OmegaConf.create({"data": {"train_batch_size": prompts}, "actor_rollout_ref": parts})


class Workers:
    def update_actor(self, batch: Any) -> dict[str, Any]:
        kl = {"rollout_corr/k3_kl": [1e-9, 0.02, 0.05]}
        return {"metrics": {"grad_norm": [0.5, float("inf"), 0.25], **kl}}


def sent(real: int, padding: int, count: int) -> dict[str, Any]:
    """What verl's workers are told of a batch."""
    tags = [{}] * real + [{"is_padding": True}] * padding
    batch = SimpleNamespace(keys=list(map(str, range(real + padding))), tags=tags, extra_info={})
    workers = Workers()
    with shared_out(workers, "update_actor", count) as answers:
        workers.update_actor(batch)
    assert len(answers) == 1
    return batch.extra_info


@pytest.mark.parametrize("sequences", [1, 127, 128, 129, 1000])
def test_any_number_of_sequences_is_one_update(sequences):
    """verl would pad 129 sequences of 16 x 8 episodes to 256 and make two updates of them."""
    assert required_multiple(config_of(), dp_size=1) == 1
    told = sent(sequences, padding=0, count=1)
    assert told == {"mini_batch_size": sequences, "global_batch_size": sequences}


def test_rows_that_fill_up_for_several_devices_weigh_nothing():
    assert required_multiple(config_of(), dp_size=2) == 2
    assert sent(129, padding=1, count=1) == {"mini_batch_size": 130, "global_batch_size": 129}


def test_smaller_mini_batches_are_as_many_updates_as_they_say():
    config = config_of(mini=4)
    assert required_multiple(config, dp_size=1) == 4
    assert required_multiple(config, dp_size=2) == 8
    assert sent(129, padding=3, count=4)["mini_batch_size"] == 33


def test_micro_batches_of_a_fixed_size_are_filled():
    config = config_of(use_dynamic_bsz=False, ppo_micro_batch_size_per_gpu=5)
    assert required_multiple(config, dp_size=2) == 10


def test_updates_that_the_optimizer_left_out_and_weights_that_moved_are_not_counted():
    answers = [Workers().update_actor(None)]
    assert updates.optimizer_steps(answers) == 2
    assert updates.before_update(answers, "rollout_corr/") == {"rollout_corr/k3_kl": 1e-9}
