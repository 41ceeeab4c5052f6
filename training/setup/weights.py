"""Whether the weights in a model's folder can be used, told from the heads of their files."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

from training.setup.plan import ConfigError

INDEX = "model.safetensors.index.json"
LFS_POINTER = b"version https://git-lfs"
LONGEST_HEADER = 100_000_000  # bytes, safetensors' own bound


def check_weights(folder: Path, config: dict[str, Any], trained: bool) -> None:
    """Raise ConfigError if weights are pointers, cut or missing, need code of the model's own, or
    are quantised and to be `trained`. A folder without safetensors is left to the engine.
    """
    files = weight_files(folder)
    lost = [path.name for path in files if not path.is_file()]
    if lost:
        raise ConfigError(f"{folder} lacks {', '.join(lost)}, which {INDEX} names; copy it all")
    if len(files) > 1 and not (folder / INDEX).is_file():
        raise ConfigError(f"{folder} has {len(files)} files of weights and no {INDEX}; copy it too")
    for path in files:
        read_header(path)
    if trained and (quantised := config.get("quantization_config")):
        method = quantised.get("quant_method", "unknown")
        raise ConfigError(
            f"the weights of {folder} are quantised ({method}), which cannot be trained; take the "
            "model that they were made of"
        )
    if config.get("auto_map") and not _known(str(config.get("model_type"))):
        raise ConfigError(
            f"{folder} needs code of its own (auto_map in config.json), which is not run; take a "
            "model whose type transformers knows"
        )


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a safetensors file. Raises ConfigError: it is none, or is cut."""
    size = path.stat().st_size
    with path.open("rb") as file:
        begin = file.read(8)
        if LFS_POINTER.startswith(begin) and begin:
            raise ConfigError(f"{path} is a pointer of Git LFS and no weights; run: git lfs pull")
        length = int.from_bytes(begin, "little")
        try:
            header = dict(json.loads(file.read(min(length, LONGEST_HEADER))))
        except (ValueError, TypeError):
            raise ConfigError(f"{path} is no safetensors file, or is cut; copy it again") from None
    parts = [part for part in header.values() if "data_offsets" in part]
    whole = 8 + length + max((part["data_offsets"][1] for part in parts), default=0)
    if size < whole:
        raise ConfigError(f"{path} has {size} of {whole} bytes; copy it again")
    return header


def weight_files(folder: Path) -> list[Path]:
    """Return the files that transformers loads: others hold the same weights in another form."""
    if (folder / INDEX).is_file():
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        return [folder / name for name in sorted(set(index.get("weight_map", {}).values()))]
    whole = folder / "model.safetensors"
    return [whole] if whole.is_file() else sorted(folder.glob("*.safetensors"))


def parameters_of(folder: Path) -> int:
    """Return the number of a model's parameters."""
    shapes = [
        part["shape"]
        for path in weight_files(folder)
        for part in read_header(path).values()
        if "shape" in part
    ]
    return sum(map(prod, shapes))


def _known(kind: str) -> bool:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return kind in CONFIG_MAPPING_NAMES
