"""Measure what scoring costs and how well the offline judge agrees with people.

    .venv/bin/python -m bench.scoring                  # about four minutes, one line of JSON last
    .venv/bin/python -m bench.scoring --no-step        # without the training run: seconds, step_overhead_ratio is null

- offline_answers_per_s: different answers the offline judge scores in a second on one core.
- offline_ms, offline_long_ms: milliseconds of processor time of one answer, mean and 99th
  percentile, of the same answers, and of answers about fields of 500 to 3,000 characters.
- llm_judge_ratio_32: throughput of the LLM judge with 32 calls in flight against a local server
  that answers after 100 ms, divided by the ideal of 320 a second. `litellm_ratio_32` is the same
  through `litellm.acompletion`.
- step_overhead_ratio: seconds of processor time that scoring 128 episodes takes (terms, offline
  judge, canaries), divided by the median seconds of a CPU training step of 128 episodes
  (`bench.step`). Four runner processes score beside each other, so a step waits for less than that.
- spearman: rank correlation of the offline judge and the held-out half of
  tests/sql_agent/judge/labels.jsonl.
"""

import argparse
import asyncio
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from bench._harness import main
from common.settings import Settings
from scoring.judge import Case, LLMJudge
from sql_agent.agent import AGENT
from sql_agent.judge.nothing import says_nothing
from sql_agent.judge.reference import ReferenceJudge
from sql_agent.judge_words import WORDS

ROOT = Path(__file__).resolve().parent.parent
LABELS = ROOT / "tests" / "sql_agent" / "judge" / "labels.jsonl"
LATENCY = 0.1  # seconds
IN_FLIGHT = 32
LLM_CALLS = 640
EPISODES = 128
ROUNDS = 5  # the best of so many counts: other work on the machine can only slow it


def cases() -> list[Case]:
    """Return answers to every training question: right, half right, and right for the next
    question.
    """
    rows = AGENT.rows(AGENT.splits["train"])
    found = []
    for row, other in zip(rows, [*rows[1:], rows[0]], strict=True):
        gold = {
            name: json.loads(row[name]) for name in ("structured_gt", "evidence") if row.get(name)
        }
        shown = {"status": "success", **gold.get("structured_gt", {"columns": [], "rows": []})}
        context = [json.dumps(shown, ensure_ascii=False)]
        for answer in (row["answer"], row["answer"][: len(row["answer"]) // 2], other["answer"]):
            found.append(Case(row["question"], answer, row["answer"], context, gold))
    return [case for case in found if not says_nothing(case)]


def long_cases() -> list[Case]:
    """Return answers about fields as long as real records': the field, its first half, and a
    refusal.
    """
    texts = [case.reference for case in cases()[::3]]
    random, found = Random(0), []
    for length in [500, 1000, 2000, 3000] * 25:
        field = ""
        while len(field) < length:
            field += random.choice(texts) + "。"
        gold = {"structured_gt": {"columns": ["field"], "rows": [[field]]}}
        for answer in (field, field[: length // 2], "数据库中没有找到。"):
            found.append(Case("该药的说明是什么？", answer, field[:200], [], gold))
    return found


def answer_ms(known: list[Case]) -> dict[str, float]:
    """Return the mean and the 99th percentile of the judge's milliseconds for an answer."""
    judge, taken = ReferenceJudge(), []
    judge.compare(known[0])  # loads OpenCC and cn2an
    for case in known[1:]:
        start = time.process_time()
        judge.compare(case)
        taken.append(1000 * (time.process_time() - start))
    last = sorted(taken)[int(0.99 * len(taken))]
    return {"mean": round(sum(taken) / len(taken), 3), "p99": round(last, 2)}


def serve(port: Connection) -> None:
    """Answer every chat completion after LATENCY with four scores, until killed."""
    scores = json.dumps(dict.fromkeys(WORDS.weights, 0.5))
    message = {"role": "assistant", "content": scores}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    reply = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    reply["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = json.dumps(reply).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
                length = next(
                    int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length")
                )
                await reader.readexactly(length)
                await asyncio.sleep(LATENCY)
                writer.write(head + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def llm_ratios(known: list[Case]) -> tuple[float, float]:
    """Return throughput over the ideal for the LLM judge, and through litellm's own client."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    server = spawn.Process(target=serve, args=(there,), daemon=True)
    server.start()
    try:
        address = ("openai/judge", f"http://127.0.0.1:{here.recv()}/v1", "none", 30.0)
        direct = _best_ratio(partial(LLMJudge, WORDS, *address), known)
        return direct, _best_ratio(partial(_translated, *address), known)
    finally:
        server.kill()
        server.join()


def _translated(*address: Any) -> LLMJudge:
    judge = LLMJudge(WORDS, *address)
    judge.client.chat_model.translated = True
    return judge


def _best_ratio(make: Callable[[], LLMJudge], known: list[Case]) -> float:
    return max(asyncio.run(_ratio(make(), known)) for _ in range(ROUNDS))


async def _ratio(judge: LLMJudge, known: list[Case]) -> float:
    """Return calls a second over IN_FLIGHT / LATENCY. A first call a worker opens connections."""
    warm = known[:IN_FLIGHT]
    measured = iter(known[IN_FLIGHT : IN_FLIGHT + LLM_CALLS])
    await asyncio.gather(*(_must_score(judge, case) for case in warm))

    async def work() -> None:
        for case in measured:
            await _must_score(judge, case)

    start = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return LLM_CALLS / (time.perf_counter() - start) * LATENCY / IN_FLIGHT


async def _must_score(judge: LLMJudge, case: Case) -> None:
    verdict = await judge.judge(case)
    if verdict.usage.calls != 1:
        raise RuntimeError(f"expected one call and a score, got {verdict}")


def scoring_seconds() -> float:
    """Return the processor seconds of scoring EPISODES episodes as a runner does it: gold SQL is
    run, and canaries are drawn.
    """
    settings = Settings(_env_file=None)
    environment = AGENT.open(settings, {})
    random = Random(0)
    rows = AGENT.rows(AGENT.splits["train"])[:EPISODES]
    tasks = [AGENT.task(row, settings) for row in rows]

    async def score() -> float:
        played = [(task, episode) for task in tasks if (episode := await environment.gold(task))]
        start = time.process_time()
        for task, episode in played:
            await environment.score(task, episode)
            dishonest = [*environment.dishonest(task, random).values()]
            if dishonest and random.random() < settings.canary_share:
                await environment.score(task, random.choice(dishonest))
        return time.process_time() - start

    return asyncio.run(score())


def step_seconds() -> float:
    from bench.step import report, train

    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        return float(report(run_dir, train(run_dir, steps=3))["seconds_per_step"])


def agreement() -> tuple[float, int]:
    """Return Spearman's rank correlation on the held-out labels (ties get their mean rank), and
    their number.
    """
    import pandas

    rows = [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines()]
    held_out = [row for row in rows if row["half"] == "held_out"]

    async def judged() -> list[float | None]:
        judge = ReferenceJudge()
        return [(await judge.judge(_labelled(row))).score for row in held_out]

    scores = pandas.Series(asyncio.run(judged()))
    labels = pandas.Series([row["score"] for row in held_out])
    return float(scores.rank().corr(labels.rank())), len(held_out)


def _labelled(row: dict[str, Any]) -> Case:
    gold = {"structured_gt": row["structured_gt"], "evidence": row["evidence"]}
    return Case(row["question"], row["answer"], row["reference"], [], gold)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    known = cases()
    alone, long = answer_ms(known), answer_ms(long_cases())
    llm, through_litellm = llm_ratios(known)
    spearman, labels = agreement()
    seconds = scoring_seconds()
    step = None if options.no_step else step_seconds()
    return {
        "offline_answers_per_s": round(1000 / alone["mean"]),
        "offline_ms": alone,
        "offline_long_ms": long,
        "llm_judge_ratio_32": round(llm, 3),
        "litellm_ratio_32": round(through_litellm, 3),
        "scoring_seconds_per_128": round(seconds, 4),
        "seconds_per_step": step,
        "step_overhead_ratio": round(seconds / step, 5) if step else None,
        "spearman": round(spearman, 3),
        "held_out_labels": labels,
    }


FLAGS = {"--no-step": {"action": "store_true", "help": "leave out the training run"}}

if __name__ == "__main__":
    main("scoring", __doc__, measure, FLAGS)
