"""Whether the weights in a model's folder can be used, told from the heads of their files."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any, NoReturn

from training.setup.folder_files import LFS_POINTER, read_json
from training.setup.plan import ConfigError

IS_ADAPTER = "it is an adapter: give the base model, and it as --lora-adapter-path"
WHOLE = "model.safetensors"
ADAPTER = "adapter_model.safetensors"
PICKLES = "pytorch_model*.bin"
COMPRESSED = "compression_config"
COMPUTED = ("F64", "F32", "F16", "BF16")  # types of numbers that are trained
INDEX = "model.safetensors.index.json"
POINTER_BYTES = len(LFS_POINTER)
LONGEST_HEADER = 100_000_000  # bytes, safetensors' own bound


def check_weights(folder: Path, config: dict[str, Any], trained: bool) -> None:
    """Raise ConfigError if weights are pointers, cut, missing or another model's, need code of the
    model's own, or are quantised and to be `trained`.
    """
    kind = str(config.get("model_type"))
    if config.get("auto_map") and not _known(kind):
        raise ConfigError(
            f"{folder} needs code of its own (auto_map in config.json), which is not run; take a "
            "model whose type transformers knows"
        )
    if not _known(kind):
        raise ConfigError(
            f"transformers knows no model_type {kind!r} ({folder}/config.json); take another model"
        )
    if trained and (quantised := config.get("quantization_config") or config.get(COMPRESSED)):
        method = quantised.get("quant_method") if isinstance(quantised, dict) else quantised
        _refuse_quantised(folder, method or "unknown")
    files = weight_files(folder)
    if not files:
        _check_pickles(folder)
        return
    lost = [path.name for path in files if not path.is_file()]
    if lost:
        raise ConfigError(f"{folder} lacks {', '.join(lost)}; copy the whole folder")
    if not (folder / INDEX).is_file() and files[0].name != WHOLE:
        names = ", ".join(path.name for path in files)
        raise ConfigError(f"{folder} has {names}, and neither {WHOLE} nor {INDEX}; copy it too")
    headers = {path.name: read_header(path) for path in files}
    _check_tensors(folder, config, headers, trained)


def _check_pickles(folder: Path) -> None:
    """Raise ConfigError if a folder without safetensors has no weights of torch either."""
    files = sorted(folder.glob(PICKLES))
    if not files:
        adapter = (folder / "adapter_config.json").is_file()
        hint = IS_ADAPTER if adapter else "copy the whole folder"
        raise ConfigError(f"{folder} has no weights ({WHOLE}); {hint}")
    for path in files:
        with path.open("rb") as file:
            _refuse_pointer(path, file.read(POINTER_BYTES))


def _check_tensors(
    folder: Path, config: dict[str, Any], headers: dict[str, dict[str, Any]], trained: bool
) -> None:
    """Raise ConfigError if the weights are quantised, not those that config.json describes, or not
    those that the index names.
    """
    index = weight_map(folder) if (folder / INDEX).is_file() else {}
    gone = [tensor for tensor, file in index.items() if tensor not in headers[file]]
    if gone:
        raise ConfigError(f"{index[gone[0]]} lacks {gone[0]}, which {folder / INDEX} puts there")
    tensors = {name: part for header in headers.values() for name, part in header.items()}
    tensors.pop("__metadata__", None)
    packed = [name for name, part in tensors.items() if part["dtype"] not in COMPUTED]
    if trained and any("weight" in name for name in packed):
        _refuse_quantised(folder, tensors[packed[0]]["dtype"])
    size = config.get("vocab_size")
    if size and not packed and not any(part["shape"][:1] == [size] for part in tensors.values()):
        raise ConfigError(
            f"no weights in {folder} have the {size} rows of vocab_size in its config.json; config "
            "and weights must be of one model"
        )


def _refuse_quantised(folder: Path, method: object) -> NoReturn:
    raise ConfigError(
        f"the weights of {folder} are quantised ({method}), which cannot be trained; take the "
        "model that they were made of"
    )


def _refuse_pointer(path: Path, begin: bytes) -> None:
    if begin == LFS_POINTER.encode():
        raise ConfigError(f"{path} is a pointer of Git LFS and no weights; run: git lfs pull")


def read_header(path: Path) -> dict[str, Any]:
    """Return the header of a safetensors file. Raises ConfigError: it is none, or is cut."""
    size = path.stat().st_size
    with path.open("rb") as file:
        _refuse_pointer(path, file.read(POINTER_BYTES))
        file.seek(0)
        begin = file.read(8)
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
    """Return the files that transformers loads: others hold the same weights in another form.

    Raises ConfigError: the index cannot be read.
    """
    if (folder / INDEX).is_file():
        return [folder / name for name in sorted(set(weight_map(folder).values()))]
    whole = folder / WHOLE
    if os.path.lexists(whole):
        return [whole]
    found = sorted(folder.glob("*.safetensors"))
    return [path for path in found if path.name != ADAPTER]


def weight_map(folder: Path) -> dict[str, str]:
    """Return the file of each tensor by a folder's index. Raises ConfigError: it has no such map."""
    hint = "copy it again"
    found = read_json(folder / INDEX, hint).get("weight_map")
    if (
        not isinstance(found, dict)
        or not found
        or any(type(name) is not str for name in found.values())
    ):
        raise ConfigError(f"{folder / INDEX} has no weight_map of tensors and files; {hint}")
    return found


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
    """Return whether transformers knows a type of model. Most have a folder of their name; asking
    for the others takes seconds.
    """
    spec = find_spec("transformers")
    package = Path(next(iter(spec.submodule_search_locations or [""]))) if spec else Path()
    if (package / "models" / kind).is_dir():
        return True
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return kind in CONFIG_MAPPING_NAMES
