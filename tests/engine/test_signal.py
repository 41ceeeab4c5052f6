"""Is the learning signal right? verl's own advantages, and a real run with an adapter."""

import json
import shutil
from dataclasses import replace
from typing import Any

import pytest
from safetensors.torch import load_file

from common.settings import ROOT
from tests.runs import Run
from tests.training.rollouts import rolled_out
from training.engine.watchdog import MISMATCH, check_advantages
from training.setup.plan import ConfigError, RunStopped

pytestmark = pytest.mark.engine
TINY_MODEL = ROOT / "sql_agent" / "tiny_model"
LAYER = "model.layers.0.mlp.down_proj.weight"
UNROUNDED = 1e-6  # KL in 32 bit
QUICK = ("trainer.test_freq=-1", "trainer.total_training_steps=2", "trainer.save_freq=2")


def weights(run: Run, step: int) -> dict[str, Any]:
    folder = run.run_dir / f"checkpoints/global_step_{step}/actor/huggingface"
    return dict(load_file(folder / "model.safetensors"))


@pytest.mark.parametrize("normalised", [True, False])
def test_verl_s_advantages_are_those_of_the_scored_episodes(normalised):
    """An episode is unscored, so absent; one has two sequences; a group has equal rewards."""
    import torch
    from verl.protocol import DataProto
    from verl.trainer.ppo.v1.utils import compute_advantage_for_multi_trajectories

    import training.engine.verl_mends  # noqa: F401 (mends the advantages)

    equal = {f"b_{sample}": 1.05 for sample in range(8)}  # the mean in 32 bit is another number
    earned = {"a_0": 1.0, "a_1": 0.25, "a_3": 0.0, **equal}
    keys = ["a_0_0", "a_1_0", "a_1_1", "a_3_0", *(f"{key}_0" for key in equal)]
    scores = torch.zeros(len(keys), 4)
    scores[:, -1] = torch.tensor([earned[key[:3]] for key in keys])
    tensors = {"token_level_rewards": scores, "response_mask": torch.ones(len(keys), 4)}
    data = DataProto.from_dict(tensors=tensors, non_tensors={"uid": [key[0] for key in keys]})
    computed = compute_advantage_for_multi_trajectories(
        data, keys, "grpo", num_repeat=4, norm_adv_by_std_in_grpo=normalised
    ).batch["advantages"]
    found = {key[:3]: float(row[0]) for key, row in zip(keys, computed, strict=True)}
    books = []
    for key, reward in earned.items():
        group, _, sample = key.partition("_")
        books.append(rolled_out(rollout_id=key, group=group, sample=int(sample), reward=reward))
    check_advantages(books, found, normalised)
    assert sum(found[key] for key in ("a_0", "a_1", "a_3")) == pytest.approx(0.0, abs=1e-5)
    assert {found[key] for key in equal} == {0.0}
    with_zero = [*books, replace(books[0], rollout_id="a_2", group="a", sample=2, reward=0.0)]
    with pytest.raises(RunStopped, match="its advantage is"):
        check_advantages(with_zero, {**found, "a_2": 0.0}, normalised)


@pytest.mark.nightly
def test_an_adapter_is_trained_and_served(start):
    """vLLM samples from the adapter's weights: else its log-probabilities would move away."""
    lora = ("--ci-fast", "--lora", "--lora-rank", "8")
    run = start(*lora, "actor_rollout_ref.actor.optim.lr=3e-3", *QUICK)
    assert run.wait() == 0, run.output
    assert run.summary()["weight_updates"] == 2
    assert all(step[MISMATCH] < UNROUNDED for step in run.steps())
    adapter = run.run_dir / "checkpoints/global_step_2/actor/lora_adapter"
    assert json.loads((adapter / "adapter_config.json").read_text())["r"] == 8
    before, merged = load_file(TINY_MODEL / "model.safetensors"), weights(run, 2)
    assert set(merged) == set(before)
    assert not merged[LAYER].equal(before[LAYER].float())
    for origin in (("--lora-adapter-path", str(adapter)), ("--resume", str(adapter.parent.parent))):
        went_on = start(*lora, *origin, "trainer.test_freq=-1")
        assert went_on.wait() == 0, went_on.output
        assert went_on.steps()[-1][MISMATCH] < UNROUNDED


def test_a_micro_batch_without_a_token_to_train_teaches_nothing():
    """verl fills batches up with such rows; its loss that compares vLLM and trainer refuses them."""
    import torch
    from verl.trainer.ppo import core_algos
    from verl.workers.config import FSDPActorConfig

    import training.engine.verl_mends  # noqa: F401 (mends the loss)

    config = FSDPActorConfig(strategy="fsdp2", rollout_n=2, ppo_micro_batch_size_per_gpu=1)
    config.global_batch_info.update(
        dp_size=1, batch_num_tokens=8, global_batch_size=2, loss_scale_factor=None
    )
    log_prob = torch.full((1, 4), -1.0, requires_grad=True)
    batch = {"old_log_prob": log_prob.detach(), "log_prob": log_prob}
    batch |= {"advantages": torch.ones(1, 4), "response_mask": torch.zeros(1, 4, dtype=torch.bool)}
    loss, metrics = core_algos.get_policy_loss_fn("bypass_mode")(**batch, config=config)
    loss.backward()
    assert loss.item() == 0
    assert log_prob.grad is not None
    assert not log_prob.grad.any()
    assert all(isinstance(value, float | int) for value in metrics.values())


def test_a_model_without_all_its_weights_is_not_trained_with_random_ones(tmp_path):
    from safetensors.torch import save_file
    from transformers import AutoModelForCausalLM

    import training.engine.verl_mends  # noqa: F401 (refuses it)

    folder = shutil.copytree(TINY_MODEL, tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    del tensors[LAYER]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match=LAYER):
        AutoModelForCausalLM.from_pretrained(folder)
