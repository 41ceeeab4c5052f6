"""Add to verl 0.6.1 what it lacks on a machine without an accelerator. Nothing on disk is changed.

Every process of the peer's run imports it with verl (`VERL_USE_EXTERNAL_MODULES`). verl calls
functions of torch.cuda on torch.cpu, and asks for NCCL. Its vLLM decodes with a kernel of IPEX that
fails.
"""

from typing import Any

import psutil
import torch

_init_process_group = torch.distributed.init_process_group


def _with_gloo(backend: str | None = None, *args: Any, **kwargs: Any) -> None:
    on_cpu = backend is not None and backend.startswith("cpu:gloo,cpu:")
    _init_process_group("gloo" if on_cpu else backend, *args, **kwargs)


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def _resident_bytes(*_: Any, **__: Any) -> int:
    return int(psutil.Process().memory_info().rss)


def _decode(
    output: torch.Tensor,
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    head_mapping: torch.Tensor,
    scale: float,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    block_size: int,
    max_context_len: int,
    alibi_slopes: torch.Tensor | None,
) -> None:
    """Attend to a decoded token of each sequence by IPEX's kernel for prompts.

    Its kernel for decoding (2.8.0) refuses a second batch: "Sliding window unsupported".
    """
    from intel_extension_for_pytorch.llm.modules import PagedAttention

    counts = torch.arange(len(context_lens) + 1, dtype=torch.int32)
    lengths = torch.zeros(len(context_lens) + 1, dtype=torch.int32)
    torch.cumsum(context_lens, 0, dtype=torch.int32, out=lengths[1:])
    PagedAttention.flash_attn_varlen_func(
        output,
        query,
        key_cache,
        value_cache,
        counts,
        lengths,
        1,
        max_context_len,
        scale,
        True,
        block_tables,
        alibi_slopes,
    )


def patch() -> None:
    from intel_extension_for_pytorch.llm.modules import PagedAttention

    PagedAttention.single_query_cached_kv_attention = staticmethod(_decode)
    torch.distributed.init_process_group = _with_gloo
    answers = {
        **dict.fromkeys(("empty_cache", "ipc_collect", "reset_peak_memory_stats"), _nothing),
        **dict.fromkeys(("memory_allocated", "memory_reserved"), _resident_bytes),
        **dict.fromkeys(("max_memory_allocated", "max_memory_reserved"), _resident_bytes),
        "manual_seed": torch.manual_seed,
        "get_rng_state": lambda *_: torch.get_rng_state(),
        "set_rng_state": lambda state, *_: torch.set_rng_state(state),
    }
    for name, answer in answers.items():
        setattr(torch.cpu, name, answer)


patch()
