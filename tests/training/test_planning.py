"""What a run is told before it starts: where it goes on, in which folder, and what its rows are."""

import os
from argparse import Namespace
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from common.settings import Settings, load_settings
from episodes import registry
from episodes.agent import Agent, Options
from episodes.joint import WEIGHT, WHOSE
from tests.corpora import cases_of, write_metrics
from tests.digits_agent.agent import AGENT
from tests.messages import missing
from tests.training.plans import plan_of
from training.setup.plan import ConfigError, Plan
from training.start.arguments import parse
from training.start.make_plan import (
    TRACKERS,
    continued,
    loggers,
    make_plan,
    read_rows,
    run_settings,
    tracker_variables,
    with_runners,
)
from training.start.prepare import prepare
from training.start.run_folder import not_of_a_run


def make_run(run: Path, step: int, **data: Any) -> Path:
    """A run with a checkpoint of that step, whose metrics have these numbers."""
    checkpoint = run / "checkpoints" / f"global_step_{step}"
    (checkpoint / "actor").mkdir(parents=True)
    (run / "checkpoints" / "latest_checkpointed_iteration.txt").write_text(str(step))
    others = {"val-core/a/reward/mean@1": 0.5}
    write_metrics(run, {step - 1: others, step: data, step + 1: others})
    return checkpoint


def resumed(run: Path, resume: str | None = "latest") -> tuple[Plan, Path | None, dict[str, Any]]:
    return continued(plan_of(run), Namespace(resume=resume, run_dir=run, ci_fast=False))


def test_without_a_folder_the_newest_run_or_that_of_the_checkpoint_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("training.start.make_plan.RUNS", tmp_path)
    older, newer = (make_run(tmp_path / name, step) for name, step in (("one", 3), ("two", 4)))
    os.utime(tmp_path / "one", (1, 1))
    elsewhere = tmp_path / "elsewhere"
    for resume, asked, checkpoint, run in (
        ("latest", None, newer, tmp_path / "two"),
        (str(older), None, older, tmp_path / "one"),
        (str(older), elsewhere, older, elsewhere),
    ):
        options = Namespace(resume=resume, run_dir=asked, ci_fast=False)
        found, resumed_from, keys = continued(plan_of(asked or tmp_path / "new"), options)
        assert (found.output.run_dir, resumed_from) == (run, checkpoint)
        assert keys["trainer.resume_mode"] == "resume_path"
        assert keys["trainer.resume_from_path"] == str(checkpoint)


@pytest.mark.parametrize(("given", "trackers"), cases_of(__file__, "trackers"))
def test_a_tracker_is_told_what_is_set_for_it_and_others_are_left_out(given, trackers):
    for name in Settings.model_fields:
        if name.startswith(TRACKERS):
            os.environ.pop(name.upper(), None)
    settings = Settings(_env_file=None, **given)
    assert loggers(settings) == ["console", "file", *trackers]
    assert tracker_variables(settings) == {name.upper(): value for name, value in given.items()}


@pytest.mark.parametrize(
    ("data", "validates"),
    [({"val-core/a/reward/mean@1": 0.0}, False), ({"timing_s/step": 1.0}, True), ({}, True)],
)
def test_a_step_that_was_validated_is_not_validated_again(data, validates, tmp_path):
    """A step without a validation, such as the last before a kill, has none."""
    make_run(tmp_path / "run", 4, **data)
    _, _, keys = resumed(tmp_path / "run")
    assert keys.get("trainer.val_before_train", True) is validates


def test_rows_of_several_agents_keep_their_weights_and_are_not_shuffled():
    """verl's order would give a batch other shares than the weights say."""
    both = registry.joined({"sql": 3.0, "diagnosis": 1.0})
    rows, keys = read_rows(both, both.splits)
    assert keys == {"data.shuffle": False}
    found = {(row[WHOSE], row[WEIGHT]) for row in rows["train"]}
    assert found == {("sql", 3.0), ("diagnosis", 1.0)}
    assert read_rows(AGENT, {"val": AGENT.splits["val"]})[1] == {}


def test_a_new_run_has_a_folder_of_its_own(tmp_path):
    assert resumed(tmp_path / "run", None)[1:] == (None, {})
    assert resumed(tmp_path / "run", "auto")[1:] == (None, {})
    (tmp_path / "run").mkdir()
    (tmp_path / "run/model.json").touch()  # the user's own, where no run began
    with pytest.raises(ConfigError, match=r"model\.json"):
        resumed(tmp_path / "run", "auto")
    (tmp_path / "run/run.lock").touch()
    assert resumed(tmp_path / "run", "auto")[1:] == (None, {})
    (tmp_path / "environment.json").touch()  # may be of a runner, which has no lock
    assert not_of_a_run(tmp_path, "both") != not_of_a_run(tmp_path, "algorithm") == []


@pytest.mark.parametrize(
    ("batch", "flags", "runners", "episodes"), cases_of(__file__, "runners_of_a_step")
)
def test_a_whole_step_is_played_at_once(batch, flags, runners, episodes):
    """128 episodes were in flight, however many GPUs waited for them."""
    agent = registry.get("sql")
    sizes = {"train_batch_size": batch}
    config = OmegaConf.create({"data": sizes, "actor_rollout_ref": {"rollout": {"n": 8}}})
    options = parse(agent, ["--device", "cpu", *flags])
    made = with_runners(make_plan(agent, options)[0], options, config)
    assert (made.store.n_runners, made.store.concurrency) == (runners, episodes)


@pytest.mark.parametrize("flags", [["--model", ""], ["--model="], ["--resume", ""]])
def test_an_empty_value_is_no_default(flags, capsys):
    """So a script trains whose variable is not set."""
    with pytest.raises(SystemExit, match="2"):
        parse(registry.get("sql"), flags)
    assert not missing(capsys.readouterr().err, flags[0].rstrip("="), "empty")


def test_the_settings_of_a_run_are_under_the_agent_s_own_flags(monkeypatch):
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


def test_what_an_agent_says_of_its_rows_and_of_this_partner_is_shown(monkeypatch, capsys):
    """Else episodes that no partner can play fail while a GPU works."""

    def check(agent: Agent, rows: Any, settings: Settings, options: Options, plays: bool) -> Any:
        return [f"{name}: {len(part)} {options['partner']}" for name, part in rows.items()]

    monkeypatch.setattr(type(AGENT), "check", check)
    settings = Settings(_env_file=None)
    rows = {name: AGENT.rows(AGENT.splits[name]) for name in ("train", "val")}
    config = OmegaConf.create({"algorithm": {"filter_groups": {"enable": True, "metric": "acc"}}})
    given = (AGENT, rows, settings, {"partner": "unplayable"})
    with closing(AGENT.open(settings, {})) as environment:
        with pytest.raises(ConfigError, match="metric=acc: expected one of reward, "):
            prepare(*given, environment, config)
        config.algorithm.filter_groups = None
        prepare(*given, environment, config)
    wanted = [f"{name}: {len(part)} unplayable" for name, part in rows.items()]
    assert not missing(capsys.readouterr().out, *wanted)
