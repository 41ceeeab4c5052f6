"""On a GPU verl packs rows into one; torch's attention, which stands in for flash attention, must
not look from one into the other. Shown with the torch and transformers of the GPU lock, on a CPU.
"""

import pytest

from training.setup.device import built_for

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.nightly,
    pytest.mark.skipif(built_for() != "cuda", reason="the GPU lock is not installed: check.sh gpu"),
]


def test_a_packed_row_is_read_as_its_parts(model):
    """As verl calls a model: no mask, positions that begin again, and no cache."""
    import torch
    from transformers import AutoModelForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(
        model, attn_implementation="sdpa", dtype=torch.float32
    ).eval()
    parts = [torch.arange(5, 25)[None], torch.arange(40, 90)[None]]
    positions = torch.cat([torch.arange(part.shape[1]) for part in parts])[None]
    with torch.no_grad():
        alone = torch.cat([loaded(part, use_cache=False).logits[0] for part in parts])
        packed = loaded(torch.cat(parts, 1), position_ids=positions, use_cache=False).logits[0]
    assert (alone - packed).abs().max() < 1e-4
