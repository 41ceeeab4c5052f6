"""What the trainer does around verl's own steps, on verl's trainer with stand-ins behind it."""

import asyncio
import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.messages import missing
from tests.training.steps import Steps, played_by
from training.engine.checkpoints import STEP_METRICS
from training.engine.watchdog import MISMATCH
from training.setup.agreement import CHOICES
from training.setup.plan import RunStopped

TASKS = [{"name": "a", "rewards": [1.0, 0.0], "turns": 2}, {"name": "b", "rewards": [0.25, 0.75]}]
# They need a critic, or what verl's V1 trainer does not hand them
CANNOT = {"gae", "remax", "gdpo", "optimal_token_baseline", "tir_optimal_token_baseline"}
EQUAL = [{"name": "a", "rewards": [0.5]}, {"name": "b", "rewards": [1.0]}]


class Workers:
    """verl's workers: they note what they are asked for, and answer with these metrics."""

    def __init__(self, **metrics: float) -> None:
        told = {"mfu": 0.5, "grad_norm": 1.0} | metrics
        self.metrics = {name: [value] for name, value in told.items()}
        self.updates: list[list[str]] = []

    def update_actor(self, batch: Any) -> dict[str, Any]:
        self.updates.append(list(batch.keys))
        return {"metrics": dict(self.metrics)}


def trainer_of(run: Steps, step: int = 1, **metrics: float) -> Any:
    """verl's trainer with our parts, as it is after its workers were made."""
    from training.engine.trainer import LightningTrainer

    trainer = LightningTrainer.__new__(LightningTrainer)
    trainer.config, trainer.trainer_mode = run.manager.config, "sync"
    trainer.agent_loop_manager, trainer.global_steps = run.manager, step
    trainer.actor_rollout_wg = Workers(**metrics)
    trainer.curr_step_profile, trainer.timing_raw = False, {}
    return trainer


async def update(run: Steps, trainer: Any) -> dict[str, Any]:
    """verl's advantages of all that is queued, then the update; returns its metrics."""
    metrics: dict[str, Any] = {}
    batch = run.queue.batch()
    trainer._compute_advantage(batch, metrics)
    await asyncio.to_thread(trainer._update_actor, batch, metrics)
    return metrics


@pytest.fixture
async def played(tmp_path, monkeypatch):
    """A step of two questions that was played and queued."""
    async with played_by(tmp_path, monkeypatch) as run:
        await run.play(TASKS, step=1)
        yield run


async def test_an_update_is_accounted_for(played):
    trainer = trainer_of(played)
    metrics = await update(played, trainer)
    [update_of] = trainer.actor_rollout_wg.updates
    assert sorted(update_of) == ["a_0_0", "a_0_1", "a_1_0", "a_1_1", "b_0_0", "b_1_0"]
    counts = {"episodes": 4, "sequences": 6, "triplets": 6, "groups": 2, "learnable_groups": 2}
    counts |= {"generated_tokens": 12, "trained_tokens": 12, "weight_updates": 1}
    books = {name: metrics[name] for name in metrics if name.startswith("books/")}
    assert books == {f"books/{name}": count for name, count in counts.items()}
    assert (metrics["episodes/rollouts"], metrics["episodes/reward/mean"]) == (4, 0.5)


async def test_a_checkpoint_holds_the_metrics_of_its_step(played, monkeypatch):
    """verl writes them after the validation that follows, in which the run may be killed."""
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

    def save(trainer: Any) -> None:
        (Path(trainer.config.trainer.default_local_dir) / "global_step_1/actor").mkdir(parents=True)

    monkeypatch.setattr(PPOTrainerSync, "_save_checkpoint", save)
    monkeypatch.setattr(PPOTrainerSync, "on_step_begin", lambda _: None)
    trainer = trainer_of(played)
    trainer.on_step_begin()
    metrics = await update(played, trainer)
    metrics["actor/pg_loss"] = float("nan")
    trainer._save_checkpoint()
    folder = Path(trainer.config.trainer.default_local_dir)
    kept = json.loads((folder / "global_step_1" / STEP_METRICS).read_text())
    for name, value in metrics.items():
        if name.startswith(("books/", "episodes/")):
            assert kept[name] == value
    assert kept["timing_s/step"] > 0
    assert "actor/pg_loss" not in kept, "no JSON has NaN"


@pytest.mark.parametrize(
    ("column", "times", "plus", "named"),
    [("advantages", 1, 0.1, ["-0.1500", "-0.2500"]), ("loss_mask", 0, 0, ["10 tokens", "12"])],
)
async def test_what_differs_from_the_records_stops_before_the_update(
    played, column, times, plus, named
):
    trainer = trainer_of(played)
    batch = played.queue.batch()
    trainer._compute_advantage(batch, {})
    row = played.queue.rows["train", "b_0_0"]
    row[column] = row[column] * times + plus
    with pytest.raises(RunStopped) as stop:
        trainer._update_actor(batch, {})
    assert not missing(str(stop.value), *named)
    assert trainer.actor_rollout_wg.updates == []


async def test_rows_that_fill_a_batch_up_are_no_episodes(played):
    """verl adds copies that train nothing until its workers have equal shares."""
    trainer = trainer_of(played)
    batch = played.queue.batch()
    trainer._compute_advantage(batch, {})
    batch.keys = [*batch.keys, "padding_0_0"]
    batch.tags = [*batch.tags, {"is_padding": True}]
    metrics: dict[str, Any] = {}
    trainer._update_actor(batch, metrics)
    assert metrics["books/sequences"] == 6


def test_verl_knows_the_names_that_are_accepted():
    from verl.trainer.ppo import core_algos

    known = set(core_algos.ADV_ESTIMATOR_REGISTRY)
    assert known - set(CHOICES["algorithm.adv_estimator"]) == CANNOT
    losses = CHOICES["actor_rollout_ref.actor.policy_loss.loss_mode"]
    assert set(core_algos.POLICY_LOSS_REGISTRY) - set(losses) == {"geo_mean"}


async def test_a_validation_of_several_episodes_a_task_is_their_mean(tmp_path, monkeypatch):
    """verl gives the best of each task beside it, and a term called acc for the reward."""
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

    given = {"val-core/all/acc/best@4/mean": 0.7}
    monkeypatch.setattr(PPOTrainerSync, "_validate", lambda _: given)
    keys = {"actor_rollout_ref.rollout.val_kwargs.n": 4}
    async with played_by(tmp_path, monkeypatch, keys=keys) as run:
        await run.play([{"name": "a", "rewards": [1.0, 0.0, 0.0, 0.0]}], step=1, validate=True)
        trainer = trainer_of(run)
        assert trainer._validate() == {**given, "validation/reward": 0.25}
        assert trainer._validate() == given, "of a later one nothing was played"


async def test_a_step_that_teaches_nothing_is_no_update(tmp_path, monkeypatch):
    async with played_by(tmp_path, monkeypatch) as run:
        await run.play(EQUAL, step=1)
        trainer = trainer_of(run)
        metrics = await update(run, trainer)
    assert trainer.actor_rollout_wg.updates == []
    assert (metrics["books/groups"], metrics["books/learnable_groups"]) == (2, 0)
    assert metrics["books/trained_tokens"] == metrics["books/generated_tokens"] == 0


async def test_sequences_that_verl_would_compare_as_episodes_stop(tmp_path, monkeypatch):
    """Of GRPO alone it takes one advantage an episode."""
    keys = {"algorithm.adv_estimator": "rloo"}
    async with played_by(tmp_path, monkeypatch, keys=keys) as run:
        await run.play(TASKS, step=1)
        with pytest.raises(RunStopped, match="4 episodes became 6 sequences"):
            await update(run, trainer_of(run))


def test_fewer_rows_than_a_checkpoint_s_place_begin_anew():
    from torchdata.stateful_dataloader import StatefulDataLoader
    from verl.utils.dataset.rl_dataset import collate_fn

    from training.engine.trainer import LightningTrainer

    def loader(count: int) -> Any:
        rows = [{"raw_prompt": "", "index": number} for number in range(count)]
        return StatefulDataLoader(rows, batch_size=1, collate_fn=collate_fn)

    before = loader(10)
    several = iter(before)
    for _ in range(7):
        next(several)
    trainer: Any = LightningTrainer.__new__(LightningTrainer)
    trainer.train_dataloader, trainer.train_dataloader_it = loader(4), None
    trainer.train_dataloader.load_state_dict(before.state_dict())
    found = [int(trainer._fetch_one_gen_batch()["index"][0]) for _ in range(5)]
    assert found == [0, 1, 2, 3, 0]


@pytest.mark.parametrize(("mismatch", "warns"), [(0.01, True), (1e-8, False)])
async def test_another_policy_than_the_one_that_plays_is_warned_of(mismatch, warns, played, caplog):
    """verl measures it in the loss, under a name of its own."""
    caplog.set_level(logging.WARNING, logger="training.engine.watchdog")
    metrics = await update(played, trainer_of(played, **{MISMATCH: mismatch, "pg_loss": 1.0}))
    assert metrics[MISMATCH] == mismatch
    assert f"actor/{MISMATCH}" not in metrics
    assert metrics["actor/pg_loss"] == 1.0
    assert ("log-probabilities differ" in caplog.text) is warns


def holds_back(run: Steps, loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a call that begins now waits; asked from another thread than the loop's."""

    async def call() -> None:
        async with asyncio.timeout(0.5), run.manager.policy.gate:
            pass

    try:
        asyncio.run_coroutine_threadsafe(call(), loop).result()
    except TimeoutError:
        return True
    return False


async def test_weights_change_while_calls_are_held_back(played):
    """A call that passes while they do would be of both."""
    seen, loop = [], asyncio.get_running_loop()

    def look(step: int) -> None:
        seen.append((step, holds_back(played, loop)))

    trainer = trainer_of(played, step=5)
    wakes = {"update_weights": look, "resume_generation_replicas": lambda: None}
    trainer.checkpoint_manager = SimpleNamespace(**wakes)
    await asyncio.to_thread(trainer.on_step_end)
    assert seen == [(5, True)]
    assert not await asyncio.to_thread(holds_back, played, loop)


async def test_calls_are_held_back_before_verl_puts_vllm_to_sleep(played, monkeypatch):
    """On a GPU a call that came late was answered when vLLM woke, which waited for that call."""
    from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

    gate, seen = played.manager.policy.gate, []
    monkeypatch.setattr(PPOTrainerSync, "on_sample_end", lambda _: seen.append(gate._closed))
    played.manager.last_end = 0.0
    trainer_of(played).on_sample_end()
    assert seen == [True]
    gate.open()


def test_the_metrics_of_a_resumed_run_follow_those_before(tmp_path, monkeypatch):
    """Each line is there at once, for whoever watches the run."""
    import verl.utils.tracking

    import training.engine.trainer  # noqa: F401 (puts its own in verl's place)

    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n')
    monkeypatch.setenv("VERL_FILE_LOGGER_PATH", str(path))
    verl.utils.tracking.FileLogger("project", "experiment").log({"loss": 0.5}, step=2)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2]
