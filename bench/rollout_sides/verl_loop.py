"""verl's tool agent loop on the trainer's engine: in-process, no store, no proxy, no HTTP.

verl also imports this file by its path, for the tool (`multi_turn.function_tool_path`).
"""

import copy
import json
import time
from functools import cache
from statistics import fmean
from typing import Any

import transfer_queue as tq
from omegaconf import DictConfig, open_dict
from verl.tools.function_tool import function_tool
from verl.trainer.ppo.v1 import AgentLoopManagerTQ
from verl.utils import tensordict_utils
from verl.workers.rollout.llm_server import LLMServerClient

from common.settings import load_settings
from sql_agent.prompts import TOOL, TOOL_NAME, first_messages
from tools.sql.query import QueryTool
from tools.sql.settings import DatabaseSettings


@cache
def _tool() -> QueryTool:
    return QueryTool(load_settings().of(DatabaseSettings).database_url)


@function_tool(TOOL_NAME, schema=TOOL)
def query(sql: str = "", **_: Any) -> str:
    """Return what the agent's tool returns for the same query."""
    return _tool().run(sql).to_json()


class VerlLoop:
    """Plays the agent's episodes with verl's own tools. Rewards are not computed."""

    def __init__(self, config: DictConfig, client: LLMServerClient, max_turns: int) -> None:
        self.n = config.actor_rollout_ref.rollout.n
        changed = copy.deepcopy(config)
        with open_dict(changed):
            changed.data.custom_cls.path = None
            rollout = changed.actor_rollout_ref.rollout
            rollout.agent.default_agent_loop = "tool_agent"
            rollout.multi_turn.function_tool_path = __file__
            rollout.multi_turn.max_assistant_turns = max_turns
            rollout.multi_turn.format = "hermes"
        self.manager = AgentLoopManagerTQ.create(
            config=changed, llm_client=client, teacher_client=None, reward_loop_worker_handles=None
        )

    def play(self, tasks: list[str]) -> tuple[float, float]:
        """Play n episodes of every task (a row as JSON). Return (seconds, mean number of calls)."""
        batch = [_row(number, task) for number, task in enumerate(tasks)]
        uids = [row["uid"] for row in batch]
        prompts = tensordict_utils.list_of_dict_to_tensordict(batch)
        tensordict_utils.assign_non_tensor_data(prompts, "global_steps", 1)
        started = time.perf_counter()
        pending = {"is_prompt": True, "status": "pending", "global_steps": 1}
        tq.kv_batch_put(keys=uids, partition_id="train", tags=[pending] * len(uids))
        self.manager.generate_sequences(prompts)
        while not _all_finished(uids):
            time.sleep(0.005)
        seconds = time.perf_counter() - started
        return seconds, _take_calls(len(tasks) * self.n)


def _row(number: int, task: str) -> dict[str, Any]:
    question = json.loads(task)["question"]
    return {
        "uid": f"verl{number}",
        "index": number,
        "raw_prompt": first_messages(question),
        "data_source": "all",
    }


def _all_finished(uids: list[str]) -> bool:
    tags = tq.kv_list(partition_id="train")["train"]
    states = [tags[uid]["status"] for uid in uids]
    if "failure" in states:
        raise RuntimeError("verl's tool agent loop failed; the worker's log says why")
    return all(state == "finished" for state in states)


def _take_calls(expected: int) -> float:
    tags = tq.kv_list(partition_id="train")["train"]
    keys = [key for key, tag in tags.items() if not tag.get("is_prompt")]
    if len(keys) != expected:
        raise RuntimeError(f"verl's tool agent loop left {len(keys)} episodes of {expected}")
    data = tq.kv_batch_get(keys=keys, partition_id="train", select_fields=["num_turns"])
    tq.kv_clear(partition_id="train", keys=list(tags))
    # verl counts the question, every reply and every tool result.
    return fmean(float(turns) / 2 for turns in data["num_turns"])
