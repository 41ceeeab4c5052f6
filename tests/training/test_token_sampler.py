"""Tokens on the CPU are drawn with the probabilities that the model gives them, by their own seed."""

import math

import pytest
import torch

from training.cpu.token_sampler import draw

PROBABILITIES = [0.5, 0.0, 0.25, 0.125, 0.125]


def logits(rows: int) -> torch.Tensor:
    row = [math.log(one) if one else -math.inf for one in PROBABILITIES]
    return torch.tensor([row] * rows)


def seeded(*seeds: int) -> dict[int, torch.Generator]:
    return {row: torch.Generator().manual_seed(seed) for row, seed in enumerate(seeds)}


@pytest.mark.parametrize("generators", [{}, seeded(*range(2_000))])
def test_tokens_are_drawn_as_often_as_they_are_likely(generators):
    torch.manual_seed(1)
    drawn = torch.bincount(draw(logits(2_000), generators), minlength=len(PROBABILITIES)) / 2_000
    for share, probability in zip(drawn.tolist(), PROBABILITIES, strict=True):
        # Four standard deviations; a token that may not be drawn never is
        assert abs(share - probability) <= 4 * math.sqrt(probability * (1 - probability) / 2_000)


def test_a_row_with_a_seed_is_drawn_by_it_whatever_stands_beside_it():
    alone, beside = seeded(7), seeded(8, 7)
    for _ in range(20):
        first = draw(logits(1), alone)[0]
        second = draw(logits(3), {1: beside[1], 0: beside[0]})[1]
        assert first == second


def test_a_forbidden_token_is_not_drawn_where_probabilities_sum_to_less_than_one():
    """Rounding takes a little from them; what is left over must not go to the last token."""
    row = torch.tensor([[0.0] * 61 + [-math.inf]])
    seed = 124_336_557  # its first number lies between the sum and 1
    number = torch.rand(1, dtype=torch.float64, generator=seeded(seed)[0])
    assert row.softmax(dim=-1, dtype=torch.float32).double().sum() < number < 1
    assert draw(row, seeded(seed)).tolist() == [60]
