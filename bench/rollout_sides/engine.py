"""The real engine under all sides: one vLLM, one set of weights, and four ways to play the same episodes on it.

- ours, through the litellm proxy and through `--proxy direct`;
- agent-lightning's own runners on the same store and litellm proxy (`agl_runner`), and with its own proxy as well
  (`agl_path`: what a project has that uses agent-lightning as it comes);
- verl's tool agent loop: in-process, no store, no proxy, no HTTP.

The last and ours are measured again with 50 ms added before every call. Everything is in one Ray actor, as in
training. Run by `bench.rollouts`.
"""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import Any

import ray
import transfer_queue as tq
from omegaconf import DictConfig, OmegaConf, open_dict
from verl.trainer.ppo.v1 import AgentLoopManagerTQ
from verl.utils import tensordict_utils
from verl.workers.rollout.llm_server import LLMServerClient

from bench.rollout_sides.fixed import play
from bench.rollout_sides.processes import process, wait_for
from sql_agent.prompts import first_messages
from training.direct import HEALTH
from training.middleware import RecordingMiddleware
from training.plan import Plan
from training.ports import free_port
from training.rollouts import RolloutManager
from training.store import TRACES_PATH
from training.trainer import LightningTrainer

LATENCY = 0.05
Play = Callable[[], tuple[float, float]]


class LateClient(LLMServerClient):
    """verl's way to its engine, 50 ms longer."""

    async def generate(self, *args: Any, **named: Any) -> Any:
        await asyncio.sleep(LATENCY)
        return await super().generate(*args, **named)


class VerlLoop:
    """verl's tool agent loop on the trainer's engine."""

    def __init__(self, config: DictConfig, client: LLMServerClient, max_turns: int) -> None:
        self.n = config.actor_rollout_ref.rollout.n
        self.manager = AgentLoopManagerTQ.create(
            config=_with_tools(config, max_turns),
            llm_client=client,
            teacher_client=None,
            reward_loop_worker_handles=None,
        )

    def play(self, tasks: list[str]) -> tuple[float, float]:
        """Play n episodes of every task; returns (seconds, mean number of the policy's calls)."""
        batch = [_verl_row(number, task) for number, task in enumerate(tasks)]
        uids = [row["uid"] for row in batch]
        prompts = tensordict_utils.list_of_dict_to_tensordict(batch)
        tensordict_utils.assign_non_tensor_data(prompts, "global_steps", 1)
        started = time.perf_counter()
        tags = [{"is_prompt": True, "status": "pending", "global_steps": 1} for _ in uids]
        tq.kv_batch_put(keys=uids, partition_id="train", tags=tags)
        self.manager.generate_sequences(prompts)
        while not _all_finished(uids):
            time.sleep(0.005)
        seconds = time.perf_counter() - started
        return seconds, _take_calls(len(tasks) * self.n)


def _with_tools(config: DictConfig, max_turns: int) -> DictConfig:
    changed = copy.deepcopy(config)
    with open_dict(changed):
        changed.data.custom_cls.path = None
        changed.actor_rollout_ref.rollout.agent.default_agent_loop = "tool_agent"
        changed.actor_rollout_ref.rollout.multi_turn.function_tool_path = str(Path(__file__).parent / "verl_tools.py")
        changed.actor_rollout_ref.rollout.multi_turn.max_assistant_turns = max_turns
        changed.actor_rollout_ref.rollout.multi_turn.format = "hermes"
    return changed


def _verl_row(number: int, task: str) -> dict[str, Any]:
    question = json.loads(task)["question"]
    return {"uid": f"verl{number}", "index": number, "raw_prompt": first_messages(question), "data_source": "all"}


def _all_finished(uids: list[str]) -> bool:
    tags = tq.kv_list(partition_id="train")["train"]
    states = [tags[uid]["status"] for uid in uids]
    if "failure" in states:
        raise RuntimeError("verl's tool agent loop failed; the worker's log says why")
    return all(state == "finished" for state in states)


def _take_calls(expected: int) -> float:
    """Mean number of calls of the episodes in the queue, which is emptied."""
    tags = tq.kv_list(partition_id="train")["train"]
    keys = [key for key, tag in tags.items() if not tag.get("is_prompt")]
    if len(keys) != expected:
        raise RuntimeError(f"verl's tool agent loop left {len(keys)} episodes of {expected}")
    data = tq.kv_batch_get(keys=keys, partition_id="train", select_fields=["num_turns"])
    tq.kv_clear(partition_id="train", keys=list(tags))
    # verl counts the question, every reply and every tool result.
    return fmean(float(turns) / 2 for turns in data["num_turns"])


@ray.remote
class Sides:
    """Starts the engine once and measures every side on it."""

    def run(
        self, config: DictConfig, plan: Plan, addresses: list[str], tasks: list[str], rounds: int
    ) -> dict[str, Any]:
        """Medians of interleaved rounds; `addresses` are the stores of ours, of direct and of agent-lightning."""
        OmegaConf.resolve(config)
        tq.init(config.transfer_queue)
        trainer = LightningTrainer(config=config)
        trainer.init()
        with ExitStack() as stack:
            sides = self._sides(stack, config, plan, addresses, trainer, tasks)
            for side in sides.values():
                side()
            measured: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
            for _ in range(rounds):
                for name, side in sides.items():
                    measured[name].append(side())
        return {
            "seconds": {name: round(median(seconds for seconds, _ in rows), 3) for name, rows in measured.items()},
            "mean": {name: round(fmean(value for _, value in rows), 3) for name, rows in measured.items()},
            "sequences_per_episode": self.sequences,
            "breaks": dict(self.breaks),
        }

    def _sides(
        self,
        stack: ExitStack,
        config: DictConfig,
        plan: Plan,
        addresses: list[str],
        trainer: LightningTrainer,
        tasks: list[str],
    ) -> dict[str, Play]:
        servers = trainer.llm_server_manager.get_addresses()
        plans = [replace(plan, external_store_address=address, proxy="direct") for address in addresses]
        ours = RolloutManager(replace(plans[0], proxy="litellm"), config, servers)
        direct, agl_runner, agl_path = (RolloutManager(plans[at], config, servers) for at in (1, 2, 2))
        _redirect(agl_runner, ours.policy.address)
        _redirect(agl_path, stack.enter_context(_agl_proxy(addresses[2], agl_path)))
        in_process = VerlLoop(config, trainer.get_llm_client(), plan.max_turns)
        late = VerlLoop(config, trainer.llm_server_manager.get_client(client_cls=LateClient), plan.max_turns)
        self.sequences, self.breaks = 0.0, Counter[str]()

        def with_runners(side: RolloutManager, store: str, latency: float = 0.0) -> tuple[float, float]:
            with _recording_into(store), _latency(latency):
                seconds, finished = play(side, tasks)
            records = [record for record, _ in finished]
            if side is ours:
                self.sequences = round(fmean(record.sequences for record in records), 4)
                self.breaks = sum((Counter(record.breaks) for record in records), Counter())
            return seconds, fmean(record.reward or 0.0 for record in records)

        return {
            "litellm": lambda: with_runners(ours, addresses[0]),
            "direct": lambda: with_runners(direct, addresses[1]),
            "agl_runner": lambda: with_runners(agl_runner, addresses[2]),
            "agl_path": lambda: with_runners(agl_path, addresses[2]),
            "verl": lambda: in_process.play(tasks),
            "litellm_50ms": lambda: with_runners(ours, addresses[0], LATENCY),
            "direct_50ms": lambda: with_runners(direct, addresses[1], LATENCY),
            "verl_50ms": lambda: late.play(tasks),
        }


def _redirect(side: RolloutManager, address: str) -> None:
    """Publish another proxy's address in place of the side's own."""
    side.policy.address = address
    side.policy.resources = {"train": [], "val": []}
    side._run(side.policy.publish()).result()


@contextmanager
def _agl_proxy(store: str, side: RolloutManager) -> Iterator[str]:
    port = free_port("127.0.0.1")
    name, server = next(iter(side.policy.servers.items()))
    with process("bench.rollout_sides.agl_proxy", str(port), store, name, side.policy.model, server):
        yield wait_for(f"http://127.0.0.1:{port}", HEALTH)


@contextmanager
def _recording_into(store: str) -> Iterator[None]:
    """The litellm proxy's recorder writes into this store meanwhile."""
    recorder = RecordingMiddleware.default
    if recorder is None:
        raise RuntimeError("the litellm proxy has no recorder")
    recorder.endpoint, before = store + TRACES_PATH, recorder.endpoint
    yield
    recorder.endpoint = before


@contextmanager
def _latency(seconds: float) -> Iterator[None]:
    """Every call through a recording proxy of this process takes so much longer meanwhile."""
    plain = RecordingMiddleware.__call__

    async def slow(self: RecordingMiddleware, *message: Any) -> None:
        await asyncio.sleep(seconds)
        await plain(self, *message)

    if seconds:
        RecordingMiddleware.__call__ = slow  # type: ignore[assignment, method-assign]
    yield
    RecordingMiddleware.__call__ = plain  # type: ignore[method-assign]
