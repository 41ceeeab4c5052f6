"""The demo: which commands it runs, what its numbers are made of, and what it refuses."""

import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.published import read_result
from common.settings import ROOT
from evaluation import demo
from evaluation.report.demo import show
from evaluation.report.facts import comparisons, tally_of
from evaluation.run_folder import DEMO, open_folders
from tests.corpora import write_lines
from tests.evaluation.evaluations import evaluation, record
from tests.messages import missing


def write_training(folder: Path) -> None:
    """What a training run leaves behind, as far as a demo reads it."""
    folder.mkdir()
    write_lines(folder / "metrics.jsonl", [{"step": step, "data": {}} for step in range(3)])
    validation = {"first_reward": {"mean": 0.5}, "reward": {"mean": 0.8}}
    (folder / "summary.json").write_text(json.dumps({"validation": validation}))


@pytest.fixture
def commands(monkeypatch):
    """The parts' commands; instead of running, each leaves behind what it would have written."""
    seen: list[list[str]] = []
    scores = {"published": [0.0, 0.0, 0.3], "before": [0.0, 0.2, 1.0], "after": [1.0, 0.8, 1.0]}
    flags = {"train": "--run-dir", "trained": "--to"}

    def run_part(name: str, parts: Sequence[str], command: Sequence[str]) -> None:
        assert name in parts
        seen.append(list(command))
        folder = Path(command[list(command).index(flags.get(name, "--out")) + 1])
        if name == "train":
            write_training(folder)
        elif name in ("warm", "trained"):
            folder.mkdir()
        else:
            told = zip("012", scores[name], ("seen", "unseen", "seen"), strict=True)
            evaluation(folder, [record(task, score, wording=word) for task, score, word in told])

    monkeypatch.setattr(demo, "run_part", run_part)
    return seen


def test_a_demo_is_three_commands_that_become_numbers_and_a_report(
    tmp_path, commands, monkeypatch, capsys
):
    folder = tmp_path / "run"
    model = "hub/name"
    flags = ["--seed", "7", "--n", "24", "--model", model, "data.x=1"]
    assert demo.main(["sql", "--run-dir", str(folder), *flags]) == 0
    evaluate = ["-m", "evaluation.evaluate", "sql", "--n", "24", "--model"]
    train = ["train_sql_agent.py", "--ci", "--model", model, "--run-dir", f"{folder}/train"]
    assert commands == [
        [*evaluate, model, "--out", f"{folder}/before"],
        [*train, "data.seed=7", "trainer.total_training_steps=40", "data.x=1"],
        [*evaluate, f"{folder}/train", "--out", f"{folder}/after"],
    ]
    result = read_result(folder)
    assert (result["agent"], result["headline"]) == ("sql", "score")
    assert (result["before"], result["gain"]) == (40.0, pytest.approx(160 / 3))
    assert result["ci95"][0] <= result["gain"] <= result["ci95"][1]
    assert (result["n_eval"], result["steps"], result["seed"]) == (3, 2, 7)
    for grouping, group in (("by_task_type", "drug_field"), ("by_difficulty", "easy")):
        assert result[grouping][group]["gain"] == result["gain"]
    sides = {name: (part["before"], part["after"]) for name, part in result["by_wording"].items()}
    assert sides == {"seen": (50.0, 100.0), "unseen": (20.0, 80.0)}
    assert result["stop_reasons"] == {"before": {"answered": 3}, "after": {"answered": 3}}
    assert result["validation"] == {"before": 0.5, "after": 0.8}
    assert "too few" in result["verdict"] or "fewer" in result["verdict"]
    assert "drug_field" in (folder / "report.html").read_text()
    assert capsys.readouterr().out.splitlines()[-1] == str(folder)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    show(result)
    assert "已作答 3" in capsys.readouterr().out


def test_a_real_model_is_warmed_up_once_and_its_best_checkpoint_exported(
    tmp_path, commands, monkeypatch, capsys
):
    folder = tmp_path / "run"
    flags = ["sql", "--run-dir", str(folder), "--model", "hub/name", "--warm-up", "48"]
    flags.append("trainer.total_training_steps=2")
    play = demo.run_part

    def interrupted(name: str, parts: Sequence[str], command: Sequence[str]) -> None:
        if name == "before":
            raise KeyboardInterrupt
        play(name, parts, command)

    monkeypatch.setattr(demo, "run_part", interrupted)
    assert demo.main(flags) == 130
    assert not missing(capsys.readouterr().err, "minutes", "GB of memory", "GB of disk", folder)
    shutil.rmtree(folder / "published")  # which the test's evaluation does not find finished
    monkeypatch.setattr(demo, "run_part", play)
    assert demo.main(flags) == 0
    assert commands.pop(2) == commands[0]  # it is played on
    shown = [shlex.join(command).replace(str(folder), "RUN") for command in commands]
    evaluate = "-m evaluation.evaluate sql --model"
    assert shown[0] == f"{evaluate} hub/name --out RUN/published"
    learn = "-m training.cold_start sql --base hub/name --out RUN/warm --demonstrations 48"
    assert shown[1].startswith(f"{learn} --epochs 4 "), "as many steps as with 192"
    assert shown[2] == f"{evaluate} RUN/warm --out RUN/before"
    assert shown[3].startswith("train_sql_agent.py --ci --model RUN/warm --run-dir RUN/train")
    assert shown[3].endswith(" trainer.total_training_steps=2")
    assert shown[4] == "-m training.export RUN/train --step best --to RUN/trained"
    assert shown[5] == f"{evaluate} RUN/trained --out RUN/after"
    result = read_result(folder)
    warmed = result["warm_up"]
    assert (warmed["before"], warmed["after"], result["demonstrations"]) == (10.0, 40.0, 48)
    assert {*result["minutes_by_part"]} == {*DEMO, "warm", "trained"}
    assert not missing(capsys.readouterr().out, 10.0, "warm-up", "+30.0", "+53.3")
    sides = comparisons([tally_of(run) for run in open_folders([folder])])
    assert [(side.base, side.run) for side in sides] == [(0, 1), (1, 3)]


def test_an_interrupted_demo_goes_on(tmp_path, commands, monkeypatch, capsys):
    folder = tmp_path / "run"
    flags = ["sql", "--run-dir", str(folder), "--model", "hub/name"]
    play = demo.run_part

    def interrupted(name: str, parts: Sequence[str], command: Sequence[str]) -> None:
        if name == "train":
            (folder / "train").mkdir()
            raise KeyboardInterrupt
        play(name, parts, command)

    def resumed(name: str, parts: Sequence[str], command: Sequence[str]) -> None:
        if name == "train":
            assert command[-2:] == ["--resume", "auto"]
            (folder / "train").rmdir()  # as it was left
        if name != "before":
            play(name, parts, command)

    monkeypatch.setattr(demo, "run_part", interrupted)
    assert demo.main(flags) == 130
    assert not missing(capsys.readouterr().err, folder)
    monkeypatch.setattr(demo, "run_part", resumed)
    assert demo.main([*flags, "--seed", "2"]) == 2
    assert not missing(capsys.readouterr().err, "'seed': 1", folder)
    assert demo.main(flags) == 0
    assert read_result(folder)["gain"] == pytest.approx(160 / 3)
    (folder / "report.html").unlink()  # as a kill at the end leaves it
    monkeypatch.setattr(demo, "run_part", lambda *_: None)
    assert demo.main(flags) == 0
    assert (folder / "report.html").is_file()


@pytest.mark.system
@pytest.mark.parametrize(("code", "ended"), [(3, 1), (2, 2), (130, 130)])
def test_a_failed_part_ends_the_demo(code, ended, monkeypatch, capfd):
    command = ["-c", f"raise SystemExit({code})"]
    monkeypatch.setattr(demo, "demo", lambda *_: demo.run_part("before", ["before"], command))
    assert demo.main(["sql"]) == ended
    errors = capfd.readouterr().err
    assert f"{demo.python_here()} -c 'raise SystemExit({code})'" in errors
    assert f"before ended with exit code {code}" in errors


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_kill_reach_the_part_and_leave_one_message(tmp_path, number):
    """The part ends as it wants to; the demo waits for it."""
    part = (
        "import pathlib,signal,sys,time\n"
        f"here=pathlib.Path({str(tmp_path)!r})\n"
        "try:\n (here/'started').touch(); time.sleep(60)\n"
        "except KeyboardInterrupt:\n time.sleep(0.3); (here/'ended').touch(); sys.exit(130)\n"
    )
    program = (
        "import sys\nfrom evaluation import demo\n"
        f"demo.demo=lambda *_: demo.run_part('train',['train'],['-c',{part!r}])\n"
        "sys.exit(demo.main(['sql']))\n"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not (tmp_path / "started").exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(number)
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert (tmp_path / "ended").exists()
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("demo: interrupted")
