"""What the data tools cost: 100,000 questions made and validated, memory, the journal, and how cost grows with size.

    python -m bench.data                 # under 15 minutes on two cores; one line of JSON last
    python -m bench.data --rows 20000    # smaller; the names of the figures stay, and `rows` says what they mean

Questions are made of 10,000 invented drugs and 7,000 diseases (making that database is not timed) by the programs a
user runs, each in a process of its own. Memory is the peak of the sum over a program's processes, for a tenth of the
rows and for all: of validation (`rss_mb_...`), and of a curation pass without an LLM (`curation_rss_mb_...`).

`journal_overhead_ratio` is the processor time spent in the journal (writing and reading every row) over that of the
rest of a curation pass. Each row of it is one question to an LLM through the project's client; the LLM is a local
server that answers at once, so what a real pass mostly does, waiting, is left out. A growth of 1 means that ten times
the rows take ten times as long.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
from pydantic import BaseModel

from common.journal import Journal, run_all
from common.llm import LLMClient
from data.questions.near_duplicates import NearDuplicates
from data.questions.split import Families, deal

ROOT = Path(__file__).resolve().parent.parent
DRUGS, DISEASES = 10_000, 7_000
CALLS = 1_000  # of the LLM in a pass
LOOK = 0.02  # seconds between two looks at memory


class Reply(BaseModel):
    """What the local LLM answers."""

    medical: bool


class TimedJournal(Journal):
    """A journal that adds up the processor time spent in it, in seconds."""

    seconds = 0.0

    def __contains__(self, key: str) -> bool:
        return self._timed(super().__contains__, key)

    def get(self, key: str) -> Any:
        return self._timed(super().get, key)

    def put(self, key: str, value: Any) -> None:
        before, start = self.seconds, time.thread_time()
        super().put(key, value)
        self.seconds = before + time.thread_time() - start  # without counting its look-up again

    def _timed(self, call: Callable[[str], Any], key: str) -> Any:
        start = time.thread_time()
        found = call(key)
        self.seconds += time.thread_time() - start
        return found


class Endpoint(BaseHTTPRequestHandler):
    """An OpenAI-compatible chat endpoint that always answers yes."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": '{"medical":true}'}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        reply = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        body = json.dumps(reply | {"usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


def serve(port: Any) -> None:
    """Run the endpoint for ever; its port goes into the pipe."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    port.send(server.server_port)
    server.serve_forever()


def journal_overhead(folder: Path) -> float:
    """Processor time in the journal over that of the rest of a pass with one LLM call a row."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    client = LLMClient("openai/m", base_url=f"http://127.0.0.1:{ours.recv()}/v1", api_key="none")

    async def ask(text: str) -> dict[str, Any]:
        answer = await client.ask([{"role": "user", "content": text}], Reply)
        return answer.value.model_dump() | {"question": text}

    async def passes() -> tuple[float, float]:
        with Journal(folder / "first.journal", {"program": "bench"}) as journal:
            await one_pass(journal, CALLS // 10, ask)  # imports litellm
        with (timed := TimedJournal(folder / "timed.journal", {"program": "bench"})):
            whole = await one_pass(timed, CALLS, ask)
            return timed.seconds, whole - timed.seconds

    try:
        inside, rest = asyncio.run(passes())
    finally:
        server.terminate()
        server.join()
    return inside / rest


async def one_pass(journal: Journal, rows: int, work: Callable[[str], Awaitable[Any]]) -> float:
    """Play a curation pass and read its results once; the processor time it took, in seconds."""
    start = time.process_time()
    outcome = await run_all(Questions(rows), str, work, journal, concurrency=8, title="bench")
    read = sum(1 for _ in outcome)
    assert read == rows
    return time.process_time() - start


class Questions:
    """Texts as long as questions, made when they are asked for."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __iter__(self) -> Any:
        return (f"问题 {number}：这种药有哪些不良反应，孕妇和老人可以吃吗？" for number in range(self.rows))


def pass_without_llm(folder: str, rows: int) -> None:
    """A curation pass whose work is nothing: what is left is the runner and the journal."""

    async def echo(text: str) -> dict[str, str]:
        return {"question": text, "reason": "这是一个可以用药品表回答的问题。"}

    with Journal(Path(folder) / f"pass{rows}.journal", {"program": "bench"}) as journal:
        asyncio.run(one_pass(journal, rows, echo))


def watched(process: psutil.Process) -> tuple[float, float]:
    """Wait for a process; its seconds, and its peak memory in MB with that of its children."""
    start, peak = time.perf_counter(), 0
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        peak = max(peak, _memory(process))
        time.sleep(LOOK)
    return time.perf_counter() - start, peak / 1e6


def _memory(process: psutil.Process) -> int:
    total = 0
    try:
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.NoSuchProcess:
        pass
    return total


def run(module: str, *arguments: str) -> tuple[float, float]:
    """Run one of the project's programs; seconds and peak MB."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=sys.stderr) as child:
        measured = watched(psutil.Process(child.pid))
        if child.wait():
            raise SystemExit(f"bench.data: {' '.join(command)} ended with {child.returncode}")
    return measured


def curation_memory(folder: Path, rows: int) -> float:
    """Peak MB of a pass in a fresh process."""
    child = multiprocessing.get_context("spawn").Process(target=pass_without_llm, args=(str(folder), rows))
    child.start()
    assert child.pid
    _, peak = watched(psutil.Process(child.pid))
    child.join()
    return peak


def generate_and_validate(folder: Path, url: str, rows: int) -> dict[str, float]:
    """Seconds of both programs, and the peak MB of validation."""
    output = folder / str(rows)
    output.mkdir()
    made, _ = run("data.build_dataset", "--db", url, "--output", str(output), "--rows", str(rows))
    checked, memory = run("data.validate", str(output / "qa_dataset.jsonl"), "--db", url)
    return {"generate": made, "validate": checked, "memory": memory}


def growth(work: Callable[[list[Mapping[str, Any]]], None], rows: list[Mapping[str, Any]]) -> float:
    """Processor time of the work on all rows over ten times that on a tenth of them."""
    seconds = []
    for part in (rows[: len(rows) // 10], rows):
        start = time.process_time()
        work(part)
        seconds.append(time.process_time() - start)
    return seconds[1] / seconds[0] / 10


def deduplicate(rows: list[Mapping[str, Any]]) -> None:
    """Look every question up among those before it, and remember it."""
    found = NearDuplicates()
    for row in rows:
        found.nearest(row["question"])
        found.add(row["id"], row["question"])


def split(rows: list[Mapping[str, Any]]) -> None:
    """Tie what questions name into families and deal those out."""
    families = Families(largest=20)
    for row in rows:
        families.tie(json.loads(row["entities"]))
    deal(families.groups(), {"train": 0.7, "test": 0.3}, random.Random(1))


def figures(folder: Path, rows: int) -> dict[str, float]:
    """All figures for so many rows and a tenth of them."""
    database = folder / "large.db"
    sizes = ["--fictional-drugs", str(DRUGS), "--fictional-diseases", str(DISEASES)]
    run("data.build_database", "--output", str(database), *sizes)
    url = f"sqlite:///{database}"
    few, many = (generate_and_validate(folder, url, count) for count in (rows // 10, rows))
    with (folder / str(rows) / "qa_dataset.jsonl").open(encoding="utf-8") as lines:
        made = [json.loads(line) for line in lines]
    random.Random(1).shuffle(made)
    return {
        "generate_validate_100k_s": many["generate"] + many["validate"],
        "generate_s": many["generate"],
        "validate_s": many["validate"],
        "generate_growth": many["generate"] / few["generate"] / 10,
        "validate_growth": many["validate"] / few["validate"] / 10,
        "deduplicate_growth": growth(deduplicate, made[: rows // 2]),
        "split_growth": growth(split, made),
        "journal_overhead_ratio": journal_overhead(folder),
        "rss_mb_10k": few["memory"],
        "rss_mb_100k": many["memory"],
        "curation_rss_mb_10k": curation_memory(folder, rows // 10),
        "curation_rss_mb_100k": curation_memory(folder, rows),
    }


def main() -> None:
    """Run the bench and print its one line of JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.data", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000, help="questions to make (default: 100,000)")
    options = parser.parse_args()
    if options.rows < 1_000:
        parser.error(f"--rows {options.rows}: expected 1,000 or more")
    with tempfile.TemporaryDirectory() as folder:
        found = figures(Path(folder), options.rows)
    machine = f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, {platform.machine()}"
    kept = {key: round(value, 4) for key, value in found.items()}
    print(json.dumps({"bench": "data", "machine": machine, "rows": options.rows} | kept))


if __name__ == "__main__":
    main()
