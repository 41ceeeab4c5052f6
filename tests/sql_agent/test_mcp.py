"""`--mcp FILE`: the SQL agent with the tools of a real stdio server, our own SQL tool for others."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from common.command import UsageError
from common.settings import ROOT
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, Endpoint
from episodes.registry import own_options
from sql_agent.agent import AGENT
from sql_agent.environment import SqlEnvironment
from sql_agent.settings import SqlSettings
from tests.episodes.scripted import ScriptedLLM, asks, calls, says
from tests.sql_agent.small_database import STORAGE

pytestmark = pytest.mark.system
BAD = ROOT / "tests" / "episodes" / "mcp_server.py"
QUERY = "SELECT storage FROM drugs_info WHERE med_name = '朵莎洛片'"


def written(folder: Path, *arguments: str, **env: str) -> Path:
    path = folder / "mcp.json"
    server = {"command": sys.executable, "args": [*arguments], "env": env}
    path.write_text(json.dumps({"mcpServers": {"ward": server}}), encoding="utf-8")
    return path


def opened(url: str, path: Path, **settings: Any) -> SqlEnvironment:
    parser = argparse.ArgumentParser()
    AGENT.flags.add(parser)
    options = own_options(AGENT, parser.parse_args(["--mcp", str(path)]))
    found = AGENT.open(SqlSettings(_env_file=None, database_url=url, **settings), options)
    assert isinstance(found, SqlEnvironment)
    return found


def scored(environment: SqlEnvironment, llm: ScriptedLLM) -> Any:
    policy = ChatPolicy(Endpoint(llm.base_url, "tiny"), 3)
    task = AGENT.task(AGENT.rows(AGENT.splits["val"])[0], environment.settings)
    return asyncio.run(play(environment, task, environment.play(task, policy), policy, 60.0))


def test_an_episode_calls_a_servers_tool_and_its_own(tmp_path, database_url, llm):
    environment = opened(database_url, written(tmp_path, str(BAD), "good"))
    llm.script(calls("repeat", word="阿朵"), asks(QUERY), says(STORAGE))
    asyncio.run(environment.check())
    found = scored(environment, llm)
    environment.close()
    assert (found.episode.stop_reason, found.detail) == ("answered", "")
    repeated, queried = [one for one in found.episode.messages if one["role"] == "tool"]
    assert "阿朵" in repeated["content"]
    assert STORAGE in queried["content"]
    assert len(found.episode.events) == 1  # the reward looks at the agent's own queries
    offered = [tool["function"]["name"] for tool in llm.requests[0]["tools"]]
    assert sorted(offered) == ["query_database_by_sql", "repeat"]


def test_a_servers_tool_with_the_name_of_an_own_one_is_refused(tmp_path, database_url):
    path = written(tmp_path, "-m", "tools.sql.mcp", PYTHONPATH=str(ROOT), DATABASE_URL=database_url)
    environment = opened(database_url, path)
    with pytest.raises(UsageError) as refused:
        asyncio.run(environment.check())
    environment.close()
    assert "query_database_by_sql" in str(refused.value)


def test_the_run_keeps_what_the_servers_offered_and_no_secret(tmp_path, database_url):
    environment = opened(database_url, written(tmp_path, str(BAD), "good", KEY="secret-of-a-ward"))
    description = environment.description()
    environment.close()
    (tool,) = description["mcp"]
    assert (tool["server"], tool["name"]) == ("ward", "repeat")
    assert "secret-of-a-ward" not in json.dumps(description)


def test_an_environment_that_is_closed_leaves_no_server_behind(tmp_path, database_url):
    """A program that opens one for every evaluation would collect them until it ends."""
    environment = opened(database_url, written(tmp_path, str(BAD), "good"))
    before = {*psutil.Process().children(recursive=True)}
    asyncio.run(environment.check())
    started = {*psutil.Process().children(recursive=True)} - before
    servers = [one for one in started if BAD.name in " ".join(one.cmdline())]
    assert servers
    environment.close()
    assert psutil.wait_procs(servers, timeout=30)[1] == []
