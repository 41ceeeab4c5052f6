"""Measure what the report costs: reading many episodes, opening a page, scrolling its list.

    .venv/bin/python -m bench.report                   # about two minutes, one line of JSON last

The episodes are gold episodes of the SQL agent, repeated under ids of their own: 5,000 on one page,
and 100,000 of which a sample is shown. Figures of the page are medians of 5.

- read_seconds, read_peak_mb: `.venv/bin/python -m evaluation.report` of 100,000 episodes, and its largest resident set.
- page_mb: the page of 5,000 episodes.
- open_seconds: from asking Chromium for that page to its first frame, a new context each.
- search_seconds: from the last key of a first search in all texts to the rows drawn.
- frames_per_second, slowest_frame_ms: the list scrolled from top to end in 2 s, a step a frame.
- frames_at_rest: the same without moving, 60 if the machine is free.
- main_thread_ms: processor time of the page's main thread a scrolled frame, the script that scrolls
  included. Below 16.7 the list can scroll at 60 frames a second.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench._harness import main
from common.command import UsageError
from common.jsonl import read_jsonl
from common.terminal import watched

SHOWN = 5_000
MANY = 100_000
ROUNDS = 5
SCROLL = """(speed) => new Promise((done) => {
    const list = document.getElementById("list"), frames = [], begin = performance.now();
    let last = begin;
    requestAnimationFrame(function step(now) {
        frames.push(now - last); last = now;
        list.scrollTop = speed * list.scrollHeight * (now - begin) / 2000;
        now - begin < 2000 ? requestAnimationFrame(step) : done(frames.slice(2));
    });
})"""
SEARCH = """() => new Promise((done) => {
    const box = document.getElementById("by-text"), begin = performance.now();
    box.value = "乙"; box.dispatchEvent(new Event("input"));
    document.getElementById("list").getBoundingClientRect();
    requestAnimationFrame(() => done(performance.now() - begin));
})"""


def folder_of(path: Path, records: list[dict[str, Any]], count: int) -> Path:
    """Return an evaluation of so many episodes."""
    path.mkdir()
    with open(path / "episodes.jsonl", "w", encoding="utf-8") as file:
        for number in range(count):
            record = records[number % len(records)] | {"id": f"task-{number}"}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    (path / "scores.json").write_text('{"agent": "sql", "model": "gold"}', encoding="utf-8")
    return path


def reported(folder: Path) -> dict[str, float]:
    """Return the command's seconds and its peak of memory, which the kernel counts over all
    children so far.
    """
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "evaluation.report", str(folder)], check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {"read_seconds": round(time.perf_counter() - start, 1), "read_peak_mb": round(peak)}


def browsed(page: Path) -> dict[str, float]:
    """Return the medians of opening, searching and scrolling in a headless Chromium."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise UsageError("no Chromium on this machine; apt-get install chromium")
    rounds: list[tuple[float, float, list[float], list[float], float]] = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in watched(range(ROUNDS), "browsing", "rounds"):
            context = browser.new_context(viewport={"width": 1400, "height": 900})
            opened = context.new_page()
            opened.goto(page.as_uri())
            assert (
                opened.evaluate("window.report.ready && window.report.episodes.length")
                > 0.9 * SHOWN
            )
            taken = opened.evaluate(
                "new Promise((done) => requestAnimationFrame(() => done(performance.now())))"
            )
            opened.evaluate("document.getElementById('episodes').scrollIntoView()")
            work = worked(context.new_cdp_session(opened))
            before = next(work)
            frames = opened.evaluate(SCROLL, 1)
            after = next(work)
            rest = opened.evaluate(SCROLL, 0)
            search = opened.evaluate(SEARCH)
            rounds.append(
                (taken / 1000, search / 1000, frames, rest, 1000 * (after - before) / len(frames))
            )
            context.close()
    return {
        "open_seconds": round(median(one[0] for one in rounds), 2),
        "search_seconds": round(median(one[1] for one in rounds), 2),
        "frames_per_second": round(median(1000 * len(one[2]) / sum(one[2]) for one in rounds), 1),
        "frames_at_rest": round(median(1000 * len(one[3]) / sum(one[3]) for one in rounds), 1),
        "slowest_frame_ms": round(median(max(one[2]) for one in rounds), 1),
        "main_thread_ms": round(median(one[4] for one in rounds), 1),
    }


def worked(devtools: Any) -> Iterator[float]:
    """Yield a function for the processor seconds of the page's main thread so far."""
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    while True:
        found = {
            one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]
        }
        yield found["TaskDuration"]


def measure(options: Namespace) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as work:
        gold = Path(work) / "gold"
        evaluate = [
            sys.executable,
            "-m",
            "evaluation.evaluate",
            "sql",
            "--gold",
            "--out",
            str(gold),
        ]
        subprocess.run(evaluate, check=True)
        records = [record for _, record in read_jsonl(gold / "episodes.jsonl")]
        shown, many = (
            folder_of(Path(work) / str(count), records, count) for count in (SHOWN, MANY)
        )
        size = (many / "episodes.jsonl").stat().st_size / 2**20
        figures = {"read_file_mb": round(size), **reported(many)}
        reported(shown)
        page = shown / "report.html"
        return {**figures, "page_mb": round(page.stat().st_size / 2**20, 1), **browsed(page)}


if __name__ == "__main__":
    main("report", __doc__, measure)
