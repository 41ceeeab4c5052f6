"""verl's engine on a machine without an accelerator: each token that sequences share is computed
once.

A micro-batch is the prefix tree of its sequences (`training/cpu/prefix_tree.py`), and logits are
asked for only where a trained token follows. What is trained has verl's log-probabilities, so its
loss and gradients; other tokens have 0, and verl masks them out. Every Ray process imports it, like
`training/cpu/verl_platform.py`; nobody runs it.
"""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDict
from verl.utils import tensordict_utils as tu
from verl.utils.torch_functional import entropy_from_logits
from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp import transformer_impl
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead, FSDPEngineWithValueHead

from training.cpu.prefix_tree import PrefixTree, deal, grow

# Models whose attention is torch's and looks at all before it: a tree's mask and positions are all
# they need.
MODELS = {"llama", "qwen2", "qwen3"}
# What wants rows as verl packs them, or more than log-probabilities and entropies: verl's own way
# is taken.
ROWS = (
    "use_remove_padding",
    "use_fused_kernels",
    "calculate_sum_pi_squared",
    "distillation_use_topk",
)

_prepare_micro_batches = transformer_impl.prepare_micro_batches


def _deal_micro_batches(
    data: TensorDict, dp_group: Any = None, **options: Any
) -> tuple[list[TensorDict], Any]:
    """verl's, for what is computed as trees: (micro-batches, the rows in each); as many for every
    rank of dp_group.
    """
    if not _flag(data, "prefix_tree"):
        return _prepare_micro_batches(data=data, dp_group=dp_group, **options)
    rows = deal(_sequences(data), tu.get_non_tensor_data(data, "max_token_len_per_gpu", None))
    wanted = torch.tensor(len(rows))
    torch.distributed.all_reduce(wanted, op=torch.distributed.ReduceOp.MAX, group=dp_group)
    while len(rows) < wanted:  # every rank has as many sequences, so there is one to halve
        largest = rows.index(max(rows, key=len))
        half = len(rows[largest]) // 2
        rows[largest : largest + 1] = [rows[largest][:half], rows[largest][half:]]
    return [tu.index_select_tensor_dict(data, some) for some in rows], rows


transformer_impl.prepare_micro_batches = _deal_micro_batches


class _OfTrees:
    """What actor, reference and critic have in common; before an engine of verl in the order of
    bases.
    """

    def forward_backward_batch(self, data: TensorDict, *arguments: Any, **options: Any) -> Any:
        """verl's, with the word that `data` is computed as trees, where model and settings allow."""
        config = self.module.config  # type: ignore[attr-defined]  # verl's engine has it
        whole = set(getattr(config, "layer_types", None) or ["full_attention"]) == {
            "full_attention"
        }
        dealt = (
            _flag(data, "use_dynamic_bsz")
            and tu.get_non_tensor_data(data, "force_group_size", 1) == 1
        )
        rows = any(_flag(data, name) for name in ROWS)
        tu.assign_non_tensor(
            data, prefix_tree=config.model_type in MODELS and whole and dealt and not rows
        )
        return super().forward_backward_batch(data, *arguments, **options)  # type: ignore[misc]

    def prepare_model_inputs(
        self, micro_batch: TensorDict
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the model is given: a batch of one, the tree; and "nodes", of shape (T,), those of
        all sequences.
        """
        if not _flag(micro_batch, "prefix_tree"):
            return super().prepare_model_inputs(micro_batch)  # type: ignore[misc]
        tree = grow(_sequences(micro_batch))
        inputs = {
            "input_ids": torch.tensor([tree.tokens]),
            "position_ids": torch.tensor([tree.positions]),
            "attention_mask": ancestors(tree)[None, None],
        }
        return inputs, {"nodes": torch.tensor([node for nodes in tree.nodes for node in nodes])}


@EngineRegistry.register("language_model", ["fsdp", "fsdp2"], "cpu")
class TreeEngine(_OfTrees, FSDPEngineWithLMHead):
    """verl's language model; a micro-batch of T tokens in all has log-probabilities of shape (T,)."""

    def prepare_model_inputs(
        self, micro_batch: TensorDict
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The tree's, and which of its nodes are to have logits: those that any sequence is trained
        after.
        """
        inputs, told = super().prepare_model_inputs(micro_batch)
        if "nodes" in told:
            told["trained"] = before_trained(micro_batch)
            asked, told["rows"] = told["nodes"][told["trained"]].unique(return_inverse=True)
            inputs["logits_to_keep"] = asked
        return inputs, told

    def prepare_model_outputs(
        self,
        output: Any,
        output_args: dict[str, Any],
        micro_batch: TensorDict,
        logits_processor_func: Any,
    ) -> dict[str, torch.Tensor]:
        """Nested log-probabilities, and entropies if asked for, of each sequence's tokens; 0 where
        none is trained.
        """
        if "nodes" not in output_args:
            return super().prepare_model_outputs(
                output, output_args, micro_batch, logits_processor_func
            )
        trained, ids = output_args["trained"], micro_batch["input_ids"]
        heat = torch.as_tensor(micro_batch["temperature"], dtype=torch.float32).expand(len(ids))
        heat = heat.repeat_interleave(ids.offsets().diff())[trained]
        logits = output.logits[0, output_args["rows"]] / heat[:, None]
        following = ids.values().roll(-1)[trained]
        found = {
            "log_probs": -torch.nn.functional.cross_entropy(logits, following, reduction="none")
        }
        if _flag(micro_batch, "calculate_entropy"):
            found["entropy"] = entropy_from_logits(logits)
        empty = torch.zeros(len(trained))
        return {
            name: torch.nested.nested_tensor_from_jagged(
                empty.masked_scatter(trained, values), ids.offsets()
            )
            for name, values in found.items()
        }


@EngineRegistry.register("value_model", ["fsdp", "fsdp2"], "cpu")
class TreeValueEngine(_OfTrees, FSDPEngineWithValueHead):
    """verl's critic; the value of a token that sequences share is theirs alike."""

    def prepare_model_outputs(
        self,
        output: Any,
        output_args: dict[str, Any],
        micro_batch: TensorDict,
        logits_processor_func: Any,
    ) -> dict[str, torch.Tensor]:
        """Nested values of each sequence's tokens."""
        if "nodes" not in output_args:
            return super().prepare_model_outputs(
                output, output_args, micro_batch, logits_processor_func
            )
        values = output.logits[0, :, 0][output_args["nodes"]]
        return {
            "values": torch.nested.nested_tensor_from_jagged(
                values, micro_batch["input_ids"].offsets()
            )
        }


def ancestors(tree: PrefixTree) -> torch.Tensor:
    """Of shape (N, N), added to attention: 0 where the row's node sees the column's, itself or
    before it, else -inf.
    """
    sees = torch.full((len(tree.tokens), len(tree.tokens)), -torch.inf)
    for parent, branch in tree.branches:
        rows = slice(branch.start, branch.stop)
        if parent is not None:
            sees[rows] = sees[parent]
        sees[rows, rows] = torch.full((len(branch), len(branch)), -torch.inf).triu(1)
    return sees


def before_trained(micro_batch: TensorDict) -> torch.Tensor:
    """Of shape (T,): whether the token after this one is trained."""
    mask, offsets = micro_batch["loss_mask"].bool(), micro_batch["input_ids"].offsets()
    trained = torch.zeros(int(offsets[-1]), dtype=torch.bool)
    for end, row in zip(offsets[1:].tolist(), mask.unbind(), strict=True):
        trained[end - 1 - len(row) : end - 1] = row
    return trained


def _sequences(data: TensorDict) -> list[list[int]]:
    return [row.tolist() for row in data["input_ids"].unbind()]


def _flag(data: TensorDict, name: str) -> bool:
    return bool(tu.get_non_tensor_data(data=data, key=name, default=False))
