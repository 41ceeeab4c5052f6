"""Which folders can be gone on from, and that the merged model is the one that was trained; real
adapters are in tests/engine/test_signal.py.
"""

import json
from pathlib import Path


def test_the_merged_model_has_the_adapter_at_its_own_scale(tmp_path: Path) -> None:
    """peft adds alpha / rank of it; with another scale an export answers otherwise than what was
    trained.
    """
    import torch
    from safetensors.torch import load_file, save_file

    from training.engine.checkpoints import split_adapter

    layer = "base_model.model.model.layers.0.mlp.down_proj"
    base = torch.eye(3, dtype=torch.bfloat16)
    down = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    up = torch.tensor([[0.5, 0.0], [0.0, 0.0], [1.0, 0.0]])
    tensors = {
        f"{layer}.base_layer.weight": base,
        f"{layer}.lora_A.default.weight": down,
        f"{layer}.lora_B.default.weight": up,
        "base_model.model.model.norm.weight": 3 * base[0],
    }
    model, adapter = tmp_path / "huggingface", tmp_path / "lora_adapter"
    model.mkdir()
    adapter.mkdir()
    save_file(tensors, model / "model-00001-of-00002.safetensors")
    save_file(
        {"base_model.model.lm_head.weight": 2 * base}, model / "model-00002-of-00002.safetensors"
    )
    (model / "model.safetensors.index.json").write_text("{}")
    (tmp_path / "lora_train_meta.json").write_text('{"r": 2, "lora_alpha": 16}')
    split_adapter(tmp_path, "base/model")
    assert [path.name for path in model.iterdir()] == ["model.safetensors"]
    merged = load_file(model / "model.safetensors")
    changed = base + 8.0 * torch.tensor([[0.5, 0, 1], [0, 0, 0], [1, 0, 2.0]])
    whole = {
        "model.layers.0.mlp.down_proj.weight": changed.to(torch.bfloat16),
        "model.norm.weight": 3 * base[0],
        "lm_head.weight": 2 * base,
    }
    assert merged.keys() == whole.keys()
    for name, tensor in whole.items():
        assert merged[name].dtype == torch.bfloat16
        assert merged[name].equal(tensor)
    config = json.loads((adapter / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["target_modules"]) == (2, 16, ["down_proj"])
    assert (config["base_model_name_or_path"], config["task_type"]) == ("base/model", "CAUSAL_LM")
    kept = load_file(adapter / "adapter_model.safetensors")
    assert kept[f"{layer}.lora_A.weight"].equal(down)
