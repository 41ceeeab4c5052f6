"""On a CPU a large model gets all cores, and a small one stays on one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.settings import ROOT
from training.setup import device
from training.setup.device import LARGE_BYTES, environment


def folder(path: Path, size: int) -> str:
    with (path / "model.safetensors").open("wb") as file:
        file.truncate(size)
    return str(path)


def test_a_small_model_computes_on_one_core(tmp_path: Path) -> None:
    assert environment("cpu", folder(tmp_path, LARGE_BYTES))["OMP_NUM_THREADS"] == "1"
    assert environment("cpu")["OMP_NUM_THREADS"] == "1"


def test_a_large_model_computes_on_all_cores_and_waits_asleep(tmp_path: Path) -> None:
    model = folder(tmp_path, LARGE_BYTES + 1)
    cores = len(os.sched_getaffinity(0))
    assert environment("cpu", model)["OMP_NUM_THREADS"] == str(cores)
    assert environment("cpu", model)["OMP_WAIT_POLICY"] == "PASSIVE"
    assert environment("cpu", model, processes=cores)["OMP_NUM_THREADS"] == "1"
    assert environment("cpu", model, processes=2 * cores)["OMP_NUM_THREADS"] == "1"


def test_a_run_s_processes_find_the_user_s_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/own/agents", "/own/tools"]))
    path = environment("cpu")["PYTHONPATH"].split(os.pathsep)
    assert path[:3] == [str(ROOT), "/own/agents", "/own/tools"]


@pytest.mark.parametrize(
    ("flags", "has"), [("avx2 avx512f", False), ("avx512f avx512_bf16", True), ("amx_bf16", True)]
)
def test_bfloat16_is_asked_of_the_processor(
    flags: str, has: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor : 0\nflags : {flags}\n")
    monkeypatch.setattr(device, "Path", lambda _: tmp_path / "cpuinfo")
    assert device.has_bfloat16() is has
