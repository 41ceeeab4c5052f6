"""The lines that a run prints while it works, made of its files as they grow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.messages import missing
from training.engine.playing import Playing
from training.engine.records import RolloutRecord
from training.report.progress import NewLines, Progress


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


def test_a_long_step_says_how_far_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    progress = Progress(tmp_path, 4)
    monkeypatch.setattr("training.report.progress.SECONDS_A_LINE", 0.0)
    monkeypatch.setattr("training.engine.playing.SECONDS", 0.0)
    playing = Playing(tmp_path)
    for step in (1, 2):
        playing.begin("train", step, 3)
        playing.end()
        playing.end()
        progress.look()
        progress.look()
        assert capsys.readouterr().out.count(f"step {step}: 2 of 3") == 1
        playing.end()


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
