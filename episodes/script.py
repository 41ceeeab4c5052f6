"""A policy whose replies are a list: for tests, and to play an episode without a model.

policy = Script([tool_call("measure", {"sign": "pulse"}), "72"], max_turns=3)
"""

import json
from collections.abc import Sequence
from typing import Any

from episodes.episode import Message, Policy, ToolSpec
from episodes.outcomes import PolicyStop


class Script(Policy):
    """Gives its replies (texts or messages) in order and repeats the last one."""

    def __init__(self, replies: Sequence[str | Message], max_turns: int) -> None:
        super().__init__(max_turns)
        self.replies = list(replies)

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        """Return the next message. Raises PolicyStop: the budget is spent."""
        if self.turns >= self.max_turns:
            raise PolicyStop("max_turns")
        said = self.replies[min(self.turns, len(self.replies) - 1)]
        self.turns += 1
        self.finish_reason = "stop"
        message = {"role": "assistant", "content": said} if isinstance(said, str) else said
        return numbered(message, self.turns)


def numbered(message: Message, turn: int) -> Message:
    """Return a message whose calls have new ids: of two with one openai-agents makes the first."""
    calls = []
    for place, call in enumerate(message.get("tool_calls") or ()):
        calls.append({**call, "id": f"call_{turn}_{place}"})
    return {**message, "tool_calls": calls} if calls else {**message}


def tool_call(name: str, arguments: dict[str, Any] | str) -> Message:
    """Return the assistant's message that calls a tool. A text is sent as arguments as it is."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    function = {"name": name, "arguments": text}
    call = {"id": "call_0", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}
