"""On a CPU a large model gets all cores and a small one stays on one; a run's processes import the
user's modules.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.settings import ROOT
from training.setup.device import LARGE_BYTES, environment


def folder(path: Path, size: int) -> str:
    with (path / "model.safetensors").open("wb") as file:
        file.truncate(size)
    return str(path)


def test_a_large_model_computes_on_all_cores_and_a_small_one_on_one(tmp_path: Path) -> None:
    assert environment("cpu", folder(tmp_path, LARGE_BYTES))["OMP_NUM_THREADS"] == "1"
    model, cores = folder(tmp_path, LARGE_BYTES + 1), len(os.sched_getaffinity(0))
    assert environment("cpu", model)["OMP_NUM_THREADS"] == str(cores)
    assert environment("cpu", model, processes=2 * cores)["OMP_NUM_THREADS"] == "1"


def test_a_run_s_processes_find_the_user_s_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/own/agents", "/own/tools"]))
    path = environment("cpu")["PYTHONPATH"].split(os.pathsep)
    assert path[:3] == [str(ROOT), "/own/agents", "/own/tools"]
