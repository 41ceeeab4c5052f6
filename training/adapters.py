"""Turns what verl saves of a run with an adapter (LoRA) into what others can load.

verl's Hugging Face folder of such a run holds the adapter's tensors beside the frozen ones, under peft's names, so that
no tool finds a model in it. `split_adapter` leaves there the merged model, and the adapter alone in `lora_adapter`, as
peft writes it (`--lora-adapter-path` goes on from it). Used by `training.trainer` after every checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

PREFIX = "base_model.model."  # peft's, before the model's own names
FOLDER = "lora_adapter"


def split_adapter(actor: Path, base_model: str) -> None:
    """Rewrite `actor/huggingface` as a plain model, and write `actor/lora_adapter`; shapes (out, r) x (r, in) a layer.

    Raises:
        ValueError: there is no adapter in the folder.
    """
    from huggingface_hub import save_torch_state_dict
    from peft import LoraConfig
    from safetensors.torch import load_file, save_file

    folder = actor / "huggingface"
    files = sorted(folder.glob("*.safetensors"))
    tensors = {name: tensor for file in files for name, tensor in load_file(file).items()}
    adapter = {name: tensor for name, tensor in tensors.items() if ".lora_" in name}
    if not adapter:
        raise ValueError(f"{folder} holds no adapter")
    rank, alpha = _rank_and_alpha(actor)
    merged = merge(tensors, alpha / rank)
    for file in [*files, *folder.glob("*.safetensors.index.json")]:
        file.unlink()
    save_torch_state_dict(merged, folder)
    layers = sorted({name.split(".lora_")[0].rsplit(".", 1)[1] for name in adapter})
    target = actor / FOLDER
    target.mkdir(exist_ok=True)
    LoraConfig(
        r=rank, lora_alpha=alpha, target_modules=layers, task_type="CAUSAL_LM", base_model_name_or_path=base_model
    ).save_pretrained(str(target))
    plain = {name.replace(".default.", "."): tensor for name, tensor in adapter.items()}
    save_file(plain, target / "adapter_model.safetensors")


def merge(tensors: dict[str, Tensor], scale: float) -> dict[str, Tensor]:
    """peft's tensors -> the model's: W + scale * B A where a layer has an adapter; names without peft's additions."""
    merged = {}
    for name, tensor in tensors.items():
        if ".lora_" in name:
            continue
        layer = name.removesuffix(".base_layer.weight")
        down, up = (tensors.get(f"{layer}.lora_{side}.default.weight") for side in "AB")
        if down is not None and up is not None:
            tensor = (tensor.float() + scale * (up.float() @ down.float())).to(tensor.dtype)
        merged[name.removeprefix(PREFIX).replace(".base_layer.", ".")] = tensor
    return merged


def _rank_and_alpha(actor: Path) -> tuple[int, int]:
    """What verl wrote beside the shards."""
    found = json.loads((actor / "lora_train_meta.json").read_text(encoding="utf-8"))
    return int(found["r"]), int(found["lora_alpha"])
