"""summary.json and the lines of a run are made of its plain files, whatever state they are in."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from episodes import registry
from tests.corpora import cases_of, write_lines, write_metrics
from tests.messages import missing
from tests.training.plans import plan_of
from tests.training.rollouts import rolled_out
from training.engine.algorithm import BEFORE
from training.engine.playing import Playing
from training.engine.watchdog import DIFFER, MISMATCH
from training.report.progress import Progress
from training.report.summary import ENVIRONMENT, HIGHEST, PHASES, build_summary, curve, show
from training.start import run

ABOUT = {"device": "cpu", "model": "model", "store": "managed"}


def record(mode: str, step: int, reward: Any, cause: Any = None, tokens: int = 10) -> Any:
    return rolled_out(mode=mode, step=step, reward=reward, cause=cause, generated_tokens=tokens)


def write(tmp_path: Path, records: list[Any], steps: list[dict[str, float]]) -> None:
    (tmp_path / "episodes.jsonl").write_text("".join(record.to_json() + "\n" for record in records))
    write_metrics(tmp_path, dict(enumerate(steps, 1)))


def test_what_a_run_did_not_come_to_is_no_0(tmp_path):
    summary = build_summary(tmp_path, ABOUT, "failed", "题", started=0.0)
    assert summary["reward"]["mean"] is None
    assert summary["seconds"]["to_first_step"] is summary["seconds"]["per_step"] is None
    signal = summary["signal"]
    assert signal["sequences_per_episode"] is signal["log_prob_mismatch"] is None
    assert summary["rollouts"] == {"finished": 0, "failed": 0, "unscored": 0}


def played(tmp_path: Path) -> None:
    """A run of three steps and two validations, of which every number differs from the others."""
    trained = record("train", 1, 0.7, tokens=11)
    trained.terms = {"rule": 0.1, "judge": 0.6}
    trained.measures, trained.counters = {"accuracy": 0.5}, {"queries": 4}
    trained.stop_reason, trained.canaries = "answered", {"judged": 3, "accepted": 1}
    other = record("train", 2, 0.0, tokens=7)
    other.terms, other.counters = {"rule": 0.2, "judge": 0.0}, {"queries": 1}
    other.stop_reason = "length"
    left = record("train", 2, 0.9, "judge_failed", tokens=5)
    left.terms = {"rule": 0.9, "judge": 0.9}
    lost = record("train", 3, None, "timeout", tokens=0)
    lost.status = "failed"
    checked = [record("val", 0, 0.25), record("val", 3, 0.5), record("val", 3, 1.0)]
    checked[1].canaries = {"judged": 2, "accepted": 0}
    unscored = record("val", 3, None, "timeout")
    first = {MISMATCH: 0.5, "books/groups": 3, "books/learnable_groups": 2}
    second = {MISMATCH: 0.25, "books/groups": 2, "books/learnable_groups": 0}
    third = {"books/groups": 1, "books/learnable_groups": 1, "timing_s/testing": 0.5}
    first |= {"timing_s/gen": 1.25, "timing_s/step": 2.0, "books/weight_updates": 1}
    second |= {"timing_s/gen": 2.0, "timing_s/step": 3.0}
    third |= {"timing_s/step": 6.5}
    for step in (first, second):
        step["timing_s/update_weights"] = 0.25
    counted = {"triplets": 8, "sequences": 7, "episodes": 3}
    counted |= {"generated_tokens": 6, "trained_tokens": 6}
    counts = {f"books/{name}": count for name, count in counted.items()}
    steps = [step | counts for step in (first, second, third)]
    write(tmp_path, [trained, other, left, lost, *checked, unscored], [*steps, {"val/reward": 1.0}])
    (tmp_path / "timeline.json").write_text(json.dumps({"first_step": 112.5678}))


def test_every_number_of_a_summary_is_the_run_s(tmp_path, monkeypatch):
    """Left-out rollouts would be reported as what training reached."""
    played(tmp_path)
    monkeypatch.setattr("time.time", lambda: 161.6178)
    summary = build_summary(tmp_path, ABOUT, "done", "all well", started=100.0)
    seconds = summary.pop("seconds")
    summary["reward"]["terms"]["rule"] = round(summary["reward"]["terms"]["rule"], 9)
    assert [summary] == cases_of(__file__, "whole_summary")
    assert (seconds["total"], seconds["to_first_step"], seconds["per_step"]) == (61.62, 12.57, 3.83)
    spent = {"rollout": 3.25, "sync": 0.5, "validation": 0.5}
    assert seconds["by_phase"] == {**dict.fromkeys(PHASES, 0), **spent}


def test_each_agent_of_several_has_its_own_reward_and_validation(tmp_path):
    told = (("a", "train", 0.25), ("a", "val", 0.75), ("b", "val", 0.5))
    records = [replace(record(mode, 1, score), agent=agent) for agent, mode, score in told]
    write(tmp_path, records, [])
    agents = build_summary(tmp_path, ABOUT, "done", "", started=0.0)["agents"]
    for name, reward, validation in (("a", 0.25, 0.75), ("b", None, 0.5)):
        assert agents[name]["reward"]["mean"] == reward
        assert agents[name]["validation"]["reward"]["mean"] == validation


def test_the_curve_of_a_resumed_run_is_that_of_the_weights_it_went_on_with(tmp_path):
    """A step that was undone has no score of the new weights, and a step may have two lines."""
    reward = "episodes/reward/mean"
    undone = {"step": 4, "data": {reward: 0.9, "val-core/a": 1.0}}
    write_lines(tmp_path / "metrics.1.jsonl", [undone])
    steps = [(2, {"val-aux/a": 1.0}), (3, {reward: 0.5})]
    steps += [(3, {"val-core/a": 0.25, "val-core/b": 0.75}), (4, {reward: 0.75})]
    write_lines(tmp_path / "metrics.jsonl", [{"step": step, "data": data} for step, data in steps])
    found = [(point["step"], point["reward"], point["validation"]) for point in curve(tmp_path)]
    assert found == [(2, None, None), (3, 0.5, 0.5), (4, 0.75, None)]


def test_what_an_operator_reads_is_shown(tmp_path, capsys):
    """Who chooses a run by them reads the lines instead of the file."""
    played(tmp_path)
    notes = {"database": "x", "notes": ["may write"], HIGHEST: 1.25}
    (tmp_path / ENVIRONMENT).write_text(json.dumps(notes))
    summary = build_summary(tmp_path, ABOUT, "stopped", "judge [gone]", started=100.0)
    assert summary["environment"]["database"] == "x"
    show(summary, tmp_path)
    shown = capsys.readouterr().out
    rewards = ("0.35", "rule 0.15", "judge 0.3", "0.250 -> 0.750", "of 1.25")
    counts = ("23 written", "18 trained", "judge_failed 5", "1 of 5")
    assert not missing(shown, "may write", "judge [gone]", *rewards, *counts)
    assert "docs/runs.md#the-end-of-a-run" in shown


def test_an_interrupted_run_says_in_the_readers_language_how_to_go_on(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    write(tmp_path, [record("train", 1, 0.5, tokens=52228)], [])
    for steps, said in ((), "重新开始"), ((2, 6), "第 6 步"):
        for step in steps:
            checkpoint = tmp_path / "checkpoints" / f"global_step_{step}"
            (checkpoint / "actor").mkdir(parents=True)
            (checkpoint / "data.pt").touch()
        code = run._finish(registry.get("sql"), plan_of(tmp_path), BEFORE, 0.0)
        assert code == 130
        shown = capsys.readouterr().out
        assert not missing(shown, said, f"--run-dir {tmp_path} --resume auto", "没有更新 52228")
        assert "interrupted:" not in shown
        assert json.loads((tmp_path / "summary.json").read_text())["message"] == ""


def ends(first: list[float], last: list[float]) -> list[dict[str, float]]:
    """Steps of 8 episodes, of which those of the second list have 2 cut ones."""
    played = {"episodes/rollouts": 8.0, "timing_s/step": 1.0}
    cut = {"episodes/stop_reasons/length": 2.0}
    begin = [{"episodes/reward/mean": reward, **played} for reward in first]
    return begin + [{"episodes/reward/mean": reward, **played, **cut} for reward in last]


@pytest.mark.parametrize(
    ("first", "last", "worse"),
    [
        ([0.45, 0.65] * 5, [0.2, 0.4] * 5, True),
        ([0.45, 0.65] * 5, [0.4, 0.6] * 5, False),
        ([0.75] * 10, [0.9] * 5 + [0.1] * 5, True),  # a collapse is no noise
        ([0.5] * 10, [0.499999] * 10, False),  # a rounding
    ],
)
def test_a_run_that_gets_worse_says_so_once_and_at_its_end(tmp_path, capsys, first, last, worse):
    progress = Progress(tmp_path, 40, time.time())
    write(tmp_path, [], ends(first, [*last, *last, *last]))
    progress.look()
    assert capsys.readouterr().out.count("got worse") == worse
    write(tmp_path, [], ends(first, last))
    summary = build_summary(tmp_path, ABOUT, "completed", "", started=0.0)
    assert summary["course"]["worse"] == worse
    assert summary["course"]["reward"] == pytest.approx([sum(first) / 10, sum(last) / 10])
    assert summary["course"]["cut"] == [0.0, 0.25]
    show(summary, tmp_path)
    assert ("got worse" in capsys.readouterr().out) == worse
    write(tmp_path, [], ends(first[1:], last))  # its ends are the same steps
    assert build_summary(tmp_path, ABOUT, "completed", "", started=0.0)["course"] == {}


def add(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    with (folder / name).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def episode(step: int, **changes: Any) -> dict[str, Any]:
    record = rolled_out(step=step, reward=1.0, generated_tokens=50)
    return json.loads(record.to_json()) | changes


def test_a_judge_that_died_is_said_before_the_step_ends(tmp_path, capsys):
    progress = Progress(tmp_path, 4, time.time())
    capsys.readouterr()
    failed = episode(1, cause="judge_failed")
    add(tmp_path, "episodes.jsonl", failed, failed, episode(1, cause="step_skipped"))
    progress.look()
    assert not missing(capsys.readouterr().out, "3 of 3", "judge_failed 2", "step_skipped 1")
    add(tmp_path, "episodes.jsonl", *[episode(1)] * 7, failed)
    progress.look()
    assert capsys.readouterr().out == "", "a few are counted in the line of their step"


def test_what_was_not_a_number_is_read(tmp_path, capsys):
    """verl writes null for it: a policy that falls apart would also end the line that says so."""
    progress = Progress(tmp_path, 4, time.time())
    steps = [{MISMATCH: 1e-9, "timing_s/step": 1.0}, {MISMATCH: None, "timing_s/step": 2.0}]
    steps[1] |= {DIFFER: 1.0, "val-core/a/reward/mean@1": None, "actor/grad_norm": None}
    add(tmp_path, "metrics.jsonl", *[{"step": 1, "data": data} for data in steps])
    progress.look()
    assert not missing(capsys.readouterr().out, "disagree", "nan", "2.0 s")
    summary = build_summary(tmp_path, ABOUT, "done", "", started=0.0)
    assert summary["signal"]["log_prob_mismatch"] is None
    assert summary["seconds"]["per_step"] == 1.5
    assert curve(tmp_path) == [{"step": 1, "reward": None, "validation": None}]


def test_a_long_step_says_how_far_it_is(tmp_path, capsys, monkeypatch):
    progress = Progress(tmp_path, 4, time.time())
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


def test_a_line_is_printed_once_and_when_it_is_whole(tmp_path, capsys):
    """The run writes while this reads: half a line waits, in metrics and in episodes."""
    progress = Progress(tmp_path, 4, time.time())
    files = {"metrics.jsonl": {"step": 1, "data": {"episodes/reward/mean": 0.5}}}
    files["episodes.jsonl"] = episode(1, cause="judge_failed")
    lines = {name: json.dumps(row) + "\n" for name, row in files.items()}
    capsys.readouterr()
    for name, line in lines.items():
        (tmp_path / name).write_text(line[:20])
    progress.look()
    assert capsys.readouterr().out == ""
    for name, line in lines.items():
        (tmp_path / name).write_text(line)
    progress.look()
    progress.look()
    out = capsys.readouterr().out
    assert [out.count("step 1 of 4"), out.count("judge_failed 1")] == [1, 1]
