"""summary.json is computed from a run's plain files, whatever state they are in.

Keeps of docs/architecture.md, "A run's folder": what was left out is counted under its cause and
enters no mean.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from training.setup.plan import Plan
from training.watch.events import MISMATCH
from training.watch.records import RolloutRecord
from training.watch.summary import (
    ENVIRONMENT,
    MOST_NAMED,
    PHASES,
    build_summary,
    curve,
    show,
    write_summary,
)
from training.watch.summary import _rows as summary_rows


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(tmp_path, "cpu", "model", 3, "--max-turns", 1.0, 96, 60.0)


def record(
    mode: str, step: int, reward: float | None, cause: str | None = None, tokens: int = 10
) -> RolloutRecord:
    return RolloutRecord(
        rollout_id=f"{mode}{step}{reward}",
        group="g",
        mode=mode,
        step=step,
        status="succeeded",
        reward=reward,
        cause=cause,
        generated_tokens=tokens,
    )


def write(plan: Plan, records: list[RolloutRecord], steps: list[dict[str, float]]) -> None:
    (plan.run_dir / "episodes.jsonl").write_text(
        "".join(record.to_json() + "\n" for record in records)
    )
    rows = [
        json.dumps({"step": number, "data": step}) + "\n" for number, step in enumerate(steps, 1)
    ]
    (plan.run_dir / "metrics.jsonl").write_text("".join(rows))


def test_an_empty_run_has_a_summary(plan: Plan) -> None:
    summary = write_summary(plan, "failed", "why", started=0.0)
    assert summary["reward"]["mean"] is None
    assert summary["rollouts"] == {"finished": 0, "failed": 0, "unscored": 0}
    assert json.loads((plan.run_dir / "summary.json").read_text())["message"] == "why"


def played(plan: Plan) -> None:
    """A run of three steps and two validations, of which every number differs from the others."""
    trained = record("train", 1, 0.7, tokens=11)
    trained.terms, trained.measures, trained.counters = (
        {"rule": 0.1, "judge": 0.6},
        {"accuracy": 0.5},
        {"queries": 4},
    )
    trained.stop_reason, trained.canaries = "answered", {"judged": 3, "accepted": 1}
    other = record("train", 2, 0.0, tokens=7)
    other.terms, other.counters, other.stop_reason = (
        {"rule": 0.2, "judge": 0.0},
        {"queries": 1},
        "length",
    )
    left = record("train", 2, 0.9, "judge_failed", tokens=5)
    left.terms = {"rule": 0.9, "judge": 0.9}
    lost = record("train", 3, None, "timeout", tokens=0)
    lost.status = "failed"
    checked = [
        record("val", 0, 0.25),
        record("val", 3, 0.5),
        record("val", 3, 1.0),
        record("val", 3, None, "timeout"),
    ]
    checked[1].canaries = {"judged": 2, "accepted": 0}
    steps = [
        {
            "books/groups": 3,
            "books/learnable_groups": 2,
            MISMATCH: 0.5,
            "timing_s/gen": 1.2512,
            "timing_s/step": 2.0,
        },
        {"books/groups": 2, "books/learnable_groups": 0, "timing_s/gen": 2.0, "timing_s/step": 3.0},
        {
            "books/groups": 1,
            "books/learnable_groups": 1,
            "timing_s/testing": 0.5,
            "timing_s/step": 6.5,
        },
    ]
    counted = {
        "triplets": 8,
        "sequences": 7,
        "generated_tokens": 6,
        "trained_tokens": 6,
        "episodes": 3,
    }
    counts = {f"books/{name}": count for name, count in counted.items()}
    updates = [{"timing_s/update_weights": 0.25}, {"timing_s/update_weights": 0.25}, {}]
    rows = [step | counts | update for step, update in zip(steps, updates, strict=True)]
    write(plan, [trained, other, left, lost, *checked], [*rows, {"val/reward": 1.0}])
    (plan.run_dir / "timeline.json").write_text(json.dumps({"first_step": 112.5678}))


def test_every_number_of_a_summary_is_the_run_s(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mean over all validations, or of left-out rollouts, would be reported as what training
    reached.
    """
    played(plan)
    monkeypatch.setattr("time.time", lambda: 161.6178)
    summary = build_summary(plan, "done", "all well", started=100.0)
    seconds = summary.pop("seconds")
    assert summary == {
        "exit_reason": "done",
        "message": "all well",
        "device": "cpu",
        "model": "model",
        "store": "managed",
        "environment": {},
        "rollouts": {"finished": 3, "failed": 1, "unscored": 1},
        "triplets": 24,
        "sequences": 21,
        "generated_tokens": 18,
        "trained_tokens": 18,
        "dropped_tokens": {"judge_failed": 5, "timeout": 0},
        "weight_updates": 1,
        "steps_without_signal": 1,
        "signal": {
            "episodes": 9,
            "groups": 6,
            "learnable_groups": 3,
            "sequences_per_episode": 2.3333,
            "log_prob_mismatch": 0.5,
        },
        "reward": {"mean": 0.35, "terms": {"rule": pytest.approx(0.15), "judge": 0.3}},
        "counters": {"queries": 5},
        "measures": {"accuracy": 0.5},
        "canaries": {"judged": 5, "accepted": 1},
        "stop_reasons": {"answered": 1, "length": 1},
        "validation": {
            "rollouts": {"finished": 4, "failed": 0, "unscored": 1},
            "reward": {"mean": 0.75, "terms": {}},
            "first_reward": {"mean": 0.25, "terms": {}},
        },
    }
    assert (seconds["total"], seconds["to_first_step"], seconds["per_step"]) == (61.62, 12.57, 3.83)
    spent = {"rollout": 3.25, "sync": 0.5, "validation": 0.5}
    assert seconds["by_phase"] == {**dict.fromkeys(PHASES, 0), **spent}


def test_what_is_shown_of_a_summary_is_what_it_says(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines an operator reads instead of the file, who would choose a run by them."""
    played(plan)
    summary = build_summary(plan, "stopped", "judge [gone]", started=100.0) | {
        "environment": {"notes": ["may write"]}
    }
    summary["seconds"]["total"] = 61.6
    assert summary_rows(summary) == [
        ("model, device, store", "model, cpu, managed"),
        ("note", "may write"),
        ("seconds", "62 in all, 12.6 to the first step, 3.83 a step"),
        ("tokens", "18 generated, 18 trained, left out: 5 judge_failed"),
        (
            "learned from",
            "1 weight updates, 1 steps taught nothing, 3 of 6 groups with different rewards, "
            "2.33 sequences an episode, vLLM and trainer differ by a KL of 0.5 a token at most",
        ),
        ("counters", "5 queries"),
        ("measures", "accuracy 0.500"),
        ("known-bad answers", "1 of 5 accepted"),
        ("rollouts", "3 finished, 1 failed, 1 unscored"),
        ("reward", "0.35 (rule 0.150, judge 0.300)"),
        ("validation reward", "0.25 -> 0.75"),
    ]
    show(summary, plan.run_dir)
    lines = capsys.readouterr().out.splitlines()
    assert f"stopped: {plan.run_dir.name}" in lines[0]
    assert "stopped: judge [gone]" in lines
    assert lines[-1] == str(plan.run_dir)
    assert any("2.33 sequences" in line for line in lines)


def test_the_summary_fits_a_terminal_of_24_lines_and_ends_with_the_results(
    plan: Plan, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What scrolled away is not read; a counter of 0 says nothing."""
    monkeypatch.setenv("COLUMNS", "80")
    played(plan)
    names = {f"a_long_name_of_number_{number}": number % 4 for number in range(40)}
    summary = build_summary(plan, "done", "", started=100.0)
    summary |= {"counters": names, "measures": names}
    show(summary, plan.run_dir)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert "validation reward" in lines[-3]
    assert "0.25 -> 0.75" in lines[-3]
    counters = dict(summary_rows(summary))["counters"]
    assert counters.startswith("1 a_long_name_of_number_1, ")
    assert counters.endswith(", 25 more")


def test_what_a_run_did_not_come_to_is_a_dash_and_not_a_0(plan: Plan) -> None:
    summary = build_summary(plan, "failed", "", started=0.0)
    assert summary["seconds"]["to_first_step"] is summary["seconds"]["per_step"] is None
    assert (
        summary["signal"]["sequences_per_episode"] is summary["signal"]["log_prob_mismatch"] is None
    )
    shown = dict(summary_rows(summary))
    assert (shown["reward"], shown["validation reward"], shown["rollouts"]) == ("-", "-", "none")
    assert shown["learned from"] == "0 weight updates"
    assert shown["tokens"] == "0 generated, 0 trained"
    assert {"counters", "measures", "known-bad answers"}.isdisjoint(shown)
    assert shown["seconds"].endswith(" in all, - to the first step, - a step")


def test_a_summary_names_the_store_that_was_used(plan: Plan) -> None:
    kinds = {"external_store_address": "http://store:4747", "mongo_uri": "mongodb://store"}
    stores = [
        build_summary(replace(plan, **{name: kinds[name]}), "done", "", 0.0)["store"]
        for name in kinds
    ]
    assert stores == ["external", "managed-mongo"]


def test_a_summary_replaces_that_of_the_run_it_resumes_and_keeps_chinese_readable(
    plan: Plan,
) -> None:
    for message in ("first", "题"):
        write_summary(plan, "failed", message, started=0.0)
    text = (plan.run_dir / "summary.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "exit_reason": "failed",\n  "message": "题",\n')


def test_tokens_left_out_are_counted_by_cause(plan: Plan) -> None:
    step = {
        "timing_s/step": 2.0,
        "timing_s/update_weights": 0.1,
        "books/generated_tokens": 10,
        "books/trained_tokens": 10,
    }
    records = [
        record("train", 1, 1.0),
        record("train", 1, None, "judge_failed", tokens=4),
        record("train", 1, 0.0, "step_skipped", tokens=3),
        record("train", 1, 0.1, "too_long", tokens=9),
        record("train", 2, 0.5, tokens=5),
    ]
    write(plan, records, [step])
    summary = build_summary(plan, "failed", "", started=0.0)
    assert summary["dropped_tokens"] == {
        "judge_failed": 4,
        "step_skipped": 3,
        "too_long": 9,
        "no_update": 5,
    }
    assert summary["generated_tokens"] == summary["trained_tokens"] == 10
    assert summary["reward"]["mean"] == 0.75, (
        "what was left out has a reward, and is not in the mean"
    )
    assert summary["rollouts"] == {"finished": 5, "failed": 0, "unscored": 3}
    assert summary["weight_updates"] == 1


def test_a_step_without_signal_is_no_update(plan: Plan) -> None:
    step = {
        "timing_s/step": 1.0,
        "timing_s/update_weights": 0.1,
        "books/episodes": 4,
        "books/sequences": 5,
    }
    taught = {**step, "books/groups": 2, "books/learnable_groups": 1, MISMATCH: 0.5}
    write(
        plan, [], [taught, {**step, "books/groups": 2, "books/learnable_groups": 0, MISMATCH: 0.25}]
    )
    summary = build_summary(plan, "done", "", started=0.0)
    assert (summary["weight_updates"], summary["steps_without_signal"]) == (1, 1)
    assert summary["signal"] == {
        "episodes": 8,
        "sequences_per_episode": 1.25,
        "groups": 4,
        "learnable_groups": 1,
        "log_prob_mismatch": 0.5,
    }


def test_without_groups_every_step_counts(plan: Plan) -> None:
    write(plan, [], [{"timing_s/step": 1.0, "timing_s/update_weights": 0.1}])
    summary = build_summary(plan, "done", "", started=0.0)
    assert (summary["weight_updates"], summary["steps_without_signal"]) == (1, 0)
    assert summary["signal"]["groups"] == summary["trained_tokens"] == 0


def test_validation_names_the_first_and_the_last(plan: Plan) -> None:
    write(plan, [record("val", 0, 0.2), record("val", 10, 0.4), record("val", 20, 0.9)], [])
    validation = build_summary(plan, "done", "", started=0.0)["validation"]
    assert (validation["first_reward"]["mean"], validation["reward"]["mean"]) == (0.2, 0.9)
    assert validation["rollouts"]["finished"] == 3


def test_each_agent_of_several_has_its_own_reward_and_validation(plan: Plan) -> None:
    records = [
        replace(record(mode, 1, reward), agent=agent)
        for agent, mode, reward in (("a", "train", 0.25), ("a", "val", 0.75), ("b", "val", 0.5))
    ]
    write(plan, records, [])
    agents = build_summary(plan, "done", "", started=0.0)["agents"]
    found = {
        name: (of["reward"]["mean"], of["validation"]["reward"]["mean"])
        for name, of in agents.items()
    }
    assert found == {"a": (0.25, 0.75), "b": (None, 0.5)}
    counts = [of["validation"]["rollouts"]["finished"] for of in agents.values()]
    assert counts == [1, 1]
    assert {*agents["a"]} == {"rollouts", "reward", "canaries", "validation"}


def test_of_several_agents_each_has_a_line_and_terms_are_not_mixed(plan: Plan) -> None:
    """One term's name may mean another thing in another agent."""
    told = (
        ("a", "train", 1, 0.25),
        ("a", "val", 0, 0.5),
        ("a", "val", 1, 0.75),
        ("b", "val", 1, 1.0),
    )
    records = [
        replace(record(mode, step, reward), agent=agent) for agent, mode, step, reward in told
    ]
    records[0].terms = {"rule": 0.25}
    write(plan, records, [])
    shown = dict(summary_rows(build_summary(plan, "done", "", started=0.0)))
    assert shown["reward"] == "0.25"
    assert shown["a"] == "reward 0.25, validation 0.5 -> 0.75, 1 finished"


@pytest.mark.parametrize(("further", "end"), [(0, ""), (1, ", 1 more")])
def test_what_does_not_fit_is_counted(plan: Plan, further: int, end: str) -> None:
    numbers = {f"n{number}": number for number in range(1, MOST_NAMED + further + 1)}
    summary = build_summary(plan, "done", "", started=0.0)
    shown = dict(summary_rows(summary | {"counters": numbers, "measures": numbers}))
    assert shown["counters"] == f"1 n1, 2 n2, 3 n3, 4 n4, 5 n5{end}"
    assert shown["measures"] == f"n1 1.000, n2 2.000, n3 3.000, n4 4.000, n5 5.000{end}"


def test_a_validation_is_the_mean_over_task_types_of_what_was_scored(plan: Plan) -> None:
    found = [
        ("a", 1.0, None),
        ("a", 0.0, None),
        ("a", 0.5, None),
        ("b", 0.0, None),
        ("b", None, "x"),
    ]
    records = [
        replace(record("val", 3, reward, cause), task_type=kind, terms={"rule": reward or 0.0})
        for kind, reward, cause in found
    ]
    write(plan, records, [])
    reward = build_summary(plan, "done", "", started=0.0)["validation"]["reward"]
    assert reward == {"mean": 0.25, "terms": {"rule": 0.25}}


def test_the_curve_of_a_resumed_run_is_that_of_the_weights_it_went_on_with(plan: Plan) -> None:
    """Steps that were played again count as played last, and what was not measured is no 0."""
    parts = (
        (
            "metrics.b.jsonl",
            {1: {"episodes/reward/mean": 0.1}, 3: {"episodes/reward/mean": 0.9, "val-core/a": 1.0}},
        ),
        (
            "metrics.a.jsonl",
            {3: {"episodes/reward/mean": 0.5, "val-core/a": 0.25, "val-core/b": 0.75}},
        ),
        (
            "metrics.jsonl",
            {4: {"episodes/reward/mean": 0.75}, 3: {"timing_s/step": 1.0}, 2: {"val-aux/a": 1.0}},
        ),
    )
    for age, (name, steps) in enumerate(parts):
        path = plan.run_dir / name
        path.write_text(
            "".join(json.dumps({"step": step, "data": data}) + "\n" for step, data in steps.items())
        )
        os.utime(path, (age, age))
    assert curve(plan.run_dir) == [
        {"step": 1, "reward": 0.1, "validation": None},
        {"step": 2, "reward": None, "validation": None},
        {"step": 3, "reward": 0.5, "validation": 0.5},
        {"step": 4, "reward": 0.75, "validation": None},
    ]


def test_a_torn_last_line_is_left_out(plan: Plan) -> None:
    write(plan, [record("train", 1, 1.0)], [])
    with (plan.run_dir / "episodes.jsonl").open("a") as file:
        file.write('{"rollout_id": "to')
    assert build_summary(plan, "failed", "", started=0.0)["rollouts"]["finished"] == 1


def test_the_reward_s_breakdown_and_the_canaries_are_shown(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    episode = record("train", 1, 0.7)
    episode.terms, episode.measures = {"rule": 0.1, "judge": 0.6}, {"judge_accuracy": 0.5}
    episode.canaries = {"judged": 3, "accepted": 1}
    write(plan, [episode], [])
    summary = build_summary(plan, "done", "", started=0.0)
    assert (summary["reward"]["terms"], summary["measures"]) == (episode.terms, episode.measures)
    show(summary, plan.run_dir)
    shown = capsys.readouterr().out
    for text in (
        "rule 0.100, judge 0.600",
        "judge_accuracy 0.500",
        "1 of 3 accepted",
    ):
        assert text in shown


def test_what_episodes_are_played_with_is_kept_and_its_notes_are_shown(
    plan: Plan, capsys: pytest.CaptureFixture[str]
) -> None:
    (plan.run_dir / ENVIRONMENT).write_text(
        json.dumps({"database": "x", "notes": ["the account may write"]})
    )
    summary = build_summary(plan, "done", "", started=0.0)
    show(summary, plan.run_dir)
    assert summary["environment"]["database"] == "x"
    assert "the account may write" in capsys.readouterr().out
