"""A person plays by lines of a pipe or in a terminal: every agent, a model that suggests, what is
kept, how it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import pty
import select
import sys
from typing import Any

import pytest

from common.jsonl import read_jsonl
from common.settings import ROOT, load_settings
from episodes import registry
from episodes.agent import Agent
from episodes.episode import AgentError, Message
from episodes.kept import kept_episodes
from episodes.turns import with_turns
from evaluation import play
from evaluation.keyboard import FENCE, message_of
from tests.corpora import write_lines
from tests.digits_agent.agent import AGENT as DIGITS
from tests.episodes.scripted import calls_text

registry.register(DIGITS)

TURNS = (12, 12)
TOOLS = registry.get("sql").tools
TABLES = [
    {"type": "function", "function": {"name": name, "parameters": {"properties": {}}}}
    for name in ("list_tables", "list_views")
]


@pytest.fixture(autouse=True)
def _defaults(monkeypatch):
    """No judge but the offline one."""
    for name in ("TEACHER_MODEL", "REWARD_MODEL_URL", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "")


def typed(message: Message) -> str:
    """What a person types to say this."""
    for call in message.get("tool_calls") or []:
        return f"/{call['function']['name']} {call['function']['arguments']}"
    text = str(message["content"])
    return f"{FENCE}\n{text}\n{FENCE}" if "\n" in text else text


def gold_lines(agent: Agent, name: str) -> str:
    """The replies of the gold episode of a task of the test file."""
    settings = with_turns(agent, load_settings(), TURNS)
    [task] = [
        agent.task(row, settings)
        for row in agent.rows(agent.splits["test"])
        if str(row["id"]) == name
    ]
    environment = agent.open(settings, {})
    episode = asyncio.run(environment.known.gold(task))
    environment.close()
    assert episode is not None
    replies = [message for message in episode.messages if message["role"] == "assistant"]
    return "".join(f"{typed(message)}\n" for message in replies)


def run(monkeypatch: pytest.MonkeyPatch, lines: str, *flags: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    return play.main(flags)


@pytest.mark.system
@pytest.mark.parametrize("name", registry.names())
def test_every_agent_is_played_by_piped_lines_and_good_episodes_are_kept(
    name, tmp_path, monkeypatch, capsys, has_packages_of
):
    has_packages_of(name)
    agent, file = registry.get(name), tmp_path / "gold.jsonl"
    task = str(agent.rows(agent.splits["test"])[3]["id"])
    lines = gold_lines(agent, task)
    for _ in range(2):
        flags = ("--task", task, "--max-turns", str(TURNS[0]), "--save", str(file))
        assert run(monkeypatch, lines, name, *flags) == 0
    shown = capsys.readouterr().out
    assert f"kept in {file}" in shown
    assert "stop reason: answered" in shown
    first, again = agent.teaching.dialogues(file, agent.name, load_settings())
    assert first.messages == again.messages
    replies = [message for message in first.messages if message["role"] == "assistant"]
    assert "".join(f"{typed(message)}\n" for message in replies) == lines
    assert first.learn == [True] * len(replies)
    names = [[tool["function"]["name"] for tool in tools] for tools in (first.tools, agent.tools)]
    assert names[0] == names[1]
    for message in first.messages[:2]:  # all that a model reads is shown
        assert str(message["content"]).strip() in shown


@pytest.mark.parametrize(("reply", "kept"), [("y\n", 1), ("n\n", 0), ("", 0)])
def test_below_gold_the_person_decides(reply, kept, monkeypatch, tmp_path):
    file = tmp_path / "kept.jsonl"
    file.write_text('{"messages": [{"role": "user", "content": "1"}]}')  # with no end of line
    lines = f"answer nothing\n{reply}"
    assert run(monkeypatch, lines, "digits", "--seed", "1", "--save", str(file)) == 0
    assert len([*read_jsonl(file)]) == 1 + kept


def test_frames_need_not_be_typed_and_what_is_no_reply_costs_no_turn(monkeypatch, capsys):
    agent = registry.get("consultation")
    row = agent.rows(agent.splits["test"])[0]
    lines = "/help\n\n诊断：阑尾炎\n哪里不舒服？\n诊断：阑尾炎 建议：马上去急诊\n"
    assert run(monkeypatch, lines, agent.name, "--task", row["id"], "--max-turns", "2") == 0
    shown = capsys.readouterr().out
    assert shown.count("[2 replies left] > ") == 4
    assert "stop reason: answered" in shown
    before, _, after = shown.partition("[2 replies left] > ")
    assert row["task_type"] not in before
    assert row["task_type"] in after


def test_the_end_of_the_input_is_one_line_and_loses_nothing(monkeypatch, capsys, tmp_path):
    file, task = tmp_path / "kept.jsonl", DIGITS.rows(DIGITS.splits["test"])[0]["id"]
    lines = gold_lines(DIGITS, task)
    assert run(monkeypatch, lines, "digits", "--task", task, "--save", str(file)) == 0
    before = file.read_bytes()
    capsys.readouterr()
    assert run(monkeypatch, "ask 1\n", "digits", "--save", str(file), "--n", "3") == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert file.read_bytes() == before


@pytest.mark.system
@pytest.mark.parametrize(
    ("key", "code", "said"), [(b"\x03", 130, "interrupted"), (b"\x04", 1, "the input ended")]
)
def test_ctrl_c_and_ctrl_d_in_a_terminal(key, code, said):
    """In a process with a terminal of its own, where the line discipline makes signals of keys."""
    program = (
        "import sys; from episodes import registry; from tests.digits_agent.agent import AGENT; "
    )
    program += (
        "registry.register(AGENT); from evaluation.play import main; sys.exit(main(['digits']))"
    )
    child, terminal = pty.fork()
    if not child:
        os.chdir(ROOT)
        os.execv(sys.executable, [sys.executable, "-c", program])
    shown = b""
    while b"left] > " not in shown:
        shown += os.read(terminal, 4096)
    ended = press_until_it_answers(terminal, key)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code, ended
    assert f"play: {said}" in ended.splitlines()[-1]
    assert "Traceback" not in ended


def press_until_it_answers(terminal: int, key: bytes) -> str:
    """What is shown then, to the end.

    A key that comes before the reading has begun is lost, and a person would press again; but not
    once the program has answered, because a second Ctrl-C ends it otherwise.
    """
    found = b""
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while b"play: " not in found:
            os.write(terminal, key)
            while b"play: " not in found and select.select([terminal], [], [], 5)[0]:
                found += os.read(terminal, 4096)
        while True:
            found += os.read(terminal, 4096)
    os.close(terminal)
    return found.decode()


def test_calls_are_read():
    call = message_of("/q SELECT 1", TOOLS, 0)["tool_calls"][0]["function"]
    assert call == {"name": "query_database_by_sql", "arguments": '{"sql": "SELECT 1"}'}
    assert (
        message_of('/query {"sql": "x"}', TOOLS, 0)["tool_calls"][0]["function"]["arguments"]
        == '{"sql": "x"}'
    )
    assert message_of("/list_tables", TABLES, 0)["tool_calls"][0]["function"]["arguments"] == "{}"
    assert message_of("/q SELECT 1", (), 0) == {"role": "assistant", "content": "/q SELECT 1"}


BAD: dict[str, Any] = {
    "no messages": {"text": "x"},
    "no reply": {"messages": [{"role": "user", "content": "?"}]},
    "no text": {"messages": [{"role": "assistant", "content": None}]},
    "no arguments": {"messages": [calls_text("look", "{")["message"]]},
    "of another agent": {"agent": "code", "messages": [{"role": "assistant", "content": "x"}]},
}


@pytest.mark.parametrize("row", BAD.values(), ids=BAD)
def test_what_is_no_kept_episode_is_named_by_its_line(row, tmp_path):
    file = tmp_path / "kept.jsonl"
    good = {"messages": [{"role": "assistant", "content": "x"}]}
    write_lines(file, [good, row])
    with pytest.raises(AgentError, match=r"kept.jsonl, line 2: expected ") as caught:
        kept_episodes(file, "sql")
    assert "\n" not in str(caught.value)
