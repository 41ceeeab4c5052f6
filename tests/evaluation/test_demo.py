"""The demo: what its numbers are made of, and that it goes on, refuses and stops as it says."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT
from evaluation import demo
from evaluation.demo_report import curve, read_result
from evaluation.failures import KINDS, by_failure, kind_of
from evaluation.results import write_results
from tests.evaluation.evaluations import config
from tests.evaluation.evaluations import record as episode_record

RAN, FAILED = {"sql": "SELECT 1", "ok": True, "rows": 1, "error": None}, {"ok": False, "error": "no such column"}
CONFIG = config(
    kind="served",
    data={"file": "d.parquet", "sha256": "0" * 64, "questions": 3},
    sampling={"temperature": 1.0, "top_p": 1.0, "max_tokens": 96},
)


def record(name: str = "x", score: float | None = 0.0, **changes: Any) -> dict[str, Any]:
    return episode_record(name, score, **{"task_type": "drug_field"} | changes)


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("right", record(score=0.9, queries=[RAN], execution_match=False)),
        ("right", record(score=1.0)),
        ("no_query", record(score=0.4)),
        ("failed_query", record(queries=[FAILED])),
        ("wrong_query", record(score=0.5, queries=[FAILED, RAN], execution_match=False)),
        ("wrong_answer", record(score=0.5, queries=[RAN], execution_match=True)),
        ("wrong_answer", record(queries=[RAN], execution_match=None)),
        ("no_answer", record(stop_reason="no_answer", queries=[RAN], execution_match=True)),
        ("unfinished", record(stop_reason="length", queries=[RAN], execution_match=False)),
        ("unfinished", record(stop_reason="max_turns")),
    ],
)
def test_an_episode_has_the_kind_the_page_defines(kind: str, found: dict[str, Any]) -> None:
    assert kind_of(found) == kind


def test_the_gains_of_all_kinds_add_up_to_the_gain_of_the_score() -> None:
    before = [record("x", 0.3), record("y", 0.0, stop_reason="no_answer"), record("z", 0.95), record("u", None)]
    after = [record("x", 1.0), record("y", 0.5), record("z", 0.0, stop_reason="length"), record("u", None)]
    found = by_failure(before, after)
    assert tuple(found) == KINDS
    assert sum(part["gain"] for part in found.values()) == pytest.approx(100 * (1.5 - 1.25) / 3, abs=0.05)
    assert found["no_query"]["before"] == {"episodes": 1, "share": 33.33, "lost": 23.33}
    assert sum(part["after"]["episodes"] for part in found.values()) == 3


def test_the_page_defines_every_kind() -> None:
    page = (ROOT / "docs" / "learning.md").read_text(encoding="utf-8")
    for kind in KINDS:
        assert f"| `{kind}` |" in page


def finished_parts(folder: Path, **changes: Any) -> Path:
    """The folder of a demo whose three parts have run."""
    plan = {"seed": 7, "model": "m", "n": None, "overrides": [], "commit": "abc", "command": "c", **changes}
    sides = {"before": [0.0, 0.2, 1.0], "after": [1.0, 0.8, 1.0]}
    folder.mkdir()
    for side, scores in sides.items():
        (folder / side).mkdir()
        write_results(folder / side, CONFIG, [record(str(number), score) for number, score in enumerate(scores)])
    train = folder / "train"
    train.mkdir()
    steps = [{"step": 0, "data": {"val-core/drug_field/reward/mean@1": 0.5}}]
    rewards = ((1, 0.4, 0.0), (2, 0.9, 3.0))
    steps += [
        {"step": step, "data": {"episodes/reward/mean": reward, "episodes/equal_reward_groups": equal}}
        for step, reward, equal in rewards
    ]
    (train / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    validation = {"first_reward": {"mean": 0.5}, "reward": {"mean": 0.8}}
    counts = dict.fromkeys(("rollouts", "generated_tokens", "trained_tokens", "weight_updates", "seconds"), 1)
    (train / "summary.json").write_text(json.dumps({"validation": validation, **counts}))
    (folder / demo.PLAN).write_text(json.dumps(plan))
    notes = [{"part": "before", "seconds": 60.0, "exit_code": 130}]
    notes += [{"part": part, "seconds": 60.0, "exit_code": 0} for part in ("before", "train", "after")]
    (folder / demo.PARTS).write_text("".join(json.dumps(note) + "\n" for note in notes))
    return folder


def test_finished_parts_become_numbers_and_a_picture(tmp_path: Path, capsys: Any) -> None:
    folder = finished_parts(tmp_path / "run")
    assert demo.main(["--run-dir", str(folder)]) == 0
    result = read_result(folder)
    assert (result["before"], result["after"], result["gain"]) == (40.0, 93.33, 53.33)
    assert result["ci95"][0] <= 53.33 <= result["ci95"][1]
    assert (result["n_eval"], result["steps"], result["seed"], result["model"]) == (3, 2, 7, "m")
    assert result["minutes"] == 4.0  # what was interrupted took time as well
    assert result["ceiling"] is None
    assert result["by_task_type"]["drug_field"]["gain"] == 53.33
    assert result["stop_reasons"] == {"before": {"answered": 3}, "after": {"answered": 3}}
    assert curve(folder / "train") == [
        {"step": 1, "reward": 0.4, "equal_reward_groups": 0},
        {"step": 2, "reward": 0.9, "equal_reward_groups": 3},
    ]
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.splitlines()[-1] == str(folder)
    written = (folder / "demo.json").stat().st_mtime_ns
    assert demo.main(["--run-dir", str(folder), "--seed", "7"]) == 0
    assert (folder / "demo.json").stat().st_mtime_ns == written


def test_the_ceiling_is_what_the_model_says(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "cold_start.json").write_text('{"ceiling": 93.5}')
    folder = finished_parts(tmp_path / "run", model=str(tmp_path / "model"))
    assert demo.main(["--run-dir", str(folder)]) == 0
    assert read_result(folder)["ceiling"] == 93.5


def test_several_demos_are_one_table_and_one_picture(tmp_path: Path, capsys: Any) -> None:
    folders = [finished_parts(tmp_path / name, seed=seed) for name, seed in (("a", 1), ("b", 2))]
    assert [demo.main(["--run-dir", str(folder)]) for folder in folders] == [0, 0]
    capsys.readouterr()
    picture = tmp_path / "seeds.png"
    command = ["--collect", *map(str, folders), "--picture", str(picture)]
    assert demo.main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| 1 | 40.0 | 93.3 | +53.3 | ")
    assert lines[3].startswith("| 2 | ")
    drawn = picture.read_bytes()
    assert demo.main(command) == 2
    assert picture.read_bytes() == drawn


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--seed", "8"], "was begun with seed 7, not 8"),
        (["--n", "24"], "was begun with n None, not 24"),
        (["data.x=1"], "was begun with overrides"),
    ],
)
def test_a_folder_is_not_continued_with_other_flags(
    tmp_path: Path, capsys: Any, arguments: list[str], expected: str
) -> None:
    folder = finished_parts(tmp_path / "run")
    assert demo.main(["--run-dir", str(folder), *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert expected in line


def test_what_is_not_a_demo_is_refused(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert demo.main(["--run-dir", str(tmp_path)]) == 2
    assert demo.main(["--collect", str(tmp_path)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "holds no demo" in first
    assert "holds no finished demo" in second
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("arguments", [["twenty"], ["--n", "1"], ["--seed", "-1"], ["--picture", "p.png"]])
def test_wrong_usage_is_one_message(arguments: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit) as stop:
        demo.main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("python -m evaluation.demo: error: ")


def test_a_failed_part_is_noted_and_run_again(tmp_path: Path) -> None:
    with pytest.raises(demo.PartError) as failed:
        demo.run_part(tmp_path, "before", lambda: ["-c", "raise SystemExit(3)"])
    assert failed.value.code == 3
    assert demo.done_parts(tmp_path) == set()
    demo.run_part(tmp_path, "before", lambda: ["-c", "pass"])
    assert demo.done_parts(tmp_path) == {"before"}
    demo.run_part(tmp_path, "before", lambda: pytest.fail("a part that is done was made again"))
    assert [note["exit_code"] for note in demo.notes(tmp_path)] == [3, 0]


def test_an_unfinished_training_is_resumed_or_put_aside(tmp_path: Path) -> None:
    plan = {"model": "m", "seed": 2, "overrides": ["data.x=1"]}
    train = tmp_path / "train"
    plain = ["train_sql_agent.py", "--ci", "--model", "m", "--run-dir", str(train), "data.seed=2", "data.x=1"]
    assert demo.training_command(train, plan) == plain
    train.mkdir()
    (train / "run.log").write_text("so far")
    assert demo.training_command(train, plan) == plain
    assert (tmp_path / "train.unfinished-1" / "run.log").read_text() == "so far"
    (train / "checkpoints" / "global_step_20" / "actor").mkdir(parents=True)
    (train / "checkpoints" / "latest_checkpointed_iteration.txt").write_text("20")
    assert demo.training_command(train, plan) == [*plain, "--resume", "latest"]


def test_ctrl_c_reaches_the_part_and_leaves_one_message(tmp_path: Path) -> None:
    """The part ends as it wants to; the demo waits for it and then says how to go on."""
    part = (
        "import pathlib,signal,sys,time\n"
        f"here=pathlib.Path({str(tmp_path)!r})\n"
        "try:\n (here/'started').touch(); time.sleep(60)\n"
        "except KeyboardInterrupt:\n time.sleep(0.3); (here/'ended').touch(); sys.exit(130)\n"
    )
    program = (
        "import sys,pathlib\nfrom sql_agent import demo\n"
        f"demo.demo=lambda *_: demo.run_part(pathlib.Path({str(tmp_path)!r}),'train',lambda:['-c',{part!r}])\n"
        "sys.exit(demo.main([]))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 30
    while not (tmp_path / "started").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert (tmp_path / "ended").exists()
    assert "Traceback" not in errors
    assert errors.splitlines()[-1] == "demo: interrupted; --run-dir with the same folder goes on from here"
