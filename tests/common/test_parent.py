"""No process of ours outlives the one that started it, not even where that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from common import parent
from common.settings import ROOT

pytestmark = pytest.mark.system
STARTS = """
import os, subprocess, sys, time
command = [sys.executable, {parent!r}, str(os.getpid()), sys.executable, "-c", {program!r}]
print(subprocess.Popen(command, start_new_session=True).pid, flush=True)
time.sleep(600)
"""
SLEEPS = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"])
"""
TIDIES = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(open({file!r}, "w").close()))
print(1, flush=True)
time.sleep(600)
"""
POOL = """
import multiprocessing, time
from common.parent import end_with

def work():
    end_with(multiprocessing.parent_process().pid)
    print(multiprocessing.current_process().pid, flush=True)
    time.sleep(600)

multiprocessing.get_context("fork").Process(target=work).start()
time.sleep(600)
"""


def led(program: str) -> list[str]:
    return [sys.executable, parent.__file__, str(os.getpid()), sys.executable, "-c", program]


def test_a_command_and_its_children_end_with_a_killed_parent() -> None:
    script = STARTS.format(parent=parent.__file__, program=SLEEPS)
    starter = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert starter.stdout
    leader = psutil.Process(int(starter.stdout.readline()))
    assert starter.stdout.readline() == "1\n"  # all are there
    family = [leader, *leader.children(recursive=True)]
    assert len(family) == 3
    starter.kill()
    starter.wait()
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive


def test_a_command_s_exit_code_is_handed_on() -> None:
    for program, code in (("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)):
        assert subprocess.run(led(program), check=False).returncode == code


def test_a_command_ends_itself_when_its_group_is_told_to(tmp_path: Path) -> None:
    program = TIDIES.format(file=str(tmp_path / "ended"))
    process = subprocess.Popen(led(program), stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout
    assert process.stdout.readline()
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(60) == 0
    assert (tmp_path / "ended").exists()


def test_a_process_of_a_pool_ends_with_its_parent() -> None:
    """As a run's runner processes do (training/runners/episode_runner.py)."""
    starter = subprocess.Popen(
        [sys.executable, "-c", POOL], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert starter.stdout
    worker = psutil.Process(int(starter.stdout.readline()))
    starter.kill()
    starter.wait()
    with suppress(psutil.NoSuchProcess):
        worker.wait(60)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
