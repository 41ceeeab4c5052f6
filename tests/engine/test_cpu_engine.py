"""Logits only where a trained token follows: the same loss and gradients as verl's engine with logits everywhere.

verl's own engine is played on the same weights, sequences and loss; what differs is the order of a sum.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from sql_agent.agent import AGENT
from training.device import environment

pytestmark = pytest.mark.engine
# (prompt tokens, then each reply token: is it trained?); verl fills batches up with a sequence that trains nothing.
SEQUENCES = {
    "one": [(300, [1] * 40)],
    "a tool's words between": [(20, [1] * 5 + [0] * 30 + [1] * 7)],
    "of many lengths": [(3, [1]), (90, [0] * 4 + [1] * 9), (41, [1] * 60), (1, [1, 0, 1])],
    "one that trains nothing": [(30, [1] * 8), (12, [0] * 6)],
    "none that trains": [(12, [0] * 6)],
}


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """(ours, verl's): engines without a trainer around them, on one model."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment("cpu").items():
            patch.setenv(name, value)
        import verl  # noqa: F401, I001  # it imports our modules for the CPU, unless another test has imported it
        import training.cpu  # noqa: F401
        from transformers import AutoModelForCausalLM
        from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

        from training.cpu_engine import SparseLogitsEngine

        model = AutoModelForCausalLM.from_pretrained(AGENT.model, dtype="float32", attn_implementation="sdpa")
        made = []
        for kind in (SparseLogitsEngine, FSDPEngineWithLMHead):
            engine = kind.__new__(kind)
            engine.module, engine.pad_to_length = model, None
            engine.engine_config = type("Config", (), {"entropy_checkpointing": False})
            made.append(engine)
        yield made


def micro_batch(sequences: list[tuple[int, list[int]]], temperature: float) -> Any:
    import torch
    from verl.utils import tensordict_utils as tu

    drawn = torch.Generator().manual_seed(7)
    rows = [torch.randint(3, 1900, (prompt + len(reply),), generator=drawn) for prompt, reply in sequences]

    def nested(parts: list[torch.Tensor]) -> torch.Tensor:
        return torch.nested.as_nested_tensor(parts, layout=torch.jagged)

    return tu.get_tensordict(
        {
            "input_ids": nested(rows),
            "position_ids": nested([torch.arange(len(row)) for row in rows]),
            "loss_mask": nested([torch.tensor(reply) for _, reply in sequences]),
        },
        {"temperature": temperature, "use_remove_padding": False, "calculate_entropy": True, "pad_token_id": 0},
    )


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("name", SEQUENCES)
def test_trained_tokens_have_verl_s_log_probs_entropies_and_gradients(
    engines: Any, name: str, temperature: float
) -> None:
    import torch

    from training.cpu_engine import before_trained

    found = []
    for engine in engines:
        batch = micro_batch(SEQUENCES[name], temperature)
        inputs, told = engine.prepare_model_inputs(batch)
        output = engine.module(**inputs, use_cache=False)
        outputs = engine.prepare_model_outputs(output, told, batch, None)
        trained = before_trained(batch).values()
        values = {key: value.values() for key, value in outputs.items()}
        weights = torch.linspace(-1, 1, len(trained)) * trained  # an advantage for each token
        engine.module.zero_grad()
        (values["log_probs"] * weights).sum().backward()
        found.append((output.logits.shape, trained, values, [one.grad.clone() for one in engine.module.parameters()]))
    (few, trained, ours, our_gradients), (all_, _, theirs, their_gradients) = found
    assert few[1] == len({place for place in range(all_[1]) if any_trained(SEQUENCES[name], place)}) <= all_[1]
    for key in ("log_probs", "entropy"):
        torch.testing.assert_close(ours[key][trained], theirs[key][trained], rtol=1e-4, atol=1e-5)
        assert not ours[key][~trained].any()
    for ours_of_one, theirs_of_one in zip(our_gradients, their_gradients, strict=True):
        torch.testing.assert_close(ours_of_one, theirs_of_one, rtol=1e-3, atol=1e-5)
    assert any(gradient.any() for gradient in our_gradients) == bool(trained.any())


def any_trained(sequences: list[tuple[int, list[int]]], place: int) -> bool:
    """Whether the token after this place is trained in any of the sequences."""
    return any(0 <= place + 1 - prompt < len(reply) and reply[place + 1 - prompt] for prompt, reply in sequences)


def test_what_needs_every_logit_has_verl_s_own_way(engines: Any) -> None:
    from verl.utils import tensordict_utils as tu

    batch = micro_batch(SEQUENCES["one"], 1.0)
    tu.assign_non_tensor(batch, calculate_sum_pi_squared=True)
    inputs, told = engines[0].prepare_model_inputs(batch)
    assert "logits_to_keep" not in inputs
    outputs = engines[0].prepare_model_outputs(engines[0].module(**inputs), told, batch, None)
    assert outputs["log_probs"].values().all()


def test_verl_finds_it_on_the_cpu(engines: Any) -> None:
    from verl.workers.engine.base import EngineRegistry

    assert EngineRegistry.get_engine_cls("language_model", "fsdp2") is type(engines[0])
    assert "VERL_ENGINE_DEVICE" not in os.environ
