"""Trackers beside a run: what arrives there, and that one that fails or hangs is no concern of the
run.

Keeps of docs/runs.md, "Trackers". The trackers are the real ones, offline; a broken one is a
module of its name.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from common.settings import ROOT
from tests.messages import missing
from tests.training.test_keys import SECRETS
from training.report import trackers
from training.report.trackers import TRACKERS, tracked

pytestmark = pytest.mark.system
RAISES = "def init(**_): raise RuntimeError('no network')"
HANGS = "import time\ndef init(**_): time.sleep(10_000)"
FINISHES = """
from pathlib import Path
def init(log_dir, **_): global folder; folder = Path(log_dir)
def finish(): (folder / "finished").touch()
"""


def begin(run_dir: Path) -> None:
    run_dir.mkdir()
    (run_dir / "config.yaml").write_text("trainer:\n  project_name: test")


def end_step(run_dir: Path, step: int) -> None:
    """Append a step to the books, episodes first, as the trainer does; one episode of the next one,
    too.
    """
    same = {"mode": "train", "reward": 0.5, "terms": {"rule": 1.0}, "cause": None}
    same |= {"stop_reason": "answered", "turns": 2, "seconds": 1.5}
    for number, of in enumerate([step, step, step + 1]):
        said = {"question": f"第{number}问 | <b>", "answer": f"a\nof step {of}"}
        append(run_dir / "episodes.jsonl", {"step": of, **said, **same})
    data = {"episodes/reward/mean": step / 4, "actor/none": None}
    append(run_dir / "metrics.jsonl", {"step": step, "data": data})


def append(path: Path, line: Any) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("mode", ["offline", "local"])
def test_metrics_and_tables_of_episodes_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, mode: str
) -> None:
    """Those there were before, as of a resumed run, and those that come; no key is in what is
    written.
    """
    for name, value in {"SWANLAB_MODE": mode, "WANDB_MODE": "offline", **SECRETS}.items():
        monkeypatch.setenv(name, value)
    run_dir = tmp_path / "run"
    begin(run_dir)
    end_step(run_dir, 1)
    with tracked(list(TRACKERS), run_dir, 60):
        end_step(run_dir, 2)
        end_step(run_dir, 3)
    assert capsys.readouterr().out == ""
    folder = run_dir / "trackers"
    board = EventAccumulator(str(folder / "tensorboard"))
    board.Reload()
    assert [(one.step, one.value) for one in board.Scalars("episodes/reward/mean")] == [
        (1, 0.25),
        (2, 0.5),
        (3, 0.75),
    ]
    texts = [
        one.tensor_proto.string_val[0].decode() for one in board.Tensors("episodes/text_summary")
    ]
    assert [len(text.splitlines()) - 2 for text in texts] == [2, 3, 3]
    assert "第0问 \\| <b>" in texts[0]
    assert [set(re.findall(r"of step \d", text)) for text in texts] == [
        {f"of step {step}"} for step in (1, 2, 3)
    ]
    tables = [json.loads(path.read_text()) for path in folder.rglob("episodes_*.table.json")]
    assert sorted(len(table["data"]) for table in tables) == [2, 3, 3]
    first = min(tables, key=lambda table: len(table["data"]))  # their names are digests
    assert "第0问 | <b>" in first["data"][0]
    shown = [
        path.read_text() for path in (folder / "swanlab").rglob("*.json") if "echarts" in path.parts
    ]
    assert sorted(text.count("第1问") + text.count("\\u7b2c1\\u95ee") for text in shown) == [
        1,
        1,
        1,
    ]
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert [secret for secret in SECRETS.values() if secret.encode() in written] == []


def broken(folder: Path, monkeypatch: pytest.MonkeyPatch, **modules: str) -> None:
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder))


def started(run: str, run_dir: Path, **streams: Any) -> subprocess.Popen[str]:
    """A run of its own, with a process group of its own."""
    command = [sys.executable, "-c", run, str(run_dir)]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True, **streams)


def test_one_that_fails_or_hangs_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    broken(tmp_path, monkeypatch, swanlab=RAISES, wandb=HANGS)
    run_dir = tmp_path / "run"
    begin(run_dir)
    with tracked(["swanlab", "wandb"], run_dir, 1):
        end_step(run_dir, 1)
        while not (said := capsys.readouterr().out):
            time.sleep(0.1)
        assert not missing(said, "swanlab", "exit code 1"), "while the run goes on"
    assert not missing(capsys.readouterr().out, "wandb", "exit code -9")
    assert "RuntimeError: no network" in (run_dir / "trackers" / "swanlab.log").read_text()


def test_ctrl_c_ends_the_run_and_lets_a_tracker_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal sends it to the whole process group of the run."""
    broken(tmp_path, monkeypatch, swanlab=FINISHES)
    begin(tmp_path / "run")
    run = (
        "import pathlib, sys, time, training.report.trackers as t\n"
        "try:\n"
        "    with t.tracked(['swanlab'], pathlib.Path(sys.argv[1]), 60):\n"
        "        print('ready', flush=True)\n"
        "        time.sleep(120)\n"
        "except KeyboardInterrupt: print('summary')"
    )
    process = started(run, tmp_path / "run", stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=120)
    assert (tmp_path / "run" / "trackers" / "swanlab" / "finished").exists()
    assert said == "summary\n"


def test_one_that_hangs_does_not_outlive_a_killed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(tmp_path, monkeypatch, wandb=HANGS)
    begin(tmp_path / "run")
    run = (
        "import pathlib, sys, training.report.trackers as t\n"
        "with t.tracked(['wandb'], pathlib.Path(sys.argv[1]), 1): input()"
    )
    process = started(run, tmp_path / "run", stdin=subprocess.PIPE)
    while not (children := psutil.Process(process.pid).children()):
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []


def test_the_books_of_a_run_that_has_ended_are_sent_by_the_command(
    tmp_path: Path, capsys: Any
) -> None:
    assert trackers.main(["tensorboard", str(tmp_path)]) == 2
    assert not missing(capsys.readouterr().err, tmp_path, "config.yaml")
    begin(tmp_path / "run")
    end_step(tmp_path / "run", 1)
    assert trackers.main(["tensorboard", str(tmp_path / "run")]) == 0
    board = EventAccumulator(str(tmp_path / "run" / "trackers" / "tensorboard"))
    board.Reload()
    assert len(board.Scalars("episodes/reward/mean")) == 1
