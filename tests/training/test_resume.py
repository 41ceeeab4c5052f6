"""What a resumed run checks before anything is loaded, and what its books go on with."""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from common.files import FileError
from common.jsonl import read_object
from common.settings import ROOT
from sql_agent.agent import AGENT
from tests.corpora import cases_of, write_lines
from tests.messages import missing
from tests.training.plans import plan_of
from training.engine.checkpoints import MARK, STEP_METRICS, find_checkpoint
from training.engine.resumable import check_resumable, differences, note_model
from training.report.summary import read_lines
from training.setup.plan import ConfigError
from training.setup.reading import PARSER, SWITCHES
from training.start.check import checkpoints_to_come
from training.start.make_plan import continued
from training.start.run import run
from training.start.run_folder import LOCK, held, holds_something, prepare_run_dir

TINY = str(ROOT / "sql_agent" / "tiny_model")
SHARDS = ("model", "optim", "extra_state")


def config_of(
    agent: str = "sql", rank: int = 0, devices: int = 1, estimator: str = "grpo", **trainer: Any
) -> DictConfig:
    told = {"project_name": f"{agent}_agent", "n_gpus_per_node": devices, "nnodes": 1}
    told |= {"save_freq": 20, "resume_mode": "disable", "resume_from_path": None, **trainer}
    model = {"model": {"lora_rank": rank, "path": TINY}}
    algorithm = {"adv_estimator": estimator}
    return OmegaConf.create({"trainer": told, "algorithm": algorithm, "actor_rollout_ref": model})


def make_checkpoint(run: Path, step: int, saved_by: DictConfig) -> Path:
    path = run / f"checkpoints/global_step_{step}"
    devices = saved_by.trainer.n_gpus_per_node
    (path / "actor").mkdir(parents=True)
    for kind in SHARDS:
        for rank in range(devices):
            (path / "actor" / f"{kind}_world_size_{devices}_rank_{rank}.pt").touch()
    (path / "data.pt").touch()
    OmegaConf.save(saved_by, run / "config.yaml")
    return path


@pytest.mark.parametrize("given", [{}, {"devices": 2}, {"rank": 8}])
def test_the_same_run_is_resumed(given, tmp_path):
    check_resumable(make_checkpoint(tmp_path, 2, config_of(**given)), config_of(**given))


@pytest.mark.parametrize(("theirs", "ours", "named"), cases_of(__file__, "other_runs"))
def test_another_run_is_not(theirs, ours, named, tmp_path):
    checkpoint = make_checkpoint(tmp_path, 2, config_of(**theirs))
    with pytest.raises(ConfigError) as refused:
        check_resumable(checkpoint, config_of(**ours))
    assert not missing(str(refused.value), *named, "--model", "huggingface")


def test_another_model_is_refused_wherever_it_stands(tmp_path):
    """verl would go on with the checkpoint's weights, or fail a minute later at their shapes."""
    checkpoint = make_checkpoint(tmp_path, 2, config_of())
    check_resumable(checkpoint, config_of())  # a run of an earlier version noted no model
    note_model(tmp_path, TINY)
    moved = Path(shutil.copytree(TINY, tmp_path / "moved"))
    config = config_of()
    config.actor_rollout_ref.model.path = str(moved)
    check_resumable(checkpoint, config)
    weights = moved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    with pytest.raises(ConfigError) as refused:
        check_resumable(checkpoint, config)
    assert not missing(str(refused.value), TINY, moved, "--model")


def test_what_a_resumed_run_is_given_otherwise_is_said(tmp_path):
    rate = {"actor_rollout_ref": {"actor": {"optim": {"lr": 3e-4}}}}
    saved_by = OmegaConf.merge(config_of(), rate)
    of_the_model = OmegaConf.from_dotlist([f"{PARSER}=hermes", f"{SWITCHES}=off"])  # read later
    checkpoint = make_checkpoint(tmp_path, 2, OmegaConf.merge(saved_by, of_the_model))
    (tmp_path / "data").mkdir()
    (tmp_path / "data/train.jsonl").write_text('{"id": "a"}\n{"id": "b"}\n')
    assert differences(checkpoint, saved_by, [{"id": "a"}, {"id": "b"}]) == []
    rate["actor_rollout_ref"]["actor"]["optim"]["lr"] = 1e-5
    rate["actor_rollout_ref"]["model"] = {"lora_alpha": 64}
    otherwise = {"data": {"train_batch_size": 8, "train_files": "elsewhere/train.jsonl"}}
    now = OmegaConf.merge(config_of(estimator="rloo"), rate, otherwise)
    said = differences(checkpoint, now, [{"id": "b"}])
    assert not missing(said[0], "optim.lr", "0.0003", "1e-05")
    assert said[1:4] == [
        "actor_rollout_ref.model.lora_alpha was None, now 64",
        "algorithm.adv_estimator was grpo, now rloo",
        "data.train_batch_size was None, now 8",
    ]
    assert not missing(said[4], "1 instead of 2")
    assert len(said) == 5, "folders are others in each run"


def test_a_run_that_played_nothing_begins_again_in_its_folder(tmp_path):
    """A command that was stopped while its engine was loading is typed again as it was."""
    assert not holds_something(tmp_path / "new")
    for name in ("config.yaml", "run.log", "summary.json", "episodes.jsonl"):
        (tmp_path / name).touch()
    assert holds_something(tmp_path), "a user's own folder may have such names"
    (tmp_path / LOCK).touch()
    assert not holds_something(tmp_path)
    (tmp_path / "episodes.jsonl").write_text("{}\n")
    assert holds_something(tmp_path)


@pytest.mark.parametrize("lost", ["data.pt", "actor/optim_world_size_2_rank_1.pt"])
def test_a_checkpoint_that_lacks_a_file_is_not_loaded(lost, tmp_path):
    checkpoint = make_checkpoint(tmp_path, 2, config_of(devices=2))
    (checkpoint / lost).unlink()
    with pytest.raises(ConfigError, match=lost):
        check_resumable(checkpoint, config_of(devices=2))


def write_books(run: Path, steps: int) -> None:
    for name in ("metrics.jsonl", "episodes.jsonl"):
        write_lines(run / name, [{"step": step, "data": {"a": 0.1}} for step in range(steps)])


def prepare(run: Path, checkpoint: Path) -> None:
    resumed = config_of(resume_mode="resume_path", resume_from_path=str(checkpoint))
    prepare_run_dir(plan_of(run, model=TINY), resumed)


def steps_in(path: Path) -> list[int]:
    return [row["step"] for row in read_lines(path)]


def test_the_books_go_on_where_the_checkpoint_was_made(tmp_path, capsys):
    checkpoint = make_checkpoint(tmp_path, 2, config_of())
    write_books(tmp_path, 5)
    with (tmp_path / "episodes.jsonl").open("a") as file:
        file.write('{"step": 5, "torn')
    (tmp_path / "summary.json").write_text("{}")
    (tmp_path / "checkpoints/.global_step_4.x.tmp").mkdir()
    for part in (1, 2):
        prepare(tmp_path, checkpoint)
        for name in ("metrics", "episodes"):
            assert steps_in(tmp_path / f"{name}.jsonl") == [0, 1, 2]
            assert steps_in(tmp_path / f"{name}.1.jsonl") == [3, 4]
        assert (tmp_path / f"config.{part}.yaml").is_file()
        assert not (tmp_path / "metrics.2.jsonl").exists(), "nothing was undone the second time"
    assert (tmp_path / "summary.1.json").is_file()
    assert capsys.readouterr().out.count("global_step_4") == 1, "what was removed is named"


@pytest.mark.parametrize(("name", "spoilt"), cases_of(__file__, "spoilt_files_of_a_run"))
def test_a_spoilt_file_of_a_run_is_named(name, spoilt, tmp_path):
    write_books(tmp_path, 2)
    checkpoint = make_checkpoint(tmp_path, 1, config_of())
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(spoilt, encoding="latin-1")

    def resume() -> None:
        check_resumable(checkpoint, config_of())
        differences(checkpoint, config_of(), [])
        read_object(tmp_path / "summary.json")
        prepare(tmp_path, checkpoint)

    with pytest.raises(FileError, match=rf"{name}.*; mend or remove it"):
        resume()


def test_a_kill_between_a_checkpoint_and_its_line_loses_no_metrics(tmp_path):
    checkpoint = make_checkpoint(tmp_path, 2, config_of())
    write_books(tmp_path, 2)
    saved = {"timing_s/step": 1.0, "books/weight_updates": 1}
    (checkpoint / STEP_METRICS).write_text(json.dumps(saved))
    for _ in range(2):
        prepare(tmp_path, checkpoint)
        lines = read_lines(tmp_path / "metrics.jsonl")
        assert [line["step"] for line in lines] == [0, 1, 2]
        assert lines[2]["data"] == saved


def test_a_validation_that_was_killed_is_counted_once(tmp_path):
    """Its first part stood in the records already, and the resumed run plays all of it again."""
    checkpoint = make_checkpoint(tmp_path, 2, config_of())
    write_books(tmp_path, 3)
    lines = [{"step": 1, "mode": "val"}, {"step": 2, "mode": "train"}, {"step": 2, "mode": "val"}]
    write_lines(tmp_path / "episodes.jsonl", lines)
    prepare(tmp_path, checkpoint)
    assert read_lines(tmp_path / "episodes.jsonl") == lines[:2]
    assert read_lines(tmp_path / "episodes.1.jsonl") == lines[2:]
    write_lines(tmp_path / "metrics.jsonl", [{"step": 2, "data": {"validation/reward": 0.5}}])
    write_lines(tmp_path / "episodes.jsonl", lines)
    prepare(tmp_path, checkpoint)
    assert read_lines(tmp_path / "episodes.jsonl") == lines, "this one ended"


def test_a_run_that_went_back_goes_on_from_there(tmp_path):
    """Killed before its next checkpoint, it went on from the weights that it had left."""
    for step in (2, 4):
        make_checkpoint(tmp_path, step, config_of())
    write_books(tmp_path, 5)
    (tmp_path / "checkpoints" / MARK).write_text("4")
    back = tmp_path / "checkpoints/global_step_2"
    prepare(tmp_path, back)
    assert find_checkpoint("auto", tmp_path, tmp_path) == back


def test_a_folder_with_checkpoints_of_another_run_is_not_gone_on_in(tmp_path):
    """A kill before the next one, and --resume auto would go on from those."""
    checkpoint = make_checkpoint(tmp_path / "mine", 2, config_of())
    make_checkpoint(tmp_path / "other", 4, config_of())
    options = argparse.Namespace(resume=str(checkpoint), run_dir=tmp_path / "other", ci_fast=False)
    with pytest.raises(ConfigError) as refused:
        continued(plan_of(tmp_path / "other", model=TINY), options)
    assert not missing(str(refused.value), tmp_path / "mine", tmp_path / "other", "--resume auto")


def test_a_new_folder_begins_with_the_books_of_the_old_one(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    checkpoint = make_checkpoint(old, 2, config_of())
    write_books(old, 5)
    prepare(new, checkpoint)
    assert steps_in(new / "metrics.jsonl") == [0, 1, 2]
    assert steps_in(old / "metrics.jsonl") == [0, 1, 2, 3, 4]
    assert not list(new.glob("*.1.*"))


def test_a_run_that_begins_anew_keeps_all_books_aside(tmp_path):
    write_books(tmp_path, 2)
    prepare_run_dir(plan_of(tmp_path, model=TINY), config_of())
    assert not (tmp_path / "metrics.jsonl").exists()
    assert steps_in(tmp_path / "metrics.1.jsonl") == [0, 1]


@pytest.mark.parametrize(
    ("keep", "best", "step", "last", "there", "to_come"), cases_of(__file__, "checkpoints_to_come")
)
def test_checkpoints_to_come(keep, best, step, last, there, to_come, tmp_path):
    told = plan_of(tmp_path, model=TINY, output_keep=keep, output_keep_best=best).output
    assert checkpoints_to_come(config_of(), told, step, last, there) == to_come


def ended(run_dir: Path, monkeypatch: Any, fit: Callable[[Any], None], **changes: Any) -> int:
    """Return the exit code of a run whose trainer does this, with a strategy that has failed."""
    trainer = SimpleNamespace(fit=fit, strategy=SimpleNamespace(failed=changes.pop("failed", True)))
    monkeypatch.setattr("training.start.run._trainer", lambda *_: trainer)
    monkeypatch.setattr("training.start.run._log_to_file", lambda _: None)
    monkeypatch.setattr("training.start.run.choose_reading", lambda *_: None)
    config = config_of(logger=["console"])
    played: Any = SimpleNamespace(agent=AGENT)
    return run(played, config, plan_of(run_dir, model=TINY, **changes), 1, 0.0)


def test_what_fails_before_the_engine_starts_is_a_failure_and_no_interruption(
    tmp_path, monkeypatch
):
    def fails(_: Any) -> None:
        raise OSError("no memory")

    assert ended(tmp_path, monkeypatch, fails) == 1
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert (summary["exit_reason"], summary["message"]) == ("failed", "OSError: no memory")
    assert "Traceback" in (tmp_path / "error.txt").read_text()


@pytest.mark.parametrize(("failed", "code"), [(True, 1), (False, 130)])
def test_runners_for_another_machine_s_run_say_whether_they_failed(
    failed, code, tmp_path, monkeypatch
):
    told = {"store_role": "runner", "store_external_address": "http://h:9", "failed": failed}
    assert ended(tmp_path, monkeypatch, lambda _: None, **told) == code


HOLDS = """
import sys
from pathlib import Path
from training.start.run_folder import held

with held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.system
def test_two_commands_do_not_train_in_one_folder(tmp_path):
    """A requeued job trained over the first, which still ran; both ended with exit code 0."""
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with pytest.raises(ConfigError) as refused, held(tmp_path):
            pass
        assert not missing(str(refused.value), tmp_path, first.pid, "--run-dir")
        first.kill()
    with held(tmp_path):
        assert not holds_something(tmp_path)
