"""Checkpoints of runs: where they are, which is the latest, which run a resumed one continues.

verl writes `checkpoints/global_step_N/actor` (shards, optimizer, random state, and a Hugging Face folder in
`actor/huggingface`) and then, last, `latest_checkpointed_iteration.txt`: a step without that mark is not complete.
"""

from __future__ import annotations

from pathlib import Path

from training.plan import ConfigError

MARK = "latest_checkpointed_iteration.txt"
PREFIX = "global_step_"


def find_checkpoint(resume: str, run_dir: Path | None, runs_dir: Path) -> Path:
    """The `global_step_N` folder to resume from.

    `latest` means the newest complete checkpoint of `run_dir`, or of all runs in `runs_dir` where no run is named.

    Raises:
        ConfigError: there is none.
    """
    if resume != "latest":
        return _checked(Path(resume).resolve())
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


def _checked(path: Path) -> Path:
    if not (path.name.startswith(PREFIX) and path.name.removeprefix(PREFIX).isdigit() and (path / "actor").is_dir()):
        raise ConfigError(f"--resume {path}: not a checkpoint; expected a folder .../checkpoints/global_step_N")
    return path
