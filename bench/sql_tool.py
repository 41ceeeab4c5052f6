"""Measure what the database tool costs. Every figure is a ratio against the raw side in the same
run, the result cache off.

    .venv/bin/python -m bench.sql_tool                 # about a minute, one line of JSON last

The raw side is the same SQL on the tool's own SQLAlchemy engine and pool, fetched whole, plus
json.dumps. The guard's ratios compare QueryTool.answer with it in one process. `worker_overhead_ms`
is what the way to the worker and back adds, and everything else goes that way. The guard must stay
cheap beside a point lookup, a search must not pay for it, 64 callers at a time must not queue, and
no statement may outlive its deadline or fill memory.

The search runs on 200,000 invented drugs and 20,000 diseases, lengthened to the size of leaflets,
with the indexes on the names that sql_agent/tables.py gives. For a LIKE that begins with % SQLite
scans such an index, a hundredth of the table, if it has every column the statement needs.
"""

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Engine

from bench._harness import main, medians, sampled, seconds
from common.settings import ROOT
from tools.sql.database import open_database
from tools.sql.guard import check
from tools.sql.query import DEFAULT_TABLES, QueryTool
from tools.sql.settings import DEFAULT_DATABASE

DRUGS = 200_000
DISEASES = 20_000
# The invented rows have short texts. The leaflets they stand for fill some 2 KB a row, which a
# scan reads.
LEAFLET = (
    "UPDATE drugs_info SET precautions = precautions || "
    "hex(zeroblob(200)), description = hex(randomblob(500))"
)
CALLERS = 64
BOMBS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
    "SELECT count(*) FROM drugs_info a, drugs_info b, drugs_info c",
    "SELECT a.id FROM drugs_info a, drugs_info b, "
    "drugs_info c ORDER BY a.precautions || b.indication",
    "SELECT group_concat(a.precautions) FROM drugs_info a, drugs_info b, drugs_info c",
    "WITH RECURSIVE s(t) AS (SELECT 'ab' UNION ALL "
    "SELECT t || t FROM s) SELECT max(length(t)) FROM s",
    "SELECT DISTINCT a.precautions, b.precautions FROM drugs_info a, drugs_info b",
    "SELECT count(*) FROM drugs_info a, drugs_info b WHERE a.indication || b.dosage LIKE '%啊%啊%'",
)


def build(path: Path) -> None:
    """Make a database of the size of the search, with the index."""
    command = [sys.executable, "-m", "data.build_database", "--output", str(path)]
    sizes = ["--fictional-drugs", str(DRUGS), "--fictional-diseases", str(DISEASES)]
    subprocess.run(command + sizes, cwd=ROOT, check=True, stdout=sys.stderr)
    with closing(sqlite3.connect(path)) as connection:
        for statement in (LEAFLET, "VACUUM"):
            connection.execute(statement)
            connection.commit()


def raw(engine: Engine, sql: str) -> str:
    """Return the raw side's result: the statement unchanged, every row, as JSON."""
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(sql, execution_options={"no_parameters": True}).fetchall()
    return json.dumps([list(row) for row in rows], ensure_ascii=False)


def guarded(tool: QueryTool, sql: str) -> str:
    return tool.run(sql).to_json()


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int, calls: int = 1) -> float:
    taken = medians(
        {"ours": partial(seconds, ours, calls), "theirs": partial(seconds, theirs, calls)}, rounds
    )
    return taken["ours"] / taken["theirs"]


def open_engine(url: str) -> Engine:
    return open_database(url)._engine


def guard_figures(url: str) -> dict[str, float]:
    """Return figures of a point lookup: syntax tree cached and not, by a worker, with the result
    kept.
    """
    tool = QueryTool(url, cache=False)
    database = open_database(url)
    (name,) = tool.run("SELECT med_name FROM drugs_info WHERE id = 7").rows[0]
    sql = f"SELECT indication FROM drugs_info WHERE med_name = '{name}'"
    numbers = count()

    def here(sql: str) -> str:
        return tool.answer(database, sql).result.to_json()

    inside = partial(here, sql)
    theirs = partial(raw, open_engine(url), sql)
    ours = partial(guarded, tool, sql)
    cached = partial(guarded, QueryTool(url), sql)
    taken = medians(
        {"ours": partial(seconds, ours, 50), "inside": partial(seconds, inside, 50)}, rounds=60
    )
    return {
        "guard_ratio_warm": ratio(inside, theirs, rounds=60, calls=50),
        "guard_cold_ratio": ratio(
            lambda: here(f"{sql} AND id > -{next(numbers)}"), theirs, 60, calls=20
        ),
        "worker_overhead_ms": (taken["ours"] - taken["inside"]) / 50 * 1000,
        "cached_speedup": 1 / ratio(cached, ours, rounds=60, calls=50),
    }


def search_figures(url: str) -> dict[str, float]:
    """Return figures of LIKE '%...%' on the name over 200,000 drugs, alone and by 64 callers."""
    engine = open_engine(url)
    tool = QueryTool(url, cache=False)
    (name,) = tool.run(f"SELECT med_name FROM drugs_info WHERE id = {DRUGS // 2}").rows[0]
    like = f"LIKE '%{name[1:]}%'"
    sql = f"SELECT id, med_name FROM drugs_info WHERE med_name {like}"
    rows = f"SELECT id, med_name FROM drugs_info NOT INDEXED WHERE med_name {like}"
    ours = partial(guarded, tool, sql)
    theirs = partial(raw, engine, sql)
    return {
        "like_200k_ratio": ratio(ours, theirs, rounds=25),
        "like_200k_speedup": 1 / ratio(ours, partial(raw, engine, rows), rounds=7),
        "concurrency_ratio_64": 1 / ratio(partial(crowd, ours), partial(crowd, theirs), rounds=5),
    }


def crowd(call: Callable[[], Any]) -> None:
    """Call from 64 threads, twice each."""
    with ThreadPoolExecutor(CALLERS) as threads:
        list(threads.map(lambda _: call(), range(2 * CALLERS)))


def bomb_figures(url: str) -> dict[str, float]:
    """Return the most milliseconds beyond the deadline, and the most additional MiB, over
    statements made to be expensive.
    """
    tool = QueryTool(url, cache=False)
    for sql in BOMBS:
        check(sql, "sqlite", DEFAULT_TABLES)  # a refused statement would cost nothing
    tool.run("SELECT 1")  # starts the workers
    with sampled(resident, 0.005) as memory:
        worst = max(min(seconds(partial(tool.run, sql)) for _ in range(2)) for sql in BOMBS)
    overshoot = max(0.0, worst - tool.limits.deadline) * 1000
    return {"deadline_overshoot_ms": overshoot, "bomb_rss_mb": (max(memory) - memory[0]) / 2**20}


def resident() -> int:
    """Return the bytes that this process and its workers hold."""
    me = psutil.Process()
    total = 0
    for process in [me, *me.children()]:
        with suppress(psutil.NoSuchProcess):  # a worker that was just ended
            total += process.memory_info().rss
    return total


def measure(_: argparse.Namespace) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.db"
        build(path)
        large = f"sqlite:///{path}"
        figures = guard_figures(DEFAULT_DATABASE) | search_figures(large) | bomb_figures(large)
    return {name: round(value, 3) for name, value in figures.items()}


if __name__ == "__main__":
    main("sql_tool", __doc__, measure)
