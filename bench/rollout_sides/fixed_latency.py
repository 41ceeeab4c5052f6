"""The path around the model, against an LLM with a fixed latency: no engine takes the cores.

The other side is a bare asyncio loop over the same server with the same tool.
"""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import psutil
from omegaconf import OmegaConf

from bench._harness import at_once, medians
from bench.rollout_sides.side_processes import AGENT, llm, plan_for, stores_with_runners
from bench.rollout_sides.standin_llm import ANSWER
from sql_agent.intake.question_files import COLUMNS
from sql_agent.prompts import first_messages
from tools.sql.query import QueryTool
from tools.sql.settings import DEFAULT_DATABASE
from training.engine.rollout_manager import Finished, RolloutManager
from training.setup.plan import ProxyPlan

QUESTION = "第一种药治什么病？"
ROW = {"id": "q", "question": QUESTION, "answer": ANSWER, "task_type": "drug_field"}
TASK = json.dumps(dict.fromkeys(COLUMNS, "") | ROW)
SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}
# Calls an episode, and episodes in flight, of the comparison with the bare loop
CALLS = 4
IN_FLIGHT = 16
# Runner processes, and episodes that each plays at once
SIZES = ((1, 10), (1, 100), (1, 1000), (2, 500), (4, 250), (8, 125))
WIDEST = (16, 62)
# Roles of the bench's processes, by a word of their command
ROLES = {"serve_store": "store", "run_runners": "runners", "standin_llm": "llm"}


def manager(
    address: str,
    run_dir: Path,
    server: str,
    max_turns: int,
    n: int,
    proxy: str = "direct",
    port: int = 0,
) -> RolloutManager:
    """Return the product's rollout manager before a stand-in server, with `n` episodes a prompt."""
    rollout = {**SAMPLING, "n": n, "val_kwargs": {**SAMPLING, "n": 1}, "calculate_log_probs": False}
    config = OmegaConf.create(
        {
            "data": {"max_prompt_length": 8192, "max_response_length": 8192, "train_batch_size": 1},
            "algorithm": {"adv_estimator": "grpo"},
            "actor_rollout_ref": {"model": {"path": "standin"}, "rollout": rollout},
        }
    )
    return RolloutManager(
        plan_for(address, run_dir, max_turns, ProxyPlan(proxy, port=port)), config, [server], str
    )


def play(side: RolloutManager, tasks: list[str]) -> tuple[float, list[Finished]]:
    """Play n episodes of every task (a row as JSON). Return (seconds, what was collected).

    Raises RuntimeError: an episode was not collected completely.
    """
    same = {"global_steps": 1, "data_source": "all"}
    rows = [
        {"uid": str(number), "index": number, "task": task, **same}
        for number, task in enumerate(tasks)
    ]

    async def wave() -> list[Finished]:
        return await side._finish_all(await side._enqueue(rows, validate=False))

    started = time.perf_counter()
    finished = side._run(wave()).result()
    seconds = time.perf_counter() - started
    lost = Counter(record.cause for record, _ in finished if record.cause)
    if lost:
        raise RuntimeError(
            f"{lost.total()} of {len(finished)} episodes were not collected whole: {dict(lost)}"
        )
    return seconds, finished


async def bare_loop(server: str, episodes: int, calls: int, in_flight: int) -> float:
    """Return seconds for the same episodes in a plain asyncio loop with the tool in a thread."""
    tool = QueryTool(DEFAULT_DATABASE)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def episode(_: int) -> None:
            messages: list[dict[str, Any]] = list(first_messages(QUESTION))
            for _ in range(calls):
                body = {"model": "standin", "messages": messages, "tools": AGENT.tools, **SAMPLING}
                async with session.post(f"http://{server}/v1/chat/completions", json=body) as reply:
                    message = (await reply.json())["choices"][0]["message"]
                messages.append(message)
                for call in message.get("tool_calls") or []:
                    sql = json.loads(call["function"]["arguments"])["sql"]
                    result = await asyncio.to_thread(tool.run, sql)
                    messages.append(
                        {"role": "tool", "tool_call_id": call["id"], "content": result.to_json()}
                    )

        return await at_once(episode, episodes, in_flight)


def against_bare_loop(run_dir: Path, latency: float, rounds: int) -> dict[str, Any]:
    """Return rollouts a second of both proxies' paths, and over the bare loop's."""
    waves = 12  # enough that the first and the last do not dominate
    episodes = IN_FLIGHT * waves
    with (
        llm(latency, CALLS) as server,
        stores_with_runners(*[(1, IN_FLIGHT, CALLS)] * 2) as addresses,
    ):
        ours = {
            proxy: manager(address, run_dir, server, CALLS, IN_FLIGHT, proxy=proxy)
            for proxy, address in zip(("litellm", "direct"), addresses, strict=True)
        }
        sides = {
            proxy: partial(_play_seconds, side, [TASK] * waves) for proxy, side in ours.items()
        }
        bare = {"bare": lambda: asyncio.run(bare_loop(server, episodes, CALLS, IN_FLIGHT))}
        middle = medians({**sides, **bare}, rounds)
        for side in ours.values():
            side.close()
    return {
        "rollouts_per_second": {name: round(episodes / value, 1) for name, value in middle.items()},
        "ratio": {name: round(middle["bare"] / middle[name], 3) for name in ours},
    }


def _play_seconds(side: RolloutManager, tasks: list[str]) -> float:
    return play(side, tasks)[0]


def growth(
    run_dir: Path,
    sizes: Sequence[tuple[int, int]] = SIZES,
    latency: float = 0.05,
    calls: int = 2,
) -> list[dict[str, Any]]:
    """Return the path's rollouts a second, memory in MB and processor milliseconds a rollout.

    They are by runner processes and episodes in flight, and shown on standard error as they come.
    """
    rows = []
    with llm(latency, calls) as server:
        for count, concurrency in sizes:
            with stores_with_runners((count, concurrency, calls)) as (address,):
                side = manager(address, run_dir, server, calls, 10)
                play(side, [TASK] * count)
                rows.append({"runners": count, **_wave(side, count * concurrency)})
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
                side.close()
    return rows


def _wave(side: RolloutManager, in_flight: int) -> dict[str, Any]:
    before = _processor_seconds()
    seconds, finished = play(side, [TASK] * max(20, in_flight // 10))
    taken = {role: spent - before.get(role, 0.0) for role, spent in _processor_seconds().items()}
    return {
        "in_flight": in_flight,
        "rollouts_per_second": round(len(finished) / seconds, 1),
        "processor_ms": {
            role: round(1000 * spent / len(finished), 2) for role, spent in taken.items()
        },
        "children_rss_mb": _children_rss(),
        "children_pss_mb": _children_pss(),
    }


def _processor_seconds() -> dict[str, float]:
    """Return the processor seconds so far by role. This process is proxy and collector. A child
    without a role, such as Python's tracker of shared resources, is "other".
    """
    spent = {"proxy": _seconds_of(psutil.Process())}
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # it ended since it was listed
            command = " ".join(child.cmdline())
            role = next((role for word, role in ROLES.items() if word in command), "other")
            seconds = sum(map(_seconds_of, [child, *child.children(recursive=True)]))
            spent[role] = spent.get(role, 0.0) + seconds
    return spent


def _seconds_of(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def long_run(run_dir: Path, minutes: float, latency: float = 0.05) -> dict[str, Any]:
    """Roll out for `minutes`. Return the memory of all processes in MB, medians of each tenth."""
    with llm(latency, 2) as server, stores_with_runners((1, 32, 2)) as (address,):
        side = manager(address, run_dir, server, 2, 32)
        play(side, [TASK] * 20)
        samples = []
        played = 0
        end = time.monotonic() + minutes * 60
        while time.monotonic() < end:
            played += len(play(side, [TASK] * 10)[1])
            samples.append(_children_rss() + psutil.Process().memory_info().rss // 2**20)
        side.close()
    tenth = max(1, len(samples) // 10)
    by_tenth = [median(samples[at : at + tenth]) for at in range(0, len(samples), tenth)]
    return {"minutes": minutes, "rollouts": played, "rss_mb_by_tenth": by_tenth}


def _children_rss() -> int:
    return (
        sum(child.memory_info().rss for child in psutil.Process().children(recursive=True)) // 2**20
    )


def _children_pss() -> int:
    """Return the memory of all child processes in MB. What several share counts once in all."""
    children = psutil.Process().children(recursive=True)
    return sum(child.memory_full_info().pss for child in children) // 2**20
