"""Episodes to learn from, a line each, for `training.cold_start AGENT --dialogues FILE`."""

import json
import sys
from pathlib import Path
from reprlib import repr as shortly
from typing import Any, get_args

from common.jsonl import read_jsonl
from episodes.episode import AgentError, Conversation, Message, Role


def kept_episodes(path: Path, agent: str) -> list[Conversation]:
    """Return a file's conversations, of which every reply is learned. What an evaluation could not
    score, and what has no reply, is left out and counted on stderr. Raises AgentError, FileError.
    """
    found = []
    left_out = 0
    for number, row in read_jsonl(path):
        if row.get("unscored") or is_unanswered(row.get("transcript")):
            left_out += 1
        else:
            found.append(conversation_of(row, agent, f"{path}, line {number}"))
    if left_out:
        print(
            f"{path}: {left_out} episodes without a score or a reply are left out", file=sys.stderr
        )
    if not found:
        raise AgentError(f"{path} has no episodes; an evaluation writes episodes.jsonl")
    return found


def conversation_of(row: dict[str, Any], agent: str, where: str) -> Conversation:
    """Return a row's conversation. Raises AgentError: not an episode, or another agent's."""
    messages = row.get("transcript", row.get("messages"))
    tools = row.get("tools", [])
    if row.get("agent", agent) != agent:
        raise AgentError(
            f"{where}: expected an episode of the {agent} agent, got one of {row['agent']!r}"
        )
    if not isinstance(messages, list) or not all(map(is_message, messages)):
        raise AgentError(f"{where}: expected messages of an episode, got {shortly(row)}")
    if not isinstance(tools, list) or not all(map(is_tool, tools)):
        raise AgentError(f"{where}: expected a list of tools, got {shortly(tools)}")
    replies = sum(message["role"] == "assistant" for message in messages)
    if not replies:
        raise AgentError(f"{where}: expected messages of an episode, got none of the assistant")
    return Conversation(messages, [True] * replies, tuple(tools))


def is_unanswered(transcript: Any) -> bool:
    """Return whether a transcript is a list of messages, none of them the assistant's."""
    return isinstance(transcript, list) and all(
        is_message(message) and message["role"] != "assistant" for message in transcript
    )


def is_message(found: Message | Any) -> bool:
    """Return whether a value is a message: a role with a text, or with tool calls in its place."""
    try:
        for call in found.get("tool_calls") or ():
            json.loads(call["function"]["arguments"])
        said = found.get("content")
        has_words = isinstance(said, str) or (said is None and bool(found.get("tool_calls")))
        # A template shows no message of another role
        return found["role"] in get_args(Role) and has_words
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return False


def is_tool(found: Any) -> bool:
    try:
        return isinstance(found["function"]["name"], str)
    except (KeyError, TypeError):
        return False
