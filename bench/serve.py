"""How long visitors of a served agent wait: 64 at once, each asking again and again, with the
bundled tiny model.

    .venv/bin/python -m bench.serve          # about two minutes, vLLM's start included, one line of JSON last

The server is `.venv/bin/python -m evaluation.serve sql` with its own vLLM, all on this machine. `first_ms` is
from the request to the model's first reply, which arrives whole, `whole_ms` to the end of the
stream. `alone` is a single visitor. `questions_slowest` and `questions_fastest`: what the visitor
who got least, and most, was answered. `unfinished`: streams that ended without an answer's end.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import cycle, islice
from statistics import median, quantiles
from typing import Any

import httpx

from bench._harness import main
from common.settings import ROOT

SERVER = [sys.executable, "-m", "evaluation.serve", "sql", "sql_agent/tiny_model", "--port", "0"]
ALONE = 20  # questions
SECONDS = 40.0  # that visitors keep asking. Questions in flight are still answered

Times = tuple[float, float]  # to the first reply and to the end, in seconds


async def ask(client: httpx.AsyncClient, question: str) -> Times | None:
    """Ask one question. Return the times of its stream, or None if it does not end as it should."""
    body = {"model": "sql", "stream": True, "messages": [{"role": "user", "content": question}]}
    start = time.perf_counter()
    first = 0.0
    ended = False
    async with client.stream("POST", "v1/chat/completions", json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                chunk = json.loads(line.removeprefix("data: "))
                first = first or ("step" in chunk and time.perf_counter() - start) or 0.0
                ended = ended or "agent" in chunk
    return (first, time.perf_counter() - start) if ended else None


async def visit(
    client: httpx.AsyncClient, questions: Sequence[str], number: int, until: float
) -> list[Times | None]:
    """Play one visitor, who asks until the time is over, each beginning with another question."""
    found = []
    for question in islice(cycle(questions), number, None):
        if time.perf_counter() >= until:
            break
        found.append(await ask(client, question))
    return found


async def figures(address: str, visitors: int) -> dict[str, Any]:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=address, timeout=300, limits=limits, trust_env=False
    ) as client:
        questions = [*(await client.get("agent")).json()["cases"].values()]
        await ask(client, questions[0])  # the first question warms vLLM up
        alone = [await ask(client, question) for question in questions[:ALONE]]
        start = time.perf_counter()
        until = start + SECONDS
        found = await asyncio.gather(
            *(visit(client, questions, number, until) for number in range(visitors))
        )
        seconds = time.perf_counter() - start
    every = [one for visitor in found for one in visitor]
    counts = [len(visitor) for visitor in found]
    return {
        "visitors": visitors,
        "questions": len(every),
        "questions_per_s": round(len(every) / seconds, 2),
        "unfinished": sum(one is None for one in [*alone, *every]),
        "questions_slowest": min(counts),
        "questions_fastest": max(counts),
        **{f"alone_{name}": value for name, value in spread(alone).items()},
        **spread(every),
    }


def spread(found: Sequence[Times | None]) -> dict[str, float]:
    """Return the median, the 99th percentile and the longest, in milliseconds."""
    times = [one for one in found if one]
    figures: dict[str, float] = {}
    for place, name in enumerate(("first_ms", "whole_ms")):
        values = [one[place] * 1000 for one in times]
        p99 = quantiles(values, n=100, method="inclusive")[-1]
        marks = {"median": median(values), "p99": p99, "longest": max(values)}
        figures |= {f"{name}_{mark}": round(value, 1) for mark, value in marks.items()}
    return figures


def measure(options: argparse.Namespace) -> dict[str, Any]:
    server = subprocess.Popen(SERVER, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split(" is the ")[0]
        if not address.startswith("http"):
            raise RuntimeError("the server did not start; what it said stands above")
        return asyncio.run(figures(address, options.visitors))
    finally:
        server.terminate()
        server.wait(60)


if __name__ == "__main__":
    main("serve", __doc__, measure, {"--visitors": {"type": int, "default": 64}})
