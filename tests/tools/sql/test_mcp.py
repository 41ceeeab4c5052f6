"""`python -m tools.sql.mcp`, asked by the official client on all engines."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import INVALID_REQUEST, PARSE_ERROR

from common.settings import ROOT
from tests.corpora import cases_of
from tests.tools.sql import sites
from tools.sql.mcp import MOST_BYTES

pytestmark = pytest.mark.system

COMMAND = [sys.executable, "-m", "tools.sql.mcp"]
CLIENT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
HELLO = {"protocolVersion": "2025-06-18", **CLIENT}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}


def environment(url: str) -> dict[str, str]:
    return {**os.environ, "DATABASE_URL": url}


@asynccontextmanager
async def over_stdio(url: str, *flags: str) -> AsyncIterator[ClientSession]:
    words = {"command": COMMAND[0], "args": [*COMMAND[1:], *flags]}
    parameters = StdioServerParameters(**words, env=environment(url), cwd=ROOT)
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        started = await session.initialize()
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        assert started.serverInfo.version == project["version"]
        yield session


async def call(session: ClientSession, name: str, **arguments: str):
    result = await session.call_tool(name, arguments)
    return json.loads(result.content[0].text)


@pytest.mark.parametrize(
    "engine", ["sqlite", "postgres", pytest.param("mysql", marks=pytest.mark.nightly)]
)
async def test_a_client_gets_three_tools_with_all_of_the_guard(engine, request):
    site = request.getfixturevalue(f"{engine}_site")
    state = site.state()
    async with over_stdio(site.url) as session:
        offered = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert sorted(offered) == ["describe_table", "list_tables", "query_database_by_sql"]
        assert (await call(session, "list_tables"))["tables"] == ["disease", "drugs_info"]
        described = await call(session, "describe_table", table="disease")
        assert [column["name"] for column in described["columns"]][:2] == ["id", "disease_name"]
        found = await call(session, "query_database_by_sql", sql="SELECT id FROM disease LIMIT 2")
        assert found["rows"] == [[1], [2]]
        wrong = "SELECT id FROM drugs_info WHERE med_name = '<|IM_STARTS|>' AND id < 0"
        assert "im_start" in (await call(session, "query_database_by_sql", sql=wrong))["hint"]
        attacks = ("SELECT word FROM secrets", "DROP TABLE disease", "SELECT * FROM open_door")
        for attack in (*attacks, "SELECT 1; DELETE FROM disease"):
            refused = await call(session, "query_database_by_sql", sql=attack)
            assert refused["status"] == "error"
            assert sites.SECRET not in json.dumps(refused)
        hidden = await call(session, "describe_table", table="secrets")
        assert hidden["status"] == "error"
    assert site.state() == state


async def test_flags_choose_database_and_tables(database):
    flags = ("--database", f"sqlite:///{database}", "--tables", "disease")
    async with over_stdio("sqlite:////nowhere.db", *flags) as session:
        assert (await call(session, "list_tables"))["tables"] == ["disease"]
        sql = "SELECT id FROM drugs_info"
        assert (await call(session, "query_database_by_sql", sql=sql))["status"] == "error"
        now = {"name": "query_database_by_sql", "sql": "SELECT julianday('now')"}
        first = await call(session, **now)
        await asyncio.sleep(0.01)  # SQLite's clock has milliseconds
        assert (await call(session, **now))["rows"] != first["rows"]


@pytest.mark.parametrize(("sql", "key", "english"), cases_of(__file__, "both_languages"))
async def test_messages_are_in_both_languages(sql, key, english, database):
    async with over_stdio(f"sqlite:///{database}") as session:
        found = await call(session, "query_database_by_sql", sql=sql)
    chinese, line = found[key].split("\n")
    assert re.search("[\u4e00-\u9fff]", chinese)
    assert english in line


async def test_wrong_arguments_and_a_lost_database_are_errors_of_the_call(database):
    async with over_stdio(f"sqlite:///{database}") as session:
        assert (await session.call_tool("query_database_by_sql", {"sql": 7})).isError
        assert (await session.call_tool("query_database_by_sql", {})).isError
        assert (await session.call_tool("drop_database", {})).isError
        for sql, refused in (("DELETE FROM drugs_info", True), ("SELECT 1 AS n", False)):
            answered = await session.call_tool("query_database_by_sql", {"sql": sql})
            assert answered.isError == refused
        found = await call(session, "query_database_by_sql", sql="SELECT 1 AS n")
        assert found["rows"] == [[1]]
        away = database.with_suffix(".away")
        os.rename(database, away)
        lost = await session.call_tool("query_database_by_sql", {"sql": "SELECT 2 AS n"})
        assert lost.isError
        os.rename(away, database)
        found = await call(session, "query_database_by_sql", sql="SELECT 3 AS n")
        assert found["rows"] == [[3]]


def start(database) -> subprocess.Popen:
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    url = f"sqlite:///{database}"
    process = subprocess.Popen(COMMAND, env=environment(url), cwd=ROOT, **pipes)
    process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    process.stdin.flush()
    assert b'"serverInfo"' in process.stdout.readline()
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_it_waits_for_a_message(number, database):
    process = start(database)
    process.send_signal(number)
    process.wait()  # stdin stays open
    assert process.returncode == 130
    assert process.stderr.read().count(b"\n") == 1


def test_a_closed_stdin_ends_it_when_all_is_answered(database):
    process = start(database)
    asked = {"name": "query_database_by_sql", "arguments": {"sql": "SELECT 42 AS n"}}
    ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked}
    lines = f"{json.dumps(INITIALIZED)}\n{json.dumps(ask)}\n"
    said, complaints = process.communicate(lines.encode("utf-8-sig"))
    assert process.returncode == 0
    assert complaints == b""
    assert "42" in json.loads(said)["result"]["content"][0]["text"]


def test_what_is_no_message_is_answered_and_a_last_line_needs_no_end(database):
    process = start(database)
    listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    wrong: list[object] = [[listed], listed | {"id": None}, listed | {"id": 7, "method": 5}]
    odd = [b"hello", *(json.dumps(one).encode() for one in wrong)]
    lines = [json.dumps(INITIALIZED).encode(), *odd, json.dumps(listed).encode()]
    said, complaints = process.communicate(b"\n".join(lines))
    assert process.returncode == 0
    assert complaints == b""
    answers = [json.loads(line) for line in said.splitlines()]
    errors = {answer["id"]: answer["error"]["code"] for answer in answers if "error" in answer}
    assert sum("error" in answer for answer in answers) == len(odd)
    assert errors[7] == INVALID_REQUEST
    assert [answer["error"]["code"] for answer in answers[:1]] == [PARSE_ERROR]
    [tools] = [answer["result"]["tools"] for answer in answers if "result" in answer]
    for tool in tools:
        parameters = tool["inputSchema"]["properties"].values()
        assert all("description" in parameter for parameter in parameters)


def test_a_message_without_an_end_is_not_kept(database):
    process = start(database)
    said = process.communicate(b"x" * (MOST_BYTES + 100_000))[1]
    assert process.returncode == 1
    assert str(MOST_BYTES) in said.decode()
