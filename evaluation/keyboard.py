"""A person as the policy of an episode: shows what a model would read, and takes typed replies."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from common.command import Failure, UsageError
from common.language import said
from common.terminal import printable
from episodes.episode import Message, Policy, ToolSpec
from episodes.outcomes import PolicyStop

FENCE = '"""'
HOW = 'A line is your reply; """ on a line of its own begins and ends one of several lines.'
HELP = "/help"
HOW_TO_BE_HELPED = "/help shows this again; it costs no reply."
HOW_TO_CALL = "/NAME and its arguments call a tool; the beginning of a name will do."
STYLES = {
    "system": "magenta",
    "user": "cyan",
    "tool": "yellow",
    "assistant": "green",
    "end": "bold",
}


class InputEnded(Failure):
    """The keyboard has no more input."""


def show(heading: str, text: str) -> None:
    """Print a part of the episode, with its control characters made visible."""
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False)
    console.print(Text(f"--- {heading}", STYLES.get(heading.split(" ")[0], "bold")))
    console.print(Text(printable(text)))


def ask(prompt: str) -> str:
    """Return what the person types. Raises InputEnded. Raises UsageError: not UTF-8."""
    try:
        line = input(prompt)
        typed = line if line.strip() != FENCE else "\n".join(iter(input, FENCE))
    except EOFError:
        print()
        raise InputEnded("the input ended before the episode did") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"the input is no text: {error}; expected UTF-8") from None
    if not sys.stdin.isatty():
        print(printable(typed))
    return typed


class KeyboardPolicy(Policy):
    """A policy that is typed."""

    def __init__(self, max_turns: int) -> None:
        super().__init__(max_turns)
        self._shown = 0

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        """Return the person's reply. Anything else costs no turn. Raises PolicyStop and InputEnded."""
        if self.turns >= self.max_turns:
            raise PolicyStop("max_turns")
        self.show_rest(messages)
        if not self.turns:
            self._explain(tools)
        left = self.max_turns - self.turns
        message = None
        while message is None:
            prompt = "[{left} replies left] > " if left > 1 else "[{left} reply left] > "
            typed = ask(said(prompt, left=left))
            if typed.strip() == HELP:
                self._explain(tools)
            elif not typed.strip():
                print(said("Type a reply; /help says how."))
            else:
                try:
                    message = message_of(typed, tools if left > 1 else (), self.turns)
                except UsageError as error:
                    print(error)
        self.finish_reason = "stop"
        self.turns += 1
        self._shown = len(messages) + 1
        return message

    def show_rest(self, messages: Sequence[Message]) -> None:
        """Show the messages that were not shown yet."""
        for message in messages[self._shown :]:
            show(str(message["role"]), words_of(message))
        self._shown = len(messages)

    def _explain(self, tools: Sequence[ToolSpec]) -> None:
        how = [said(HOW), said(HOW_TO_BE_HELPED)]
        if tools:
            show(said("tools"), "\n".join(map(described, tools)))
            how.append(said(HOW_TO_CALL))
        show(said("how to play"), "\n".join(how))


def words_of(message: Message) -> str:
    """Return a message as a person reads it: its text, then its calls."""
    lines = [str(message["content"])] if message.get("content") is not None else []
    for call in message.get("tool_calls") or []:
        lines.append(f"/{call['function']['name']} {call['function']['arguments']}")
    return "\n".join(lines)


def described(tool: ToolSpec) -> str:
    """Return one line about a tool and its parameters."""
    function = tool["function"]
    words = []
    for name, of in function.get("parameters", {}).get("properties", {}).items():
        words.append(f"{name}: {of.get('description') or of.get('type', 'any')}")
    arguments = "; ".join(words) or "no arguments"
    return f"/{function['name']}  {function.get('description', '')}  ({arguments})"


def message_of(typed: str, tools: Sequence[ToolSpec], number: int) -> Message:
    """Return the message for typed words or a tool's call. Raises UsageError: not a call."""
    if not (tools and typed.startswith("/")):
        return {"role": "assistant", "content": typed}
    name, _, rest = typed[1:].partition(" ")
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    found = [known for known in functions if known.startswith(name)]
    if name in functions:
        found = [name]
    if len(found) != 1:
        raise UsageError(
            f"/{name} is {'several' if found else 'none'} of the tools {', '.join(functions)}"
        )
    arguments = json.dumps(arguments_of(functions[found[0]], rest.strip()), ensure_ascii=False)
    function = {"name": found[0], "arguments": arguments}
    call = {"id": f"typed-{number}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def arguments_of(function: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the JSON object that was typed. A single text parameter takes the text as it is.
    Raises UsageError: not such an object, or a required argument is missing.
    """
    parameters = function.get("parameters", {})
    properties = parameters.get("properties", {})
    types = [of.get("type") for of in properties.values()]
    if types == ["string"] and text and not text.startswith("{"):
        return {next(iter(properties)): text}
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and {*parameters.get("required", ())} <= found.keys():
        return found
    raise UsageError(
        f"{function['name']} takes a JSON object with {list(properties)}, got {text[:80]!r}"
    )
