"""verl's engine on the CPU: a micro-batch is the prefix tree of its sequences.

Tokens that are not trained have log-probability 0, and verl masks them out.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import torch
from tensordict import TensorDict
from torch.distributed.tensor import DTensor
from torch.utils.checkpoint import checkpoint
from verl.utils import tensordict_utils as tu
from verl.utils.fsdp_utils import merged_lora_context, normalize_peft_param_name
from verl.utils.model import convert_weight_keys
from verl.utils.torch_functional import entropy_from_logits
from verl.workers.engine.base import EngineRegistry
from verl.workers.engine.fsdp import transformer_impl
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

from training.cpu.prefix_tree import HEAD_ROWS, ancestors, deal, grow, reads_trees

# Settings that need rows as verl packs them, or more than log-probabilities and entropies. With
# them verl's own engine is used.
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
    """Return (micro-batches, rows of each) as verl does, as many for every rank of dp_group."""
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


@EngineRegistry.register("language_model", ["fsdp", "fsdp2"], "cpu")
class TreeEngine(FSDPEngineWithLMHead):
    """verl's language model. A micro-batch of T tokens has log-probabilities of shape (T,)."""

    def forward_backward_batch(self, data: TensorDict, *arguments: Any, **options: Any) -> Any:
        """Run verl's method, with a mark where model and settings allow a tree."""
        alone = tu.get_non_tensor_data(data, "force_group_size", 1) == 1
        dealt = alone and _flag(data, "use_dynamic_bsz")
        needs_rows = any(_flag(data, name) for name in ROWS)
        fits = reads_trees(self.module.config) and dealt and not needs_rows
        tu.assign_non_tensor(data, prefix_tree=fits)
        return super().forward_backward_batch(data, *arguments, **options)

    def prepare_model_inputs(
        self, micro_batch: TensorDict
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the tree as a batch of one. The nodes that a trained token follows need logits.

        trained (T,): the tokens that one follows. rows: of each of these the row of its logits.
        """
        if not _flag(micro_batch, "prefix_tree"):
            return super().prepare_model_inputs(micro_batch)
        tree = grow(_sequences(micro_batch))
        nodes = torch.tensor([*chain.from_iterable(tree.nodes)])
        trained = before_trained(micro_batch)
        asked, rows = nodes[trained].unique(return_inverse=True)
        inputs = {
            "input_ids": torch.tensor([tree.tokens]),
            "position_ids": torch.tensor([tree.positions]),
            "attention_mask": ancestors(tree)[None, None],
            "logits_to_keep": asked,
        }
        return inputs, {"trained": trained, "rows": rows}

    def _merged_lora_per_tensor_param(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield what vLLM gets, unrounded. verl makes it bfloat16, which loses a small adapter."""
        module = self.module
        with merged_lora_context(module, backup_adapters=True):
            weights = normalize_peft_param_name(module.state_dict())
            for name, weight in convert_weight_keys(weights, module).items():
                whole = weight.full_tensor() if isinstance(weight, DTensor) else weight
                yield name, whole.detach().clone()  # the module's own is restored behind it

    def prepare_model_outputs(
        self,
        output: Any,
        output_args: dict[str, Any],
        micro_batch: TensorDict,
        logits_processor_func: Any,
    ) -> dict[str, torch.Tensor]:
        """Return nested log-probabilities (and entropies), 0 for tokens that are not trained."""
        if not _flag(micro_batch, "prefix_tree"):
            return super().prepare_model_outputs(
                output, output_args, micro_batch, logits_processor_func
            )
        trained = output_args["trained"]
        ids = micro_batch["input_ids"]
        # Of each sequence, then of each of its tokens
        heat = torch.as_tensor(micro_batch["temperature"], dtype=torch.float32).expand(len(ids))
        heat = heat.repeat_interleave(ids.offsets().diff())[trained]
        following = ids.values().roll(-1)[trained]
        chunks = output_args["rows"] // HEAD_ROWS
        with_entropy = _flag(micro_batch, "calculate_entropy")
        found = {name: torch.zeros(len(following)) for name in ("log_probs", "entropy")}
        for number, logits in enumerate(output.logits[0].split(HEAD_ROWS)):
            mine = chunks == number
            rows = output_args["rows"][mine] - number * HEAD_ROWS
            scores = checkpoint(
                _score, logits, rows, heat[mine], following[mine], with_entropy, use_reentrant=False
            )
            for name, values in scores.items():
                found[name] = found[name].masked_scatter(mine, values)
        if not with_entropy:
            del found["entropy"]
        for name, values in found.items():
            spread = torch.zeros(len(trained)).masked_scatter(trained, values)
            found[name] = torch.nested.nested_tensor_from_jagged(spread, ids.offsets())
        return found


def _score(
    logits: torch.Tensor,
    rows: torch.Tensor,
    heat: torch.Tensor,
    following: torch.Tensor,
    with_entropy: bool,
) -> dict[str, torch.Tensor]:
    """Return log-probabilities and entropies of rows.

    In 32 bit these are a model's largest tensors, so they are made again for their gradients.
    """
    heated = logits[rows].float() / heat[:, None]
    scores = {"log_probs": -torch.nn.functional.cross_entropy(heated, following, reduction="none")}
    if with_entropy:
        scores["entropy"] = entropy_from_logits(heated)
    return scores


def before_trained(micro_batch: TensorDict) -> torch.Tensor:
    """Return a mask of shape (T,): whether the token after this one is trained."""
    mask = micro_batch["loss_mask"].bool()
    offsets = micro_batch["input_ids"].offsets()
    trained = torch.zeros(int(offsets[-1]), dtype=torch.bool)
    for end, row in zip(offsets[1:].tolist(), mask.unbind(), strict=True):
        trained[end - 1 - len(row) : end - 1] = row
    return trained


def _sequences(data: TensorDict) -> list[list[int]]:
    return [row.tolist() for row in data["input_ids"].unbind()]


def _flag(data: TensorDict, name: str) -> bool:
    return bool(tu.get_non_tensor_data(data=data, key=name, default=False))
