"""Evaluating a run: its checkpoint is served by vLLM, which is started, used and stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest

from common.settings import ROOT
from tests.runs import Run, has_mark

pytestmark = pytest.mark.engine


@pytest.mark.nightly  # evaluation by a model that is served is run by test_second_agent.py, with its own agent
def test_a_run_means_its_latest_checkpoint_which_is_served_scored_and_stopped(
    smoke: Run, tmp_path: Path
) -> None:
    out, mark = tmp_path / "out", uuid.uuid4().hex
    command = [
        sys.executable,
        "-m",
        "evaluation.evaluate",
        "sql",
        "--model",
        str(smoke.run_dir),
        "--n",
        "24",
        "--k",
        "2",
    ]
    variables = {**os.environ, "RUN_MARK": mark}
    done = subprocess.run(
        [*command, "--out", str(out)], cwd=ROOT, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(out)
    scores = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    overall = scores["overall"]
    assert "global_step_" in scores["model"]
    assert scores["kind"] == "served"
    assert (overall["n"], overall["episodes"], overall["unscored"]) == (24, 48, {})
    assert 0 < overall["score"] < 1
    assert 0 < overall["queried"] <= 1
    assert overall["tokens"]["completion"] > 0
    assert set(overall["pass@k"]) == {"1", "2"}
    assert overall["pass^k"]["2"] <= overall["pass@k"]["1"] <= overall["pass@k"]["2"]
    assert [process for process in psutil.process_iter() if has_mark(process, mark)] == []
