"""A checkpoint is there whole or not at all, whenever the process that saves or removes it is
killed; which ones stay.

Keeps of docs/runs.md.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.messages import missing
from training.engine.checkpoints import (
    FULL_BYTES,
    MARK,
    checkpoints,
    latest_checkpoint,
    prune,
    saving,
    step_of,
    sweep,
)
from training.setup.plan import RunStopped

FILES = (
    *(
        "actor/model_world_size_1_rank_0.pt",
        "actor/optim_world_size_1_rank_0.pt",
        "actor/huggingface/model.safetensors",
    ),
    *("actor/extra_state_world_size_1_rank_0.pt", "critic/model_world_size_1_rank_0.pt", "data.pt"),
)
TOUCHES = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
)  # audit events of what changes a disk


def save(run: Path, step: int, content: str = "whole") -> None:
    """As verl saves: one file after the other, its own mark at the end."""
    with saving(run / "checkpoints", step) as hidden:
        for name in FILES:
            path = hidden / f"global_step_{step}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{content} {step}")
        (hidden / MARK).write_text(str(step))


def validated(run: Path, scores: dict[int, float]) -> None:
    rows = [
        {"step": step, "data": {"val-core/a/reward/mean@1": score}}
        for step, score in scores.items()
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def killed_at(touch: int, work: Callable[[], Any]) -> bool:
    """Do the work in a process that is killed before it touches the disk for that time; False: it
    came to its end.
    """
    child = os.fork()
    if child == 0:
        touches = count()

        def kill(event: str, _: object) -> None:
            if event in TOUCHES and next(touches) == touch:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or status == 0
    return os.WIFSIGNALED(status)


def assert_whole(run: Path, contents: tuple[str, ...] = ("whole",)) -> None:
    for step, path in checkpoints(run).items():
        found = {(path / name).read_text() for name in FILES}
        assert found in [{f"{content} {step}"} for content in contents]


@pytest.mark.system
def test_a_kill_at_any_moment_of_saving_leaves_the_old_checkpoint_or_the_new_one(
    tmp_path: Path,
) -> None:
    save(tmp_path / "base", 1)
    seen = set()
    for touch in count():
        run = shutil.copytree(tmp_path / "base", tmp_path / str(touch))
        killed = killed_at(touch, lambda: save(run, 2))  # noqa: B023 (called here)
        assert_whole(run)
        latest = latest_checkpoint(run)
        assert latest is not None
        seen.add(step_of(latest))
        assert sweep(run) in ([], ["global_step_2"])
        assert not list((run / "checkpoints").glob(".global_step_*"))
        save(run, 2)
        assert checkpoints(run).keys() == {1, 2}
        if not killed:
            break
    assert touch > 2 * len(FILES)
    assert seen == {1, 2}


@pytest.mark.system
def test_a_kill_while_old_ones_are_removed(tmp_path: Path) -> None:
    for step in (1, 2, 3):
        save(tmp_path / "base", step)
    for touch in count():
        run = shutil.copytree(tmp_path / "base", tmp_path / str(touch))
        killed = killed_at(touch, lambda: prune(run, 3, 1, best=False))  # noqa: B023 (called here)
        assert_whole(run)
        assert step_of(latest_checkpoint(run) or Path()) == 3
        if not killed:
            break
    assert checkpoints(run).keys() == {3}
    assert touch > len(FILES)


def save_on_a_full_disk(run: Path) -> None:
    with saving(run / "checkpoints", 1) as hidden:
        (hidden / "global_step_1").mkdir()
        raise OSError("Ray's own lines\nthe disk is full")


def test_a_full_disk_is_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OSError, match="full"):
        save_on_a_full_disk(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=FULL_BYTES - 1))
    with pytest.raises(RunStopped) as stop:
        save_on_a_full_disk(tmp_path)
    assert not missing(str(stop.value), tmp_path / "checkpoints", "step 1", "--resume")
    assert list((tmp_path / "checkpoints").iterdir()) == []


@pytest.mark.parametrize(
    ("keep", "best", "scores", "left"),
    [
        (1, False, {2: 0.9}, {5}),
        (2, True, {1: 0.1, 2: 0.9, 3: 0.5}, {2, 4, 5}),
        (9, True, {2: 0.9}, {1, 2, 3, 4, 5}),
        (1, True, {}, {5}),
    ],
)
def test_the_last_ones_stay_and_the_best_by_validation(
    keep: int, best: bool, scores: dict[int, float], left: set[int], tmp_path: Path
) -> None:
    validated(tmp_path, scores)
    for step in range(1, 6):
        save(tmp_path, step)
        prune(tmp_path, step, keep, best)
    assert checkpoints(tmp_path).keys() == left


def test_checkpoints_of_a_course_that_was_left_do_not_push_out_the_new_one(tmp_path: Path) -> None:
    """Steps 40 and 60 were saved, then the run was resumed from step 20."""
    for step in (20, 40, 60, 30):
        save(tmp_path, step)
    prune(tmp_path, 30, 1, best=False)
    assert checkpoints(tmp_path).keys() == {30, 40, 60}
    assert step_of(latest_checkpoint(tmp_path) or Path()) == 30


@pytest.mark.parametrize("mark", [None, "x"])
def test_a_mark_that_is_torn_loses_nothing(mark: str | None, tmp_path: Path) -> None:
    for step in (20, 40):
        save(tmp_path, step)
    (tmp_path / "checkpoints/global_step_60/actor").mkdir(parents=True)
    (tmp_path / "checkpoints" / MARK).unlink()
    if mark is not None:
        (tmp_path / "checkpoints" / MARK).write_text(mark)
    assert step_of(latest_checkpoint(tmp_path) or Path()) == 40
