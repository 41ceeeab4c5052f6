"""The lines that a run prints while it works, made of its files as they grow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.messages import missing
from training.engine.records import RolloutRecord
from training.report.progress import NewLines, Progress

STEP = {"timing_s/step": 10.0, "episodes/reward/mean": 0.25}
HOSTILE = "a[bold]b[/bold]\x1b]0;title\x07\nнет\ud800" + "很" * 500


def add(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    with (folder / name).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def episode(step: int, **changes: Any) -> dict[str, Any]:
    record = RolloutRecord(
        rollout_id="r",
        group="g",
        mode="train",
        step=step,
        status="succeeded",
        reward=1.0,
        generated_tokens=50,
    )
    return json.loads(record.to_json()) | changes


def test_a_judge_that_died_is_said_before_the_step_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = Progress(tmp_path, 4)
    capsys.readouterr()
    failed = episode(1, cause="judge_failed")
    add(tmp_path, "episodes.jsonl", failed, failed, episode(1, cause="step_skipped"))
    progress.look()
    assert not missing(capsys.readouterr().out, "3 of 3", "judge_failed 2", "step_skipped 1")
    add(tmp_path, "episodes.jsonl", *[episode(1)] * 7, failed)
    progress.look()
    assert capsys.readouterr().out == "", "a few are counted in the line of their step"


def test_lines_are_read_once_and_when_they_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text('{"old": 1}\n')
    lines = NewLines(path)
    assert lines.look() == []
    with path.open("a") as file:
        file.write('{"a": 1}\n{"b"')
        file.flush()
        assert lines.look() == [{"a": 1}]
        assert lines.look() == []
        file.write(': "好"}\n')
        file.flush()
        assert lines.look() == [{"b": "好"}]
    assert NewLines(tmp_path / "none").look() == []


def test_each_event_and_step_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What an episode said is in none of them."""
    progress = Progress(tmp_path, 2)
    (tmp_path / "timeline.json").write_text('{"engine_ready": 1.0, "first_step": 2.0}')
    for step in (1, 2):
        add(tmp_path, "episodes.jsonl", *[episode(step, answer=HOSTILE)] * 20)
        add(tmp_path, "metrics.jsonl", {"step": step, "data": STEP | {"episodes/unscored": 1}})
        progress.look()
    shown = capsys.readouterr().out
    assert shown.count("engine ready") == shown.count("first step begins") == 1
    first, second = (line for line in shown.splitlines() if "] step " in line)
    assert not missing(first, "step 1 of 2", "reward 0.250", "1 left out", "left")
    assert not missing(second, "step 2 of 2", "reward 0.250")
    assert "about" not in second
    assert "\x1b" not in shown
