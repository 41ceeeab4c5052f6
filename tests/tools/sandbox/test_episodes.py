"""What a program can rely on: its episode's state, output and deadline; others notice nothing."""

import asyncio
import os
from operator import itemgetter

import pytest

from tests.corpora import cases_of
from tools.sandbox import Sandbox, SandboxError

pytestmark = pytest.mark.usefixtures("bubblewrap")


@pytest.mark.parametrize("story", cases_of(__file__, "stories"), ids=itemgetter("why"))
async def test_what_programs_see_and_leave(run, story):
    """Of each program how it is run, and what is seen of it; `holds` and `lacks`: its output."""
    for code, options, seen in story["steps"]:
        ended = await run(code, **options)
        for name, value in seen.items():
            if name in ("holds", "lacks"):
                assert [text in ended.output for text in value] == [name == "holds"] * len(value)
            else:
                assert getattr(ended, name) == value, code


@pytest.mark.parametrize(("code", "status", "output"), cases_of(__file__, "endings"))
async def test_how_a_program_ends(run, code, status, output):
    ended = await run(code)
    assert (ended.status, ended.output) == (status, output)
    assert (await run("print('next')")).output == "next\n"


async def test_episodes_draw_random_numbers_of_their_own(run):
    code = "import random, numpy; print(random.random(), numpy.random.rand())"
    one, other = [{*(await run(code, name)).output.split()} for name in "ab"]
    assert not one & other


async def test_a_traceback_shows_the_programs_own_lines(run):
    await run("def half(x):\n    return x / 2")
    failed = await run("# of a later program\nhalf('3')")
    assert failed.status == "error"
    own = [row.strip() for row in failed.output.splitlines() if not {"^", "~"} & {*row}]
    assert own[0] == "Traceback (most recent call last):"
    assert own[1:3] == ['File "<program 2>", line 2, in <module>', "half('3')"]
    assert own[3:5] == ['File "<program 1>", line 2, in half', "return x / 2"]
    assert own[5:] == ["TypeError: unsupported operand type(s) for /: 'str' and 'int'"]


async def test_a_long_output_keeps_its_beginning_and_its_end(run):
    ended = await run("print('first')\nfor i in range(200_000): print('é', i)\n1 / 0")
    assert len(ended.output.encode()) <= 64 * 1024
    assert ended.output.startswith("first\n")
    assert ended.output.endswith("ZeroDivisionError: division by zero\n")
    assert " bytes ...]" in ended.output


async def test_a_thread_left_behind_stands_still_between_programs(run):
    code = "import threading, time\nn = 0\ndef count():\n global n\n while True: n += 1; time.sleep(0.001)\n"
    code += "threading.Thread(target=count, daemon=True).start()\ntime.sleep(0.05)\nprint(n)"
    await run(code)
    before = int((await run("print(n)")).output)
    await asyncio.sleep(0.3)
    assert int((await run("print(n)")).output) - before < 50


async def test_data_is_there_to_read_only(run, sandbox):
    (place,) = sandbox.paths.values()
    read = await run(f"import pandas; print(pandas.read_csv('{place}/patients.csv').age.sum())")
    assert read.output == "70\n"
    for code in ("open({!r}, 'a')", "import os; os.remove({!r})"):
        ended = await run(code.format(f"{place}/patients.csv"))
        assert "Read-only file system" in ended.output


async def test_one_episodes_programs_run_one_after_another(run):
    await run("order = []")
    code = "import time; order.append({0}); time.sleep(0.02); order.append({0})"
    await asyncio.gather(*(run(code.format(n)) for n in range(4)))
    assert (await run("print(order)")).output == "[0, 0, 1, 1, 2, 2, 3, 3]\n"


async def test_the_longest_idle_episode_makes_room(monkeypatch, fresh):
    monkeypatch.setattr("tools.sandbox.sandbox.EPISODES", 2)
    for name in "ab":
        await fresh.run("x = 1", name)
    await fresh.run("x", "a")
    await fresh.run("x = 1", "c")  # b was used longest ago
    assert (await fresh.run("x", "a")).status == "ok"
    with pytest.raises(SandboxError, match="--concurrency"):  # not the program's error
        await fresh.run("x", "b")
    await fresh.end("b")
    assert (await fresh.run("1", "b")).status == "ok"


async def test_a_caller_who_gives_up_ends_the_episode(run):
    await run("x = 1")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run("while True: pass"), 0.2)
    assert (await run("x")).status == "error"


@pytest.mark.parametrize("ending", [lambda sandbox: sandbox.end("a"), Sandbox.close])
async def test_what_runs_when_its_episode_is_ended_has_crashed(ending, fresh):
    await fresh.run("x = 1", "a")
    running = asyncio.create_task(fresh.run("while True: pass", "a", deadline=600))
    await asyncio.sleep(0.05)
    await ending(fresh)
    assert (await asyncio.wait_for(running, 30)).status == "crashed"
    assert (await fresh.run("x", "a")).status == "error"


async def test_a_fork_of_the_caller_has_episodes_of_its_own(sandbox, run):
    await run("x = 1")
    name = next(reversed(sandbox._episodes))
    child = os.fork()
    if not child:
        fresh = asyncio.new_event_loop()
        asyncio._set_running_loop(None)
        ended = fresh.run_until_complete(sandbox.run("x", name))
        os._exit(0 if ended.status == "error" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (await run("x")).status == "ok"


async def test_a_sandbox_that_was_closed_or_killed_starts_again(fresh):
    assert (await fresh.run("print(1)", "a")).output == "1\n"
    await fresh.close()
    assert (await fresh.run("print(2)", "a")).output == "2\n"
    assert fresh._process
    fresh._process.kill()
    fresh._process.wait()
    assert (await fresh.run("print(3)", "b")).output == "3\n"
