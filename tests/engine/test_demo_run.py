"""The demo for real, with one step and few questions: all its parts run, and a second call runs none again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from tests.engine.conftest import free_port
from utils.settings import ROOT

pytestmark = pytest.mark.engine


def run_demo(folder: Path, *arguments: str, mark: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sql_agent.demo", "--run-dir", str(folder), *arguments]
    variables = {**os.environ, "RUN_MARK": mark, "AGL_SERVER_PORT": str(free_port())}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)


def test_the_demo_runs_its_parts_and_sums_them_up(tmp_path: Path) -> None:
    folder, mark = tmp_path / "demo", uuid.uuid4().hex
    small = ("trainer.total_training_steps=1", "trainer.val_before_train=false", "data.val_max_samples=16")
    done = run_demo(folder, "--seed", "3", "--n", "24", *small, mark=mark)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((folder / "demo.json").read_text(encoding="utf-8"))
    assert (result["n_eval"], result["steps"], result["seed"]) == (24, 1, 3)
    assert result["gain"] == pytest.approx(result["after"] - result["before"], abs=0.02)
    assert result["ci95"][0] <= result["gain"] <= result["ci95"][1]
    assert result["training"]["generated_tokens"] == result["training"]["trained_tokens"] > 0
    for side in ("before", "after"):
        assert sum(part[side]["episodes"] for part in result["by_failure"].values()) == 24
    assert "data.seed=3" in done.stderr
    assert "test.parquet" not in (folder / "train" / "config.yaml").read_text(encoding="utf-8")
    again = run_demo(folder, mark=mark)
    assert again.returncode == 0, again.stderr
    assert again.stderr.splitlines() == [f"demo: {part} is done" for part in ("before", "train", "after")]
    assert [process.pid for process in psutil.process_iter() if _started_by(process, mark)] == []


def _started_by(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get("RUN_MARK") == mark and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
