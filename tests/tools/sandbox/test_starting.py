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
from tools.sandbox import Sandbox, SandboxError, mounts
from tools.sandbox import sandbox as sandbox_module


async def test_the_files_of_an_episodes_programs_end_with_it(bare) -> None:
    """Without bubblewrap they lie on the disk, which those of a long run would fill."""
    sandbox = Sandbox()
    try:
        written = await sandbox.run("open('a', 'w').write('1')\nimport os; print(os.getcwd())", "a")
        scratch = Path(written.output.strip())
        assert (scratch / "a").is_file()
        await sandbox.end("a")
        while scratch.exists():  # its supervisor removes it in its own time
            await asyncio.sleep(0.05)
    finally:
        await sandbox.close()


SAYS = "import os; os.write(2, b'first\\nsecond\\nno memory \\xff\\n')"
HANGS = "import time; time.sleep(60)"


@pytest.mark.parametrize(
    ("program", "seconds", "seen"),
    [
        (SAYS, 60.0, "no memory \ufffd"),
        (HANGS, 0.1, "TimeoutError"),
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
    assert seen in str(caught.value)
    assert sandbox._episodes["a"].line is None, "the next program would be asked there"
    assert sandbox._process
    sandbox._process.kill()
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
