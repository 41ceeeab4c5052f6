"""How the warm interpreter is started and given up, and what it is told.

Keeps of docs/safety.md, "What holds, and by what", that programs run in the sandbox they are set
to run in; nothing is started in bubblewrap here.
"""

import asyncio
import io
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from common.settings import load_settings
from tests.own_processes import OwnProcesses
from tools.sandbox import Sandbox, SandboxError, mounts, probe
from tools.sandbox import sandbox as sandbox_module
from tools.sandbox.sandbox import Run, finish
from tools.sandbox.seccomp import filter_bytes


async def test_an_interpreter_that_was_killed_is_started_again(bare) -> None:
    sandbox = Sandbox()
    try:
        await sandbox.run("1", "a")
        killed = sandbox._process
        assert killed
        killed.kill()
        killed.wait()
        assert (await sandbox.run("print(3)", "b")).output == "3\n"
        assert sandbox._process is not killed
    finally:
        await sandbox.close()


async def test_an_episode_has_as_many_files_open_after_many_programs_as_after_one(bare) -> None:
    own = OwnProcesses()
    sandbox = Sandbox()
    try:
        await sandbox.run("1", "a")
        after_one = own.files()
        for _ in range(20):
            await sandbox.run("1", "a")
        # A program that is being ended has some open for a moment
        assert own.files() < after_one + 15
    finally:
        await sandbox.close()


async def test_the_files_of_an_episodes_programs_end_with_it(bare) -> None:
    """Without bubblewrap they lie on the disk, which those of a long run would fill."""
    own = OwnProcesses()
    sandbox = Sandbox()
    try:
        written = await sandbox.run("open('a', 'w').write('1')\nimport os; print(os.getcwd())", "a")
        scratch = Path(written.output.strip())
        assert (scratch / "a").is_file()
        await sandbox.end("a")
        assert own.left(at_most=1) == 1, "the warm interpreter, for further episodes"
        assert not scratch.exists()
    finally:
        await sandbox.close()


async def test_the_check_at_a_runs_start_leaves_no_process(bare) -> None:
    own = OwnProcesses()
    await probe()
    assert own.alive() == set()


SAYS = "import os; os.write(2, b'first\\nsecond\\nno memory \\xff\\n')"
HANGS = "import time; time.sleep(60)"


@pytest.mark.parametrize(
    ("program", "seconds", "seen"),
    [
        (SAYS, 60.0, "'no memory \ufffd'"),
        ("import os; os.write(2, b'gone')", 60.0, "'gone'"),
        (HANGS, 0.1, "TimeoutError()"),
    ],
)
async def test_one_that_does_not_start_is_given_up_with_its_last_words(
    bare, program: str, seconds: float, seen: str
) -> None:
    bare.setattr(mounts, "unprotected", lambda: ([sys.executable, "-c", program], {}))
    bare.setattr(mounts, "program", lambda settings: b"")
    bare.setattr(sandbox_module, "START", seconds)
    sandbox = Sandbox()
    with pytest.raises(SandboxError) as caught:
        await sandbox.run("1", "a")
    assert str(caught.value) == f"no sandbox for programs: {seen}; {mounts.HELP}"
    assert sandbox._episodes["a"].line is None, "the next program would be asked there"
    assert sandbox._process
    sandbox._process.kill()
    await sandbox.close()


async def test_who_gives_up_while_it_starts_leaves_no_line_to_it(bare) -> None:
    bare.setattr(mounts, "unprotected", lambda: ([sys.executable, "-c", HANGS], {}))
    bare.setattr(mounts, "program", lambda settings: b"")
    sandbox = Sandbox()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(sandbox.run("1", "a"), 0.1)
    assert sandbox._episodes["a"].line is None
    assert sandbox._process
    sandbox._process.kill()
    await sandbox.close()


async def test_one_that_was_never_started_said_nothing_and_has_nothing_to_close(bare) -> None:
    sandbox = Sandbox()
    assert sandbox._last_words() == ""
    await sandbox.close()


@pytest.mark.parametrize("protected", [True, False])
def test_what_runs_programs_is_started_as_it_is_set_with_an_environment_of_its_own(
    bare, tmp_path, protected: bool
) -> None:
    """Without its sandbox, or with this process's variables, programs of the model would have files
    and keys.
    """
    seen: list[Any] = []

    class Started:
        stdin = io.BytesIO()

        def __init__(self, line: list[str], **how: Any) -> None:
            seen.append((line, how))

    bare.setenv("SANDBOX", "bubblewrap" if protected else "process")
    load_settings.cache_clear()
    bare.setattr(shutil, "which", {"bwrap": "/usr/bin/bwrap"}.get)
    bare.setattr(subprocess, "Popen", Started)
    sandbox = Sandbox(data=[tmp_path])
    sandbox._start()
    sandbox._control.close()
    ((line, how),) = seen
    for handle in how["pass_fds"]:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(handle)
    assert (line, how["env"]) == (
        mounts.protected(sandbox.paths) if protected else mounts.unprotected()
    )
    assert (f"/data/{tmp_path.name}" in line) is protected
    assert how["process_group"] == 0, "Ctrl-C at the terminal is not for it"
    assert how["stdout"] == subprocess.DEVNULL


def test_what_the_processes_inside_are_told(
    bare, tmp_path, caplog: pytest.LogCaptureFixture
) -> None:
    sandbox = Sandbox(data=[tmp_path], memory=7)
    assert sandbox.paths == {tmp_path.resolve(): str(tmp_path.resolve())}, (
        "where it is: nothing is mounted"
    )
    assert caplog.messages == [sandbox_module.UNPROTECTED]
    limits = sandbox_module.LIMITS
    told = {
        "namespaces": False,
        "warm": (),
        "scratch": sandbox_module.SCRATCH,
        "devices": mounts.DEVICES,
        "memory": 7,
        "processes": sandbox_module.PROCESSES,
        "limits": {name: limit for name, limit in limits.items() if name != "NPROC"},
        "filter": filter_bytes(),
        "packages": [],
    }
    assert sandbox._settings() == told
    bare.setenv("SANDBOX", "bubblewrap")
    load_settings.cache_clear()
    protected = Sandbox(data=[tmp_path])
    assert protected.paths == {tmp_path.resolve(): f"/data/{tmp_path.name}"}
    inside = {
        "namespaces": True,
        "limits": limits,
        "packages": [mounts.PACKAGES],
        "memory": sandbox_module.MEMORY,
    }
    assert protected._settings() == told | inside
    assert len(caplog.messages) == 1


def test_a_process_that_does_not_end_when_told_is_killed() -> None:
    done: list[Any] = []

    class Deaf:
        def wait(self, seconds: float | None = None) -> None:
            done.append(seconds)
            if seconds:
                raise subprocess.TimeoutExpired("it", seconds)

        def kill(self) -> None:
            done.append("killed")

    finish(Deaf())  # type: ignore[arg-type]
    assert done == [5, "killed", None]
    assert Run("ok", "", 0.0).fresh is False
