"""A statement can end the processes that run SQL and nothing else; they end with the program."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from common.settings import ROOT
from tests.programs import python
from tools.sql.errors import DatabaseError, MachineTooSlow
from tools.sql.pool import POOL, Overrun, Pool
from tools.sql.query import Limits

pytestmark = pytest.mark.system

# One look for a text in a text is one step of SQLite's machine and takes tenths of a second: its
# progress handler, asked every 10,000 steps, is never asked.
STALLING = (
    "WITH RECURSIVE s(t) AS (SELECT 'a' UNION ALL SELECT t || t FROM s WHERE length(t) < 60000), "
    "m AS MATERIALIZED (SELECT max(t) AS t FROM s) "
    "SELECT sum(instr(m.t || m.t, m.t || 'b' || a.id)) FROM m, disease a, disease b"
)
# 500 rows of 60 columns of 40 KB, with characters that make Python keep four bytes for every one.
WIDE = (
    "WITH RECURSIVE s(t) AS (SELECT '😀aaaaaaaaaaaaaaaaaaa' UNION ALL SELECT t || t FROM s WHERE length(t) < 20000), "
    "l AS (SELECT max(t) AS t FROM s), n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
    f"SELECT {', '.join(['t'] * 60)} FROM n, l"
)


def pids():
    return {worker.process.pid for worker in POOL.workers if worker}


def gone(processes, seconds=20.0):
    """Whether all of them end; generous, for a busy machine."""
    end = time.monotonic() + seconds
    while alive := [pid for pid in processes if psutil.pid_exists(pid) and not _is_zombie(pid)]:
        if time.monotonic() > end:
            return f"still there: {alive}"
        time.sleep(0.05)
    return True


def _is_zombie(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_statement_that_no_handler_stops_ends_its_worker_and_is_scored_at_once(tool, monkeypatch):
    tool.limits = Limits(deadline=0.3)
    assert tool.run("SELECT 1").ok
    before = pids()
    asked, ask = [], POOL.ask
    monkeypatch.setattr(POOL, "ask", lambda *question: asked.append(question) or ask(*question))
    answer = tool.run(STALLING)
    assert len(asked) == 1
    assert answer.status == "error"
    assert "太费时间或内存" in answer.error
    assert any(map(_is_zombie, before))  # or gone
    assert tool.run("SELECT count(*) FROM disease").ok


def test_a_result_beyond_a_workers_memory_is_the_statements_fault(tool):
    tool.limits = Limits(deadline=20.0)
    assert tool.run("SELECT 1").ok
    pid = POOL.workers[-1].process.pid
    most = psutil.Process(pid).memory_info().vms + 2**25
    resource.prlimit(pid, resource.RLIMIT_AS, (most, most))
    answer = tool.run(WIDE)
    assert answer.status == "error"
    assert "太费时间或内存" in answer.error
    assert tool.run("SELECT 2").rows == [[2]]


def test_a_worker_is_bounded_before_its_first_statement(tool):
    assert tool.run("SELECT 1").ok
    bound, _ = resource.prlimit(POOL.workers[-1].process.pid, resource.RLIMIT_AS)
    assert 0 < bound < 2**40


def play(program, *arguments, **options):
    """Run a program without a main guard, where the folder it runs in is not imported from."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return python("-P", "-c", textwrap.dedent(program), *arguments, env=env, **options)


ASKING = """
    import sys
    from tools.sql.query import QueryTool
    def ask():
        assert QueryTool("sqlite:///" + sys.argv[1]).run("SELECT count(*) FROM disease").ok
        print("ok", flush=True)
"""
FORKING = "import os\nif not (pid := os.fork()): ask(); os._exit(0)\nos.waitpid(pid, 0)"
CALLERS = {
    "a script without a main guard": "ask()",
    "a forked child of one that asked": "ask()\n" + FORKING,
    "a daemon": "from multiprocessing import get_context\n"
    "p = get_context('fork').Process(target=ask, daemon=True); p.start(); p.join()",
    "a caller with little memory": "import resource; resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)); ask()",
}


@pytest.mark.parametrize("caller", CALLERS)
def test_workers_start_from(caller, database, tmp_path):
    (tmp_path / "tools").mkdir()  # what stands where the caller works is not imported
    (tmp_path / "json.py").write_text("raise SystemExit('wrong json')")
    run = play(textwrap.dedent(ASKING) + CALLERS[caller], str(database), cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert set(run.stdout.split()) == {"ok"}


@pytest.mark.parametrize("python", [shutil.which("false"), "/no/such/python"])
def test_a_worker_that_cannot_start_is_the_machines_fault(python, tool, monkeypatch):
    monkeypatch.setattr("tools.sql.query.POOL", Pool())
    monkeypatch.setattr("tools.sql.pool.sys.executable", python)
    with pytest.raises(DatabaseError, match="start"):
        tool.run("SELECT 1")
    monkeypatch.undo()
    assert tool.run("SELECT 1").ok


DYING = """
    import os, sys, threading, time
    import psutil
    from tools.sql.query import Limits, QueryTool
    tool = QueryTool("sqlite:///" + sys.argv[1], limits=Limits(deadline=60.0))
    tool.run("SELECT 1")
    if sys.argv[3] == "holding" and os.fork() == 0:
        time.sleep(60)
    if sys.argv[3] == "asking":
        threading.Thread(target=tool.run, args=(sys.argv[2],), daemon=True).start()
        time.sleep(0.5)
    workers = [process.pid for process in psutil.Process().children() if "tools.sql.worker" in process.cmdline()]
    print(os.getpid(), *workers, flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("doing", ["asking", "holding"])
def test_workers_end_with_who_asked_even_when_that_is_killed(doing, database):
    command = [sys.executable, "-c", textwrap.dedent(DYING), str(database), STALLING, doing]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as caller:
        _, *workers = map(int, caller.stdout.readline().split())
        assert workers
        os.kill(caller.pid, signal.SIGKILL)
        assert gone(workers) is True
        if doing == "holding":
            os.killpg(caller.pid, signal.SIGKILL)


def test_a_statement_pays_its_processor_time_and_not_the_time_it_was_kept_waiting(
    tool, monkeypatch
):
    """Half of its deadline it works, stopped in the middle for longer than that."""
    tool.limits = Limits(deadline=1.0)
    counts = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) "
    with ThreadPoolExecutor(1) as thread:
        assert tool.run("SELECT 1").ok
        worker = next(worker for worker in reversed(POOL.workers) if worker)
        asked = thread.submit(tool.run, f"{counts} SELECT count(*) FROM n")
        for _ in range(5):
            time.sleep(0.01)
            os.kill(worker.process.pid, signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(worker.process.pid, signal.SIGCONT)
        assert asked.result().rows == [[300000]]


def test_a_worker_killed_while_it_works_is_asked_again(tool):
    assert tool.run("SELECT 1").ok
    worker = next(worker for worker in reversed(POOL.workers) if worker)
    os.kill(worker.process.pid, signal.SIGSTOP)  # it has not begun when it is killed
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(tool.run, "SELECT 3 AS three")
        time.sleep(0.2)
        worker.process.kill()
        assert asked.result().rows == [[3]]


def test_a_machine_that_ends_every_try_is_named_and_nothing_is_scored(tool, monkeypatch):
    def killed(*question):
        raise Overrun("its process ended with code -9")

    monkeypatch.setattr(POOL, "ask", killed)
    with pytest.raises(MachineTooSlow, match=r"3 tries .*-9"):
        tool.run("SELECT 4")
