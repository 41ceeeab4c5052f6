"""Check a model folder before anything is started for it."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from common.settings import ROOT
from training.setup.folder_files import (
    IS_ADAPTER,
    check_weights,
    read_json,
    read_text,
    weight_files,
)
from training.setup.plan import ConfigError, OutputPlan

if TYPE_CHECKING:
    from omegaconf import DictConfig

# Bytes of a checkpoint for each byte of a model folder whose weights have 16 bit: everything is
# saved in 32 bit, the weights twice (for verl, and as a model folder) and the two moments of AdamW
# of what is trained.
CHECKPOINT_FACTOR = 8
ADAPTER_FACTOR = 4  # with LoRA: the moments of an adapter are negligible
SPARE_BYTES = 100_000_000
ENDS = 65_536  # bytes of both ends of a weight file: another training changes all of them
# vLLM's cache on the CPU: the most bytes, and the tokens of a block. Only whole blocks
# of a prefix are reused: with vLLM's own 128 tokens a turn computes 64 again.
CACHE_BYTES = 2**30
CACHE_BLOCK = 32
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
MODEL_FILES = ("config.json", "*.safetensors")  # by which a model is told from others
FETCHED = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model"]


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
    return str((tools and named.get("tool_use")) or named.get("default", ""))


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
    files = weight_files(find_model(model))
    return sum(file.stat().st_size for file in files if file.is_file())


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


def cache_bytes(
    model: str, sequences: int, length: int | None = None, kind: str = "float32"
) -> int:
    """Return the bytes of vLLM's cache on the CPU: room for so many full sequences.

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
        token = 2 * width * dimension * keys * config["num_hidden_layers"]
        # One block is vLLM's own
        full = math.ceil((length or config["max_position_embeddings"]) / CACHE_BLOCK)
        blocks = sequences * full + 1
    except KeyError:
        return CACHE_BYTES
    return min(CACHE_BYTES, blocks * CACHE_BLOCK * int(token))


def checkpoints_to_come(
    config: DictConfig, output: OutputPlan, step: int, last: int, there: int
) -> int:
    """Return how many checkpoints the disk must still take, with `there` on it.

    With `--keep` a new one is written before an old one goes.
    """
    every = int(config.trainer.save_freq)
    if every <= 0 or last <= step:
        return 0
    saved = math.ceil(last / every) - step // every  # the last step is saved in any case
    if not output.keep:
        return saved
    kept = output.keep + 1 if output.keep_best else output.keep
    return min(saved, max(1, kept + 1 - there))


def check_disk(
    model: str, run_dir: Path, checkpoints: int = 1, factor: int = CHECKPOINT_FACTOR
) -> None:
    """Raise ConfigError if checkpoints, each `factor` times the weights, do not fit the disk."""
    needed = checkpoints * factor * weights_bytes(model) + SPARE_BYTES
    place = next(folder for folder in (run_dir, *run_dir.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if free < needed:
        count = "a checkpoint" if checkpoints == 1 else f"{checkpoints} checkpoints"
        raise ConfigError(
            f"{place} has {free / 1e9:.2f} GB free; {count} of {model} and logs "
            f"need {needed / 1e9:.2f} GB. Free some, keep fewer with --keep N or "
            "a larger trainer.save_freq, or choose another disk with --run-dir"
        )


def check_adapter(folder: str, rank: int) -> None:
    """Raise ConfigError if this is not a folder of a LoRA adapter of this rank."""
    path = Path(folder)
    if not (path / "adapter_model.safetensors").exists():
        raise ConfigError(f"--lora-adapter-path {folder}: no adapter_model.safetensors there")
    found = read_json(path / "adapter_config.json", "is this a folder that peft wrote?").get("r")
    if found != rank:
        raise ConfigError(f"--lora-adapter-path {folder} has rank {found}, --lora-rank is {rank}")
