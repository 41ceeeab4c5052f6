"""The path around the model, against an LLM with a fixed latency: no engine, so that nothing else takes the cores.

Real store, runners, proxy, agent, tool and collector; only the LLM is a stand-in (`standin.py`). The other side is a
bare asyncio loop over the same server with the same tool. Run by `bench.rollouts`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import psutil
from omegaconf import OmegaConf

from bench.rollout_sides.processes import llm, plan_for, stores_with_runners
from common.settings import DEFAULT_DATABASE
from sql_agent.prompts import TOOL, first_messages
from tools.sql.query import QueryTool
from training.rollouts import Finished, RolloutManager

QUESTION = "第一种药治什么病？"
TASK = json.dumps({"id": "q", "question": QUESTION, "answer": "数据库中没有找到。", "task_type": "drug_field"})
SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1}


def manager(address: str, run_dir: Path, server: str, max_turns: int, n: int, **changes: object) -> RolloutManager:
    """The product's rollout manager before a stand-in server; `n` episodes a prompt."""
    rollout = {**SAMPLING, "n": n, "val_kwargs": {**SAMPLING, "n": 1}, "calculate_log_probs": False}
    sizes = {"max_prompt_length": 8192, "max_response_length": 8192}
    model = {"model": {"path": "standin"}, "rollout": rollout}
    algorithm = {"adv_estimator": "grpo"}
    config = OmegaConf.create({"data": sizes, "algorithm": algorithm, "actor_rollout_ref": model})
    return RolloutManager(plan_for(address, run_dir, max_turns, **changes), config, [server])


def play(side: RolloutManager, tasks: list[str]) -> tuple[float, list[Finished]]:
    """Play n episodes of every task (a row as JSON), from the queue to collected sequences.

    Returns (seconds, what was collected). Raises RuntimeError when an episode was not collected whole.
    """
    rows = [{"uid": str(number), "global_steps": 1, "task": task} for number, task in enumerate(tasks)]
    started = time.perf_counter()
    finished = side._run(_wave(side, rows)).result()
    seconds = time.perf_counter() - started
    lost = Counter(record.cause for record, _ in finished if record.cause)
    if lost:
        raise RuntimeError(f"{lost.total()} of {len(finished)} episodes were not collected whole: {dict(lost)}")
    return seconds, finished


async def _wave(side: RolloutManager, rows: list[dict[str, Any]]) -> list[Finished]:
    return await side._finish_all(await side._enqueue(rows, validate=False))


async def bare_loop(server: str, episodes: int, calls: int, in_flight: int) -> float:
    """Seconds for the same episodes in a plain asyncio loop: HTTP, the tool in a thread, nothing else."""
    tool, waiting = QueryTool(DEFAULT_DATABASE), iter(range(episodes))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def episode() -> None:
            messages = list(first_messages(QUESTION))
            for _ in range(calls):
                body = {"model": "standin", "messages": messages, "tools": [TOOL], **SAMPLING}
                async with session.post(f"http://{server}/v1/chat/completions", json=body) as reply:
                    message = (await reply.json())["choices"][0]["message"]
                messages.append(message)
                for call in message.get("tool_calls") or []:
                    sql = json.loads(call["function"]["arguments"])["sql"]
                    result = await asyncio.to_thread(tool.run, sql)
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": result.to_json()})

        async def worker() -> None:
            for _ in waiting:
                await episode()

        started = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(in_flight)))
        return time.perf_counter() - started


def against_bare_loop(
    run_dir: Path, latency: float, rounds: int, calls: int = 4, in_flight: int = 16
) -> dict[str, Any]:
    """Rollouts a second of both proxies' paths over the bare loop's: medians of interleaved rounds."""
    episodes = in_flight * 12  # waves enough that the first and the last do not decide
    seconds: dict[str, list[float]] = {"litellm": [], "direct": [], "bare": []}
    with llm(latency, calls) as server, stores_with_runners(*[(1, in_flight, calls)] * 2) as (first, second):
        sides = {
            "litellm": manager(first, run_dir, server, calls, in_flight),
            "direct": manager(second, run_dir, server, calls, in_flight, proxy="direct"),
        }
        for side in sides.values():
            play(side, [TASK])  # connections, imports in the runners
        for _ in range(rounds):
            for name, side in sides.items():
                seconds[name].append(play(side, [TASK] * (episodes // in_flight))[0])
            seconds["bare"].append(asyncio.run(bare_loop(server, episodes, calls, in_flight)))
        for side in sides.values():
            side.close()
    middle = {name: median(values) for name, values in seconds.items()}
    return {
        "rollouts_per_second": {name: round(episodes / value, 1) for name, value in middle.items()},
        "ratio": {name: round(middle["bare"] / middle[name], 3) for name in sides},
    }


def tokens_by_calls(run_dir: Path) -> dict[str, Any]:
    """Tokens trained on over unique tokens, merged and one sequence a call (agent-lightning's default), by calls."""
    table = {}
    for calls in (2, 4, 8):
        ratios = {}
        with llm(0.0, calls) as server, stores_with_runners((1, 8, calls)) as (address,):
            for name, merge in (("merged", True), ("per_call", False)):
                side = manager(address, run_dir, server, calls, 8, proxy="direct", trajectory_level=merge)
                _, finished = play(side, [TASK])
                ratios[name] = _processed_over_unique(finished)
                ratios[f"{name}_sequences"] = sum(record.sequences for record, _ in finished) / len(finished)
                side.close()
        table[str(calls)] = ratios
    return table


def _processed_over_unique(finished: list[Finished]) -> float:
    lengths = [[len(s.prompt_ids) + len(s.response_ids) for s in trajectory.sequences] for _, trajectory in finished]
    return round(sum(map(sum, lengths)) / sum(map(max, lengths)), 3)


def growth(run_dir: Path, latency: float = 0.05, calls: int = 2) -> list[dict[str, Any]]:
    """Rollouts a second and memory of the path, by runner processes and episodes in flight."""
    rows = []
    sizes = [(1, 10), (1, 100), (1, 1000), (2, 500), (4, 250), (8, 125)]
    with llm(latency, calls) as server:
        for count, concurrency in sizes:
            with stores_with_runners((count, concurrency, calls)) as (address,):
                side = manager(address, run_dir, server, calls, 10)
                play(side, [TASK] * count)
                flight = count * concurrency
                seconds, finished = play(side, [TASK] * max(20, flight // 10))
                rows.append(
                    {
                        "runners": count,
                        "in_flight": flight,
                        "rollouts_per_second": round(len(finished) / seconds, 1),
                        "children_rss_mb": _children_rss(),
                    }
                )
                side.close()
    return rows


def long_run(run_dir: Path, minutes: float, latency: float = 0.05) -> dict[str, Any]:
    """Continuous rollouts for `minutes`: memory of all processes in MB, the median of each tenth of the time."""
    with llm(latency, 2) as server, stores_with_runners((1, 32, 2)) as (address,):
        side = manager(address, run_dir, server, 2, 32)
        play(side, [TASK] * 20)
        samples, played, end = [], 0, time.monotonic() + minutes * 60
        while time.monotonic() < end:
            played += len(play(side, [TASK] * 10)[1])
            samples.append(_children_rss() + psutil.Process().memory_info().rss // 2**20)
        side.close()
    tenth = max(1, len(samples) // 10)
    by_tenth = [median(samples[at : at + tenth]) for at in range(0, len(samples), tenth)]
    return {"minutes": minutes, "rollouts": played, "rss_mb_by_tenth": by_tenth}


def _children_rss() -> int:
    return sum(child.memory_info().rss for child in psutil.Process().children(recursive=True)) // 2**20
