"""What a program can rely on: its episode's state, its output, its deadline; and what others notice
of it: nothing.
"""

import asyncio
import os

import pytest

from tests.corpora import cases_of
from tools.sandbox import Sandbox

pytestmark = pytest.mark.usefixtures("bubblewrap")


async def test_names_live_within_an_episode_and_nowhere_else(run):
    assert (await run("import numpy\nx = 41")).fresh
    later = await run("print(x + 1)")
    assert (later.status, later.output, later.fresh) == ("ok", "42\n", False)
    other = await run("print('x' in globals(), 'numpy' in globals())", "other")
    assert (other.output, other.fresh) == ("False False\n", True)


async def test_files_live_within_an_episode_and_nowhere_else(run):
    await run("open('left.txt', 'w').write('here')\nopen('/dev/shm/left', 'w').write('here')")
    look = "import os; print(os.listdir('/scratch'), os.listdir('/tmp'), os.listdir('/dev/shm'))"
    assert (await run(look)).output == "['left.txt'] ['left.txt'] ['left']\n"
    assert (await run(look, "other")).output == "[] [] []\n"


@pytest.mark.parametrize(("code", "status", "output"), cases_of(__file__, "endings"))
async def test_how_a_program_ends(run, code, status, output):
    ended = await run(code)
    assert (ended.status, ended.output) == (status, output)
    assert (await run("print('next')")).output == "next\n"


async def test_standard_error_is_told_apart(run):
    code = "import sys, os; print('err', file=sys.stderr); print('out'); os.system('echo sub >&2')"
    ended = await run(code)
    assert (ended.printed, ended.errors) == ("out\n", "err\nsub\n")
    failed = await run("echo one; ls /nowhere", language="sh")
    assert failed.printed == "one\n"
    assert "/nowhere" in failed.errors


async def test_a_traceback_shows_the_programs_own_lines(run):
    await run("def half(x):\n    return x / 2")
    failed = await run("# of a later program\nhalf('3')")
    assert failed.status == "error"
    assert [
        row.strip() for row in failed.output.splitlines() if "^" not in row and "~" not in row
    ] == [
        "Traceback (most recent call last):",
        'File "<program 2>", line 2, in <module>',
        "half('3')",
        'File "<program 1>", line 2, in half',
        "return x / 2",
        "TypeError: unsupported operand type(s) for /: 'str' and 'int'",
    ]


@pytest.mark.parametrize("code", ["x = (", "\0", "(" * 500])
async def test_what_is_no_program_is_an_error(run, code):
    ended = await run(code)
    assert ended.status == "error"
    assert "Error" in ended.output
    assert not (await run("pass")).fresh


async def test_a_long_output_keeps_its_beginning_and_its_end(run):
    ended = await run("print('first')\nfor i in range(200_000): print('é', i)\n1 / 0")
    assert len(ended.output.encode()) <= 64 * 1024
    assert ended.output.startswith("first\n")
    assert ended.output.endswith("ZeroDivisionError: division by zero\n")
    assert " bytes ...]" in ended.output


async def test_a_deadline_ends_everything_and_keeps_what_was_printed(run):
    ended = await run("x = 1\nprint('begun')\nimport time; time.sleep(600)", deadline=0.3)
    assert (ended.status, ended.output) == ("timeout", "begun\n")
    afterwards = await run("x")
    assert "NameError" in afterwards.output
    assert afterwards.fresh


async def test_what_a_program_starts_ends_with_its_step(run):
    code = """
import os, time
if os.fork() == 0:
    os.setpgid(0, 0)
    if os.fork() == 0:
        while True:
            open('/scratch/beat', 'a').write('x')
            time.sleep(0.001)
while not os.path.exists('/scratch/beat'):
    pass
"""
    assert (await run(code)).status == "ok"
    look = "import os, time; a = os.path.getsize('beat'); time.sleep(0.1); print(os.path.getsize('beat') - a)"
    assert (await run(look)).output == "0\n"


async def test_a_thread_left_behind_stands_still_between_programs(run):
    code = "import threading, time\nn = 0\ndef count():\n global n\n while True: n += 1; time.sleep(0.001)\n"
    await run(
        code + "threading.Thread(target=count, daemon=True).start()\ntime.sleep(0.05)\nprint(n)"
    )
    before = int((await run("print(n)")).output)
    await asyncio.sleep(0.3)
    assert int((await run("print(n)")).output) - before < 50


async def test_a_program_imports_a_module_that_it_wrote(run):
    code = "open('helper.py', 'w').write('def f(): return 41')\nimport helper\nprint(helper.f())"
    assert (await run(code)).output == "41\n"


async def test_commands_share_the_files_of_programs(run):
    await run("open('a.txt', 'w').write('3 rows')")
    shown = await run("cat a.txt; python -c 'import numpy; print(1)'", language="sh")
    assert (shown.status, shown.output) == ("ok", "3 rows1\n")
    assert (await run("exit 4", language="sh")).status == "error"
    assert (await run("sleep 60", language="sh", deadline=0.3)).status == "timeout"


async def test_a_command_that_ends_its_process_group_leaves_the_names_of_programs(run):
    await run("x = 41")
    assert (await run("kill -9 0", language="sh")).status == "error"
    assert (await run("print(x + 1)")).output == "42\n"


async def test_an_episode_is_a_session_of_its_own(run):
    """Sessions share the processor equally, and one that is inherited may have a terminal."""
    assert (await run("import os; print(os.getsid(0))")).output == "1\n"


async def test_a_command_inherits_no_line_to_the_caller(run):
    """By it, it could report whatever it likes."""
    assert (await run("true >&3", language="sh")).status == "error"
    assert (await run("import os; print(os.system('true >&3') == 0)")).printed == "False\n"
    files = "ls -l /proc/self/fd"
    for shown in (await run(files, language="sh"), await run(f"import os; os.system({files!r})")):
        assert "pipe:" in shown.output
        assert "socket:" not in shown.output


async def test_data_is_there_to_read_only(run, sandbox):
    (place,) = sandbox.paths.values()
    read = await run(f"import pandas; print(pandas.read_csv('{place}/patients.csv').age.sum())")
    assert read.output == "70\n"
    for code in (
        f"open('{place}/patients.csv', 'a')",
        f"import os; os.remove('{place}/patients.csv')",
    ):
        assert "Read-only file system" in (await run(code)).output


async def test_one_episodes_programs_run_one_after_another(run):
    await run("order = []")
    await asyncio.gather(
        *(
            run(f"import time; order.append({n}); time.sleep(0.02); order.append({n})")
            for n in range(4)
        )
    )
    assert (await run("print(order)")).output == "[0, 0, 1, 1, 2, 2, 3, 3]\n"


async def test_the_longest_idle_episode_makes_room():
    sandbox = Sandbox(episodes=2)
    try:
        for name in "ab":
            await sandbox.run("x = 1", name)
        await sandbox.run("x", "a")
        await sandbox.run("x = 1", "c")  # b was used longest ago
        assert not (await sandbox.run("x", "a")).fresh
        assert (await sandbox.run("x = 1", "b")).fresh
    finally:
        await sandbox.close()


async def test_a_caller_who_gives_up_ends_the_episode(run):
    await run("x = 1")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run("while True: pass"), 0.2)
    assert (await run("x = 1")).fresh


@pytest.mark.parametrize("ending", [lambda sandbox: sandbox.end("a"), Sandbox.close])
async def test_what_runs_when_its_episode_is_ended_has_crashed(ending):
    sandbox = Sandbox()
    await sandbox.run("x = 1", "a")
    running = asyncio.create_task(sandbox.run("while True: pass", "a", deadline=600))
    await asyncio.sleep(0.05)
    await ending(sandbox)
    assert (await asyncio.wait_for(running, 30)).status == "crashed"
    assert (await sandbox.run("x", "a")).fresh
    await sandbox.close()


async def test_a_fork_of_the_caller_has_episodes_of_its_own(sandbox, run):
    await run("x = 1")
    name = next(reversed(sandbox._episodes))
    child = os.fork()
    if not child:
        fresh = asyncio.new_event_loop()
        asyncio._set_running_loop(None)
        ended = fresh.run_until_complete(sandbox.run("x", name))
        os._exit(0 if ended.fresh and ended.status == "error" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not (await run("x")).fresh


async def test_a_sandbox_that_was_closed_or_killed_starts_again():
    sandbox = Sandbox()
    assert (await sandbox.run("print(1)", "a")).output == "1\n"
    await sandbox.close()
    assert (await sandbox.run("print(2)", "a")).output == "2\n"
    assert sandbox._process
    sandbox._process.kill()
    sandbox._process.wait()
    assert (await sandbox.run("print(3)", "b")).output == "3\n"
    await sandbox.close()
