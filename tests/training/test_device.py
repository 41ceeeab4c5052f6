"""Which device a run uses, and what its processes find."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.settings import ROOT
from tests.messages import missing
from training.setup import device
from training.setup.plan import ConfigError


def test_a_run_s_processes_find_the_user_s_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/own/agents", "/own/tools"]))
    path = device.environment("cpu")["PYTHONPATH"].split(os.pathsep)
    assert path[:3] == [str(ROOT), "/own/agents", "/own/tools"]


def test_a_user_without_a_name_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """`docker run --user` gives such an id; torch's compiler then ended with a KeyError."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    assert "USER" not in device.environment("cuda")
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert device.environment("cuda")["USER"] == "uid54321"


@pytest.mark.parametrize(
    ("torch", "driver", "chosen"),
    [
        ("2.13.0+cpu", True, "cpu"),  # the README's first command on a machine with a GPU
        ("2.13.0+cpu", False, "cpu"),
        ("2.11.0", True, "cuda"),
        ("2.11.0", False, "cpu"),
    ],
)
def test_auto_means_a_gpu_only_where_torch_is_built_for_it(
    torch: str, driver: bool, chosen: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if driver:
        (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(device, "version", lambda name: torch)
    assert device.choose_device("auto") == chosen


@pytest.mark.parametrize(
    ("torch", "asked", "lock"), [("2.13.0+cpu", "cuda", "gpu"), ("2.11.0", "cpu", "cpu")]
)
def test_each_lock_refuses_the_other_device(
    torch: str, asked: str, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "version", lambda name: torch)
    with pytest.raises(ConfigError) as refused:
        device.check_libraries(asked)
    assert not missing(str(refused.value), asked, torch, f"DEVICE={lock}", "./install.sh")
