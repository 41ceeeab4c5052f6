"""Tools of other people's MCP servers in an episode: what a good one adds, and how a bad one is
met.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from common.command import UsageError
from episodes import mcp_tools
from episodes.episode import Episode, ServiceError
from episodes.mcp_tools import MOST_CHARACTERS, McpTools
from episodes.outcomes import EpisodeError
from episodes.tool_loop import play_with_tools
from tests.corpora import cases_of
from tests.episodes.scripted import ScriptedPolicy, calls, calls_text, says
from tests.messages import missing
from tools.sql.result import neutralise

pytestmark = pytest.mark.system

SERVER = Path(__file__).with_name("mcp_server.py")
Opener = Callable[..., McpTools]


@pytest.fixture
def opened(tmp_path):
    kept: list[McpTools] = []

    def make(*modes: str, taken: tuple[str, ...] = ("query_database_by_sql",)) -> McpTools:
        named = {
            f"test{n}": {"command": sys.executable, "args": [str(SERVER), mode]}
            for n, mode in enumerate(modes)
        }
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": named}), encoding="utf-8")
        kept.append(McpTools(path, neutralise, taken))
        return kept[-1]

    yield make
    for servers in kept:
        servers.close()


def play(servers: McpTools, *replies: Any) -> Episode:
    policy = ScriptedPolicy(*replies, says("done"))
    return asyncio.run(play_with_tools(policy, "You look.", "Where?", servers.tools()))


def result(servers: McpTools, **arguments: Any) -> str:
    episode = play(servers, calls("repeat", **arguments))
    return next(str(one["content"]) for one in episode.messages if one["role"] == "tool")


def children() -> list[psutil.Process]:
    return [
        one
        for one in psutil.Process().children(recursive=True)
        if one.status() != psutil.STATUS_ZOMBIE and SERVER.name in " ".join(one.cmdline())
    ]


def test_a_servers_tools_are_the_policys(opened):
    """One process serves all episodes; arguments that are not required reach it, too."""
    servers = opened("good")
    assert result(servers, word="salt").strip() == "salt"
    before = sorted(one.pid for one in children())
    assert result(servers, word="salt", times=2).strip() == "salt salt"
    assert sorted(one.pid for one in children()) == before
    assert len(before) == 2  # the server, and what stands before it
    servers.close()
    assert psutil.wait_procs(children())[1] == []


def test_the_tools_are_described_as_the_policy_reads_them(opened):
    (described,) = opened("tags").described()
    assert described["server"] == "test0"
    assert described["name"] == "repeat"
    assert described["parameters"]["required"] == ["word"]
    assert "<|" not in json.dumps(described)
    policy = ScriptedPolicy(says("done"))
    asyncio.run(play_with_tools(policy, "You look.", "Where?", opened("tags").tools()))
    (spec,) = policy.tools[0]
    assert spec["function"]["description"] == described["description"]


def test_what_a_server_says_is_bounded_and_holds_no_chat_tokens(opened):
    assert "<|" not in result(opened("tags"), word="a")
    long = result(opened("long_result"), word="a")
    assert long.startswith("词词")
    assert "100000" in long
    assert len(long) < MOST_CHARACTERS + 50
    assert result(opened("picture"), word="a") == "[image]"
    assert result(opened("complains"), word="a") == "error: no such word"
    refusal = result(opened("refuses"), word="a")
    assert refusal.startswith("error: no such word")
    assert "<|" not in refusal
    assert result(opened("talks"), word="a").strip() == "a"  # a line that is no message


@pytest.mark.parametrize("arguments", ["[]", '{"times": 2}'])
def test_a_call_without_what_is_required_does_not_reach_the_server(opened, arguments):
    """Its answer is an error that names what is required."""
    episode = play(opened("dies"), calls_text("repeat", arguments))
    assert episode.stop_reason == "answered"
    assert not missing(episode.messages[3]["content"], "error", "word")


@pytest.mark.parametrize(("mode", "reason"), cases_of(__file__, "failing_servers"))
def test_a_server_that_fails_leaves_the_episode_unscored(opened, mode, reason, monkeypatch):
    monkeypatch.setattr(mcp_tools, "CALL_SECONDS", 2.0)
    memory = psutil.Process().memory_info().rss
    with pytest.raises(EpisodeError, match=f"test0, repeat: .*{reason}") as caught:
        play(opened(mode), calls("repeat", word="a"))
    assert caught.value.cause == "tool_server_failed"
    assert psutil.Process().memory_info().rss - memory < 200 * 2**20


@pytest.mark.parametrize(("mode", "message"), cases_of(__file__, "unusable_tools"))
def test_a_tool_that_cannot_be_used_is_refused_before_the_run(opened, mode, message):
    with pytest.raises(UsageError, match=message):
        opened(mode).start()


@pytest.mark.parametrize(
    ("mode", "seconds", "message"),
    [("hangs_at_once", 1.0, "1 s"), ("ends_at_once", 60.0, "closed")],
)
def test_a_server_that_does_not_start_is_named(opened, mode, seconds, message, monkeypatch):
    monkeypatch.setattr(mcp_tools, "START_SECONDS", seconds)
    servers = opened(mode)
    with pytest.raises(ServiceError, match=f"test0 of .*mcp.json .*{message}"):
        servers.start()
    assert psutil.wait_procs(children())[1] == []
    with pytest.raises(EpisodeError) as caught:
        servers.tools()
    assert caught.value.cause == "tool_server_failed"


@pytest.mark.parametrize(("text", "message"), cases_of(__file__, "other_mcp_files"))
def test_a_file_in_another_form_is_refused(tmp_path, text, message):
    path = tmp_path / "mcp.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=f"--mcp {path}: .*{message}"):
        McpTools(path, neutralise)
    with pytest.raises(UsageError, match=r"none\.json"):
        McpTools(tmp_path / "none.json", neutralise)
