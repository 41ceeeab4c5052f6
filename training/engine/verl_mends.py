"""Mend verl 0.9.1 on every device. Every Ray process imports this."""

from typing import Any

import torch
from torch.utils.checkpoint import checkpoint
from transformers import GenerationConfig, modeling_utils
from verl.trainer.ppo import core_algos
from verl.utils import torch_functional
from verl.utils.checkpoint import fsdp_checkpoint_manager

from training.setup.model_folder import COPY_AGAIN
from training.setup.plan import ConfigError

# Rows of logits that are in 32 bit at once: 300 MB with a vocabulary of 150,000
ROWS = 512

_bypass_loss = core_algos.get_policy_loss_fn("bypass_mode")


def _bypass_loss_or_nothing(*, response_mask: torch.Tensor, **batch: Any) -> Any:
    """Return verl's loss, or 0 for a micro-batch of padding alone, for which verl raises."""
    loss = _bypass_loss if response_mask.any() else core_algos.get_policy_loss_fn("vanilla")
    return loss(response_mask=response_mask, **batch)


core_algos.POLICY_LOSS_REGISTRY["bypass_mode"] = _bypass_loss_or_nothing

_grpo = core_algos.compute_grpo_outcome_advantage


def _grpo_in_64_bit(token_level_rewards: torch.Tensor, *args: Any, **options: Any) -> Any:
    """Return 0 where rewards are equal: in 32 bit a wrong last bit of their mean becomes up to 0.1."""
    advantages = _grpo(token_level_rewards.double(), *args, **options)[0].float()
    return advantages, advantages


core_algos.compute_grpo_outcome_advantage = _grpo_in_64_bit
core_algos.ADV_ESTIMATOR_REGISTRY["grpo_vectorized"] = _grpo_in_64_bit  # the same numbers


_report = modeling_utils.log_state_dict_report


def _refuse_random_weights(*, loading_info: Any, **about: Any) -> None:
    _report(loading_info=loading_info, **about)  # raises what else is wrong
    if missing := sorted(loading_info.missing_keys):  # transformers would draw them at random
        named = f"lacks {len(missing)} of its weights, such as {missing[0]}"
        raise ConfigError(f"{about['pretrained_model_name_or_path']} {named}; {COPY_AGAIN}")


modeling_utils.log_state_dict_report = _refuse_random_weights


def _log_probs_in_chunks(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the log-probabilities of `labels` (...,) by logits (..., vocabulary), in 32 bit.

    Without flash attention verl calls log_softmax once for each token. A chunk is computed again in
    the backward pass.
    """
    rows = logits.reshape(-1, logits.shape[-1])
    parts = []
    for part in zip(rows.split(ROWS), labels.reshape(-1).split(ROWS), strict=True):
        if rows.requires_grad:
            parts.append(checkpoint(_log_probs, *part, use_reentrant=False))
        else:
            parts.append(_log_probs(*part))
    return torch.cat(parts).view(labels.shape)


def _log_probs(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return -torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")


class SavableGenerationConfig(GenerationConfig):
    """A generation config that can be saved: some models have a temperature without sampling."""

    @classmethod
    def from_pretrained(cls, *arguments: Any, **options: Any) -> GenerationConfig:
        config = GenerationConfig.from_pretrained(*arguments, **options)
        try:
            config.validate(strict=True)
        except ValueError:
            config.do_sample = True
        return config


fsdp_checkpoint_manager.GenerationConfig = SavableGenerationConfig
torch_functional.logprobs_from_logits_v2 = _log_probs_in_chunks
