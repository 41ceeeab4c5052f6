"""An episode with tools, played until the policy answers in words.

    tool = Tool(SPEC, call)                  # async call(**arguments) -> text for the policy; may raise EpisodeError
    episode = await play_with_tools(policy, "You are ...", "How is it stored?", [tool])

An impossible call is answered with an error and costs its turn, as in verl and TRL.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.thoughts import after_thought
from episodes.episode import Episode, Message, Policy, ToolSpec
from episodes.outcomes import PolicyStop

# How the calls of model families begin; one that stands in a reply was not read by vLLM's parser
CALL_MARKS = ("<tool_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>")
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
    """A tool and what answers its calls, which get the required arguments."""

    spec: ToolSpec
    call: Callable[..., Awaitable[str]]


async def play_with_tools(
    policy: Policy, instructions: str, question: str, tools: Sequence[Tool]
) -> Episode:
    """Let the policy answer. `instructions` is the system prompt. Raises EpisodeError."""
    first = [{"role": "system", "content": instructions}, {"role": "user", "content": question}]
    episode = Episode(messages=first, tools=[tool.spec for tool in tools])
    said = SAID["zh" if CHINESE.search(instructions) else "en"]
    known = {tool.spec["function"]["name"]: tool for tool in tools}
    offered = [_offered(tool.spec) for tool in tools]
    try:
        while not episode.stop_reason:
            message = await policy.reply([*map(_sendable, episode.messages)], offered)
            calls = message.get("tool_calls") or []
            for call in calls:
                call["function"]["arguments"] = _encodable(call["function"]["arguments"])
            episode.messages.append(message)
            if calls and policy.finish_reason == "length":
                raise PolicyStop("length")
            # One after the other, so that a transcript has one order
            for call in calls:
                text = await _answer(call["function"], known, said)
                answer = {"role": "tool", "tool_call_id": call["id"], "content": text}
                episode.messages.append(answer)
            if not calls:
                _conclude(episode, policy, said["text"])
            elif policy.turns >= policy.max_turns:
                episode.stop_reason = "max_turns"
    except RecursionError:  # arguments are nested too deep to be read
        episode.stop_reason = "bad_tool_call"
    except PolicyStop as stop:
        episode.stop_reason = stop.reason
    episode.end_as_cut(policy)
    return episode


def _offered(spec: ToolSpec) -> ToolSpec:
    """Return a tool as requests name it: "strict" stands in the prompts that models learned from."""
    return {"type": "function", "function": {**spec["function"], "strict": False}}


def _sendable(message: Message) -> Message:
    """Return a message that servers take: they refuse calls whose arguments are no JSON object."""
    calls = []
    for call in message.get("tool_calls") or []:
        function = call["function"]
        if _object(function["arguments"]) is None:
            function = {**function, "arguments": "{}"}
        calls.append({**call, "function": function})
    if not calls:
        return message
    return {**message, "content": message["content"] or None, "tool_calls": calls}


def _conclude(episode: Episode, policy: Policy, unread: str) -> None:
    """End the episode with a reply in words, or tell the policy that a call in it was not read."""
    answer = after_thought(episode.messages[-1]["content"] or "") or ""
    if not any(mark in answer for mark in CALL_MARKS) and not BARE_CALL.match(answer):
        episode.answer = answer or None
        episode.stop_reason = "answered" if answer else "no_answer"
    elif policy.turns >= policy.max_turns or policy.finish_reason == "length":
        episode.stop_reason = "bad_tool_call"
    else:
        episode.messages.append({"role": "user", "content": unread})


async def _answer(function: dict[str, Any], known: Mapping[str, Tool], said: dict[str, str]) -> str:
    """Return what the policy reads after a call. Raises what the tool raises."""
    tool = known.get(function["name"])
    if tool is None:
        return _error(said["unknown"].format(name=function["name"], tools=", ".join(known)))
    schema = tool.spec["function"]["parameters"]
    given = _arguments(function["arguments"], schema)
    if given is None:
        return _error(said["arguments"].format(names=", ".join(schema.get("required", []))))
    return await tool.call(**given)


def _error(text: str) -> str:
    return json.dumps({"status": "error", "error": text}, ensure_ascii=False)


def _arguments(text: str, schema: dict[str, Any]) -> dict[str, Any] | None:
    required = schema.get("required", [])
    given = _object(text) if required else {}
    if given is None:
        return None
    taken = {}
    for name in required:
        kind = JSON_TYPES[schema["properties"][name]["type"]]
        if not isinstance(given.get(name), kind):
            return None
        taken[name] = given[name]
    return taken


def _object(text: str) -> dict[str, Any] | None:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return given if isinstance(given, dict) else None


def _encodable(arguments: str) -> str:
    """Return arguments without half a surrogate pair, which no request can hold."""
    given = _object(arguments)
    if given is None:
        return arguments
    text = json.dumps(given, ensure_ascii=False)
    sendable = text.encode("utf-8", "replace").decode()
    return arguments if sendable == text else sendable
