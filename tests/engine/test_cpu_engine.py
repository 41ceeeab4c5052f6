"""Prefix trees, and logits only where a trained token follows: verl's own loss and gradients."""

import copy
import json
import os
from typing import Any

import pytest

from episodes.agent import bundled_model
from sql_agent.agent import AGENT
from tests.corpora import cases_of
from tests.programs import python
from training.setup.device import environment

pytestmark = pytest.mark.engine
# The tokens, in pieces that stand for the first so many of a stream of that name, then each reply
# token: is it trained? verl fills batches up with a sequence that trains nothing.
Sequence = tuple[str, list[int]]
SEQUENCES: dict[str, list[Sequence]] = {
    "one": [("a300 b40", [1] * 40)],
    "a tool's words between": [("a20 b42", [1] * 5 + [0] * 30 + [1] * 7)],
    "a prompt's episodes": [
        ("a60 b9", [1] * 9),
        ("a60 c20", [1] * 20),
        ("a60 d17", [1] * 5 + [0] * 9 + [1] * 3),
    ],
    "the same twice": [("a30 b8", [1] * 8), ("a30 b8", [1] * 8)],
    "one begins the other": [("a110", [0, 1] * 10), ("a60", [1] * 20)],
    "of many lengths": [
        ("b4", [1]),
        ("c103", [0] * 4 + [1] * 9),
        ("d101", [1] * 60),
        ("e4", [1, 0, 1]),
    ],
    "one that trains nothing": [("a30 c8", [1] * 8), ("b18", [0] * 6)],
    "none that trains": [("a18", [0] * 6)],
}
SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
SMALL["num_attention_heads"] = 4
SMALL |= {"num_key_value_heads": 2, "vocab_size": 1900, "max_position_embeddings": 512}


@pytest.fixture(scope="module", autouse=True)
def verl_on_the_cpu():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment("cpu").items():
            patch.setenv(name, value)
        import verl  # noqa: F401, I001  # it imports our modules for the CPU, unless another test has imported it
        import training.cpu.verl_platform  # noqa: F401

        yield


def engine_of(kind: Any, model: Any) -> Any:
    """An engine without a trainer around it."""
    engine = kind.__new__(kind)
    engine.module, engine.pad_to_length, engine.use_ulysses_sp = model, None, False
    engine._is_offload_param = False
    engine.engine_config = type("Config", (), {"entropy_checkpointing": False})
    return engine


@pytest.fixture(scope="module")
def engines():
    """(ours, verl's) on the bundled model."""
    from transformers import AutoModelForCausalLM
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

    from training.cpu.shared_tokens import TreeEngine

    model = AutoModelForCausalLM.from_pretrained(
        bundled_model(AGENT), dtype="float32", attn_implementation="sdpa"
    )
    return engine_of(TreeEngine, model), engine_of(FSDPEngineWithLMHead, model)


def tokens(pieces: str) -> Any:
    import torch

    drawn = {name: torch.Generator().manual_seed(ord(name)) for name in "abcde"}
    found = []
    for name, *count in pieces.split():
        size = (int("".join(count)),)
        found.append(torch.randint(3, 1900, size, generator=drawn[name]))
    return torch.cat(found)


def micro_batch(sequences: list[Sequence], temperature: Any = 1.0, **told: Any) -> Any:
    import torch
    from verl.utils import tensordict_utils as tu

    def nested(parts: list[torch.Tensor]) -> torch.Tensor:
        return torch.nested.as_nested_tensor(parts, layout=torch.jagged)

    rows = [tokens(pieces) for pieces, _ in sequences]
    tensors = {
        "input_ids": nested(rows),
        "position_ids": nested([torch.arange(len(row)) for row in rows]),
        "loss_mask": nested([torch.tensor(reply) for _, reply in sequences]),
    }
    settings = {"temperature": temperature, "use_remove_padding": False, "pad_token_id": 0}
    settings["calculate_entropy"] = True
    if isinstance(temperature, list):
        tensors["temperature"] = torch.tensor(settings.pop("temperature"))
    return tu.get_tensordict(tensors, settings | told)


def played(engine: Any, batch: Any, only: Any) -> tuple[Any, dict[str, Any], list[Any]]:
    """Return the output, the engine's values, and the gradients of what `only` picks."""
    import torch

    inputs, told = engine.prepare_model_inputs(batch)
    output = engine.module(**inputs, use_cache=False)
    made = engine.prepare_model_outputs(output, told, batch, None)
    values = {key: value.values() for key, value in made.items()}
    engine.module.zero_grad()
    name = "values" if "values" in values else "log_probs"
    (values[name] * torch.linspace(-1, 1, len(only)) * only).sum().backward()
    gradients = [one.grad for one in engine.module.parameters()]
    return output, values, [one.clone() for one in gradients if one is not None]


def assert_same_gradients(ours: list[Any], theirs: list[Any]) -> None:
    """Each parameter's within a ten thousandth of its length."""
    for one, other in zip(ours, theirs, strict=True):
        assert (one - other).norm() <= 1e-4 * other.norm() + 1e-5


def followed_by_trained(sequences: list[Sequence]) -> list[bool]:
    """Return whether the token after each is trained; none follows the last of a sequence."""
    found: list[bool] = []
    for pieces, reply in sequences:
        before = sum(int(one[1:]) for one in pieces.split()) - len(reply)
        found += [False] * (before - 1) + [one == 1 for one in reply] + [False]
    return found


def assert_same(engines: tuple[Any, Any], sequences: Any, temperature: Any) -> None:
    import torch

    trained = torch.tensor(followed_by_trained(sequences))
    batches = [micro_batch(sequences, temperature, prefix_tree=tree) for tree in (True, False)]
    tree, ours, our_gradients = played(engines[0], batches[0], trained)
    _, theirs, their_gradients = played(engines[1], batches[1], trained)
    assert tree.logits.shape[:2] <= (1, int(trained.sum()))
    for key in ("log_probs", "entropy"):
        torch.testing.assert_close(ours[key][trained], theirs[key][trained], rtol=1e-4, atol=1e-5)
        assert not ours[key][~trained].any()
    assert_same_gradients(our_gradients, their_gradients)
    assert any(gradient.any() for gradient in our_gradients) == bool(trained.any())


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("name", SEQUENCES)
def test_trained_tokens_have_verl_s_log_probs_entropies_and_gradients(engines, name, temperature):
    assert_same(engines, SEQUENCES[name], temperature)


def test_sequences_of_a_tree_may_differ_in_temperature(engines):
    assert_same(engines, SEQUENCES["a prompt's episodes"], [1.0, 0.5, 2.0])


def test_a_shared_token_is_computed_once(engines):
    batch = micro_batch(SEQUENCES["a prompt's episodes"], prefix_tree=True)
    inputs, _ = engines[0].prepare_model_inputs(batch)
    assert inputs["input_ids"].shape == (1, 60 + 9 + 20 + 17)


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
def test_every_kind_of_model_it_is_used_for_computes_the_same(kind):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

    from training.cpu.prefix_tree import MODELS
    from training.cpu.shared_tokens import TreeEngine

    torch.manual_seed(3)
    config = AutoConfig.for_model(kind, **SMALL)
    how = {"dtype": torch.float32, "attn_implementation": "sdpa"}
    model = AutoModelForCausalLM.from_config(config, **how)
    pair = engine_of(TreeEngine, model), engine_of(FSDPEngineWithLMHead, model)
    assert_same(pair, SEQUENCES["a prompt's episodes"] + SEQUENCES["of many lengths"], 1.0)
    assert kind in MODELS
    assert len(MODELS) == 3


def test_vllm_gets_a_small_adapter_unrounded():
    """verl makes merged weights bfloat16: vLLM then plays as if little of it had been learned."""
    import torch
    from peft import LoraConfig, get_peft_model
    from torch.distributed.fsdp import fully_shard
    from transformers import AutoModelForCausalLM

    from training.cpu.shared_tokens import TreeEngine

    tiny = AutoModelForCausalLM.from_pretrained(bundled_model(AGENT), dtype="float32")
    model = get_peft_model(tiny, LoraConfig(r=8, target_modules="all-linear"))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.constant_(weight, 1e-5)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    wanted = copy.deepcopy(model).merge_and_unload().state_dict()
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        for layer in model.base_model.model.model.layers:
            fully_shard(layer)
        engine = engine_of(TreeEngine, fully_shard(model))
        sent = dict(engine._merged_lora_per_tensor_param())
        after = {name: weight.full_tensor() for name, weight in model.state_dict().items()}
    finally:
        torch.distributed.destroy_process_group()
    torch.testing.assert_close(sent, dict(wanted), rtol=0, atol=1e-8)
    torch.testing.assert_close(after, before, rtol=0, atol=0)


@pytest.mark.parametrize(("settings", "trees"), cases_of(__file__, "settings_of_trees"))
def test_what_a_tree_cannot_compute_has_verl_s_own_way(engines, monkeypatch, settings, trees):
    from verl.utils import tensordict_utils as tu
    from verl.workers.engine.fsdp.transformer_impl import FSDPEngine

    batch, config = micro_batch(SEQUENCES["one"], use_dynamic_bsz=True), engines[0].module.config
    for name, value in settings.items():
        if hasattr(config, name):
            monkeypatch.setattr(config, name, value)
        else:
            tu.assign_non_tensor(batch, **{name: value})
    monkeypatch.setattr(FSDPEngine, "forward_backward_batch", lambda _, data, *__, **___: data)
    seen = engines[0].forward_backward_batch(batch, None)
    assert tu.get_non_tensor_data(seen, "prefix_tree", None) is trees
    assert ("trained" in engines[0].prepare_model_inputs(seen)[1]) is trees


def test_every_rank_has_as_many_micro_batches(monkeypatch):
    import torch
    from verl.workers.engine.fsdp import transformer_impl

    reductions = {torch.distributed.ReduceOp.MAX: max, torch.distributed.ReduceOp.MIN: min}

    def other_rank_has(wanted: int) -> list[list[int]]:
        def reduced(tensor: torch.Tensor, op: Any, **_: Any) -> None:
            tensor.fill_(reductions[op](int(tensor), wanted))

        monkeypatch.setattr(torch.distributed, "all_reduce", reduced)
        told = {"prefix_tree": True, "max_token_len_per_gpu": 1024}
        batch = micro_batch(SEQUENCES["of many lengths"], **told)
        batches, rows = transformer_impl.prepare_micro_batches(data=batch)
        assert [len(one["input_ids"].unbind()) for one in batches] == [len(some) for some in rows]
        assert sorted(row for some in rows for row in some) == [0, 1, 2, 3]
        return rows

    assert len(other_rank_has(1)) == 1
    assert len(other_rank_has(3)) == 3
    assert [len(some) for some in other_rank_has(4)] == [1, 1, 1, 1]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_verl_leaves_trl_alone_where_it_is_installed(device):
    """verl 0.9.1 looks for a class that the lock's TRL no longer has, and ends there."""
    pytest.importorskip("trl")
    asks = "from verl.models.transformers import monkey_patch as m; print(m.is_trl_available())"
    other = {name: value for name, value in os.environ.items() if name != "VERL_PLATFORM"}
    known = other | environment(device)
    told = python("-c", asks, env=known)
    assert told.stdout.splitlines()[-1:] == ["False"], told.stderr


def test_a_generation_config_that_transformers_refuses_is_saved(tmp_path):
    """Llama-2-chat's has a temperature and no sampling; a run ended at its first checkpoint."""
    from verl.utils.checkpoint import fsdp_checkpoint_manager

    import training.engine.verl_mends  # noqa: F401 (mends it)

    text = '{"temperature": 0.9, "top_p": 0.6}'
    (tmp_path / "generation_config.json").write_text(text)
    config = fsdp_checkpoint_manager.GenerationConfig.from_pretrained(tmp_path)
    config.save_pretrained(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "generation_config.json").read_text())
    assert (saved["temperature"], saved["do_sample"]) == (0.9, True)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_log_probs_without_flash_attention_are_those_of_a_softmax(dtype):
    """verl calls log_softmax once a token; here it is once for every 512."""
    import torch
    from verl.utils.torch_functional import logprobs_from_logits

    import training.engine.verl_mends  # noqa: F401 (mends it)

    torch.manual_seed(1)
    logits = torch.randn(1, 1300, 70, dtype=getattr(torch, dtype), requires_grad=True)
    labels = torch.randint(0, 70, (1, 1300))
    found = logprobs_from_logits(logits, labels)
    whole = logits.float().log_softmax(-1).gather(-1, labels[..., None])[..., 0]
    assert torch.allclose(found, whole, atol=1e-6)
    weights = torch.randn(1, 1300)
    gradients = [
        torch.autograd.grad((one * weights).sum(), logits, retain_graph=True)[0]
        for one in (found, whole)
    ]
    assert torch.equal(*gradients)
