"""The optimizer of large models on the CPU (needs torch)."""

import copy

import pytest
import torch

from training.cpu.lean_adam import LeanAdamW

pytestmark = pytest.mark.system


def test_it_goes_where_adamw_goes():
    found = []
    for kind in (torch.optim.AdamW, LeanAdamW):
        generator = torch.Generator().manual_seed(0)
        weights = [torch.nn.Parameter(torch.ones(50)), torch.nn.Parameter(torch.ones(3))]
        idle = torch.nn.Parameter(torch.ones(3))
        optimizer = kind([*weights, idle], lr=1e-3, weight_decay=0.01, fused=True)
        for _ in range(200):
            for weight in weights:
                weight.grad = 0.3 + torch.randn(weight.shape, generator=generator)
            optimizer.step()
        assert idle.equal(torch.ones(3))
        found.append(torch.cat([weight.detach() for weight in weights]))
    moved = (found[0] - 1).abs().mean().item()
    assert (found[1] - found[0]).abs().max().item() < 0.01 * moved
    assert moved > 0.01


def test_it_goes_on_from_what_it_saved():
    generator = torch.Generator().manual_seed(0)
    gradients = torch.randn(6, 50, generator=generator)
    weight = torch.nn.Parameter(torch.ones(50))
    optimizer = LeanAdamW([weight], lr=1e-3, fused=True)
    for number, gradient in enumerate(gradients):
        if number == 3:
            saved = (weight.detach().clone(), copy.deepcopy(optimizer.state_dict()))
        weight.grad = gradient.clone()
        optimizer.step()
    again = torch.nn.Parameter(saved[0])
    resumed = LeanAdamW([again], lr=1e-3, fused=True)
    resumed.load_state_dict(saved[1])
    for gradient in gradients[3:]:
        again.grad = gradient.clone()
        resumed.step()
    assert again.equal(weight)
