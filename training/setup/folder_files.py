"""The files of a model's folder: read the small ones, check the weights, name what is wrong."""

import json
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from training.setup.plan import ConfigError

COPY_AGAIN = "copy it again from the base model, and if it is a pointer of Git LFS: git lfs pull"
IS_ADAPTER = "it is an adapter: give the base model, and the adapter as --lora-adapter-path"
WHOLE = "model.safetensors"
ADAPTER = "adapter_model.safetensors"
PICKLES = "pytorch_model*.bin"
INDEX = "model.safetensors.index.json"


def read_text(path: Path, hint: str = COPY_AGAIN) -> str:
    """Return a text file's content. Raises ConfigError with the hint."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path} ({type(error).__name__}); {hint}") from None


def read_json(path: Path, hint: str = COPY_AGAIN) -> dict[str, Any]:
    """Return the object in a JSON file. Raises ConfigError with the hint."""
    text = read_text(path, hint)
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        raise ConfigError(f"{path} holds no JSON object; {hint}") from None


def check_weights(folder: Path, config: dict[str, Any], trained: bool) -> None:
    """Raise ConfigError if weights are missing or cut, or are quantised and to be `trained`."""
    if trained and (quantised := config.get("quantization_config")):
        method = quantised.get("quant_method") if isinstance(quantised, dict) else quantised
        raise ConfigError(
            f"the weights of {folder} are quantised ({method}), which cannot be trained; take the "
            "model that they were made of"
        )
    files = weight_files(folder)
    if not files and not any(folder.glob(PICKLES)):
        adapter = (folder / "adapter_config.json").is_file()
        hint = IS_ADAPTER if adapter else "copy the whole folder"
        raise ConfigError(f"{folder} has no weights ({WHOLE}); {hint}")
    for path in files:
        try:
            with safe_open(path, framework="np"):  # it compares sizes, and reads no tensor
                pass
        except (OSError, SafetensorError) as error:
            raise ConfigError(f"{path} cannot be used ({error}); {COPY_AGAIN}") from None


def weight_files(folder: Path) -> list[Path]:
    """Return the files that transformers loads. Raises ConfigError: the index cannot be read."""
    if (folder / INDEX).is_file():
        found = read_json(folder / INDEX).get("weight_map")
        if not isinstance(found, dict):
            raise ConfigError(f"{folder / INDEX} has no weight_map; {COPY_AGAIN}")
        return [folder / name for name in sorted(set(found.values()))]
    if (folder / WHOLE).exists():
        return [folder / WHOLE]
    found = sorted(folder.glob("*.safetensors"))
    return [path for path in found if path.name != ADAPTER]


def count_weights(folder: Path) -> int:
    """Return the number of weights, from the heads of the files."""
    found = 0
    for path in weight_files(folder):
        with safe_open(path, framework="np") as tensors:
            found += sum(prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    return found
