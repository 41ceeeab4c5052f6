"""Checkpoints of runs, saved completely or not at all: `checkpoints/global_step_N`.

verl writes `actor` and `data.pt` into a hidden folder, which is renamed when
nothing is missing. Then `latest_checkpointed_iteration.txt` names the step.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from common.files import replacing
from common.jsonl import write_text
from training.report.summary import curve
from training.setup.plan import ConfigError, RunStopped

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = "checkpoints"
MARK = "latest_checkpointed_iteration.txt"
PREFIX = "global_step_"
STEP_METRICS = "metrics.json"  # of the step, for a run that is killed before it writes them
ADAPTER_FOLDER = "lora_adapter"
PEFT_PREFIX = "base_model.model."  # stands before the model's own names
# A failed write with less space left than this failed because the disk is full
FULL_BYTES = 4 * 2**20


@contextmanager
def saving(folder: Path, step: int) -> Iterator[Path]:
    """Yield a hidden folder to write a step in. After the block `folder` holds it whole."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / f"{PREFIX}{step}") as draft:
        try:
            yield draft.parent
        except (OSError, RuntimeError) as error:
            # A full disk, which torch calls an unexpected position
            if shutil.disk_usage(folder).free >= FULL_BYTES:
                raise
            what = f"the disk of {folder} is full: the checkpoint of step {step} could not be saved"
            # Ray's own lines stand before the cause
            cause = (str(error).splitlines() or [type(error).__name__])[-1]
            raise RunStopped(f"{what} ({cause}). Make room, then resume with --resume.") from None
    write_text(folder / MARK, str(step), force=True)


def prune(run: Path, step: int, keep: int, best: bool) -> None:
    """Remove all checkpoints up to `step` but the last `keep` and, with `best`, the best one.

    `step` was just saved, and is validated next. If it has a validation already, that is of a time
    before the run went back, as are checkpoints of later steps.
    """
    found = {number: path for number, path in checkpoints(run).items() if number <= step}
    kept: set[int | None] = {*sorted(found)[-keep:]}
    if best:
        kept.add(best_step(run, found.keys() - {step}))
    for number in found.keys() - kept:
        path = found[number]
        with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp") as hidden:
            # A rename is atomic, so that a half-removed folder is never taken for a checkpoint
            os.replace(path, Path(hidden) / path.name)


def sweep(run: Path) -> list[str]:
    """Remove what a killed process left half saved or removed. Return the checkpoints' names."""
    left = sorted((run / FOLDER).glob(f".{PREFIX}*.tmp"))
    for path in left:
        shutil.rmtree(path)
    return [path.name.split(".")[1] for path in left]  # of .global_step_8.xyz.tmp


def checkpoints(run: Path) -> dict[int, Path]:
    found = (run.resolve() / FOLDER).glob(f"{PREFIX}*")
    return {step_of(path): path for path in found if is_checkpoint(path)}


def is_checkpoint(path: Path) -> bool:
    named = re.fullmatch(rf"{PREFIX}\d+", path.name)
    return named is not None and (path / "actor").is_dir()


def validations(run: Path) -> dict[int, float]:
    """Return the rewards of a run's validations by step."""
    rows = [row for row in curve(run) if row["validation"] is not None]
    return {row["step"]: row["validation"] for row in rows}


def best_step(run: Path, steps: Iterable[int]) -> int | None:
    """Return the step of the best validation, of equal ones the last, or None."""
    found = validations(run)
    among = found.keys() & set(steps)
    return max(among, key=lambda step: (found[step], step), default=None)


def was_validated(checkpoint: Path) -> bool:
    """Return whether the records of its run hold a validation of this checkpoint."""
    return step_of(checkpoint) in validations(run_of(checkpoint))


def find_checkpoint(resume: str, run_dir: Path | None, runs_dir: Path) -> Path | None:
    """Return the `global_step_N` folder to resume from, or None if `auto` begins a run.

    `latest`: the newest of `run_dir`, or of all runs if none is named. Raises ConfigError: the
    checkpoint is missing, or `auto` has no `run_dir`.
    """
    if resume == "auto":
        if run_dir is None:
            raise ConfigError("--resume auto needs --run-dir DIR, the run that it continues")
        return latest_checkpoint(run_dir)
    if resume != "latest":
        path = Path(resume).resolve()
        if not is_checkpoint(path):
            raise ConfigError(f"--resume {path}: not a checkpoint; expected .../global_step_N")
        return path

    def saved_at(run: Path) -> float:
        mark = run / FOLDER / MARK  # a report changes the folder's own time
        return mark.stat().st_mtime if mark.exists() else 0.0

    places = [run_dir] if run_dir else sorted(runs_dir.glob("*"), key=saved_at, reverse=True)
    for run in places:
        latest = latest_checkpoint(run)
        if latest is not None:
            return latest
    where = run_dir or runs_dir
    raise ConfigError(f"--resume: nothing to resume in {where}; start without --resume")


def latest_checkpoint(run: Path) -> Path | None:
    """Return the marked checkpoint, or the newest with `data.pt`, or None."""
    found = checkpoints(run)
    try:
        marked = int((run / FOLDER / MARK).read_text())
    except (OSError, ValueError):
        marked = None
    if marked is not None and marked in found:
        return found[marked]
    for step in sorted(found, reverse=True):
        # Later than the mark are those from before the run went back
        is_later = marked is not None and step > marked
        if not is_later and (found[step] / "data.pt").is_file():
            return found[step]
    return None


def step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix(PREFIX))


def run_of(checkpoint: Path) -> Path:
    return checkpoint.parent.parent


def split_adapter(actor: Path, base_model: str) -> None:
    """Rewrite `actor/huggingface` as a plain model, and write `actor/lora_adapter`."""
    from huggingface_hub import save_torch_state_dict
    from peft import LoraConfig
    from safetensors.torch import load_file, save_file

    folder = actor / "huggingface"
    files = sorted(folder.glob("*.safetensors"))
    tensors: dict[str, Tensor] = {}
    for file in files:
        tensors |= load_file(file)
    adapter = {name: tensor for name, tensor in tensors.items() if ".lora_" in name}
    written = json.loads((actor / "lora_train_meta.json").read_text(encoding="utf-8"))
    merged = merge(tensors, written["lora_alpha"] / written["r"])
    for file in [*files, *folder.glob("*.safetensors.index.json")]:
        file.unlink()
    save_torch_state_dict(merged, folder)
    layers = sorted({name.split(".lora_")[0].rsplit(".", 1)[1] for name in adapter})
    target = actor / ADAPTER_FOLDER
    target.mkdir(exist_ok=True)
    LoraConfig(
        r=written["r"],
        lora_alpha=written["lora_alpha"],
        target_modules=layers,
        task_type="CAUSAL_LM",
        base_model_name_or_path=base_model,
    ).save_pretrained(str(target))
    plain = {name.replace(".default.", "."): tensor for name, tensor in adapter.items()}
    save_file(plain, target / "adapter_model.safetensors")


def merge(tensors: dict[str, Tensor], scale: float) -> dict[str, Tensor]:
    """Return the model's tensors: W + scale * B A where a layer has an adapter."""
    merged = {}
    for name, tensor in tensors.items():
        if ".lora_" in name:
            continue
        layer = name.removesuffix(".base_layer.weight")
        down = tensors.get(f"{layer}.lora_A.default.weight")
        up = tensors.get(f"{layer}.lora_B.default.weight")
        if down is not None and up is not None:
            tensor = (tensor.float() + scale * (up.float() @ down.float())).to(tensor.dtype)
        merged[name.removeprefix(PEFT_PREFIX).replace(".base_layer.", ".")] = tensor
    return merged
