"""Steps of a run between real neighbours: store, proxy, runner and rollout manager. Engine and
TransferQueue stand in (tests/training/standins.py).

    async with played_by(tmp_path, monkeypatch) as run:
        await run.play([{"name": "a", "rewards": [1.0, 0.0]}], step=1)

torch and verl are imported by the block, not by reading this module.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import agentlightning as agl
import httpx
import pytest
from omegaconf import DictConfig, OmegaConf

from common.access import bearer
from episodes.lit_agent import RESOURCE
from tests.training.conftest import running, served
from tests.training.plans import plan_of
from tests.training.standins import MODEL, Queue, StandInVllm, standing
from training.engine.records import RolloutRecord
from training.runners.episode_runner import EpisodeRunner
from training.store.store_client import StoreClient

SAMPLES = 2
TOKEN = "of-the-run"  # which store and proxy ask for
SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}


class Asker(agl.LitAgent[dict[str, Any]]):
    """Asks the policy as often as its task says, and earns the next of the task's rewards.

    A reward of None is an unscored episode; "held" ones wait for `released`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.played: Counter[str] = Counter()
        self.released = asyncio.Event()

    async def training_rollout_async(self, task: Any, resources: Any, rollout: Any) -> float | None:
        rewards = task["rewards"]
        reward = rewards[self.played[task["name"]] % len(rewards)]
        self.played[task["name"]] += 1
        llm = resources[RESOURCE]
        base = llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id)
        body = {"model": llm.model, **llm.sampling_parameters}
        asking = {"headers": bearer(TOKEN), "timeout": 30, "trust_env": False}
        async with httpx.AsyncClient(**asking) as client:
            for turn in range(task.get("turns", 1)):
                said = [{"role": "user", "content": f"{task['name']} {turn}"}]
                asked = {**body, "messages": said}
                answer = await client.post(base + "/chat/completions", json=asked)
                answer.raise_for_status()
        if task.get("held"):
            await self.released.wait()
        note = {"terms": {"judge": reward or 0.0}, "reward": reward, "counters": {}}
        note["unscored"] = "judge_failed" if reward is None else None
        note |= {"stop_reason": "answered", "turns": task.get("turns", 1), "transcript": [said]}
        agl.emit_annotation({"episode": json.dumps(note)})
        return reward

    validation_rollout_async = training_rollout_async


class Steps:
    """A rollout manager with its neighbours."""

    def __init__(
        self, manager: Any, queue: Queue, engine: list[StandInVllm], agent: Asker, store: Any
    ) -> None:
        self.manager = manager
        self.queue = queue
        self.engine = engine
        self.agent = agent
        self.store = store

    def ask(self, tasks: list[dict[str, Any]], step: int, validate: bool = False) -> None:
        """Ask for the rollouts of these tasks as verl does; a task's name is its group's."""
        from verl.utils import tensordict_utils as tu

        columns: dict[str, Any] = {
            "uid": [task["name"] for task in tasks],
            "task": [json.dumps(task) for task in tasks],
            "index": list(range(len(tasks))),
            "data_source": [task.get("type", "all") for task in tasks],
            "agent": [task.get("agent", "") for task in tasks],
        }
        told: dict[str, Any] = {"global_steps": step}
        if validate:
            told["validate"] = True
        tag = {"is_prompt": True, "status": "pending", "global_steps": step}
        partition = "val" if validate else "train"
        self.queue.kv_batch_put(columns["uid"], partition, tags=[dict(tag) for _ in tasks])
        self.manager.generate_sequences(tu.get_tensordict(columns, told))

    async def settled(self, *groups: str, partition: str = "train") -> None:
        """Wait as verl's trainer does, until these groups are finished or failed."""
        while {"pending", "running"} & {self.status(group, partition) for group in groups}:
            await asyncio.to_thread(self.manager.wait_for_news, 0.05)

    def status(self, group: str, partition: str = "train") -> str:
        """What a group is tagged with."""
        return str(self.queue.statuses(partition)[group])

    async def play(self, tasks: list[dict[str, Any]], step: int, validate: bool = False) -> None:
        self.ask(tasks, step, validate)
        names = [task["name"] for task in tasks]
        await self.settled(*names, partition="val" if validate else "train")

    def lines(self) -> list[dict[str, Any]]:
        text = (self.manager.plan.output.run_dir / "episodes.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]


def config_of(run_dir: Path, changes: dict[str, Any]) -> DictConfig:
    """verl's own files with sizes for a step of two questions; and `changes`."""
    from training.setup.verl_config import _verl_defaults

    config = _verl_defaults()
    keys = {
        "data.train_batch_size": 2,
        "data.max_prompt_length": 64,
        "data.max_response_length": 64,
        "data.seed": 42,
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": False,
        "algorithm.rollout_correction.bypass_mode": True,
        "actor_rollout_ref.model.path": MODEL,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 2,
        "actor_rollout_ref.rollout.n": SAMPLES,
        "actor_rollout_ref.rollout.calculate_log_probs": True,
        "actor_rollout_ref.rollout.val_kwargs.n": 1,
        "trainer.default_local_dir": str(run_dir / "checkpoints"),
        "trainer.v1.sampler.max_off_policy_threshold": 1,
    }
    for name, value in {**keys, **changes}.items():
        OmegaConf.update(config, name, value, force_add=True)
    return config


@asynccontextmanager
async def played_by(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    servers: int = 1,
    runner: bool = True,
    keys: dict[str, Any] | None = None,
    **plan: Any,
) -> AsyncIterator[Steps]:
    """A manager and what it needs; `plan` changes the run's plan, `keys` verl's tree."""
    import transfer_queue as tq

    from training.engine.rollout_manager import RolloutManager

    queue = Queue()
    for name in ("kv_batch_put", "kv_batch_get", "kv_list", "kv_clear"):
        monkeypatch.setattr(tq, name, getattr(queue, name))
    settings = {"store_token": TOKEN, "max_tokens": 32, "episode_timeout": 10.0, **plan}
    agent = Asker()
    with standing(servers) as engine:
        async with served(token=TOKEN) as store:
            address = store.server_address_root
            run_plan = plan_of(folder, model=MODEL, store_external_address=address, **settings)
            addresses = [f"127.0.0.1:{one.port}" for one in engine]
            manager = await asyncio.to_thread(
                RolloutManager, run_plan, config_of(folder, keys or {}), addresses, str
            )
            steps = Steps(manager, queue, engine, agent, store)
            try:
                if runner:
                    player = StoreClient(address, TOKEN)
                    async with running(EpisodeRunner(8, 60), agent, player):
                        yield steps
                else:
                    yield steps
            finally:
                await asyncio.to_thread(manager.close)


def keys_of(records: list[RolloutRecord]) -> list[str]:
    return sorted(record.key for record in records)
