"""Find a model's folder, read its small files, and check it before anything is started for it."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from math import ceil, prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from common.settings import ROOT
from training.setup.plan import ConfigError

ENDS = 65_536  # bytes of both ends of a weight file: another training changes all of them
# vLLM's cache on the CPU: the most bytes, and the tokens of a block. Only whole blocks
# of a prefix are reused: with vLLM's own 128 tokens a turn computes 64 again.
CACHE_BYTES = 2**30
CACHE_BLOCK = 32
COPY_AGAIN = "copy it again from the base model, and if it is a pointer of Git LFS: git lfs pull"
IS_ADAPTER = "it is an adapter: give the base model, and the adapter as --lora-adapter-path"
IS_MODEL = "is this a Hugging Face model folder?"
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
# Folders where this project writes: such a name is not an owner on the hub
OWN_FOLDERS = ("runs", "models", "outputs")
BUNDLED = re.compile(r"(\w+)_agent/tiny_model$")
# Files beside config.json that are JSON where a model has them
TEXTS = (
    "generation_config.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "special_tokens_map.json",
)
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")
WHOLE = "model.safetensors"
ADAPTER = "adapter_model.safetensors"
PICKLES = "pytorch_model*.bin"
INDEX = "model.safetensors.index.json"
MODEL_FILES = ("config.json", "*.safetensors")  # by which a model is told from others
FETCHED = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model"]


def read_text(path: Path, hint: str = COPY_AGAIN) -> str:
    """Return a text file's content. Raises ConfigError with the hint."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path} ({type(error).__name__}); {hint}") from None


def read_json(path: Path, hint: str = COPY_AGAIN) -> dict[str, Any]:
    """Return the object in a JSON file. Raises ConfigError with the hint."""
    text = read_text(path, hint)
    found = None
    with suppress(ValueError):
        found = json.loads(text)
    if not isinstance(found, dict):
        raise ConfigError(f"{path} holds no JSON object; {hint}")
    return found


def check_model(
    model: str, max_model_len: int | None = None, tools: bool = True, trained: bool = False
) -> None:
    """Raise ConfigError if a model lacks config, tokenizer, chat template, weights or room.

    `tools`: its template for tools counts. `trained`: quantised weights cannot be.
    """
    folder = find_model(model)
    adapter = (folder / "adapter_config.json").is_file()
    config = read_json(folder / "config.json", IS_ADAPTER if adapter else IS_MODEL)
    for name in TEXTS:
        if (folder / name).exists():
            read_json(folder / name)
    if not any((folder / name).exists() for name in TOKENIZERS):
        raise ConfigError(f"{folder} has no tokenizer.json; copy it from the base model")
    if not read_template(str(folder), tools):
        raise ConfigError(
            f"{folder} has no chat template; copy chat_template.jinja from the base model"
        )
    check_weights(folder, config, trained)
    positions = config.get("max_position_embeddings")
    if max_model_len and isinstance(positions, int) and max_model_len > positions:
        raise ConfigError(
            f"max_model_len={max_model_len} exceeds the {positions} positions of {folder}"
        )


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


def read_template(model: str, tools: bool = True) -> str:
    """Return the chat template of a model, "" if it has none.

    If it has several, take the one for `tools`, else the default. Raises ConfigError.
    """
    folder = find_model(model)
    if (folder / "chat_template.jinja").exists():
        return read_text(folder / "chat_template.jinja")
    if not (folder / "tokenizer_config.json").exists():
        return ""
    found = read_json(folder / "tokenizer_config.json").get("chat_template") or ""
    if isinstance(found, str):
        return found
    named = {one["name"]: one["template"] for one in found}
    if tools and named.get("tool_use"):
        return str(named["tool_use"])
    return str(named.get("default", ""))


def check_name(model: str) -> None:
    """Raise ConfigError if a model is neither a folder nor a hub id.

    A mistyped path of two parts, like `runs/nme`, would fetch a stranger's weights.
    """
    if Path(model).is_dir():
        return
    # Where the package is installed as a wheel, its models are not in the folder you are in
    if (ROOT / model / "config.json").is_file():
        raise ConfigError(f"no model folder at {model} here; the bundled one is {ROOT / model}")
    first = model.partition("/")[0]
    agent = BUNDLED.search(model)
    is_path = model.startswith((".", "/", "~")) or first in OWN_FOLDERS or Path(first).is_dir()
    if is_path or agent or not HUB_ID.fullmatch(model):
        made = f".venv/bin/python -m training.cold_start {agent[1]} makes it, or " if agent else ""
        raise ConfigError(
            f"no model folder at {model}; {made}"
            "give the folder of a model or of a run, or a hub id like Qwen/Qwen3-0.6B"
        )


def find_model(model: str) -> Path:
    """Return the model's folder. One of the hub is fetched: safetensors and texts, no code."""
    check_name(model)
    if Path(model).is_dir():
        return Path(model)
    return _fetch(model)


@cache
def _fetch(model: str) -> Path:
    from huggingface_hub import snapshot_download

    try:
        folder = Path(snapshot_download(model, allow_patterns=FETCHED))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{model} is no folder here and cannot be fetched from the hub "
            f"({type(error).__name__}); check name and network, or give --model a folder"
        ) from None
    if not any(folder.glob("*.safetensors")):
        raise ConfigError(
            f"{model} has no safetensors on the hub; other weights "
            "are pickles, which run code. Convert it, or take another"
        )
    return folder


def weights_bytes(model: str) -> int:
    """Return the bytes of a model's weights, 0 for a name that `check_model` refuses."""
    if not (Path(model).is_dir() or HUB_ID.fullmatch(model)):
        return 0
    folder = find_model(model)
    files = weight_files(folder) or folder.glob(PICKLES)
    return sum(file.stat().st_size for file in files if file.is_file())


def count_weights(folder: Path) -> int:
    """Return the number of weights, from the heads of the files. Of pickles it is the least."""
    found = 0
    for path in weight_files(folder):
        with safe_open(path, framework="np") as tensors:
            found += sum(prod(tensors.get_slice(name).get_shape()) for name in tensors.keys())  # noqa: SIM118
    return found or weights_bytes(str(folder)) // 4


def digest_of(folder: Path, patterns: Sequence[str]) -> str:
    """Return a hash of a model's files: of each its name, its size and both ends."""
    found = sha256()
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            size = path.stat().st_size
            with path.open("rb") as file:
                found.update(f"{path.name} {size}".encode() + file.read(ENDS))
                file.seek(max(0, size - ENDS))
                found.update(file.read(ENDS))
    return found.hexdigest()


def cache_bytes(model: str, sequences: int, length: int | None, kind: str) -> int:
    """Return the bytes of vLLM's cache on the CPU: room for so many sequences of `length` tokens.

    A token has a key and a value for each dimension of each head of each layer. The limit is a GiB,
    because vLLM writes all of it at its start. It is also taken if sizes are not known.
    """
    if not weights_bytes(model):
        return CACHE_BYTES
    config = read_json(find_model(model) / "config.json", IS_MODEL)
    try:
        heads = config["num_attention_heads"]
        dimension = config.get("head_dim") or config["hidden_size"] // heads
        keys = config.get("num_key_value_heads") or heads
        width = 2 if kind == "bfloat16" else 4
        token = int(2 * width * dimension * keys * config["num_hidden_layers"])
        # One block is vLLM's own
        full = ceil((length or config["max_position_embeddings"]) / CACHE_BLOCK)
        blocks = sequences * full + 1
    except (KeyError, TypeError, ZeroDivisionError):  # such as a list, of each layer its own
        return CACHE_BYTES
    return min(CACHE_BYTES, blocks * CACHE_BLOCK * token)
