"""Hold a run's folder, and write it before the run begins: rows, configuration, and what scores
depend on.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from common.jsonl import read_object, write_jsonl, write_text
from episodes.record import as_json
from training.engine.checkpoints import (
    MARK,
    STEP_METRICS,
    latest_checkpoint,
    run_of,
    step_of,
    sweep,
    was_validated,
)
from training.engine.playing import FILE as PLAYING
from training.engine.resumable import MADE_OF, note_model
from training.report.summary import ENVIRONMENT, read_lines
from training.setup.plan import ConfigError, Plan

LOCK = "run.lock"
RECORD_FILES = ("metrics.jsonl", "episodes.jsonl")
REPLACED = ("data/train.jsonl", "data/val.jsonl", "versions.json", "preset.json", MADE_OF, PLAYING)
OF_ONE_PART = ("timeline.json", "summary.json", "error.txt", "config.yaml")
PACKAGES = (
    *("agentlightning", "verl", "vllm", "torch", "transformers", "ray"),
    *("litellm", "openai-agents"),
)


def holds_something(run_dir: Path) -> bool:
    """Return whether a folder has files that are not of a run of ours which played nothing yet."""
    found = {path.name: path for path in run_dir.iterdir()} if run_dir.is_dir() else {}
    if found and LOCK not in found:
        return True
    return any(name in found and found[name].stat().st_size for name in RECORD_FILES)


def not_of_a_run(run_dir: Path, role: str) -> list[str]:
    """Return the files, of a folder in which no run began, that a process of this role would replace.

    ENVIRONMENT is also of a runner, which may have begun before the trainer.
    """
    if role == "runner" or (run_dir / LOCK).exists():
        return []
    replaced = REPLACED if role == "algorithm" else (*REPLACED, ENVIRONMENT)
    return [name for name in replaced if (run_dir / name).exists()]


@contextmanager
def held(run_dir: Path) -> Iterator[None]:
    """Hold the folder's lock in the block. The system frees it when the process ends. A folder made
    here in which nothing began is removed. Raises ConfigError: a living process has it.
    """
    made = not run_dir.exists()
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / LOCK).open("a+", encoding="utf-8") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = "another command"
            with suppress(OSError, ValueError, KeyError):
                who = json.loads((run_dir / LOCK).read_text(encoding="utf-8"))
                since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(who["since"]))
                holder = f"process {who['pid']} on {who['host']} since {since}"
            raise ConfigError(
                f"{run_dir} is being trained in by {holder}; wait for that "
                "command or stop it, or choose another --run-dir"
            ) from None
        file.truncate(0)
        who = {"host": socket.gethostname(), "pid": os.getpid(), "since": time.time()}
        file.write(json.dumps(who))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)
            if made and [path.name for path in run_dir.iterdir()] == [LOCK]:
                (run_dir / LOCK).unlink()
                run_dir.rmdir()


def write_inputs(
    plan: Plan, rows: Mapping[str, Iterable[Any]], described: Mapping[str, Any] | None
) -> None:
    """Write rows, where this process trains, and what scores depend on, where it plays."""
    plan.output.run_dir.mkdir(parents=True, exist_ok=True)
    if described is not None:
        write_text(plan.output.run_dir / ENVIRONMENT, as_json(described), force=True)
    if plan.store.role != "runner":
        (plan.output.run_dir / "data").mkdir(exist_ok=True)
        for name, part in rows.items():
            write_jsonl(plan.output.run_dir / "data" / f"{name}.jsonl", part, force=True)


def prepare_run_dir(plan: Plan, config: DictConfig) -> None:
    """Write the configuration. An earlier part's files are kept aside, its records go on."""
    folder = plan.output.run_dir
    folder.mkdir(parents=True, exist_ok=True)
    if left := sweep(folder):  # safe now: no other run uses this one's ports
        print(f"removed what was not completely saved or removed: {', '.join(left)}", flush=True)
    checkpoint = None
    if config.trainer.resume_mode == "resume_path":
        checkpoint = Path(config.trainer.resume_from_path)
    goes_on = checkpoint is not None and run_of(checkpoint) == folder
    for name in OF_ONE_PART if goes_on else (*OF_ONE_PART, *RECORD_FILES):
        if (folder / name).exists():
            (folder / name).rename(_aside(folder / name))
    if checkpoint is not None:
        if goes_on and latest_checkpoint(folder) != checkpoint:  # the run goes back to it
            write_text(checkpoint.with_name(MARK), str(step_of(checkpoint)), force=True)
        validated = was_validated(checkpoint)
        for name in RECORD_FILES:
            records = run_of(checkpoint) / name
            continue_records(records, folder / name, step_of(checkpoint), validated)
        add_last_step(checkpoint, folder / "metrics.jsonl")
    OmegaConf.save(config, folder / "config.yaml", resolve=True)
    versions = {}
    for name in PACKAGES:
        versions[name] = next((found.version for found in distributions(name=name)), None)
    (folder / "versions.json").write_text(json.dumps(versions, indent=2))
    if not goes_on:
        note_model(folder, plan.engine.model)
    (folder / "preset.json").write_text(json.dumps(plan.output.preset, indent=2))


def continue_records(source: Path, path: Path, step: int, validated: bool) -> None:
    """Write the lines up to a step, without those of its validation where that did not end: it is
    played again. Undone ones of the same file are kept aside.
    """
    kept = []
    undone = []
    for line in read_lines(source):
        ended = validated or line.get("mode") != "val" or line["step"] < step
        if line["step"] <= step and ended:
            kept.append(line)
        else:
            undone.append(line)
    if undone and source == path:
        write_jsonl(_aside(path), undone, force=False)
    write_jsonl(path, kept, force=True)


def add_last_step(checkpoint: Path, path: Path) -> None:
    """Append the metrics of a checkpoint's step, if its run was killed before it wrote them."""
    kept = read_object(checkpoint / STEP_METRICS)
    step = step_of(checkpoint)
    steps = [line["step"] for line in read_lines(path) if "timing_s/step" in line["data"]]
    if kept and step not in steps:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, "data": kept}) + "\n")


def _aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    return aside
