"""What a run shows while it works: lines without a terminal, a view with one; from its files, as
they grow.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from common.settings import ROOT
from episodes.outcomes import UNSCORED
from tests.terminals import in_a_terminal
from training.setup.plan import Plan
from training.watch import progress as module
from training.watch.events import IDLE, MISMATCH
from training.watch.live_view import sparkline
from training.watch.progress import (
    BY_CLOCK,
    NewLines,
    Progress,
    in_flight,
    planned_steps,
    wants_view,
)
from training.watch.records import RolloutRecord
from training.watch.seen import duration

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


def progress_of(folder: Path, steps: int = 4, **plan: Any) -> Progress:
    return Progress(Plan(folder, "cpu", "m", 3, "", 1.0, 96, 60.0, **plan), steps)


def line(folder: Path, capsys: pytest.CaptureFixture[str], data: dict[str, float]) -> str:
    progress = progress_of(folder)
    add(folder, "metrics.jsonl", {"step": 1, "data": data})
    progress.look()
    return capsys.readouterr().out


def test_a_step_that_taught_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = line(tmp_path, capsys, {"books/learnable_groups": 0, "episodes/equal_reward_groups": 4})
    assert "nothing learned, weights left as they were" in shown


def test_a_step_that_taught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = line(
        tmp_path,
        capsys,
        {
            "books/episodes": 16,
            "books/trained_tokens": 512,
            "books/learnable_groups": 3,
            "episodes/equal_reward_groups": 1,
            MISMATCH: 1e-9,
        },
    )
    assert "step 1 of 4: 16 episodes, 512 tokens trained, groups with equal reward (no g" in shown
    assert "disagree" not in shown


def test_disagreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "vLLM and trainer disagree (rollout_corr/k3_kl 0.02)" in line(
        tmp_path, capsys, {MISMATCH: 0.02}
    )


def test_what_is_left_is_as_long_as_the_steps_were(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(time=lambda: now)
    monkeypatch.setattr(module, "time", clock)
    now = 1000.0
    progress = progress_of(tmp_path, 5)
    (tmp_path / "timeline.json").write_text('{"engine_ready": 1040.0, "first_step": 1050.0}')
    now = 1060.0
    progress.look()
    assert progress.seen.left is None
    assert "left" not in capsys.readouterr().out
    add(
        tmp_path,
        "metrics.jsonl",
        {"step": 0, "data": {"val-core/a/reward": 0.5, "val-core/b/reward": 1.0}},
    )
    add(tmp_path, "metrics.jsonl", {"step": 1, "data": STEP})
    now = 1070.0
    progress.look()
    assert progress.seen.left == pytest.approx(4 * 20)
    shown = capsys.readouterr().out
    assert "step 0 of 5: validation reward 0.750\n" in shown
    assert "step 1 of 5: reward 0.250, 10.0 s, about 1:20 left\n" in shown
    now = 1075.0
    progress.look()
    assert (progress.seen.left, progress.seen.seconds) == (pytest.approx(75), 75)
    now = 9000.0
    progress.look()
    assert progress.seen.left == 0  # late, and not negative
    add(tmp_path, "metrics.jsonl", {"step": 5, "data": STEP})
    progress.look()
    assert "left" not in capsys.readouterr().out


def test_an_event_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    progress = progress_of(tmp_path)
    (tmp_path / "timeline.json").write_text('{"engine_ready": 1.0}')
    progress.look()
    (tmp_path / "timeline.json").write_text('{"engine_ready": 1.0, "first_step": 2.0}')
    progress.look()
    progress.look()
    told = capsys.readouterr().out
    assert (told.count("engine ready"), told.count("first step begins")) == (1, 1)


def test_numbers_are_those_of_the_files(tmp_path: Path) -> None:
    progress = progress_of(tmp_path)
    add(
        tmp_path,
        "episodes.jsonl",
        episode(1),
        episode(1, cause="judge_failed"),
        episode(0, mode="val", cause="x"),
    )
    add(tmp_path, "metrics.jsonl", {"step": 1, "data": STEP | {IDLE: 0.4}})
    progress.look({"waiting": 3})
    seen = progress.seen
    assert (seen.step, seen.rewards, seen.tokens_per_second, seen.idle) == (1, [0.25], 10.0, 0.4)
    assert (dict(seen.dropped), seen.in_flight) == ({"judge_failed": 1}, {"waiting": 3})
    assert seen.last["mode"] == "val"


def test_a_judge_that_died_is_said_before_the_step_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    progress = progress_of(tmp_path)
    lost = [
        episode(1, cause="judge_failed"),
        episode(1, cause="judge_failed"),
        episode(1, cause="step_skipped"),
    ]
    add(tmp_path, "episodes.jsonl", *lost)
    progress.look()
    assert (
        "3 of 3 episodes are left out: judge_failed 2, step_skipped 1\n" in capsys.readouterr().out
    )
    add(
        tmp_path,
        "episodes.jsonl",
        *[episode(1)] * 7,
        *lost,
        episode(0, mode="val", cause="judge_failed"),
    )
    progress.look()
    assert capsys.readouterr().out == "", "a few are counted in the view alone"


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


def config_of(folder: Path, rows: int, **trainer: Any) -> DictConfig:
    (folder / "train.jsonl").write_text("{}\n" * rows)
    data = {
        "train_files": str(folder / "train.jsonl"),
        "train_max_samples": -1,
        "train_batch_size": 16,
        "seed": 42,
    }
    return OmegaConf.create(
        {"data": data, "trainer": {"total_epochs": 2, "total_training_steps": None} | trainer}
    )


@pytest.mark.parametrize(
    ("rows", "told", "steps"), [(40, None, 4), (40, 3, 3), (40, 9, 4), (16, None, 2)]
)
def test_planned_steps_are_verls(rows: int, told: int | None, steps: int, tmp_path: Path) -> None:
    assert planned_steps(config_of(tmp_path, rows, total_training_steps=told)) == steps


def test_several_files_and_a_limit_of_rows(tmp_path: Path) -> None:
    config = config_of(tmp_path, 20)
    config.data.train_files = [config.data.train_files] * 5
    assert planned_steps(config) == 12
    config.data.train_max_samples = 32
    assert planned_steps(config) == 4


def test_several_agents_take_as_many_steps_as_they_are_drawn_for(tmp_path: Path) -> None:
    """Ten rows with a quarter of the weight make an epoch of 40."""
    config = config_of(tmp_path, 20)
    rows = [{"agent": "sql", "weight": 3}] * 10 + [{"agent": "diagnosis", "weight": 1}] * 10
    Path(config.data.train_files).write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert planned_steps(config) == 4


class Store:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def query_rollouts(self, status_in: list[str], limit: int) -> Any:
        if self.error:
            raise self.error
        return SimpleNamespace(total={"queuing": 5, "preparing": 2, "running": 3}[status_in[0]])


def test_rollouts_in_flight_are_counted_by_state() -> None:
    store: Any = Store()
    assert asyncio.run(in_flight(store)) == {"waiting": 5, "begun": 2, "playing": 3}
    away: Any = Store(TimeoutError())
    assert asyncio.run(in_flight(away)) == {}


def test_there_is_a_view_only_on_a_terminal_and_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = Plan(Path("x"), "cpu", "m", 3, "", 1.0, 96, 60.0)
    assert not wants_view(plan)
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert wants_view(plan)
    for changes in ({"live": False}, {"debug": True}):
        assert not wants_view(Plan(Path("x"), "cpu", "m", 3, "", 1.0, 96, 60.0, **changes))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    assert not wants_view(plan)


@pytest.mark.parametrize(
    ("seconds", "shown"), [(None, "-"), (0, "0:00"), (65, "1:05"), (7265, "2:01:05")]
)
def test_durations(seconds: float | None, shown: str) -> None:
    assert duration(seconds) == shown


def test_the_sparkline() -> None:
    assert sparkline([0.0, 0.5, 1.0]) == "▁▅█"
    assert sparkline([2.0, 2.0]) == "▅▅"
    assert len(sparkline([*range(1000)])) == 40


# A run of two steps, as its files grow; `live` as training decides it.
RUN = """
import sys
from pathlib import Path
from tests.training.test_progress import HOSTILE, STEP, add, episode, progress_of
folder = Path(sys.argv[1])
with progress_of(folder, 2, live="--no-live" not in sys.argv) as progress:
    (folder / "timeline.json").write_text('{"engine_ready": 1.0, "first_step": 2.0}')
    for step in (1, 2):
        progress.look({"waiting": 7, "begun": 1, "playing": 12})
        add(folder, "episodes.jsonl", episode(step, answer=HOSTILE), episode(step, cause="too_long"))
        add(folder, "metrics.jsonl", {"step": step, "data": STEP | {"policy/idle_share": 0.4}})
    add(folder, "episodes.jsonl", episode(2, question="为什么？", answer=HOSTILE))
    progress.look({"waiting": 0, "begun": 0, "playing": 0})
    print("printed beside it")
print("after it")
"""


def in_a_run_s_terminal(folder: Path, *flags: str) -> str:
    """What a terminal of 100 x 30 is sent."""
    return in_a_terminal(RUN, str(folder), *flags, TERM="xterm", COLUMNS="100", LINES="30")


def test_on_a_terminal_there_is_a_view_below_the_lines(tmp_path: Path) -> None:
    shown = in_a_run_s_terminal(tmp_path)
    for text in (
        "7 waiting, 1 begun, 12 playing",
        "so far, first step begins",
        "2 of 2",
        "0.250  ▅▅",
        "too_long 2",
        "10 tokens/s in the last step, nothing to do for 40% of the time",
        "为什么？",
        "a[bold]b[/bold]",
        "] step 1 of 2: reward 0.250",
        "printed beside it",
        "after it",
    ):
        assert text in shown, text
    assert "\x1b]0;title" not in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1, (
        "the cursor is hidden once, and shown again"
    )


def test_without_the_view_a_terminal_is_sent_lines(tmp_path: Path) -> None:
    shown = in_a_run_s_terminal(tmp_path, "--no-live")
    assert "] step 2 of 2: reward 0.250, 10.0 s" in shown
    assert "\x1b" not in shown
    assert "waiting" not in shown


def test_without_a_terminal_there_are_lines(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split("] ", 1)[-1] for line in done.stdout.splitlines()]
    assert lines[:3] == [
        "starting Ray, verl and vLLM",
        "engine ready (Ray, verl, vLLM, proxy)",
        "first step begins",
    ]
    assert "step 2 of 2: reward 0.250, 10.0 s" in lines
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_deterministic_run_says_once_that_a_clock_ended_an_episode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], deterministic: bool
) -> None:
    progress = progress_of(tmp_path, deterministic=deterministic)
    add(tmp_path, "episodes.jsonl", *[episode(1)] * 20, episode(1, cause="judge_failed"))
    progress.look()
    assert "deterministic" not in capsys.readouterr().out, "a judge that failed has no clock"
    for _ in range(2):
        late = episode(1, cause="machine_too_slow")
        add(tmp_path, "episodes.jsonl", *[episode(1)] * 20, late)
        progress.look()
    said = capsys.readouterr().out
    wanted = "no longer deterministic: a time limit ended 1 episodes (machine_too_slow 1)"
    assert said.count(wanted) == int(deterministic)


def test_the_causes_by_a_clock_are_causes() -> None:
    assert set(UNSCORED) >= BY_CLOCK
