"""The line to a supervisor: what is asked, and what an answer or its absence means."""

import asyncio
import itertools
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from common.settings import ROOT
from tests.own_processes import OwnProcesses
from tools.sandbox import MachineTooSlowError, SandboxError, mounts, probe
from tools.sandbox import sandbox as sandbox_module
from tools.sandbox.inside.frames import READY, frame
from tools.sandbox.sandbox import Episode

ANSWER = {"status": "ok", "printed": "1\n", "errors": ""}
QUESTION = {"source": "x", "language": "python", "deadline": 1.0}
READER = """import socket, sys
from tools.sandbox.inside.frames import receive
print(receive(socket.socket(fileno=int(sys.argv[1]))))"""


@pytest.fixture
def line():
    """An episode, the supervisor's end of its line, and a process that stands for the supervisor."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    episode = Episode()
    with subprocess.Popen(["sleep", "60"]) as process, theirs:
        episode.line, episode.handle = ours, os.pidfd_open(process.pid)
        yield episode, theirs, process
        episode.end()
        process.kill()


async def test_a_supervisor_that_refuses_says_why(line):
    episode, theirs, _ = line
    theirs.sendall(frame({"refused": "no namespaces"}))
    with pytest.raises(SandboxError, match="no namespaces"):
        await episode.ask(QUESTION, 1.0)


@pytest.mark.parametrize("ready", [True, False])
async def test_a_supervisor_that_says_nothing_is_killed_after_its_time(line, monkeypatch, ready):
    """Its program would go on beside the next of the same episode, and take its memory."""
    episode, theirs, process = line
    monkeypatch.setattr(sandbox_module, "GRACE", 0.1)
    monkeypatch.setattr(sandbox_module, "SHARE", 1000.0)  # a late loop of this test excuses nobody
    monkeypatch.setattr(sandbox_module, "START", 5.0 if ready else 0.1)
    if ready:
        theirs.sendall(READY)
        run = await episode.ask(QUESTION, 0.05)
        assert (run.status, run.output) == ("timeout", "")
        assert run.seconds >= 0.1
    else:
        with pytest.raises(SandboxError, match="not ready"):  # no program has run
            await episode.ask(QUESTION, 0.05)
    assert process.wait(30) == -signal.SIGKILL
    assert (episode.line, episode.handle) == (None, -1)


async def test_a_sandbox_in_which_no_program_runs_is_said(bare):
    bare.setattr(sandbox_module, "filter_bytes", lambda: bytes(8))
    with pytest.raises(SandboxError, match="'crashed'"):
        await probe()


async def test_an_answer_within_the_grace_after_a_deadline_counts(line, monkeypatch):
    episode, theirs, _ = line
    monkeypatch.setattr(sandbox_module, "GRACE", 30.0)
    theirs.sendall(READY)
    asyncio.get_running_loop().call_later(0.1, theirs.sendall, frame(ANSWER))
    assert (await episode.ask(QUESTION, 0.01)).status == "ok"


async def test_a_supervisor_that_calls_the_machine_slow_is_believed_and_ended(line):
    episode, theirs, process = line
    theirs.sendall(READY + frame({"more": 1.0}) + frame({"status": "slow"}))
    with pytest.raises(MachineTooSlowError, match=r"60 s"):
        await episode.ask(QUESTION, 60.0)
    assert process.wait(30) == -signal.SIGKILL


@pytest.mark.parametrize(("share", "slow"), [(2000.0, True), (0.0, False)])
async def test_one_that_waited_for_a_processor_is_the_machine_s(line, monkeypatch, share, slow):
    """share: of its silence, after an hour of waiting that was before it."""
    episode, theirs, _ = line
    waits = itertools.count(3600.0, share * 0.3)
    monkeypatch.setattr(sandbox_module, "GRACE", 0.25)
    monkeypatch.setattr(sandbox_module, "SHARE", 1000.0)
    with os.fdopen(os.pidfd_open(os.getpid())) as own:  # one that has waited: this one
        assert sandbox_module.waiting_time(own.fileno()) > 0
    monkeypatch.setattr(
        sandbox_module, "waiting_time", lambda handle: {episode.handle: next(waits)}[handle]
    )
    theirs.sendall(READY)
    asking = episode.ask(QUESTION, 0.05)
    if slow:
        with pytest.raises(MachineTooSlowError):
            await asking
    else:
        assert (await asking).status == "timeout"


@pytest.mark.parametrize("sent", [b"", READY, READY + frame(ANSWER)[:-1]])
async def test_a_line_that_ends_is_no_program_s_fault_and_nobody_is_killed_for_it(line, sent):
    episode, theirs, process = line
    theirs.sendall(sent)
    theirs.close()
    with pytest.raises(SandboxError, match="killed from outside"):
        await episode.ask(QUESTION, 5.0)
    assert (episode.line, episode.handle) == (None, -1)
    assert process.poll() is None


def test_a_supervisor_that_is_paused_within_a_question_reads_all_of_it():
    """As `docker pause` and debuggers do: the kernel ends its recv(2) early."""
    ours, theirs = socket.socketpair()
    sent = frame(QUESTION)
    command = [sys.executable, "-c", READER, str(theirs.fileno())]
    options = {"cwd": ROOT, "pass_fds": [theirs.fileno()], "stdout": subprocess.PIPE}
    with ours, theirs, subprocess.Popen(command, text=True, **options) as reader:
        ours.sendall(sent[:9])
        while select.select([theirs], [], [], 0)[0]:
            time.sleep(0.01)
        reader.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, reader.pid, os.WSTOPPED)
        reader.send_signal(signal.SIGCONT)
        ours.sendall(sent[9:])
        assert reader.communicate()[0] == f"{QUESTION}\n"


async def test_the_files_of_an_episode_end_with_it(bare, fresh):
    """On the disk of a run they would fill it; and each open one is one of its interpreter's."""
    own = OwnProcesses()
    written = await fresh.run("open('a', 'w')\nimport os; print(os.getcwd())", "a")
    scratch = Path(written.output.strip())
    assert (scratch / "a").is_file()
    after_one = own.files()
    for _ in range(20):
        await fresh.run("1", "a")
    assert own.files() < after_one + 15, "a program that is being ended has some for a moment"
    await fresh.end("a")
    assert own.left(at_most=1) == 1, "the warm interpreter, for further episodes"
    assert not scratch.exists()


@pytest.mark.parametrize(
    ("program", "seconds", "seen"),
    [
        ("import os; os.write(2, b'first\\nno memory \\xff\\n')", 60.0, "no memory \ufffd"),
        ("import time; time.sleep(60)", 0.1, "TimeoutError"),
    ],
)
async def test_an_interpreter_that_does_not_start_is_given_up_with_its_last_words(
    bare, fresh, program, seconds, seen
):
    bare.setattr(mounts, "unprotected", lambda: ([sys.executable, "-c", program], {}))
    bare.setattr(mounts, "program", lambda settings: b"")
    bare.setattr(sandbox_module, "START", seconds)
    with pytest.raises(SandboxError, match=seen):
        await fresh.run("1", "a")
    assert fresh._episodes["a"].line is None, "the next program would be asked there"
    assert fresh._process
    fresh._process.kill()
