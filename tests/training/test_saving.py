"""A checkpoint is there whole or not at all; which ones stay, and which a run goes on from."""

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

from tests.corpora import write_metrics
from tests.messages import missing
from training.engine.checkpoints import (
    FULL_BYTES,
    MARK,
    best_step,
    checkpoints,
    find_checkpoint,
    latest_checkpoint,
    prune,
    run_of,
    saving,
    step_of,
    sweep,
)
from training.setup.plan import RunStopped

SHARDS = [f"actor/{part}_world_size_1_rank_0.pt" for part in ("model", "optim", "extra_state")]
FILES = (*SHARDS, "actor/huggingface/model.safetensors", "data.pt")
# Audit events of what changes a disk
TOUCHES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir")


def save(run: Path, step: int, content: str = "whole") -> None:
    """As verl saves: one file after the other, its own mark at the end."""
    with saving(run / "checkpoints", step) as hidden:
        for name in FILES:
            path = hidden / f"global_step_{step}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{content} {step}")
        (hidden / MARK).write_text(str(step))


def validated(run: Path, scores: dict[int, float]) -> None:
    name = "val-core/a/reward/mean@1"
    write_metrics(run, {step: {name: score} for step, score in scores.items()})


def killed_at(touch: int, work: Callable[[], Any]) -> bool:
    """Do the work in a process killed before that touch of the disk; False: it came to its end."""
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
def test_a_kill_at_any_moment_of_saving_leaves_the_old_checkpoint_or_the_new_one(tmp_path):
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
def test_a_kill_while_old_ones_are_removed(tmp_path):
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


def test_a_full_disk_is_called_one(tmp_path, monkeypatch):
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
def test_the_last_ones_stay_and_the_best_by_validation(keep, best, scores, left, tmp_path):
    validated(tmp_path, scores)
    for step in range(1, 6):
        save(tmp_path, step)
        prune(tmp_path, step, keep, best)
    assert checkpoints(tmp_path).keys() == left


def test_checkpoints_of_a_course_that_was_left_do_not_push_out_the_new_one(tmp_path):
    """Steps 40 and 60 were saved, then the run was resumed from step 20."""
    for step in (20, 40, 60, 30):
        save(tmp_path, step)
    prune(tmp_path, 30, 1, best=False)
    assert checkpoints(tmp_path).keys() == {30, 40, 60}
    assert step_of(latest_checkpoint(tmp_path) or Path()) == 30


@pytest.mark.parametrize("mark", [None, "", "x"])
def test_a_run_without_a_whole_mark_goes_on_from_its_newest_checkpoint(mark, tmp_path):
    for step in (20, 40):
        save(tmp_path, step)
    (tmp_path / "checkpoints/global_step_60/actor").mkdir(parents=True)
    (tmp_path / "checkpoints" / MARK).unlink()
    if mark is not None:
        (tmp_path / "checkpoints" / MARK).write_text(mark)
    assert step_of(latest_checkpoint(tmp_path) or Path()) == 40


def make_run(runs: Path, name: str, steps: list[int], age: float) -> Path:
    run = runs / name
    run.mkdir()
    for step in steps:
        (run / "checkpoints" / f"global_step_{step}" / "actor").mkdir(parents=True)
        mark = run / "checkpoints" / MARK
        mark.write_text(str(step))
        os.utime(mark, (age, age))
    return run


def test_latest_is_the_newest_complete_checkpoint_of_the_newest_run_that_has_one(tmp_path):
    make_run(tmp_path, "old", [20, 40], age=1)
    newer = make_run(tmp_path, "newer", [20], age=2)
    make_run(tmp_path, "newest-without", [], age=3)
    (tmp_path / "old" / "report.html").touch()  # which the old run's folder has last
    shutil.copytree(newer / "checkpoints/global_step_20", newer / "checkpoints/global_step_20_mine")
    assert [*checkpoints(newer)] == [20]
    found = find_checkpoint("latest", None, tmp_path)
    assert (run_of(found), step_of(found)) == (newer, 20)


def test_of_equal_validations_the_later_step_is_the_best(tmp_path):
    """It was trained longer; a step without a validation or a checkpoint is none."""
    validated(tmp_path, {10: 0.5, 20: 0.7, 30: 0.7, 50: 0.9})
    assert best_step(tmp_path, [10, 20, 30, 40]) == 30
    assert best_step(tmp_path, [10, 20]) == 20
    assert best_step(tmp_path, [40]) is None


def test_the_merged_model_has_the_adapter_at_its_own_scale(tmp_path):
    """peft adds alpha / rank of it: at another scale an export answers otherwise."""
    import torch
    from safetensors.torch import load_file, save_file

    from training.engine.checkpoints import split_adapter

    layer = "base_model.model.model.layers.0.mlp.down_proj"
    base = torch.eye(3, dtype=torch.bfloat16)
    down = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    up = torch.tensor([[0.5, 0.0], [0.0, 0.0], [1.0, 0.0]])
    tensors = {f"{layer}.base_layer.weight": base, f"{layer}.lora_A.default.weight": down}
    tensors[f"{layer}.lora_B.default.weight"] = up
    tensors["base_model.model.model.norm.weight"] = 3 * base[0]
    model, adapter = tmp_path / "huggingface", tmp_path / "lora_adapter"
    model.mkdir()
    adapter.mkdir()
    save_file(tensors, model / "model-00001-of-00002.safetensors")
    head = {"base_model.model.lm_head.weight": 2 * base}
    save_file(head, model / "model-00002-of-00002.safetensors")
    (model / "model.safetensors.index.json").write_text("{}")
    (tmp_path / "lora_train_meta.json").write_text('{"r": 2, "lora_alpha": 16}')
    split_adapter(tmp_path, "base/model")
    assert [path.name for path in model.iterdir()] == ["model.safetensors"]
    merged = load_file(model / "model.safetensors")
    changed = base + 8.0 * torch.tensor([[0.5, 0, 1], [0, 0, 0], [1, 0, 2.0]])
    whole = {"model.norm.weight": 3 * base[0], "lm_head.weight": 2 * base}
    whole["model.layers.0.mlp.down_proj.weight"] = changed.to(torch.bfloat16)
    assert merged.keys() == whole.keys()
    for name, tensor in whole.items():
        assert merged[name].dtype == torch.bfloat16
        assert merged[name].equal(tensor)
    config = json.loads((adapter / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["target_modules"]) == (2, 16, ["down_proj"])
    assert (config["base_model_name_or_path"], config["task_type"]) == ("base/model", "CAUSAL_LM")
    kept = load_file(adapter / "adapter_model.safetensors")
    assert kept[f"{layer}.lora_A.weight"].equal(down)
