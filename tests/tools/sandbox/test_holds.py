"""A hostile program gets nothing out of the sandbox; test_attacks.py tries more."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from importlib import metadata

import psutil
import pytest

from common.settings import ROOT, load_settings
from tests.corpora import cases_of
from tools.sandbox import MachineTooSlowError, Sandbox
from tools.sandbox.sandbox import LIMITS

pytestmark = pytest.mark.usefixtures("bubblewrap")


@pytest.mark.parametrize(
    "code", [*cases_of(__file__, "refused"), f"open({str(ROOT / 'README.md')!r})"]
)
async def test_is_refused(run, code):
    ended = await run(code)
    assert ended.status == "error"
    errors = r"^(PermissionError|OSError|FileNotFoundError|ValueError|ModuleNotFound)"
    assert re.search(errors, ended.output, re.M)


async def test_an_installed_project_is_empty_inside(monkeypatch, fresh):
    """Its wheel holds the gold answers."""
    project = metadata.distribution("pluggy")
    monkeypatch.setattr("importlib.metadata.distributions", lambda name: [project])
    code = "import os; print(os.listdir('/packages/pluggy')); open('/packages/pluggy/x', 'w')"
    ended = await fresh.run(code, "a")
    assert ended.printed == "[]\n"
    assert "Read-only file system" in ended.errors


async def test_nothing_of_this_process_is_seen(fresh, monkeypatch):
    monkeypatch.setenv("TEACHER_API_KEY", "sk-secret")
    code = """
import json, os
numbers = [name for name in os.listdir('/proc') if name.isdigit()]
print(json.dumps([sorted(os.environ), os.listdir('/'), len(numbers), os.getuid(), os.uname().nodename]))
"""
    shown = json.loads((await fresh.run(code, "a")).output)
    everything = await fresh.run("cat /proc/*/environ; env", "a", language="sh")
    names, root, processes, user, host = shown
    assert "TEACHER_API_KEY" not in names
    assert "sk-secret" not in everything.output
    there = "bin dev etc lib lib64 packages proc python scratch tmp usr"
    assert " ".join(sorted(root)) == there
    assert (processes, user, host) == (2, 1000, "sandbox")


SHOWN = "import resource; print('AS:', resource.getrlimit(resource.RLIMIT_AS)[0])"
STATUS = f"{SHOWN}\nprint(open('/proc/self/status').read())"


@pytest.mark.parametrize(
    ("code", "language"), [(STATUS, "python"), ("echo AS: $(ulimit -v); cat /proc/$$/status", "sh")]
)
async def test_no_rights_are_left(run, code, language):
    facts = dict(re.findall(r"^(\w+):\s*(\S+)", (await run(code, language=language)).output, re.M))
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(facts[name], 16) == 0, name
    assert (facts["NoNewPrivs"], facts["Seccomp"]) == ("1", "2")
    assert int(facts["AS"]) > 0, "its memory has a limit"


async def test_the_supervisor_comes_before_its_programs_where_they_want_one_processor(run):
    """It ends them when their time is over, however busy they keep the machine."""
    for code, language in (
        ("import os\nfor pid in (0, 1): print(os.getpriority(os.PRIO_PROCESS, pid))", "python"),
        ("cut -d ' ' -f 19 /proc/self/stat /proc/1/stat", "sh"),
    ):
        own, supervisor = map(int, (await run(code, language=language)).output.split())
        assert own > supervisor or own == 19, "the most there is"


async def test_the_limits_are_those_of_the_table(run):
    show = "print(*resource.getrlimit(getattr(resource, 'RLIMIT_' + name)))"
    code = f"import resource\nfor name in {list(LIMITS)}: {show}"
    assert (await run(code)).output == "".join(f"{value} {value}\n" for value in LIMITS.values())


@pytest.mark.parametrize(("code", "statuses"), cases_of(__file__, "bombs"))
async def test_a_bomb_hurts_its_own_episode_only(run, code, statuses):
    await run("x = 1", "neighbour")
    bomb = asyncio.create_task(run(code, "bomb", deadline=2.0))
    beside = await run("print(x)", "neighbour")
    try:
        ended = await bomb
    except MachineTooSlowError:
        pass  # it was kept from running for all of its time, three times: unscored
    else:
        assert ended.status in (*statuses, "timeout")  # which a busy machine reaches first
        assert len(ended.output.encode()) <= 64 * 1024
    assert (beside.status, beside.output) == ("ok", "1\n")
    assert (await run("print(1)", "bomb")).output == "1\n"
    assert (await run("print(x)", "neighbour")).output == "1\n"


CALLER = r"""
import asyncio
from tools.sandbox import Sandbox
sandbox = Sandbox()
asyncio.run(sandbox.run("print(1)", "a"))
print("ready", flush=True)
asyncio.run(sandbox.run("import os; os.fork()\nwhile True: pass", "a", deadline=600))
"""


def test_it_ends_with_its_caller_who_needs_no_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(CALLER, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as caller:
        assert caller.stdout
        assert caller.stdout.readline() == b"ready\n"
        inside = psutil.Process(caller.pid).children(recursive=True)
        assert len(inside) >= 4
        caller.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(inside, timeout=30)
    assert alive == []


async def test_close_leaves_nothing(fresh):
    await asyncio.gather(*(fresh.run("import os; os.fork()", f"{number}") for number in range(3)))
    assert fresh._process
    inside = psutil.Process(fresh._process.pid).children(recursive=True)
    await fresh.close()
    _, alive = psutil.wait_procs(inside, timeout=30)
    assert alive == []


async def test_as_a_process_it_says_what_it_does_not_hold(monkeypatch, caplog, tmp_path):
    monkeypatch.setenv("SANDBOX", "process")
    monkeypatch.setenv("TEACHER_API_KEY", "sk-secret")
    (tmp_path / "data.csv").write_text("a\n1\n", encoding="utf-8")
    load_settings.cache_clear()
    sandbox = Sandbox(data=[tmp_path / "data.csv"])
    load_settings.cache_clear()
    assert caplog.text.count("SANDBOX=process") == 1
    try:
        await sandbox.run("x = 41", "a")
        assert (await sandbox.run("print(x + 1)", "a")).output == "42\n"
        (place,) = sandbox.paths.values()
        assert (await sandbox.run(f"print(open({place!r}).read())", "a")).output == "a\n1\n\n"
        assert "sk-secret" not in (await sandbox.run("env", "a", language="sh")).output
        assert (await sandbox.run("import socket; socket.socket()", "a")).status == "error"
        code = "import os, time\nif os.fork() == 0: os.setpgid(0, 0)\nprint(os.getpid())\ntime.sleep(600)"
        ended = await sandbox.run(code, "a", deadline=2.0)
        assert ended.status == "timeout"
        numbers = [int(number) for number in ended.output.split()]
        assert len(numbers) == 2
        left = [psutil.Process(number) for number in numbers if psutil.pid_exists(number)]
        assert psutil.wait_procs(left, timeout=30)[1] == []
    finally:
        await sandbox.close()
