"""Tools of other people's MCP servers for episodes: programs over stdio, bounded in time and size.

    servers = McpTools(Path("mcp.json"), clean)      # {"mcpServers": {NAME: {"command", "args", "env", "cwd"}}}
    episode = await play_with_tools(policy, prompt, question, [*own, *servers.tools()])

A server that fails at the start is an error. One that dies later leaves the episode unscored.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from common import parent
from common.command import UsageError
from episodes.episode import ServiceError, ToolSpec
from episodes.outcomes import EpisodeError
from episodes.tool_loop import Tool

START_SECONDS = 30.0  # until a server has started and said what it offers
CALL_SECONDS = 20.0
STOP_SECONDS = 5.0
MOST_PAGES = 4
MOST_DESCRIBED = 8_000  # characters of all descriptions: the policy reads them in every call
MOST_CHARACTERS = 8_000  # of one result, as of the SQL tool's
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Server(BaseModel):
    """One server as the file names it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    command: str = Field(min_length=1)
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None


class Servers(BaseModel):
    """The file, in the form that MCP clients share."""

    model_config = ConfigDict(extra="forbid")

    mcpServers: dict[str, Server] = Field(min_length=1)  # the clients' name


def read_servers(path: Path) -> dict[str, Server]:
    """Return the servers of a file. Raises UsageError: missing, or not in the form of MCP clients."""
    form = 'expected {"mcpServers": {NAME: {"command": ..., "args": [...], "env": {...}}}}'
    try:
        servers = Servers.model_validate_json(path.read_bytes()).mcpServers
    except OSError as error:
        raise UsageError(f"--mcp {path}: {error.strerror}; {form}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise UsageError(f"--mcp {path}: {place}: {first['msg']}; {form}") from None
    for name, server in servers.items():
        if not NAME.fullmatch(name):
            raise UsageError(f"--mcp {path}: {name!r}: expected letters, digits, _ and - as a name")
        if not shutil.which(server.command, path=server.env.get("PATH")):
            raise UsageError(f"--mcp {path}: there is no program {server.command!r}")
    return servers


class Offered(NamedTuple):
    """A tool of a running server: its name there, and how the policy reads it."""

    server: Any
    name: str
    spec: ToolSpec


class McpTools:
    """The servers of one file, for many threads and event loops. taken: the agent's own tools.

    clean: makes text safe for the policy to read, such as without chat tokens.
    """

    def __init__(
        self, path: Path, clean: Callable[[str], str], taken: tuple[str, ...] = ()
    ) -> None:
        self.servers = read_servers(path)
        self.path = path
        self.clean = clean
        self.taken = taken
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._running: list[Future[None]] = []
        self._offered: list[Offered] = []

    def start(self) -> None:
        """Start the servers once.

        Raises ServiceError: one does not start. Raises UsageError: one offers an unusable tool.
        """
        with self._lock:
            if self._loop is not None:
                return
            loop = asyncio.new_event_loop()
            Thread(target=loop.run_forever, name="mcp", daemon=True).start()
            self._loop = loop
            self._stop = asyncio.Event()
            self._running = []
            try:
                for name, server in self.servers.items():
                    self._offered += self._start(name, server)
                self._check()
            except BaseException:
                self._close()
                raise

    def tools(self) -> list[Tool]:
        """Return the tools, for any episode. Raises EpisodeError: a server failed to start."""
        try:
            self.start()
        except (ServiceError, UsageError) as error:
            raise EpisodeError("tool_server_failed", str(error)) from error
        tools = []
        for one in self._offered:
            tools.append(Tool(one.spec, partial(self._call, one.server, one.name), whole=True))
        return tools

    def described(self) -> list[dict[str, Any]]:
        """Return the tools as the policy reads them, with their servers' names."""
        self.start()
        return [{"server": one.server.name, **one.spec["function"]} for one in self._offered]

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        loop = self._loop
        self._loop = None
        self._offered = []
        if loop is None:
            return
        loop.call_soon_threadsafe(self._stop.set)
        for running in self._running:
            try:
                running.result(STOP_SECONDS)
            except Exception:
                running.cancel()  # its process ends with this one
        loop.call_soon_threadsafe(loop.stop)

    def _start(self, name: str, server: Server) -> list[Offered]:
        assert self._loop is not None
        ready: Future[tuple[Any, list[Any]]] = Future()
        self._running.append(
            asyncio.run_coroutine_threadsafe(self._serve(name, server, ready), self._loop)
        )
        try:
            started, listed = ready.result(START_SECONDS)
        except FutureTimeout:
            raise ServiceError(
                f"the MCP server {name} of {self.path} did not "
                f"say within {START_SECONDS:g} s what it offers"
            ) from None
        except Exception as error:
            raise ServiceError(
                f"the MCP server {name} of {self.path} did not start: {_first(error)}"
            ) from None
        return [Offered(started, tool.name, self._spec(name, tool)) for tool in listed]

    async def _serve(self, name: str, server: Server, ready: Future[tuple[Any, list[Any]]]) -> None:
        from agents.mcp import MCPServerStdio

        given = {
            "command": sys.executable,
            "args": ["-P", parent.__file__, str(os.getpid()), server.command, *server.args],
            "env": server.env,
            "cwd": server.cwd,
            "encoding_error_handler": "replace",
        }
        # Retries would hide a server that fails
        client = MCPServerStdio(
            given,
            name=name,
            client_session_timeout_seconds=START_SECONDS,
            max_list_pages=MOST_PAGES,
        )
        try:
            await client.connect()
            ready.set_result((client, await client.list_tools()))
            await self._stop.wait()
        except BaseException as error:
            if not ready.done():
                ready.set_exception(
                    error if isinstance(error, Exception) else ServiceError("ended")
                )
            raise
        finally:
            await client.cleanup()

    def _spec(self, server: str, tool: Any) -> ToolSpec:
        why = problem_of(tool.name, tool.inputSchema)
        if why:
            shown = self.clean(str(tool.name))[:64]
            raise UsageError(f"the MCP server {server} offers a tool {shown!r}: {why}")
        description = self.clean(tool.description or "")
        parameters = json.loads(self.clean(json.dumps(tool.inputSchema, ensure_ascii=False)))
        function = {"name": tool.name, "description": description, "parameters": parameters}
        return {"type": "function", "function": function}

    def _check(self) -> None:
        names = [*self.taken, *(one.name for one in self._offered)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UsageError(
                f"--mcp {self.path}: {', '.join(twice)} is more than one tool's name; "
                "offer one of them under another name"
            )
        size = len(json.dumps([one.spec for one in self._offered], ensure_ascii=False))
        if size > MOST_DESCRIBED:
            raise UsageError(
                f"--mcp {self.path}: the tools' descriptions have {size} characters, "
                f"at most {MOST_DESCRIBED}: the policy reads them in every call"
            )

    async def _call(self, server: Any, name: str, /, **arguments: Any) -> str:
        from mcp import McpError
        from mcp.types import INVALID_PARAMS

        loop = self._loop
        if loop is None:
            raise EpisodeError("tool_server_failed", f"the MCP server {server.name} was ended")
        call: Coroutine[Any, Any, Any] = server.call_tool(name, arguments)
        asked = asyncio.run_coroutine_threadsafe(asyncio.wait_for(call, CALL_SECONDS), loop)
        try:
            result = await asyncio.wrap_future(asked)
        except TimeoutError:
            reason = f"no answer within {CALL_SECONDS:g} s"
            raise EpisodeError(
                "tool_server_failed", f"the MCP server {server.name}, {name}: {reason}"
            ) from None
        except Exception as error:
            if isinstance(error, McpError) and error.error.code == INVALID_PARAMS:
                return shown(self.clean(f"error: {error}"))
            raise EpisodeError(
                "tool_server_failed", f"the MCP server {server.name}, {name}: {_first(error)}"
            ) from error
        return shown(self.clean(text_of(result)))


def problem_of(name: Any, schema: Any) -> str:
    """Return why a tool of this name and schema cannot be offered, or "" where it can."""
    from jsonschema import Draft202012Validator, SchemaError

    if not NAME.fullmatch(str(name)):
        return "expected a name of at most 64 letters, digits, _ and -"
    if schema.get("type") != "object":
        return f"its schema is of type {schema.get('type')!r}, expected 'object'"
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError) as error:
        return f"its schema is none: {str(error).splitlines()[0][:200]}"
    properties = schema.get("properties", {})
    missing = sorted({*map(str, schema.get("required", []))} - {*properties})
    if missing:
        return f"its schema requires {', '.join(missing)}, which it does not describe"
    if re.search(r'"\$(?:ref|dynamicRef)": "[^#]', json.dumps(schema)):
        return "its schema refers to another document"
    return ""


def text_of(result: Any) -> str:
    """Return what a result says in words. Other content is named."""
    parts = []
    for part in result.content or ():
        parts.append(part.text if part.type == "text" else f"[{part.type}]")
    if not parts and result.structuredContent is not None:
        parts = [json.dumps(result.structuredContent, ensure_ascii=False)]
    text = "\n".join(parts)
    return f"error: {text}" if result.isError else text


def shown(text: str) -> str:
    """Return a result as the policy reads it: cut where it is too long, and never empty."""
    if len(text) <= MOST_CHARACTERS:
        return text or "[empty]"
    return f"{text[:MOST_CHARACTERS]}… [{len(text)} characters, cut]"


def _first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
