"""verl's engine on a machine without an accelerator, with logits only where a trained token follows.

Nine of ten tokens of an episode are read, not written by the policy, and the output layer and the softmax over the
vocabulary are half of a small model's work. The log-probabilities, and so loss and gradients, of trained tokens are the
same; all others are 0, and verl masks them out. Every Ray process imports it, like `training/cpu.py`; nobody runs it.
"""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict
from verl.utils import tensordict_utils as tu
from verl.utils.torch_functional import entropy_from_logits
from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead, FSDPEngineWithValueHead

# What asks for logits of every token, or for another form of them: verl's own way is taken.
WHOLE = ("use_remove_padding", "use_fused_kernels", "calculate_sum_pi_squared", "distillation_use_topk")

EngineRegistry.register("value_model", ["fsdp", "fsdp2"], "cpu")(FSDPEngineWithValueHead)


@EngineRegistry.register("language_model", ["fsdp", "fsdp2"], "cpu")
class SparseLogitsEngine(FSDPEngineWithLMHead):
    """verl's language model; a micro-batch of B sequences, T tokens in all, has log-probabilities of shape (T,)."""

    def prepare_model_inputs(self, micro_batch: TensorDict) -> tuple[dict[str, Any], dict[str, Any]]:
        """verl's inputs, and which positions are to have logits: those that any sequence is trained after."""
        inputs, told = super().prepare_model_inputs(micro_batch)
        if not any(_flag(micro_batch, name) for name in WHOLE):
            trained = before_trained(micro_batch)
            told["trained"] = trained.values()
            rows = torch.nested.to_padded_tensor(trained, False, output_size=inputs["input_ids"].shape)
            inputs["logits_to_keep"] = rows.any(0).nonzero()[:, 0]
            told["rows"] = rows[:, inputs["logits_to_keep"]]
        return inputs, told

    def prepare_model_outputs(
        self, output: Any, output_args: dict[str, Any], micro_batch: TensorDict, logits_processor_func: Any
    ) -> dict[str, torch.Tensor]:
        """Nested log-probabilities, and entropies if asked for, of each sequence's tokens; 0 where none is trained."""
        if "trained" not in output_args:
            return super().prepare_model_outputs(output, output_args, micro_batch, logits_processor_func)
        trained, offsets = output_args["trained"], micro_batch["input_ids"].offsets()
        logits = (output.logits / output_args["temperature"][:, None, None])[output_args["rows"]]
        following = output_args["input_ids_rmpad_rolled"][trained]
        found = {"log_probs": -torch.nn.functional.cross_entropy(logits, following, reduction="none")}
        if _flag(micro_batch, "calculate_entropy"):
            found["entropy"] = entropy_from_logits(logits)
        empty = torch.zeros(len(trained))
        return {
            name: torch.nested.nested_tensor_from_jagged(empty.masked_scatter(trained, values), offsets)
            for name, values in found.items()
        }


def before_trained(micro_batch: TensorDict) -> torch.Tensor:
    """Nested, like `input_ids`: whether the token after this one is trained."""
    mask, offsets = micro_batch["loss_mask"].bool(), micro_batch["input_ids"].offsets()
    trained = torch.zeros(int(offsets[-1]), dtype=torch.bool)
    for end, row in zip(offsets[1:].tolist(), mask.unbind(), strict=True):
        trained[end - 1 - len(row) : end - 1] = row
    return torch.nested.nested_tensor_from_jagged(trained, offsets)


def _flag(micro_batch: TensorDict, name: str) -> bool:
    return bool(tu.get_non_tensor_data(data=micro_batch, key=name, default=False))
