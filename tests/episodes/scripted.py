"""Policies that say what a test wrote down: a chat-completions server, and one in this process
without a server.

llm.script(calls("look", word="x"), says("found"))      # `llm` is a fixture: ScriptedLLM
policy = ScriptedPolicy(calls("look", word="x"), says("found"), max_turns=3)
"""

import json
from collections.abc import Sequence
from typing import Any

from episodes.episode import Message, Policy, ToolSpec
from episodes.outcomes import PolicyStop
from episodes.script import numbered
from tests.common.llm_server import Fault, LLMServer

Choice = dict[str, Any]


def says(content: str | None, finish_reason: str = "stop") -> Choice:
    """A reply in words, as a choice of a completion."""
    return {"message": {"role": "assistant", "content": content}, "finish_reason": finish_reason}


def calls_text(name: str, arguments: str, finish_reason: str = "tool_calls") -> Choice:
    """A call of a tool with these very arguments."""
    function = {"name": name, "arguments": arguments}
    call = {"id": "set when sent", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"message": message, "finish_reason": finish_reason}


def calls(name: str, **arguments: Any) -> Choice:
    """A call of a tool."""
    return calls_text(name, json.dumps(arguments, ensure_ascii=False))


def asks(sql: str) -> Choice:
    """A query of the SQL agent."""
    return calls("query_database_by_sql", sql=sql)


class ScriptedPolicy(Policy):
    """A policy without a server: one reply after the other, the last one again and again.

    An exception among the replies is raised. asked: what it was sent, one list of messages a reply.
    """

    def __init__(self, *replies: Choice | Exception, max_turns: int = 3) -> None:
        super().__init__(max_turns)
        self.replies = replies
        self.asked: list[list[Message]] = []
        self.tools: list[Sequence[ToolSpec]] = []

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        if self.turns >= self.max_turns:
            raise PolicyStop("max_turns")
        found = self.replies[min(self.turns, len(self.replies) - 1)]
        self.asked.append(list(messages))
        self.tools.append(tools)
        if isinstance(found, Exception):
            raise found
        self.turns += 1
        self.finish_reason = found["finish_reason"]
        return numbered(found["message"], self.turns)


class ScriptedLLM(LLMServer):
    """A server that gives one scripted reply after the other, or an error where `status` is one."""

    def __init__(self) -> None:
        super().__init__()
        self.base_url = self.url
        self.replies: list[Choice] = []
        self.status, self.error = 200, "broken on purpose"

    def script(self, *replies: Choice) -> None:
        self.replies = list(replies)

    def reply_to(self, body: dict[str, Any]) -> Fault:
        if self.status != 200:
            error = {"message": self.error, "type": "test", "code": self.status}
            return Fault(self.status, body=json.dumps({"error": error}))
        number = len(self.requests)
        reply = self.replies[min(number, len(self.replies)) - 1]
        choices = []
        if reply:
            choices.append({"index": 0, **reply, "message": numbered(reply["message"], number)})
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        head = {"id": "x", "object": "chat.completion", "created": 0, "model": "m"}
        return Fault(200, body=json.dumps({**head, "choices": choices, "usage": usage}))
