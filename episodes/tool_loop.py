"""An episode with tools, played by openai-agents until the policy answers in words.

    tool = Tool(SPEC, call)                  # async call(**arguments) -> text for the policy; may raise EpisodeError
    episode = await play_with_tools(policy, "You are ...", "How is it stored?", [tool])

An impossible call is answered with an error and costs its turn, as in verl and TRL.
"""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import agents
from agents.models.chatcmpl_converter import Converter
from openai.types.chat import ChatCompletionMessage

from common.thoughts import after_thought
from episodes.episode import Episode, Policy, ToolSpec
from episodes.outcomes import PolicyStop

# Tools run one after the other, so that a transcript has one order.
ONE_BY_ONE = agents.ToolExecutionConfig(max_function_tool_concurrency=1)
# A call, as model families write it; one that stands in a reply was not read by the server's parser
CALL_MARK = re.compile(
    r"<[^<>\s\d/]*(?:tool|function).?call|<function[= ]|<invoke |functools\[|\[TOOL_CALLS\]|"
    r"<\|(?:python_tag|python_start|action_start)\|>"
)
BARE_CALL = re.compile(r'\s*[\[{]\s*\{?\s*"(?:name|function)"\s*:')
# What the policy reads after a call that cannot be carried out, in the language of its prompt.
SAID = {
    "zh": {
        "unknown": "没有工具 {name}；可用的工具：{tools}",
        "arguments": "参数必须是一个 JSON 对象，其中要有：{names}",
        "text": "工具调用的格式不对，没有执行。请重新调用，或直接回答。",
    },
    "en": {
        "unknown": "there is no tool {name}; the tools are: {tools}",
        "arguments": "the arguments must be one JSON object with: {names}",
        "text": "The tool call could not be read and was not made. Call the tool again, or answer.",
    },
}
CHINESE = re.compile("[\u4e00-\u9fff]")
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
    """A tool and what answers its calls, which get the arguments that its spec names."""

    spec: ToolSpec
    call: Callable[..., Awaitable[str]]


async def play_with_tools(
    policy: Policy, instructions: str, question: str, tools: Sequence[Tool]
) -> Episode:
    """Let the policy answer. `instructions` is the system prompt. Raises EpisodeError."""
    first = [{"role": "system", "content": instructions}, {"role": "user", "content": question}]
    episode = Episode(messages=first, tools=[tool.spec for tool in tools])
    said = SAID["zh" if CHINESE.search(instructions) else "en"]
    names = ", ".join(tool.spec["function"]["name"] for tool in tools)

    def unknown(call: Any) -> str:
        text = _error(said["unknown"].format(name=call.tool_name, tools=names))
        return _answered(episode, call.call_id, text)

    agent = agents.Agent(
        name="policy",
        instructions=instructions,
        tools=[_function_tool(tool, episode, said["arguments"]) for tool in tools],
        model=_PolicyModel(policy, episode),
    )
    config = agents.RunConfig(
        tracing_disabled=True,
        tool_execution=ONE_BY_ONE,
        tool_not_found_behavior="return_error_to_model",
        tool_error_formatter=unknown,
    )
    conversation: Any = question
    try:
        while not episode.stop_reason:
            left = policy.max_turns - policy.turns
            result = await agents.Runner.run(agent, conversation, max_turns=left, run_config=config)
            answer = after_thought(str(result.final_output or "")) or ""
            if not CALL_MARK.search(answer) and not BARE_CALL.match(answer):
                episode.answer = answer or None
                episode.stop_reason = "answered" if answer else "no_answer"
            elif policy.turns >= policy.max_turns or policy.finish_reason == "length":
                episode.stop_reason = "bad_tool_call"
            else:  # no parser took the call, and the policy may write it again
                told = {"role": "user", "content": said["text"]}
                episode.messages.append(told)
                conversation = [*result.to_input_list(), told]
    except agents.MaxTurnsExceeded:
        episode.stop_reason = "max_turns"
    # RecursionError: arguments are nested too deep to be read
    except (agents.ModelBehaviorError, RecursionError):
        episode.stop_reason = "bad_tool_call"
    except PolicyStop as stop:
        episode.stop_reason = stop.reason
    except agents.UserError as error:  # how openai-agents wraps what a tool raises
        cause = error.__cause__ or error
        raise cause from cause.__cause__ or cause.__context__
    episode.messages = in_order(episode.messages)
    episode.end_as_cut(policy)
    return episode


class _PolicyModel(agents.Model):
    """The policy as openai-agents' model. What it says goes into the transcript."""

    def __init__(self, policy: Policy, episode: Episode) -> None:
        self._policy = policy
        self._episode = episode

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: Any,
        *rest: Any,
        **named: Any,
    ) -> agents.ModelResponse:
        # Servers refuse a request whose earlier calls are not JSON objects
        given = [_with_objects(one, "{}") for one in Converter.items_to_messages(input)]
        messages = in_order(given)
        if system_instructions:
            messages.insert(0, {"role": "system", "content": system_instructions})
        message = await self._policy.reply(
            messages, [dict(Converter.tool_to_openai(tool)) for tool in tools]
        )
        for call in message.get("tool_calls") or []:
            call["function"]["arguments"] = _encodable(call["function"]["arguments"])
        self._episode.messages.append(message)
        if message.get("tool_calls") and self._policy.finish_reason == "length":
            raise PolicyStop("length")
        # openai-agents fails at arguments that are nested too deep
        reply = ChatCompletionMessage.model_validate(_with_objects(message, "null"))
        items = Converter.message_to_output_items(reply)
        return agents.ModelResponse(output=items, usage=agents.Usage(), response_id=None)

    def stream_response(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError("episodes are not streamed")


def _with_objects(message: Any, otherwise: str) -> Any:
    calls = []
    for call in message.get("tool_calls") or []:
        function = call["function"]
        if _object(function["arguments"]) is None:
            function = {**function, "arguments": otherwise}
        calls.append({**call, "function": function})
    return {**message, "tool_calls": calls} if calls else message


def in_order(messages: Sequence[Any]) -> list[Any]:
    """Return the messages with answers in the order of their calls, for templates without ids."""
    ordered: list[Any] = []
    answers: list[Any] = []
    places: dict[str, int] = {}
    for message in messages:
        if message["role"] == "tool":
            answers.append(message)
            answers.sort(key=lambda answer: places.get(answer["tool_call_id"], len(places)))
            continue
        ordered += [*answers, message]
        answers = []
        calls = message.get("tool_calls") or []
        places = {call["id"]: number for number, call in enumerate(calls)}
    return [*ordered, *answers]


def _encodable(arguments: str) -> str:
    given = _object(arguments)
    if given is None:
        return arguments
    text = json.dumps(given, ensure_ascii=False)
    sendable = text.encode("utf-8", "replace").decode()
    return arguments if sendable == text else sendable


def _error(text: str) -> str:
    return json.dumps({"status": "error", "error": text}, ensure_ascii=False)


def _answered(episode: Episode, call: str, text: str) -> str:
    episode.messages.append({"role": "tool", "tool_call_id": call, "content": text})
    return text


def _function_tool(tool: Tool, episode: Episode, expected: str) -> agents.FunctionTool:
    function = tool.spec["function"]
    schema = function["parameters"]

    async def invoke(context: Any, arguments: str) -> str:
        try:
            given = _arguments(arguments, schema)
        except ValueError as error:
            text = _error(expected.format(names=error))
        else:
            try:
                told = await tool.call(**given)
            except SystemExit as error:  # which would end the event loop
                raise RuntimeError(f"SystemExit: {error}") from error
            if told is None or isinstance(told, bytes | Awaitable):
                raise TypeError(f"the tool {function['name']} returned {told!r}; expected a text")
            text = str(told)
        return _answered(episode, context.tool_call_id, text)

    return agents.FunctionTool(
        name=function["name"],
        description=function["description"],
        params_json_schema=schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        given = json.loads(text or "{}")
    except (ValueError, TypeError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _arguments(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call. Raises ValueError: what it should have had."""
    required = schema.get("required", [])
    properties = schema.get("properties", {})
    given = _object(text) if properties else {}
    if given is None:
        raise ValueError(", ".join(required or properties))
    taken = {}
    for name in dict.fromkeys([*required, *properties]):
        if name not in required and given.get(name) is None:  # models write null for "none"
            continue
        kind = properties[name].get("type")
        # One without a single type takes any value
        if name not in given or not isinstance(given[name], JSON_TYPES.get(str(kind), object)):
            raise ValueError(", ".join(required) if name in required else f"{name} ({kind})")
        taken[name] = given[name]
    return taken
