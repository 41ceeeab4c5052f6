"""The SQL tool for any MCP client, with every check and limit that the trained agents have.

    .venv/bin/python -m tools.sql.mcp                                            # as clients start it
    DATABASE_URL=... .venv/bin/python -m tools.sql.mcp --tables visits,drugs     # a password stays off the command line

Tools: query_database_by_sql, list_tables, describe_table. Settings: DATABASE_URL, DATABASE_TABLES,
DATABASE_STRICT (docs/settings.md). Exit codes: 0 the client closed stdin, 1 failed, 2 wrong usage,
130 interrupted.
"""

import asyncio
import json
import os
import re
import sys
import tomllib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from threading import Thread
from typing import Annotated, Any

import anyio
from mcp.server.fastmcp import FastMCP
from mcp.server.stdio import stdio_server
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    JSONRPCMessage,
    TextContent,
    ToolAnnotations,
)
from pydantic import Field

from common.command import Failure, UsageError, new_parser, run_command
from common.settings import ROOT, load_settings
from common.stopping import stop_in_order
from common.toml import table_beside
from tools.sql.query import QueryTool
from tools.sql.result import compact
from tools.sql.settings import DatabaseSettings

ENGLISH = table_beside(__file__, "english.toml")
MOST_BYTES = 256_000  # of a message. A statement may have 20,000
SECONDS_TO_ANSWER = 30.0  # after stdin was closed
READ_BYTES = 65_536
READS = ToolAnnotations(readOnlyHint=True, openWorldHint=False)

QUERY = (
    "执行一条只读的 SELECT 语句（{dialect}），返回 JSON；出错时按 error 和 hint 改写后重试。"
    "可用的表：{tables}。\n"
    "Run one read-only SELECT ({dialect}) and return JSON; after an error rewrite the statement as "
    "`error` and `hint` say. Tables: {tables}."
)
SQL = "一条 SELECT 语句。One SELECT statement."
TABLE = "表名，见 list_tables。The table's name, one of list_tables."
LIST = "列出可以查询的表，返回 JSON。\nList the tables that may be read, as JSON."
DESCRIBE = (
    "列出一张表的列：名称、类型、说明和样例值，返回 JSON。\n"
    "List the columns of a table with type, comment and sample values, as JSON."
)


def build(tool: QueryTool) -> FastMCP:
    """Return the MCP server on a query tool. Raises DatabaseError: the database cannot be used."""
    database = tool.database()
    words = {"dialect": database.dialect, "tables": ", ".join(sorted(tool.allowed_tables))}
    server = FastMCP("medical-sql", log_level="WARNING")

    async def query_database_by_sql(sql: Annotated[str, Field(description=SQL)]) -> CallToolResult:
        return answer((await asyncio.to_thread(tool.run, sql)).to_json())

    async def list_tables() -> str:
        await asyncio.to_thread(tool.database)
        return compact({"status": "success", "tables": sorted(tool.allowed_tables)})

    async def describe_table(table: Annotated[str, Field(description=TABLE)]) -> CallToolResult:
        return answer(await asyncio.to_thread(tool.describe_table, table))

    offered: list[tuple[Callable[..., Any], str]] = [
        (query_database_by_sql, QUERY.format(**words)),
        (list_tables, LIST),
        (describe_table, DESCRIBE),
    ]
    for call, description in offered:
        server.add_tool(call, description=description, annotations=READS, structured_output=False)
    server._mcp_server.version = own_version()  # else it is that of the mcp package
    return server


def own_version() -> str:
    """Return the project's version, of the wheel that is installed or of the repository."""
    try:
        return version("medical-agent-rl")
    except PackageNotFoundError:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return str(project["version"])


def answer(result: str) -> CallToolResult:
    """Return a result with messages in both languages. A refused statement is an error."""
    read = json.loads(result)
    for key in ("error", "hint", "truncated"):
        if isinstance(read.get(key), str):
            read[key] = in_both(read[key])
    content = TextContent(type="text", text=compact(read))
    return CallToolResult(content=[content], isError=read.get("status") == "error")


def in_both(message: str) -> str:
    """Return a message in Chinese and, on a line of its own, in English."""
    for chinese, english in ENGLISH.items():
        pattern = "(.*?)".join(map(re.escape, chinese.split("{}")))
        pattern = re.sub("。$", "[。…]", pattern)  # a long one was cut
        if found := re.fullmatch(pattern, message, re.DOTALL):
            return f"{message}\n{english.replace('{ }', '{{ }}').format(*found.groups())}"
    return message


class Pipes:
    """stdin and stdout as `stdio_server` uses them.

    A daemon thread reads lines, because Ctrl-C cannot interrupt the `mcp` package's own read.
    Malformed messages are answered here, because that package stays silent. stdin ends only after
    all requests are answered, because it would drop the rest.
    """

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.lines: asyncio.Queue[str | None] = asyncio.Queue()
        self.output = anyio.wrap_file(TextIOWrapper(sys.stdout.buffer, encoding="utf-8"))
        self.asked = 0
        self.answered = asyncio.Event()
        self.too_long = False
        Thread(target=self._read, name="stdin", daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while len(rest) <= MOST_BYTES and (read := os.read(sys.stdin.fileno(), READ_BYTES)):
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                self._put(line)
        self.too_long = len(rest) > MOST_BYTES
        if rest.strip() and not self.too_long:  # a last line without its end
            self._put(rest)
        self.loop.call_soon_threadsafe(self.lines.put_nowait, None)

    def _put(self, line: bytes) -> None:
        text = line.decode("utf-8-sig", "replace")  # PowerShell begins a pipe with a mark
        self.loop.call_soon_threadsafe(self.lines.put_nowait, text)

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self.lines.get()) is not None:
            if not line.strip():
                continue
            try:
                self.asked += is_request(line)
            except ValueError as error:
                await self._refuse(line, error)
            else:
                yield line
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS_TO_ANSWER):
                while self.asked > 0:
                    self.answered.clear()
                    await self.answered.wait()

    async def _refuse(self, line: str, error: ValueError) -> None:
        try:
            message = json.loads(line)
            code = INVALID_REQUEST
        except (ValueError, RecursionError):
            message = None
            code = PARSE_ERROR
        # With its id, the client knows which of its requests will not be answered
        identity = message.get("id") if isinstance(message, dict) else None
        answer = {
            "jsonrpc": "2.0",
            "id": identity if is_identity(identity) else None,
            "error": {"code": code, "message": str(error)[:200]},
        }
        await self.output.write(json.dumps(answer) + "\n")
        await self.output.flush()

    async def write(self, line: str) -> None:
        await self.output.write(line)
        self.asked -= "method" not in json.loads(line)  # else it is a notification
        self.answered.set()

    async def flush(self) -> None:
        await self.output.flush()


def is_request(line: str) -> bool:
    """Return whether a message wants an answer. Raises ValueError: it is not JSON-RPC."""
    JSONRPCMessage.model_validate_json(line)  # as the package reads it: no NaN, no half characters
    message = json.loads(line)
    if not is_identity(message.get("id", 0)):
        raise ValueError("an id is a text or a whole number")
    return {"id", "method"} <= message.keys()


def is_identity(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)


async def serve(server: FastMCP) -> None:
    """Serve stdin on stdout until stdin is closed. Raises Failure: a message is too long."""
    pipes = Pipes()
    files: Any = pipes
    inner = server._mcp_server  # FastMCP has no method that takes another stdin
    try:
        async with stdio_server(files, files) as (read, write):
            await inner.run(read, write, inner.create_initialization_options())
    except* (BrokenPipeError, anyio.BrokenResourceError):  # the client is gone
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)  # what stdout buffers goes nowhere at the exit
    if pipes.too_long:
        raise Failure(f"a message on stdin has over {MOST_BYTES} bytes")


def run(argv: Sequence[str] | None, settings: DatabaseSettings) -> None:
    """Serve until the client closes stdin or the program is interrupted."""
    parser = new_parser(__doc__)
    add = parser.add_argument
    add("--database", dest="database_url", metavar="URL", help="default: DATABASE_URL")
    add("--tables", dest="database_tables", metavar="A,B", help="default: DATABASE_TABLES")
    settings = settings.under(vars(parser.parse_args(argv)))
    if not settings.tables:
        raise UsageError("--tables names no table; expected names joined by commas")
    if sys.stdin is None or sys.stdout is None:
        raise UsageError("stdin or stdout is closed; an MCP client starts this with both open")
    tool = QueryTool(settings.database_url, settings.tables, cache=False)  # data change
    asyncio.run(serve(build(tool)))


def main(argv: Sequence[str] | None = None) -> int:
    stop_in_order()
    return run_command("sql-mcp", lambda: run(argv, load_settings().of(DatabaseSettings)))


if __name__ == "__main__":
    sys.exit(main())
