"""Episodes kept to learn from, a line each, for `training.cold_start AGENT --dialogues FILE`.

keep(Path("gold.jsonl"), agent, record, tools)  # a line of episodes.record, "agent" and "tools"
kept_episodes(Path("gold.jsonl"), "sql")        # Conversations, of which every reply is learned
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from reprlib import repr as shortly
from typing import Any

from common.jsonl import read_jsonl
from episodes.episode import AgentError, Conversation, Message, ToolSpec
from episodes.record import EpisodeRecord


def keep(path: Path, agent: str, record: EpisodeRecord, tools: Sequence[ToolSpec]) -> None:
    """Add a line, also after a torn one. It is on the disk when this returns. Raises OSError."""
    kept = {"agent": agent, **record.line(), "tools": [*tools]}
    with open(path, "ab+") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write((json.dumps(kept, ensure_ascii=False) + "\n").encode())
        file.flush()
        os.fsync(file.fileno())


def kept_episodes(path: Path, agent: str) -> list[Conversation]:
    """Return a file's conversations.

    Raises AgentError: it has none, or another agent's. Raises FileError: not readable.
    """
    found = []
    for number, row in read_jsonl(path):
        found.append(conversation_of(row, agent, f"{path}, line {number}"))
    if not found:
        raise AgentError(
            f"{path} has no episodes; .venv/bin/python -m evaluation.play {agent} --save {path} keeps some"
        )
    return found


def conversation_of(row: dict[str, Any], agent: str, where: str) -> Conversation:
    """Return a row's conversation. Raises AgentError: not an episode, or another agent's."""
    messages = row.get("transcript", row.get("messages"))
    tools = row.get("tools", [])
    if row.get("agent", agent) != agent:
        raise AgentError(
            f"{where}: expected an episode of the {agent} agent, got one of {row['agent']!r}"
        )
    if not (
        isinstance(messages, list) and all(map(is_message, messages)) and isinstance(tools, list)
    ):
        raise AgentError(f"{where}: expected messages of an episode, got {shortly(row)}")
    replies = sum(message["role"] == "assistant" for message in messages)
    if not replies:
        raise AgentError(f"{where}: expected messages of an episode, got none of the assistant")
    return Conversation(messages, [True] * replies, tuple(tools))


def is_message(found: Message | Any) -> bool:
    """Return whether a value is a message: a role with a text, or with tool calls in its place."""
    if not isinstance(found, dict) or not isinstance(found.get("role"), str):
        return False
    if found.get("content") is not None:
        return isinstance(found["content"], str)
    calls = found.get("tool_calls")
    return isinstance(calls, list) and bool(calls) and all(_is_call(call) for call in calls)


def _is_call(found: Any) -> bool:
    try:
        json.loads(found["function"]["arguments"])
        return isinstance(found["function"]["name"], str)
    except (KeyError, TypeError, ValueError, RecursionError):
        return False
