"""`--algorithm` sets in verl's resolved settings what the algorithm is, and refuses what would
contradict it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from omegaconf import DictConfig

from sql_agent.agent import AGENT
from tests.messages import missing
from tests.training.plans import plan_of
from training.setup.algorithms import keys_of
from training.setup.plan import ConfigError
from training.setup.presets import choose
from training.setup.verl_config import build_config, parse_overrides

FILES = {"train": "train.parquet", "val": "val.parquet"}
ACTOR = "actor_rollout_ref.actor"
SEQUENCES = "seq-mean-token-sum-norm"
pytestmark = pytest.mark.usefixtures("composed_once")


def build(folder: Path, algorithm: str | None, *overrides: str, device: str = "cpu") -> DictConfig:
    reply = AGENT.sizes(device).reply
    plan = plan_of(folder, device=device, max_tokens=reply, algorithm=algorithm)
    preset = {**choose(AGENT, "full", device, 1), **keys_of(algorithm)}
    return build_config(plan.engine, folder, FILES, preset, parse_overrides([*overrides]))


@pytest.mark.parametrize(
    ("algorithm", "device", "advantage", "by_deviation", "loss", "mean", "clips"),
    [
        ("grpo", "cpu", "grpo", True, "bypass_mode", "token-mean", (0.2, 0.3)),
        ("grpo", "cuda", "grpo", True, "vanilla", "token-mean", (0.2, 0.3)),
        ("dr_grpo", "cuda", "grpo", False, "vanilla", SEQUENCES, (0.2, 0.3)),
        ("gspo", "cpu", "grpo", True, "gspo", "seq-mean-token-mean", (3e-4, 4e-4)),
        ("ppo", "cuda", "gae", True, "vanilla", "token-mean", (0.2, 0.3)),
    ],
)
def test_a_name_is_verls_keys(
    tmp_path, algorithm, device, advantage, by_deviation, loss, mean, clips
):
    """bypass_mode is the plain loss with vLLM's log-probabilities, which the CPU takes."""
    config = build(tmp_path, algorithm, device=device)
    actor = config.actor_rollout_ref.actor
    assert config.algorithm.adv_estimator == advantage
    assert config.algorithm.norm_adv_by_std_in_grpo is by_deviation
    assert (actor.policy_loss.loss_mode, actor.loss_agg_mode) == (loss, mean)
    assert (actor.clip_ratio_low, actor.clip_ratio_high) == clips
    whole = config.data.max_response_length
    bypass = device == "cpu" and algorithm != "gspo"
    assert config.algorithm.rollout_correction.bypass_mode is bypass
    assert actor.loss_scale_factor == (whole if algorithm == "dr_grpo" else None)


@pytest.mark.parametrize(
    ("algorithm", "override", "named"),
    [
        ("gspo", f"{ACTOR}.policy_loss.loss_mode=vanilla", "loss_mode=gspo"),
        ("gspo", f"{ACTOR}.loss_agg_mode=token-mean", "seq-mean-token-mean"),
        ("dr_grpo", "algorithm.norm_adv_by_std_in_grpo=true", "norm_adv_by_std_in_grpo=False"),
        ("ppo", "algorithm.adv_estimator=grpo", "adv_estimator=gae"),
    ],
)
def test_what_contradicts_it_is_refused(tmp_path, algorithm, override, named):
    with pytest.raises(ConfigError) as refused:
        build(tmp_path, algorithm, override)
    assert not missing(str(refused.value), f"--algorithm {algorithm}", named)
