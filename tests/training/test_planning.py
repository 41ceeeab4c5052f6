"""What a resumed run is told: where it goes on, in which folder, and whether it validates first.

Keeps of docs/runs.md.
"""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from common.files import FileError
from episodes import registry
from training.planning import continued, make_plan, read_rows
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


def test_a_new_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    assert resumed(tmp_path / "run", None)[1:] == (None, {})
    assert resumed(tmp_path / "run", "auto")[1:] == (None, {})
    make_run(tmp_path / "run", 4)
    with pytest.raises(ConfigError, match="is not empty; choose another, or add --resume"):
        resumed(tmp_path / "run", None)


def test_runners_may_have_the_folder_of_the_trainer_beside_them(tmp_path: Path) -> None:
    """They write none of its files; the same command starts both."""
    make_run(tmp_path / "run", 4)
    asked = Namespace(resume=None, run_dir=tmp_path / "run", ci_fast=False)
    runners = replace(plan(tmp_path / "run"), role="runner")
    assert continued(runners, asked) == (runners, None, {})


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
    agent = registry.get("sql")
    options = parse(agent, ["--device", "cpu", "--run-dir", str(tmp_path), *flags])
    made, _ = make_plan(agent, options)
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
