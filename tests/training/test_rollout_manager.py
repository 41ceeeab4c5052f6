"""A step's rollouts between a real store, proxy and runner, and a vLLM that speaks its protocol."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from common.jsonl import read_object
from tests.training.steps import SAMPLING, keys_of, played_by
from training.engine.playing import FILE
from training.setup.plan import RunStopped
from training.store.store_client import MAX_ATTEMPTS

GOOD = {"name": "a", "rewards": [1.0, 0.0]}
OTHER = {"name": "b", "rewards": [0.25, 0.75]}
DEAD = {"name": "dead", "rewards": [None]}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr("training.engine.watchdog.PAUSE_SECONDS", 0.0)
    monkeypatch.setattr("training.store.store_client.WAIT_SECONDS", 0.1)


async def test_a_step_is_queued_as_it_was_played(tmp_path, monkeypatch):
    """A group stays with one server, and groups take turns."""
    async with played_by(tmp_path, monkeypatch, servers=2) as run:
        await run.play([GOOD, {**OTHER, "turns": 2, "agent": "sql"}], step=3)
        known = {rollout.rollout_id for rollout in await run.store.query_rollouts()}
        records = run.manager.take_step_records()
        trained = run.manager.take_trained_records(["a_0", "a_1", "b_0", "b_1"])
    assert read_object(tmp_path / FILE) == {"mode": "train", "step": 3, "ended": 4, "of": 4}
    assert run.queue.statuses("train") == {"a": "finished", "b": "finished"}
    assert [len(server.requests) for server in run.engine] == [2, 4]
    sequences = ["a_0_0", "a_1_0", "b_0_0", "b_0_1", "b_1_0", "b_1_1"]
    (put,) = run.queue.puts
    assert sorted(put) == sequences
    earned = {f"{line['group']}_{line['sample']}": line for line in run.lines()}
    places = {line["group"]: (line["index"], line.get("agent")) for line in earned.values()}
    assert places == {"a": (0, None), "b": (1, "sql")}
    assert {line["rollout_id"] for line in earned.values()} == known
    for key in sequences:
        row, line = run.queue.rows["train", key], earned[key[:3]]
        assert float(row["rm_scores"].sum()) == line["reward"]
        found = (row["uid"], row["session_id"], row["num_turns"])
        assert found == (line["group"], line["sample"], line["turns"])
        assert row["responses"].tolist() == [7, -int(row["rollout_log_probs"][1])]
    assert keys_of(records) == keys_of(trained) == ["a_0", "a_1", "b_0", "b_1"]
    for record in records:
        assert (record.mode, record.task_type, record.step) == ("train", "all", 3)


async def test_an_episode_alone_in_its_group_is_left_out(tmp_path, monkeypatch):
    """With no other to compare it with, verl would train on its raw reward."""
    lone = {"name": "lone", "rewards": [1.0, None]}
    async with played_by(tmp_path, monkeypatch, max_unscored_share=0.9) as run:
        await run.play([GOOD, lone], step=1)
    assert run.queue.statuses("train") == {"a": "finished", "lone": "failure"}
    assert {key[:2] for _, key in run.queue.rows} == {"a_"}
    causes = sorted(str(line["cause"]) for line in run.lines() if line["group"] == "lone")
    assert causes == ["alone_in_group", "judge_failed"]


async def test_a_skipped_step_leaves_nothing_in_the_queue(tmp_path, monkeypatch):
    async with played_by(tmp_path, monkeypatch) as run:
        await run.play([GOOD, DEAD], step=1)
        records = run.manager.take_step_records()
    assert run.queue.rows == {}
    assert run.queue.statuses("train") == {"a": "failure", "dead": "failure"}
    found = sorted(str(record.cause) for record in records)
    assert found == ["judge_failed", "judge_failed", "step_skipped", "step_skipped"]
    assert sorted(str(line["cause"]) for line in run.lines()) == found


async def test_after_a_skipped_step_the_run_pauses(tmp_path, monkeypatch):
    """A judge may be down for a minute; without the pause three steps are lost in seconds."""
    pauses, sleep = list[float](), asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0 if seconds == 3600 else seconds)

    monkeypatch.setattr("training.engine.watchdog.PAUSE_SECONDS", 3600.0)
    async with played_by(tmp_path, monkeypatch) as run:
        monkeypatch.setattr("training.engine.rollout_manager.asyncio.sleep", noted)
        await run.play([GOOD, DEAD], step=1)
        monkeypatch.setattr("training.engine.rollout_manager.asyncio.sleep", sleep)
    assert pauses.count(3600) == 1


async def test_an_error_ends_the_run_while_others_play(tmp_path, monkeypatch):
    async with played_by(tmp_path, monkeypatch) as run:

        async def broken(*_: Any) -> Any:
            raise ValueError("spans that nobody can read")

        monkeypatch.setattr(run.manager.collector, "collect", broken)
        run.ask([GOOD, {**OTHER, "held": True}], step=1)
        with pytest.raises(ValueError, match="nobody can read"):
            await run.settled("a", "b")


async def test_groups_of_equal_reward_are_not_replaced_without_an_end(tmp_path, monkeypatch):
    """A policy that always earns the same would play until somebody looks."""
    at = "algorithm.filter_groups"
    keys = {f"{at}.enable": True, f"{at}.max_num_gen_batches": 2}
    lone = {"name": "d", "rewards": [1.0, None]}  # its other episode is not worth 0
    async with played_by(tmp_path, monkeypatch, keys=keys, max_unscored_share=0.9) as run:
        await run.play([GOOD, {"name": "b", "rewards": [1.0]}], step=1)
        await run.play([{"name": "c", "rewards": [1.0]}, lone], step=1)
        with pytest.raises(RunStopped, match="in 1 of 4 groups"):
            run.ask([{**GOOD, "name": "e"}], step=1)
        run.manager.take_step_records()
        await run.play([{**GOOD, "name": "f"}], step=2)


async def test_a_validation_is_its_own(tmp_path, monkeypatch):
    """It is sampled with its own settings, n of its own, and enters no step's metrics."""
    validation = {"temperature": 0.25, "top_p": 0.5, "top_k": 7}
    prefix = "actor_rollout_ref.rollout.val_kwargs"
    keys = {f"{prefix}.{name}": value for name, value in validation.items()}
    async with played_by(tmp_path, monkeypatch, keys=keys) as run:
        await run.play([GOOD, OTHER], step=7, validate=True)
        assert run.manager.take_step_records() == []
        await run.play([{**GOOD, "name": "c"}], step=8)
    of_validation, of_training = run.engine[0].requests[:2], run.engine[0].requests[2:]
    for requests, sampling in ((of_validation, validation), (of_training, SAMPLING)):
        for request in requests:
            assert {name: request[name] for name in sampling} == sampling
    assert run.queue.statuses("val") == {"a": "finished", "b": "finished"}
    assert {place for place, _ in run.queue.tags} == {"val", "train"}
    assert {key for place, key in run.queue.tags if place == "train"}.isdisjoint({"a", "b"})
    assert sorted(key for place, key in run.queue.rows if place == "val") == ["a_0_0", "b_0_0"]
    assert [line["mode"] for line in run.lines()] == ["val"] * 2 + ["train"] * 2
    assert not any(line["tokens"] for line in run.lines()[:2])


async def test_a_validation_that_was_not_scored_stops(tmp_path, monkeypatch):
    """Its number would name the best checkpoint."""
    async with played_by(tmp_path, monkeypatch) as run:
        run.ask([GOOD, DEAD], step=1, validate=True)
        with pytest.raises(RunStopped, match="50% of 2"):
            await run.settled("a", "dead", partition="val")
    assert run.queue.rows == {}


async def test_the_tokens_and_messages_of_a_step_are_kept_once(tmp_path, monkeypatch):
    """Groups that replace failed ones belong to the step, whose worst and best are noted."""
    many = {"name": "a", "rewards": [0.1, 0.2]}
    async with played_by(tmp_path, monkeypatch) as run:
        await run.play([many, {**many, "name": "b"}], step=1)
        await run.play([{**many, "name": "c"}], step=1)
        await run.play([{**many, "name": "d"}], step=2)
    for name in ("tokens", "transcript"):
        assert {line["group"] for line in run.lines() if line.get(name)} == {"a", "b", "d"}
    texts = [line["tokens"][0][1]["texts"] for line in run.lines() if line["group"] == "a"]
    assert all(text[0] == "[7]" for text in texts)


async def test_a_run_in_which_nothing_ends_stops_but_not_while_calls_end(tmp_path, monkeypatch):
    """A slow policy may need longer for an episode than the run bears silence."""
    now = [0.0]
    looks = list[float]()

    def at_the_rollouts() -> float:
        looks.append(now[0])
        return now[0]

    clocks = {"engine.rollout_manager": at_the_rollouts, "proxy.gate": lambda: 150.0}
    for module, clock in clocks.items():
        monkeypatch.setattr(f"training.{module}.time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr("training.engine.rollout_manager.silence_limit", lambda seconds: 100.0)
    async with played_by(tmp_path, monkeypatch, runner=False) as run:
        run.ask([GOOD], step=1)
        while not looks:
            await asyncio.sleep(0.01)
        async with run.manager.policy.gate:
            pass  # a call ends at 150
        now[0] = 200.0
        while looks.count(200.0) < 2:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(run.manager.wait_for_news, 0.0)
        now[0] = 300.0
        with pytest.raises(RunStopped, match="2 are waiting"):
            await run.settled("a")


async def test_a_run_whose_engine_is_gone_says_so_and_not_that_nothing_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("training.engine.rollout_manager.silence_limit", lambda seconds: 0.2)
    async with played_by(tmp_path, monkeypatch, runner=False) as run:
        await asyncio.to_thread(run.engine[0].stop)
        run.ask([GOOD], step=1)
        with pytest.raises(RunStopped, match=f"vLLM at .*{run.engine[0].port}"):
            await run.settled("a")


async def test_records_older_than_verl_trains_on_are_forgotten(tmp_path, monkeypatch):
    """verl drops sequences more than the bound behind; a run of days would keep their records."""
    async with played_by(tmp_path, monkeypatch) as run:
        for step, name in enumerate("abcd", start=1):
            await run.play([{**GOOD, "name": name}], step)
        taken = run.manager.take_trained_records(["d_0", "d_1"])
        assert keys_of(taken) == ["d_0", "d_1"]
        assert sorted(run.manager.delivered) == []
        for step, name in ((5, "e"), (6, "f"), (7, "g")):
            await run.play([{**GOOD, "name": name}], step)
        run.manager.take_trained_records(["f_0"])
        assert sorted(run.manager.delivered) == ["f_1", "g_0", "g_1"]


async def test_rollouts_are_queued_with_the_rules_of_a_run(tmp_path, monkeypatch):
    """Without them a rollout that hangs, or whose runner died, is lost, or played for ever."""
    async with played_by(tmp_path, monkeypatch, runner=False) as run:
        run.ask([GOOD], step=1)
        while not (found := await run.store.query_rollouts()):
            await asyncio.sleep(0.01)
    assert [rollout.config.max_attempts for rollout in found] == [MAX_ATTEMPTS] * 2 == [3, 3]
    for rollout in found:
        assert (*rollout.config.retry_condition,) == ("timeout", "unresponsive")
        assert (rollout.mode, rollout.input["name"]) == ("train", "a")


async def test_a_step_is_used_up_to_the_share_of_unscored_episodes_that_a_user_sets(
    tmp_path, monkeypatch
):
    async with played_by(tmp_path, monkeypatch, max_unscored_share=0.5) as run:
        await run.play([GOOD, DEAD], step=1)
    assert run.queue.statuses("train") == {"a": "finished", "dead": "failure"}


async def test_a_step_that_is_skipped_asks_whether_the_engine_lives(tmp_path, monkeypatch):
    async with played_by(tmp_path, monkeypatch) as run:
        run.ask([{**DEAD, "held": True}, {**DEAD, "name": "other", "held": True}], step=1)
        while len(run.engine[0].requests) < 4:
            await asyncio.sleep(0.01)
        await asyncio.to_thread(run.engine[0].stop)
        run.agent.released.set()
        with pytest.raises(RunStopped, match=f"vLLM at .*{run.engine[0].port}"):
            await run.settled("dead", "other")


async def test_an_update_begins_another_window(tmp_path, monkeypatch):
    """Half of the second step is unscored: with the first it would be a quarter, and be used."""
    async with played_by(tmp_path, monkeypatch) as run:
        await run.play([GOOD, OTHER], step=1)
        assert len(run.manager.take_step_records()) == 4
        assert run.manager.take_step_records() == []
        await run.play([{**GOOD, "name": "c"}, DEAD], step=2)
    assert run.queue.statuses("train")["c"] == "failure"
