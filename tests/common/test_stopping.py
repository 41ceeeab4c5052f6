"""SIGTERM, SIGHUP and Ctrl-C end a program in order, in the foreground and in the background."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

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
# A signal to the program itself goes to the thread that sends it.
UNHEARD = """
import os, signal
def kill(number, what, kill=os.kill):
    signal.raise_signal(what) if number == os.getpid() else kill(number, what)
os.kill = kill
"""
INTERRUPTED = 130
SECONDS = 60  # what hangs is killed then
# How a shell starts what stands before & in a script, and what stands behind nohup.
BACKGROUND = (signal.SIGINT, signal.SIGQUIT)
NOHUP = (signal.SIGHUP,)


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start the program in a process group of its own, ignoring some signals as its shell would; a
    group that is left at the end is killed.
    """
    groups = []

    def started(
        deaf_to: tuple[int, ...] = (), before: str = "", **options: object
    ) -> subprocess.Popen[str]:
        def ignore() -> None:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            for number in deaf_to:
                signal.signal(number, signal.SIG_IGN)

        command = [sys.executable, "-c", before + PROGRAM, str(tmp_path / "end")]
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
def test_each_signal_ends_it_in_order(
    number: signal.Signals, deaf_to: tuple[int, ...], start: Start, tmp_path: Path
) -> None:
    program = start(deaf_to)
    wait_until_ready(program)
    os.kill(program.pid, number)
    said, errors = program.communicate(timeout=SECONDS)
    assert (program.returncode, said) == (INTERRUPTED, "said at the end\n"), errors
    assert (tmp_path / "end").read_text() == "ended in order, child alive: True"


def test_a_signal_that_comes_just_before_a_wait_ends_it(start: Start, tmp_path: Path) -> None:
    """It is noted and wakes nobody, as one that another thread receives."""
    program = start(before=UNHEARD)
    wait_until_ready(program)
    os.kill(program.pid, signal.SIGHUP)
    assert program.wait(SECONDS) == INTERRUPTED
    assert (tmp_path / "end").read_text() == "ended in order, child alive: True"


def test_a_terminal_that_is_gone_hides_no_end(start: Start, tmp_path: Path) -> None:
    """Whatever is printed after that raises OSError, and the end must not."""
    ours, theirs = pty.openpty()
    program = start(stdout=theirs, stderr=theirs)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as screen:
        assert screen.readline().startswith(b"ready")
    os.kill(program.pid, signal.SIGHUP)
    assert program.wait(SECONDS) == INTERRUPTED
    assert (tmp_path / "end").read_text() == "ended in order, child alive: True"


def test_a_hangup_is_left_to_the_program_that_started_it(start: Start) -> None:
    """That one hears it, too, and ends what it started in its own order."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])  # as its child inherits it
    try:
        program = start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    wait_until_ready(program)
    os.kill(program.pid, signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(0.5)
    os.kill(program.pid, signal.SIGTERM)
    program.communicate(timeout=SECONDS)
    assert program.returncode == INTERRUPTED


def test_behind_nohup_it_goes_on(start: Start) -> None:
    program = start(NOHUP)
    wait_until_ready(program)
    os.kill(program.pid, signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(0.5)
    os.kill(program.pid, signal.SIGTERM)
    program.communicate(timeout=SECONDS)
    assert program.returncode == INTERRUPTED
