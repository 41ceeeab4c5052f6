"""What the database tool costs: every figure a ratio against the raw side in the same run, the result cache off.

    python -m bench.sql_tool                 # about a minute; one line of JSON last

The raw side is the same SQL on the tool's own SQLAlchemy engine and pool, fetched whole, plus json.dumps. Both sides
take turns, and the ratios are of medians.

The search runs on 200,000 invented drugs and 20,000 diseases, lengthened to the size of leaflets, with the indexes on
the names that data/database/schema.py gives. A LIKE that begins with % can use no index to find rows, but SQLite scans
an index instead of the table when the index has every column the statement needs ("covering"): the pages of an index on
(med_name) hold names and row numbers only, a hundredth of the table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from sqlalchemy import Engine

from tools.sql.database import open_database
from tools.sql.guard import check
from tools.sql.query import DEFAULT_TABLES, QueryTool

ROOT = Path(__file__).resolve().parent.parent
DRUGS, DISEASES = 200_000, 20_000
# The invented rows have short texts; the leaflets they stand for fill some 2 KB a row, and that is what a scan reads.
LEAFLET = "UPDATE drugs_info SET precautions = precautions || hex(zeroblob(200)), description = hex(randomblob(500))"
CALLERS = 64
BOMBS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
    "SELECT count(*) FROM drugs_info a, drugs_info b, drugs_info c",
    "SELECT a.id FROM drugs_info a, drugs_info b, drugs_info c ORDER BY a.precautions || b.indication",
    "SELECT group_concat(a.precautions) FROM drugs_info a, drugs_info b, drugs_info c",
    "WITH RECURSIVE s(t) AS (SELECT 'ab' UNION ALL SELECT t || t FROM s) SELECT max(length(t)) FROM s",
    "SELECT DISTINCT a.precautions, b.precautions FROM drugs_info a, drugs_info b",
    "SELECT count(*) FROM drugs_info a, drugs_info b WHERE a.indication || b.dosage LIKE '%啊%啊%'",
)


def build(path: Path) -> None:
    """A database of the size of the search, with the index; rows are those of data.build_database."""
    import sqlite3

    command = [sys.executable, "-m", "data.build_database", "--output", str(path)]
    sizes = ["--fictional-drugs", str(DRUGS), "--fictional-diseases", str(DISEASES)]
    subprocess.run(command + sizes, cwd=ROOT, check=True, stdout=sys.stderr)
    with closing(sqlite3.connect(path)) as connection:
        for statement in (LEAFLET, "VACUUM"):
            connection.execute(statement)
            connection.commit()


def raw(engine: Engine, sql: str) -> str:
    """The raw side: the statement as it is, every row, as JSON."""
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(sql, execution_options={"no_parameters": True}).fetchall()
    return json.dumps([list(row) for row in rows], ensure_ascii=False)


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int, calls: int = 1) -> float:
    """Median seconds of ours over median seconds of theirs; the two take turns."""
    first, second = [], []
    for _ in range(rounds):
        first.append(_seconds(ours, calls))
        second.append(_seconds(theirs, calls))
    return median(first) / median(second)


def _seconds(call: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start


def guard_figures(url: str) -> dict[str, float]:
    """A point lookup on the embedded database, with the syntax tree cached and not, and with the result cached."""
    engine = open_engine(url)
    tool, cached = QueryTool(url, cache=False), QueryTool(url)
    (name,) = tool.run("SELECT med_name FROM drugs_info WHERE id = 7").rows[0]
    sql = f"SELECT indication FROM drugs_info WHERE med_name = '{name}'"
    numbers = iter(range(10**9))

    def unseen() -> str:
        return tool.run(
            f"SELECT indication FROM drugs_info WHERE med_name = '{name}' AND id > -{next(numbers)}"
        ).to_json()

    warm = ratio(lambda: tool.run(sql).to_json(), lambda: raw(engine, sql), rounds=60, calls=50)
    cold = ratio(unseen, lambda: raw(engine, sql), rounds=60, calls=20)
    speedup = 1 / ratio(lambda: cached.run(sql).to_json(), lambda: tool.run(sql).to_json(), rounds=60, calls=50)
    return {"guard_ratio_warm": warm, "guard_cold_ratio": cold, "cached_speedup": speedup}


def open_engine(url: str) -> Engine:
    """The tool's own engine: its pool, with its connections."""
    return open_database(url)._engine


def search_figures(url: str) -> dict[str, float]:
    """LIKE '%...%' on the name over 200,000 drugs, alone and by 64 callers at a time."""
    engine, tool = open_engine(url), QueryTool(url, cache=False)
    (name,) = tool.run(f"SELECT med_name FROM drugs_info WHERE id = {DRUGS // 2}").rows[0]
    like = f"LIKE '%{name[1:]}%'"
    sql = f"SELECT id, med_name FROM drugs_info WHERE med_name {like}"
    rows = f"SELECT id, med_name FROM drugs_info NOT INDEXED WHERE med_name {like}"
    alone = ratio(lambda: tool.run(sql).to_json(), lambda: raw(engine, sql), rounds=25)
    speedup = 1 / ratio(lambda: tool.run(sql).to_json(), lambda: raw(engine, rows), rounds=7)
    together = ratio(lambda: crowd(lambda: tool.run(sql).to_json()), lambda: crowd(lambda: raw(engine, sql)), rounds=5)
    return {"like_200k_ratio": alone, "like_200k_speedup": speedup, "concurrency_ratio_64": 1 / together}


def crowd(call: Callable[[], Any]) -> None:
    """64 callers, two calls each."""
    with ThreadPoolExecutor(CALLERS) as threads:
        list(threads.map(lambda _: call(), range(2 * CALLERS)))


def bomb_figures(url: str) -> dict[str, float]:
    """Milliseconds beyond the deadline, and MiB more than before, at worst over statements made to be expensive."""
    tool = QueryTool(url, cache=False)
    for sql in BOMBS:
        check(sql, "sqlite", DEFAULT_TABLES)
    process, before, worst = psutil.Process(), psutil.Process().memory_info().rss, 0.0
    peak, done = [before], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            peak[0] = max(peak[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for sql in BOMBS:
        worst = max(worst, min(_seconds(partial(tool.run, sql), 1) for _ in range(2)))
    done.set()
    watcher.join()
    overshoot = max(0.0, worst - tool.limits.deadline) * 1000
    return {"deadline_overshoot_ms": overshoot, "bomb_rss_mb": (peak[0] - before) / 2**20}


def main() -> None:
    """Run the bench and print its one line of JSON."""
    argparse.ArgumentParser(prog="python -m bench.sql_tool", description=__doc__).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.db"
        build(path)
        figures = guard_figures(f"sqlite:///{ROOT / 'data' / 'medical.db'}")
        figures |= search_figures(f"sqlite:///{path}") | bomb_figures(f"sqlite:///{path}")
    machine = f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, {platform.machine()}"
    print(json.dumps({"bench": "sql_tool", "machine": machine} | {key: round(figures[key], 3) for key in figures}))


if __name__ == "__main__":
    main()
