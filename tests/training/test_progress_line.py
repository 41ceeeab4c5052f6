"""What is printed of a step says when it taught nothing, and when vLLM and trainer disagree.

Keeps of docs/learning-signal.md: a step that taught nothing is said to have, on the screen too.
"""

import json
from pathlib import Path

import pytest

from training.summary import Progress
from training.watch import MISMATCH


def line(tmp_path: Path, capsys: pytest.CaptureFixture[str], data: dict[str, float]) -> str:
    progress = Progress(tmp_path)
    (tmp_path / "metrics.jsonl").write_text(json.dumps({"step": 1, "data": data}) + "\n")
    progress.look()
    return capsys.readouterr().out


def test_a_step_that_taught_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = line(tmp_path, capsys, {"books/learnable_groups": 0, "episodes/equal_reward_groups": 4})
    assert "nothing learned, weights left as they were" in shown


def test_a_step_that_taught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = line(tmp_path, capsys, {"books/learnable_groups": 3, "episodes/equal_reward_groups": 1, MISMATCH: 1e-9})
    assert "1 groups with equal reward (no gradient)" in shown
    assert "disagree" not in shown


def test_disagreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "vLLM and trainer disagree (rollout_corr/k3_kl 0.02)" in line(tmp_path, capsys, {MISMATCH: 0.02})
