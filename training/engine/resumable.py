"""Check whether a run may continue a checkpoint, and say which settings differ."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from common.files import FileError
from common.jsonl import read_object, write_text
from episodes.agent import Row
from training.engine.checkpoints import run_of
from training.report.summary import read_lines
from training.setup.model_folder import MODEL_FILES, digest_of, find_model
from training.setup.plan import ConfigError
from training.setup.reading import PARSER, SWITCHES

SHARDS = ("model", "optim", "extra_state")  # a file of each for every device
MODEL_SHARD = re.compile(r"model_world_size_(\d+)_rank_0\.pt")
MUST_AGREE = {
    "trainer.project_name": "agent",
    "actor_rollout_ref.model.lora_rank": "rank of the adapter",
}
OPTIMIZER = "actor_rollout_ref.actor.optim."
# Of its keys those that torch restores with its state
RESTORED = ("lr", "weight_decay", "betas", "override_optimizer_config")
MADE_OF = "model.json"
COMPARED = re.compile(r"(data|algorithm|actor_rollout_ref\.(actor|model|rollout))\.")
READ_LATER = (PARSER, SWITCHES)  # of the model, unless they are given


def check_resumable(checkpoint: Path, config: DictConfig) -> None:
    """Raise ConfigError, which says what is possible, if this run cannot continue it."""
    weights = checkpoint / "actor" / "huggingface"
    anew = f"or begin a new run with its weights: --model {weights}, without --resume"
    its_config = config_of(run_of(checkpoint)) or config
    for key, name in MUST_AGREE.items():
        theirs = OmegaConf.select(its_config, key)
        ours = OmegaConf.select(config, key)
        if theirs != ours:
            seen = f"its {name} is {theirs}, this run's {ours}"
            raise ConfigError(f"--resume {checkpoint}: {seen}; use that, {anew}")
    check_same_model(checkpoint, str(config.actor_rollout_ref.model.path), anew)
    devices = int(config.trainer.n_gpus_per_node) * int(config.trainer.nnodes)
    names = [MODEL_SHARD.fullmatch(path.name) for path in (checkpoint / "actor").iterdir()]
    saved = [int(found[1]) for found in names if found]
    if saved and devices not in saved:
        raise ConfigError(
            f"--resume {checkpoint}: saved by {saved[0]} devices, this run has {devices}; use"
            f" {saved[0]} (--n-gpus x --n-nodes), {anew}"
        )
    needed = ["data.pt"]
    for kind in SHARDS:
        for rank in range(devices):
            needed.append(f"actor/{kind}_world_size_{devices}_rank_{rank}.pt")
    for name in needed:
        if not (checkpoint / name).is_file():
            raise ConfigError(
                f"--resume {checkpoint} is not complete: no {name}; give another checkpoint, {anew}"
            )


def config_of(run: Path) -> DictConfig | None:
    """Return the configuration of a run, None if it wrote none. Raises FileError: it is spoilt."""
    file = run / "config.yaml"
    if not file.is_file():
        return None
    found: Any = None
    with suppress(OSError, ValueError, yaml.YAMLError):
        found = OmegaConf.load(file)
    if not isinstance(found, DictConfig) or not OmegaConf.select(found, "trainer.project_name"):
        raise FileError(f"{file}: expected a run's configuration; mend or remove it")
    return found


def check_same_model(checkpoint: Path, model: str, anew: str) -> None:
    """Raise ConfigError if the checkpoint was made of another model, wherever that is now."""
    made_of = read_object(run_of(checkpoint) / MADE_OF)  # one of an earlier version noted none
    if made_of and made_of["digest"] != digest_of(find_model(model), MODEL_FILES):
        raise ConfigError(
            f"--resume {checkpoint}: it was made of {made_of['model']}, and --model is {model}, "
            f"another model; give --model {made_of['model']}, {anew}"
        )


def note_model(run_dir: Path, model: str) -> None:
    noted = {"model": model, "digest": digest_of(find_model(model), MODEL_FILES)}
    write_text(run_dir / MADE_OF, json.dumps(noted, ensure_ascii=False), force=True)


def settings_of(config: Any) -> dict[str, Any]:
    """Return what is trained and how, by verl's keys. Names of places are left out."""
    found: dict[str, Any] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                add(f"{name}{key}.", inner)
            return
        place = "/" in str(value) or name.endswith(".experiment_name.")
        if COMPARED.match(name) and not place:
            found[name.strip(".")] = value

    add("", OmegaConf.to_container(config, resolve=True))
    return found


def differences(checkpoint: Path, config: DictConfig, rows: Sequence[Row]) -> list[str]:
    """Return a line for each thing that is given otherwise than before."""
    found = []
    before = settings_of(config_of(run_of(checkpoint)) or config)
    now = settings_of(config)
    for key in sorted(before.keys() | now.keys()):
        one = before.get(key)
        other = now.get(key)
        if one == other or (other is None and key in READ_LATER):
            continue
        if key.startswith(OPTIMIZER) and key.removeprefix(OPTIMIZER).split(".")[0] in RESTORED:
            found.append(f"{key} goes on as in the checkpoint: {one}, not {other}")
        else:
            found.append(f"{key} was {one}, now {other}")
    trained = [row["id"] for row in read_lines(run_of(checkpoint) / "data" / "train.jsonl")]
    given = [row["id"] for row in rows]
    if trained and trained != given:
        shared = len(set(trained) & set(given))
        found.append(
            f"other training rows than before: {len(given)} instead of {len(trained)}, {shared} of "
            "them the same; the run goes on with the new ones"
        )
    return found
