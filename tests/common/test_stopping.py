"""Signals end a program in order, and no process of ours outlives the one that started it."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable

import psutil
import pytest

from common import parent
from common.settings import ROOT

pytestmark = pytest.mark.system
PROGRAM = """
import asyncio, subprocess, sys
from common.command import run_command
from common.stopping import stop_in_order

async def work():
    child = subprocess.Popen(["sleep", "600"])
    print(f"ready {child.pid}", flush=True)
    try:
        await asyncio.sleep(600)
    finally:
        alive = child.poll() is None
        child.kill()
        print("said at the end", flush=True)
        with open(sys.argv[1], "w") as file:
            file.write(f"ended in order, child alive: {alive}")

stop_in_order()
sys.exit(run_command("program", lambda: asyncio.run(work())))
"""
INTERRUPTED = 130
SECONDS = 60  # what hangs is killed then
# How a shell starts what stands before & in a script, and what stands behind nohup.
BACKGROUND = (signal.SIGINT, signal.SIGQUIT)
NOHUP = (signal.SIGHUP,)


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path):
    """Start the program, deaf to some signals, in a process group that is killed at the end."""
    groups = []

    def started(deaf_to: tuple[int, ...] = (), **options: object) -> subprocess.Popen[str]:
        def ignore() -> None:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            for number in deaf_to:
                signal.signal(number, signal.SIG_IGN)

        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "end")]
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True} | options
        program = subprocess.Popen(  # type: ignore[call-overload]
            command, cwd=ROOT, preexec_fn=ignore, start_new_session=True, **how
        )
        groups.append(program.pid)
        return program  # type: ignore[no-any-return]

    yield started
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def wait_until_ready(program: subprocess.Popen[str]) -> None:
    assert program.stdout is not None
    assert program.stdout.readline().startswith("ready")


@pytest.mark.parametrize("deaf_to", [(), BACKGROUND], ids=["foreground", "background"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_each_signal_ends_it_in_order(number, deaf_to, start, tmp_path):
    program = start(deaf_to)
    wait_until_ready(program)
    os.kill(program.pid, number)
    said, errors = program.communicate(timeout=SECONDS)
    assert (program.returncode, said) == (INTERRUPTED, "said at the end\n"), errors
    assert (tmp_path / "end").read_text() == "ended in order, child alive: True"


def test_a_terminal_that_is_gone_hides_no_end(start, tmp_path):
    """Whatever is printed after that raises OSError, and the end must not."""
    ours, theirs = pty.openpty()
    program = start(stdout=theirs, stderr=theirs)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as screen:
        assert screen.readline().startswith(b"ready")
    os.kill(program.pid, signal.SIGHUP)
    assert program.wait(SECONDS) == INTERRUPTED
    assert (tmp_path / "end").read_text() == "ended in order, child alive: True"


@pytest.mark.parametrize("blocked", [[signal.SIGHUP], []], ids=["by its starter", "by nohup"])
def test_a_hangup_that_is_blocked_is_left_to_who_blocked_it(blocked, start):
    """A program that started it hears it, too, and ends what it started in its own order."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)  # as its child inherits it
    try:
        program = start(() if blocked else NOHUP)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    wait_until_ready(program)
    os.kill(program.pid, signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(0.5)
    os.kill(program.pid, signal.SIGTERM)
    program.communicate(timeout=SECONDS)
    assert program.returncode == INTERRUPTED


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


def test_a_command_and_its_children_end_with_a_killed_parent():
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
