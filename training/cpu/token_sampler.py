"""Draw the tokens of vLLM's CPU build by one random number each (inverse transform sampling).

vLLM draws one for every token of the vocabulary, on one thread. With 49,152 tokens that is a
quarter of the time of a decoding step, and half of it with seeds.
"""

from collections.abc import Mapping
from typing import Any, Self

import torch

from training.engine.rendezvous import OneAddress


def draw(logits: torch.Tensor, generators: Mapping[int, torch.Generator]) -> torch.Tensor:
    """Return a token for each row, drawn with the probabilities softmax(logits).

    logits: (rows, vocabulary). generators: of rows whose requests have a seed.
    """
    sums = logits.softmax(dim=-1, dtype=torch.float32).cumsum(dim=-1, dtype=torch.float64)
    uniform = torch.rand(len(logits), 1, dtype=torch.float64)
    for row, generator in generators.items():
        uniform[row] = torch.rand(1, dtype=torch.float64, generator=generator)
    drawn = torch.searchsorted(sums, uniform * sums[:, -1:], right=True).view(-1)
    # NaN gives the number behind the last token's, which would end the server
    return drawn.clamp(max=logits.shape[-1] - 1)


def forward_cpu(
    sampler: Any,
    logits: torch.Tensor,
    generators: Mapping[int, torch.Generator],
    k: torch.Tensor | None,
    p: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return a token for each row, from its top k or top p, and log-probabilities.

    These are (rows, vocabulary) in vLLM's mode `processed_logprobs`, else None.
    """
    from vllm.v1.sample.ops.topk_topp_sampler import apply_top_k_top_p

    logits = apply_top_k_top_p(logits, k, p)
    reported = None
    if sampler.logprobs_mode == "processed_logprobs":
        reported = logits.log_softmax(dim=-1, dtype=torch.float32)
    return draw(logits, generators), reported


def install() -> None:
    """Have all samplers of vLLM that this process makes from now on draw like this."""
    from vllm.v1.sample.ops.topk_topp_sampler import TopKTopPSampler

    TopKTopPSampler.forward_cpu = forward_cpu


class ServedOnCpu(OneAddress):
    """The worker extension of a server outside training."""

    def __new__(cls, **kwargs: Any) -> Self:
        install()
        return super().__new__(cls)
