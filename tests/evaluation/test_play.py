"""A person plays by lines of a pipe or in a terminal: every agent, and how it ends."""

import asyncio
import contextlib
import io
import os
import pty
import select
import sys
from typing import Any

import pytest

from common.settings import ROOT, load_settings
from episodes import registry
from episodes.agent import Agent
from episodes.episode import AgentError, Message
from episodes.kept import kept_episodes
from episodes.turns import with_turns
from evaluation import play
from evaluation.play import FENCE, HOW_TO_SAY, message_of
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


def typed(message: Message) -> str:
    """What a person types to say this."""
    for call in message.get("tool_calls") or []:
        return f"/{call['function']['name']} {call['function']['arguments']}"
    text = str(message["content"])
    return f"{FENCE}\n{text}\n{FENCE}" if "\n" in text else text


def gold_lines(agent: Agent, name: str) -> tuple[str, str]:
    """The replies of the gold episode of a task of the test file, and its question."""
    settings = with_turns(agent, load_settings(), TURNS)
    [row] = [row for row in agent.rows(agent.splits["test"]) if str(row["id"]) == name]
    task = agent.task(row, settings)
    environment = agent.open(settings, {})
    episode = asyncio.run(environment.gold(task))
    environment.close()
    assert episode is not None
    replies = [message for message in episode.messages if message["role"] == "assistant"]
    return "".join(f"{typed(message)}\n" for message in replies), task.question


def run(monkeypatch: pytest.MonkeyPatch, lines: str, *flags: str) -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    return play.main(flags)


@pytest.mark.system
@pytest.mark.parametrize("name", registry.names())
def test_every_agent_is_played_by_piped_lines(name, monkeypatch, capsys, has_packages_of):
    has_packages_of(name)
    agent = registry.get(name)
    task = str(agent.rows(agent.splits["test"])[3]["id"])
    lines, question = gold_lines(agent, task)
    assert run(monkeypatch, lines, name, "--task", task, "--max-turns", str(TURNS[0])) == 0
    shown = capsys.readouterr().out
    assert "stop reason: answered" in shown
    assert question.splitlines()[0] in shown


def test_help_and_an_empty_line_cost_no_turn(monkeypatch, capsys):
    assert run(monkeypatch, "/help\n\nask 1\n", "digits", "--task", "d0") == 1
    shown = capsys.readouterr().out
    assert shown.count("[4 replies left] > ") == 3
    assert shown.count(HOW_TO_SAY) == 2, "a reply in a wrong form costs one"


def test_blanks_around_a_fence_are_no_part_of_a_reply(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"\ufeff {FENCE}\n\nhello\n{FENCE} \nnext\n"))
    assert [play.ask(""), play.ask("")] == ["\nhello", "next"]


def test_the_end_of_the_input_is_one_line(monkeypatch, capsys):
    assert run(monkeypatch, "ask 1\n", "digits", "--n", "3") == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.system
@pytest.mark.parametrize(
    ("key", "code", "said"), [(b"\x03", 130, "interrupted"), (b"\x04", 1, "the input ended")]
)
def test_ctrl_c_and_ctrl_d_in_a_terminal(key, code, said):
    """In a process with a terminal of its own, where the line discipline makes signals of keys."""
    program = "import sys; from episodes import registry; from evaluation.play import main; "
    program += "from tests.digits_agent.agent import AGENT; registry.register(AGENT); "
    program += "sys.exit(main(['digits']))"
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
    """Press a key as long as nothing answers: one before the reading has begun is lost."""
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
    def call(line: str, tools: Any) -> Any:
        return message_of(line, tools)["tool_calls"][0]["function"]

    asked = {"name": "query_database_by_sql", "arguments": '{"sql": "SELECT 1"}'}
    assert call("/q SELECT 1", TOOLS) == asked
    assert call('/query {"sql": "x"}', TOOLS)["arguments"] == '{"sql": "x"}'
    assert call("/list_tables", TABLES)["arguments"] == "{}"
    assert message_of("/q SELECT 1", ()) == {"role": "assistant", "content": "/q SELECT 1"}


BAD: dict[str, Any] = {
    "no messages": {"text": "x"},
    "no reply": {"messages": [{"role": "user", "content": "?"}]},
    "no text": {"messages": [{"role": "assistant", "content": None}]},
    "no role": {"messages": [{"role": "医生", "content": "x"}]},
    "no tool": {"messages": [{"role": "assistant", "content": "x"}], "tools": ["x"]},
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
