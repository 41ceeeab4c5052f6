"""One episode of the SQL agent: a question, at most `max_turns` calls of the policy, queries in between.

    episode = await run_episode("朵莎洛片如何贮藏?", Endpoint("http://127.0.0.1:8000/v1", "tiny"), QueryTool(url), 3)

What the policy does wrong ends the episode with a named `stop_reason`; what the machine does wrong raises
`EpisodeError`. The only file that imports `agents` (openai-agents).
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from agents import (
    Agent,
    FunctionTool,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelSettings,
    OpenAIChatCompletionsModel,
    RunConfig,
    Runner,
    ToolExecutionConfig,
    UserError,
)
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, BadRequestError, DefaultAioHttpClient, OpenAIError
from openai.types.chat import ChatCompletion

from episodes.plain_client import PlainClient
from sql_agent.prompts import SCHEMA_TOOLS, SYSTEM_PROMPT, TOOL, first_messages
from tools.sql.database import DatabaseError
from tools.sql.query import QueryResult, QueryTool
from tools.sql.schema_tools import SchemaTools

# How vLLM, litellm and OpenAI word a prompt that does not fit.
CONTEXT_OVERFLOW = re.compile(r"context.{0,3}(length|window)|max_model_len|longer than the maximum", re.IGNORECASE)
MAX_RETRIES = 2
RUN_CONFIG = RunConfig(tracing_disabled=True, tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1))


class EpisodeError(RuntimeError):
    """The machine failed, not the policy, so the episode says nothing about the policy. `cause` is a short name."""

    def __init__(self, cause: str, detail: str) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible chat-completions endpoint and how to sample from it; None leaves a value to the server.

    `extra` goes into the request's body as it is, e.g. {"top_k": -1}. `http_client` (an httpx.AsyncClient) carries the
    requests instead of the shared connection pool. `traced`: a tracer in this process records the calls, and only knows
    openai's own client.
    """

    base_url: str
    model: str
    api_key: str | None = None
    temperature: float | None = 1.0
    top_p: float | None = 1.0
    max_tokens: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    http_client: Any = None
    traced: bool = False


@dataclass
class Episode:
    """What happened.

    `stop_reason`: "answered"; "length" (the last reply was cut by its token limit; the answer is what there is, or
    None); "no_answer" (an empty reply); "bad_tool_call" (unknown tool, or arguments that are no JSON object with a text
    `sql`); "context_overflow" (the endpoint refused a prompt that is too long); "max_turns" (a tool call where none was
    allowed). `messages`: the transcript as OpenAI dicts. `turns`: replies of the policy. Tokens are summed over the
    turns as the endpoint counts them; 0 where it does not.
    """

    answer: str | None = None
    stop_reason: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    tool_results: list[QueryResult] = field(default_factory=list)
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _CountingModel(OpenAIChatCompletionsModel):
    """Keeps the transcript, and makes the last allowed call one that must be answered in words.

    The tools are sent with that call too: without them the prompt would no longer begin with the earlier turns' tokens.
    `_fetch_response` is the one place that sees the completion whole; `get_response` drops its finish reason.
    """

    def __init__(self, model: str, client: AsyncOpenAI, episode: Episode, max_turns: int) -> None:
        super().__init__(model, client)
        self._episode, self._max_turns = episode, max_turns
        self.finish_reason: str | None = None

    async def _fetch_response(
        self, system_instructions: Any, input: Any, model_settings: Any, *rest: Any, **named: Any
    ) -> Any:
        if self._episode.turns + 1 >= self._max_turns:
            model_settings = dataclasses.replace(model_settings, tool_choice="none")
        completion = await super()._fetch_response(system_instructions, input, model_settings, *rest, **named)
        self._keep(completion)
        return completion

    def _keep(self, completion: ChatCompletion) -> None:
        if not completion.choices:
            raise EpisodeError("endpoint_error", "the reply has no choices")
        choice = completion.choices[0]
        self._episode.turns += 1
        if completion.usage:
            self._episode.prompt_tokens += completion.usage.prompt_tokens
            self._episode.completion_tokens += completion.usage.completion_tokens
        self.finish_reason = choice.finish_reason
        message: dict[str, Any] = {"role": "assistant", "content": choice.message.content}
        if choice.message.tool_calls:
            message["tool_calls"] = [call.model_dump(exclude_none=True) for call in choice.message.tool_calls]
        self._episode.messages.append(message)


def _function_tool(tool: QueryTool, episode: Episode) -> FunctionTool:
    """Wrap the query tool for openai-agents; its exceptions are never shown to the policy."""

    async def invoke(context: Any, arguments: str) -> str:
        result = await asyncio.to_thread(tool.run, _text_of(arguments, "sql"))
        text = result.to_json()
        episode.tool_results.append(result)
        episode.messages.append({"role": "tool", "tool_call_id": context.tool_call_id, "content": text})
        return text

    return _described(TOOL["function"], invoke)


def _schema_tools(schema: SchemaTools, episode: Episode) -> list[FunctionTool]:
    """Wrap the tools that describe the database; they count as turns, not as queries."""

    def wrapped(description: dict[str, Any]) -> FunctionTool:
        names = description["parameters"].get("required", [])

        async def invoke(context: Any, arguments: str) -> str:
            values = [_text_of(arguments, name) for name in names]
            text = await asyncio.to_thread(getattr(schema, description["name"]), *values)
            episode.messages.append({"role": "tool", "tool_call_id": context.tool_call_id, "content": text})
            return text

        return _described(description, invoke)

    return [wrapped(description) for description in SCHEMA_TOOLS]


def _described(description: dict[str, Any], invoke: Any) -> FunctionTool:
    return FunctionTool(
        name=description["name"],
        description=description["description"],
        params_json_schema=description["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _text_of(arguments: str, name: str) -> str:
    try:
        text = json.loads(arguments)[name]
    except (ValueError, TypeError, KeyError, RecursionError):
        text = None
    if not isinstance(text, str):
        raise ModelBehaviorError(f"the arguments are no JSON object with a text '{name}'")
    return text


Pool = AsyncGenerator[AsyncOpenAI, None]
_pools: dict[tuple[asyncio.AbstractEventLoop, type[AsyncOpenAI]], tuple[AsyncOpenAI, Pool]] = {}


async def _client(endpoint: Endpoint) -> AsyncOpenAI:
    """Return a client for the endpoint; all clients of one kind and event loop share one connection pool.

    A pool for every episode would cost a TLS context each, which takes longer than a tiny model's reply.
    """
    kind = AsyncOpenAI if endpoint.traced else PlainClient
    key = asyncio.get_running_loop(), kind
    if key not in _pools:
        pool = _open_pool(*key)
        _pools[key] = await anext(pool), pool
    return _pools[key][0].with_options(
        base_url=endpoint.base_url, api_key=endpoint.api_key or "none", http_client=endpoint.http_client
    )


async def _open_pool(loop: asyncio.AbstractEventLoop, kind: type[AsyncOpenAI]) -> Pool:
    """A client whose connections are closed by the loop itself, which ends every open async generator when it ends.

    httpx looks at every open connection before each request; aiohttp does not.
    """
    try:
        async with kind(api_key="none", max_retries=MAX_RETRIES, http_client=DefaultAioHttpClient()) as client:
            yield client
    finally:
        del _pools[loop, kind]


async def run_episode(
    task_question: str, endpoint: Endpoint, tool: QueryTool, max_turns: int, schema: SchemaTools | None = None
) -> Episode:
    """Let the policy answer one question.

    Args:
        task_question: what the user asks.
        endpoint: the policy.
        tool: what the policy may query.
        max_turns: calls of the policy, the closing one included (>= 1); the last one is made without tools.
        schema: further tools that describe the database; None: the query tool alone.

    Raises:
        EpisodeError: endpoint unreachable, refusing or failing; database gone.
    """
    if max_turns < 1:
        raise ValueError(f"max_turns is {max_turns}; it must be at least 1")
    episode = Episode(messages=list(first_messages(task_question)))
    model = _CountingModel(endpoint.model, await _client(endpoint), episode, max_turns)
    agent = Agent(
        name="sql_agent",
        instructions=SYSTEM_PROMPT,
        tools=[_function_tool(tool, episode), *(_schema_tools(schema, episode) if schema else [])],
        model=model,
        model_settings=ModelSettings(
            temperature=endpoint.temperature,
            top_p=endpoint.top_p,
            max_tokens=endpoint.max_tokens,
            extra_body=endpoint.extra or None,
        ),
    )
    try:
        result = await Runner.run(agent, task_question, max_turns=max_turns, run_config=RUN_CONFIG)
        episode.answer = str(result.final_output or "").strip() or None
        episode.stop_reason = _stop_reason(episode, model)
    except MaxTurnsExceeded:
        episode.stop_reason = "max_turns"
    except ModelBehaviorError:
        episode.stop_reason = "length" if model.finish_reason == "length" else "bad_tool_call"
    except (OpenAIError, UserError) as error:
        episode.stop_reason = _policy_fault(error)
    return episode


def _stop_reason(episode: Episode, model: _CountingModel) -> str:
    if model.finish_reason == "length":
        return "length"
    return "answered" if episode.answer else "no_answer"


def _policy_fault(error: OpenAIError | UserError) -> str:
    """Return the stop reason when the policy is to blame for the error; else raise EpisodeError."""
    if isinstance(error, BadRequestError) and CONTEXT_OVERFLOW.search(str(error)):
        return "context_overflow"
    if isinstance(error, UserError):
        if isinstance(error.__cause__, DatabaseError):
            raise EpisodeError("database_error", str(error.__cause__)) from error
        raise error
    if isinstance(error, APIConnectionError):
        raise EpisodeError("endpoint_unreachable", f"{error} ({error.request.url})") from error
    if isinstance(error, APIStatusError):
        raise EpisodeError("endpoint_error", f"status {error.status_code}: {str(error)[:300]}") from error
    raise EpisodeError("endpoint_error", str(error)[:300]) from error
