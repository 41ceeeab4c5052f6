"""Checkpoints of runs: where they are, which is the latest, which run a resumed one continues; and their adapters.

verl writes `checkpoints/global_step_N/actor` (shards, optimizer, random state, and a Hugging Face folder in
`actor/huggingface`) and then, last, `latest_checkpointed_iteration.txt`: a step without that mark is not complete.

Of a run with an adapter (LoRA) verl's Hugging Face folder holds the adapter's tensors beside the frozen ones, under
peft's names, so that no tool finds a model in it. `split_adapter` leaves there the merged model, and the adapter alone
in `lora_adapter`, as peft writes it (`--lora-adapter-path` goes on from it).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from training.plan import ConfigError

if TYPE_CHECKING:
    from torch import Tensor

MARK = "latest_checkpointed_iteration.txt"
PREFIX = "global_step_"
ADAPTER_FOLDER = "lora_adapter"
PEFT_PREFIX = "base_model.model."  # before the model's own names


def find_checkpoint(resume: str, run_dir: Path | None, runs_dir: Path) -> Path:
    """The `global_step_N` folder to resume from.

    `latest` means the newest complete checkpoint of `run_dir`, or of all runs in `runs_dir` where no run is named.

    Raises ConfigError: there is none.
    """
    if resume != "latest":
        path = Path(resume).resolve()
        if not (re.fullmatch(rf"{PREFIX}\d+", path.name) and (path / "actor").is_dir()):
            raise ConfigError(f"--resume {path}: not a checkpoint; expected a folder .../checkpoints/global_step_N")
        return path
    places = [run_dir] if run_dir else sorted(runs_dir.glob("*"), key=lambda run: run.stat().st_mtime, reverse=True)
    for run in places:
        latest = latest_checkpoint(run)
        if latest is not None:
            return latest
    raise ConfigError(f"--resume: nothing to resume, no checkpoint in {run_dir or runs_dir}; start without --resume")


def latest_checkpoint(run: Path) -> Path | None:
    """The newest complete checkpoint of a run folder, or None."""
    mark = run / "checkpoints" / MARK
    if not mark.exists():
        return None
    step = run / "checkpoints" / f"{PREFIX}{mark.read_text().strip()}"
    return step.resolve() if (step / "actor").is_dir() else None


def step_of(checkpoint: Path) -> int:
    """The step number in a checkpoint folder's name."""
    return int(checkpoint.name.removeprefix(PREFIX))


def run_of(checkpoint: Path) -> Path:
    """The run folder a checkpoint belongs to."""
    return checkpoint.parent.parent


def split_adapter(actor: Path, base_model: str) -> None:
    """Rewrite `actor/huggingface` as a plain model, and write `actor/lora_adapter`; shapes (out, r) x (r, in) a layer.

    Raises ValueError: there is no adapter in the folder.
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
    written = json.loads((actor / "lora_train_meta.json").read_text(encoding="utf-8"))
    rank, alpha = int(written["r"]), int(written["lora_alpha"])
    merged = merge(tensors, alpha / rank)
    for file in [*files, *folder.glob("*.safetensors.index.json")]:
        file.unlink()
    save_torch_state_dict(merged, folder)
    layers = sorted({name.split(".lora_")[0].rsplit(".", 1)[1] for name in adapter})
    target = actor / ADAPTER_FOLDER
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
        merged[name.removeprefix(PEFT_PREFIX).replace(".base_layer.", ".")] = tensor
    return merged
