"""An episode with tools, played by openai-agents: the policy's calls, the tools' answers, until it
answers in words.

    tool = Tool(SPEC, call)                  # async call(**arguments) -> text for the policy; may raise EpisodeError
    episode = await play_with_tools(policy, "You are ...", "How is it stored?", [tool])

What the policy does wrong ends the episode with a stop reason; what the machine does wrong raises
`EpisodeError`. Beside episodes/mcp_tools.py the only file that imports `agents` (openai-agents).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import agents
from agents.models.chatcmpl_converter import Converter
from openai.types.chat import ChatCompletionMessage

from episodes.episode import Episode, Policy, ToolSpec
from episodes.outcomes import EpisodeError, PolicyStop

# Tools run one after the other, so that a transcript has one order.
ONE_BY_ONE = agents.ToolExecutionConfig(max_function_tool_concurrency=1)
RUN_CONFIG = agents.RunConfig(tracing_disabled=True, tool_execution=ONE_BY_ONE)
CALL_TAG = "<tool_call>"
JSON_TYPES = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "object": dict,
    "array": list,
}


@dataclass(frozen=True)
class Tool:
    """A tool as the chat-completions API describes it, and what answers its calls.

    whole: all arguments reach the call, which looks at their types itself; else only the required
    ones, with the types they should have.
    """

    spec: ToolSpec
    call: Callable[..., Awaitable[str]]
    whole: bool = False


async def play_with_tools(
    policy: Policy, instructions: str, question: str, tools: Sequence[Tool]
) -> Episode:
    """Let the policy answer a question; `instructions` is the system prompt.

    Raises EpisodeError: the policy's endpoint or a tool failed.
    """
    first = [{"role": "system", "content": instructions}, {"role": "user", "content": question}]
    episode = Episode(messages=first, tools=[tool.spec for tool in tools])
    agent = agents.Agent(
        name="policy",
        instructions=instructions,
        tools=[_function_tool(tool, episode) for tool in tools],
        model=_PolicyModel(policy, episode),
    )
    try:
        result = await agents.Runner.run(
            agent, question, max_turns=policy.max_turns, run_config=RUN_CONFIG
        )
        episode.answer = str(result.final_output or "").strip() or None
        episode.stop_reason = "answered" if episode.answer else "no_answer"
        if CALL_TAG in (episode.answer or ""):  # no parser took the call, such as the last reply's
            episode.answer = None
            episode.stop_reason = "bad_tool_call"
    except agents.MaxTurnsExceeded:
        episode.stop_reason = "max_turns"
    except (
        agents.ModelBehaviorError,
        RecursionError,
    ):  # the latter: arguments nested too deep to be read
        episode.stop_reason = "bad_tool_call"
    except PolicyStop as stop:
        episode.stop_reason = stop.reason
    except agents.UserError as error:  # how openai-agents wraps what a tool raises
        if isinstance(error.__cause__, EpisodeError):
            raise error.__cause__ from error
        raise
    if policy.finish_reason == "length" and episode.stop_reason in (
        "answered",
        "no_answer",
        "bad_tool_call",
    ):
        episode.stop_reason = "length"
    return episode


class _PolicyModel(agents.Model):
    """The policy as openai-agents' model; what it says goes into the transcript."""

    def __init__(self, policy: Policy, episode: Episode) -> None:
        self._policy, self._episode = policy, episode

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: Any,
        *rest: Any,
        **named: Any,
    ) -> agents.ModelResponse:
        messages: list[Any] = list(Converter.items_to_messages(input))
        if system_instructions:
            messages.insert(0, {"role": "system", "content": system_instructions})
        message = await self._policy.reply(
            messages, [dict(Converter.tool_to_openai(tool)) for tool in tools]
        )
        self._episode.messages.append(message)
        reply = ChatCompletionMessage.model_validate(message)
        items = Converter.message_to_output_items(reply)
        return agents.ModelResponse(output=items, usage=agents.Usage(), response_id=None)

    def stream_response(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError("episodes are not streamed")


def _function_tool(tool: Tool, episode: Episode) -> agents.FunctionTool:
    """Wrap a tool for openai-agents; its exceptions are never shown to the policy."""
    function = tool.spec["function"]

    async def invoke(context: Any, arguments: str) -> str:
        read = _whole if tool.whole else _arguments
        text = await tool.call(**read(arguments, function["parameters"]))
        episode.messages.append(
            {"role": "tool", "tool_call_id": context.tool_call_id, "content": text}
        )
        return text

    return agents.FunctionTool(
        name=function["name"],
        description=function["description"],
        params_json_schema=function["parameters"],
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _arguments(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the required arguments of a call; others are ignored. Raises ModelBehaviorError: one
    is missing or has another type.
    """
    kinds = {
        name: JSON_TYPES[schema["properties"][name]["type"]] for name in schema.get("required", [])
    }
    try:
        given = json.loads(text)
        found = {name: given[name] for name in kinds}
    except (ValueError, TypeError, KeyError, RecursionError):
        found = {}
    if not all(name in found and isinstance(found[name], kind) for name, kind in kinds.items()):
        raise agents.ModelBehaviorError(f"the arguments are no JSON object with {list(kinds)}")
    return found


def _whole(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return all arguments of a call. Raises ModelBehaviorError: a required one is missing."""
    required = list(schema.get("required", []))
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or not {*required} <= given.keys():
        raise agents.ModelBehaviorError(f"the arguments are no JSON object with {required}")
    return given
