"""Evaluating the bundled model: vLLM is started, used and stopped; a run means its checkpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import psutil
import pytest

from common.settings import ROOT
from tests.engine.conftest import Run

pytestmark = pytest.mark.engine


def evaluate(out: Path, *flags: str, mark: str = "") -> dict[str, Any]:
    command = [sys.executable, "-m", "evaluation.evaluate", "--out", str(out), *flags]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "RUN_MARK": mark}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(out)
    return dict(json.loads((out / "scores.json").read_text(encoding="utf-8")))


def test_the_bundled_model_is_served_scored_and_stopped(tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    flags = ("--model", "sql_agent/tiny_model", "--n", "24", "--k", "2")
    scores = evaluate(tmp_path / "out", *flags, mark=mark)
    overall = scores["overall"]
    assert scores["kind"] == "served"
    assert (overall["n"], overall["episodes"], overall["unscored"]) == (24, 48, {})
    assert 0 < overall["score"] < 1
    assert 0 < overall["queried"] <= 1
    assert overall["tokens"]["completion"] > 0
    assert set(overall["pass@k"]) == {"1", "2"}
    assert overall["pass^k"]["2"] <= overall["pass@k"]["1"] <= overall["pass@k"]["2"]
    left = [process for process in psutil.process_iter() if _started_by(process, mark)]
    assert left == []


def test_a_run_means_its_latest_checkpoint(smoke: Run, tmp_path: Path) -> None:
    scores = evaluate(tmp_path / "out", "--model", str(smoke.run_dir), "--n", "4", "--temperature", "0")
    assert "global_step_" in scores["model"]
    assert scores["overall"]["episodes"] == 4


def _started_by(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get("RUN_MARK") == mark and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
