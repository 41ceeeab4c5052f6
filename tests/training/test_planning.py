"""What a resumed run is told: where it goes on, in which folder, and whether it validates first.

Keeps of docs/runs.md.
"""

from __future__ import annotations

import json
import os
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.files import FileError
from common.settings import Settings, load_settings
from episodes import registry
from training import planning
from training.planning import (
    TRACKER_VARIABLES,
    continued,
    loggers,
    make_plan,
    new_run_dir,
    read_rows,
    run_settings,
)
from training.setup.arguments import parse
from training.setup.device import LARGE_BYTES
from training.setup.plan import ConfigError, Plan


def plan(run_dir: Path) -> Plan:
    return Plan(run_dir, "cpu", "model", 3, "--max-turns", 1.0, 96, 60.0)


def make_run(run: Path, step: int, **data: Any) -> Path:
    """A run with a checkpoint of that step, whose metrics have these numbers."""
    checkpoint = run / "checkpoints" / f"global_step_{step}"
    (checkpoint / "actor").mkdir(parents=True)
    (run / "checkpoints" / "latest_checkpointed_iteration.txt").write_text(str(step))
    rows = [
        {"step": number, "data": data if number == step else {"val-core/a/reward/mean@1": 0.5}}
        for number in (step - 1, step, step + 1)
    ]
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return checkpoint


def resumed(
    run: Path, resume: str | None = "latest", ci_fast: bool = False
) -> tuple[Plan, Path | None, dict[str, Any]]:
    return continued(plan(run), Namespace(resume=resume, run_dir=run, ci_fast=ci_fast))


def test_the_checkpoint_its_folder_and_its_run_are_named(tmp_path: Path) -> None:
    checkpoint = make_run(tmp_path / "run", 4)
    plan, found, keys = resumed(tmp_path / "run")
    assert (plan.run_dir, found) == (tmp_path / "run", checkpoint)
    assert keys == {
        "trainer.resume_mode": "resume_path",
        "trainer.resume_from_path": str(checkpoint),
        "trainer.default_local_dir": str(tmp_path / "run" / "checkpoints"),
        "trainer.experiment_name": "run",
    }


def test_without_a_folder_the_newest_run_or_that_of_the_checkpoint_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(planning, "RUNS", tmp_path)
    older, newer = (make_run(tmp_path / name, step) for name, step in (("one", 3), ("two", 4)))
    os.utime(tmp_path / "one", (1, 1))
    new, elsewhere = plan(tmp_path / "new"), tmp_path / "elsewhere"
    for resume, asked, checkpoint, run in (
        ("latest", None, newer, tmp_path / "two"),
        (str(older), None, older, tmp_path / "one"),
        (str(older), elsewhere, older, elsewhere),
    ):
        options = Namespace(resume=resume, run_dir=asked, ci_fast=False)
        found, resumed_from, keys = continued(replace(new, run_dir=asked or new.run_dir), options)
        assert (found.run_dir, resumed_from) == (run, checkpoint)
        assert keys["trainer.default_local_dir"] == str(run / "checkpoints")
        assert capsys.readouterr().out == f"resuming from {checkpoint}\n"


def test_runs_that_begin_in_one_second_have_a_folder_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning.time, "strftime", lambda form: "now")
    names = []
    for _ in range(3):
        folder = new_run_dir(tmp_path / "runs", "sql")
        folder.mkdir(parents=True)
        names.append(folder.name)
    assert names == ["sql-now", "sql-now-2", "sql-now-3"]


@pytest.mark.parametrize(
    ("given", "trackers"),
    [
        ({}, []),
        ({"tensorboard_dir": "boards"}, ["tensorboard"]),
        ({"swanlab_mode": "local", "wandb_api_key": "key"}, ["swanlab", "wandb"]),
        ({"swanlab_api_key": "key", "wandb_mode": "offline"}, ["swanlab", "wandb"]),
    ],
)
def test_a_tracker_is_told_what_is_set_for_it_and_others_are_left_out(
    given: dict[str, str], trackers: list[str]
) -> None:
    for name in TRACKER_VARIABLES:
        os.environ.pop(name, None)
    assert loggers(Settings(_env_file=None, **given)) == ["console", "file", *trackers]
    told = {name.lower(): os.environ[name] for name in TRACKER_VARIABLES if name in os.environ}
    assert told == given


def test_a_run_folder_that_is_none_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("notes")
    with pytest.raises(FileError, match="--run-dir"):
        resumed(tmp_path / "run", resume=None)


@pytest.mark.parametrize(
    ("data", "validates"),
    [
        ({"val-core/a/reward/mean@1": 0.0}, False),
        ({"timing_s/step": 1.0}, True),
        ({}, True),
    ],
)
def test_a_step_that_was_validated_is_not_validated_again(
    data: dict[str, float], validates: bool, tmp_path: Path
) -> None:
    """0 is a validation; a step without one, such as the last before a kill, is none, whatever its
    neighbours have.
    """
    make_run(tmp_path / "run", 4, **data)
    _, _, keys = resumed(tmp_path / "run")
    assert keys.get("trainer.val_before_train", True) is validates


@pytest.mark.parametrize(("resume", "last"), [("latest", 5), ("auto", None)])
def test_the_quick_check_of_a_resume_is_one_step_more(
    resume: str, last: int | None, tmp_path: Path
) -> None:
    make_run(tmp_path / "run", 4)
    _, _, keys = resumed(tmp_path / "run", resume, ci_fast=True)
    assert keys.get("trainer.total_training_steps") == last
    assert "trainer.total_training_steps" not in resumed(tmp_path / "run", resume)[2]


def test_rows_of_several_agents_keep_their_weights_and_are_not_shuffled() -> None:
    """verl's order would give a batch other shares than the weights say."""
    both = registry.joined({"sql": 3.0, "diagnosis": 1.0})
    rows, keys = read_rows(both, both.splits)
    assert keys == {"data.shuffle": False}
    assert {(row["agent"], row["weight"]) for row in rows["train"]} == {
        ("sql", 3.0),
        ("diagnosis", 1.0),
    }
    sql = registry.get("sql")
    assert read_rows(sql, {"val": sql.splits["val"]})[1] == {}


def test_a_new_run_has_a_folder_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert resumed(tmp_path / "run", None)[1:] == (None, {})
    assert resumed(tmp_path / "run", "auto")[1:] == (None, {})
    assert capsys.readouterr().out.startswith("nothing to resume")
    make_run(tmp_path / "run", 4)
    with pytest.raises(ConfigError, match="is not empty; choose another, or add --resume"):
        resumed(tmp_path / "run", None)


def test_runners_may_have_the_folder_of_the_trainer_beside_them(tmp_path: Path) -> None:
    """They write none of its files; the same command starts both."""
    make_run(tmp_path / "run", 4)
    asked = Namespace(resume=None, run_dir=tmp_path / "run", ci_fast=False)
    runners = replace(plan(tmp_path / "run"), role="runner")
    assert continued(runners, asked) == (runners, None, {})


def planned(*flags: str, agent: str = "sql", **settings: str) -> tuple[Plan, dict[str, Any]]:
    os.environ.update(settings)
    load_settings.cache_clear()
    found = registry.get(agent)
    return make_plan(found, parse(found, ["--device", "cpu", *flags]))


def test_each_flag_reaches_the_plan_before_a_setting(tmp_path: Path) -> None:
    made, _ = planned(
        *("--run-dir", str(tmp_path), "--max-turns", "3", "--model", "another/model"),
        *("--lora", "--lora-rank", "16"),
        MAX_TURNS="2",
        BASE_MODEL="some/model",
    )
    assert (made.max_turns, made.max_turns_origin) == (3, "--max-turns")
    assert (made.model, made.lora_rank) == ("another/model", 16)
    assert (made.run_dir, made.device) == (tmp_path, "cpu")
    assert planned("--run-dir", str(tmp_path))[0].model == "some/model"
    made, keys = planned("--run-dir", str(tmp_path), MAX_TURNS="2", TENSORBOARD_DIR="boards")
    assert made.max_turns_origin == "MAX_TURNS"
    assert keys["trainer.logger"] == ["console", "file", "tensorboard"]


def test_the_settings_of_a_run_are_under_the_agent_s_own_flags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = registry.get("sql")
    nothing_set, _ = run_settings(agent, parse(agent, ["--device", "cpu"]))
    assert nothing_set.max_turns == agent.turns
    monkeypatch.setenv("DATABASE_TABLES", "elsewhere")
    monkeypatch.setenv("MAX_TURNS", "2")
    load_settings.cache_clear()
    for given, tables, turns in (
        (["--tables", "disease", "--max-turns", "7"], "disease", 7),
        ([], "elsewhere", 2),
    ):
        settings, flags = run_settings(agent, parse(agent, ["--device", "cpu", *given]))
        assert (settings.database_tables, settings.max_turns) == (tables, turns)
        assert flags["database_tables"] == (tables if given else None)


def test_an_algorithm_s_keys_are_part_of_the_preset(tmp_path: Path) -> None:
    flags = ["--run-dir", str(tmp_path)]
    made, keys = planned(*flags, "--algorithm", "gspo")
    loss = "actor_rollout_ref.actor.policy_loss.loss_mode"
    assert made.preset["keys"][loss] == keys[loss] == "gspo"
    assert keys.get(loss) != planned(*flags)[1].get(loss)


def test_a_plan_without_flags_is_the_agent_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning.time, "strftime", lambda form: "now")
    for flags, purpose in (([], "full"), (["--ci"], "ci"), (["--ci-fast"], "smoke")):
        for name, tools in (("sql", True), ("diagnosis", False)):
            agent = registry.get(name)
            made, keys = planned(*flags, agent=name)
            assert made.run_dir == planning.RUNS / f"{name}-agent-{purpose}-now"
            assert (made.model, made.tools, made.lora_rank) == (agent.model, tools, 0)
            assert made.max_turns_origin == f"the {name} agent's own"
            assert made.max_tokens == agent.sizes("cpu").reply
            assert made.preset["name"].startswith(f"{purpose}, cpu")
            assert made.preset["keys"].items() <= keys.items()
    assert planned("--device", "cuda")[0].model == planning.GPU_MODEL


@pytest.mark.parametrize(
    ("flags", "traced_in_proxy", "proxy"),
    [
        ([], True, "direct"),
        (["--llm-proxy"], True, "litellm"),
        (["--no-llm-proxy"], False, "direct"),
        (["--proxy", "litellm"], True, "litellm"),
        (["--llm-proxy", "--proxy", "direct"], True, "direct"),
    ],
)
def test_litellm_stands_before_vllm_where_it_is_asked_for(
    tmp_path: Path, flags: list[str], traced_in_proxy: bool, proxy: str
) -> None:
    made, _ = planned("--run-dir", str(tmp_path), *flags)
    assert (made.llm_proxy, made.proxy) == (traced_in_proxy, proxy)


@pytest.mark.parametrize(
    ("device", "small", "large"),
    [("cpu", (16, 3e-4), (4, 1e-5)), ("cuda", (16, 1e-6), (16, 1e-6))],
)
def test_a_large_model_has_batches_and_a_rate_of_its_own_on_the_cpu_alone(
    device: str, small: tuple[int, float], large: tuple[int, float], tmp_path: Path
) -> None:
    """The preset for GPUs is made for real models."""
    agent = registry.get("sql")
    found = []
    for size in (LARGE_BYTES, LARGE_BYTES + 1):
        with (tmp_path / "model.safetensors").open("wb") as file:
            file.truncate(size)  # sparse: takes no room itself
        flags = ["--device", device, "--model", str(tmp_path), "--run-dir", str(tmp_path / "run")]
        _, keys = make_plan(agent, parse(agent, flags))
        found.append((keys["data.train_batch_size"], keys["actor_rollout_ref.actor.optim.lr"]))
    assert found == [small, large]
