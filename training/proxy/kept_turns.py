"""Remember the tokens of each turn, so that the next turn of the episode reads the same ones.

A chat template may write a tool call in other white space, and a tokenizer may cut a reply
otherwise than the policy did. The next prompt would not extend the turn before, and the episode
would become several sequences. So a request names the tokens of the turn it continues, which vLLM
reads in place of the template's (`training.engine.kept_tokens`).
"""

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson

from training.proxy.recorder import Taken

# The variable of the chat template by which a request names a turn. No template has it
KEPT = "kept_turn"
# Turns that are remembered. One of 2,000 tokens takes 8 KB
MOST_TURNS = 8192
THOUGHT_ENDS = "</think>"


class Turn(NamedTuple):
    """A turn of an episode: its number of messages, reply included, and its token ids."""

    messages: int
    tokens: "array[int]"


class KeptTurns:
    """The latest turns of all episodes. Belongs to one event loop."""

    def __init__(self) -> None:
        self._turns: OrderedDict[bytes, Turn] = OrderedDict()

    def add(self, attempt: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request with the latest recorded turn of this attempt that it continues.

        Raises AttributeError, KeyError, TypeError, ValueError: it is no conversation.
        """
        latest = None
        for prefix in _prefixes(attempt, request, request["messages"]):
            latest = self._turns.get(prefix, latest)
        if latest is None:
            return request
        turn = {"messages": latest.messages, "tokens": latest.tokens.tolist()}
        variables = {**(request.get("chat_template_kwargs") or {}), KEPT: turn}
        return {**request, "chat_template_kwargs": variables}

    def remember(
        self, attempt: str, request: dict[str, Any], choice: dict[str, Any], taken: Taken
    ) -> None:
        """Remember the turn of a request and its reply, unless the reply was cut: the template
        writes an end behind it, which the policy did not.
        """
        if choice["finish_reason"] == "length":
            return
        messages = [*request["messages"], choice["message"]]
        prefix = [*_prefixes(attempt, request, messages)][-1]  # of all messages
        tokens = array("i", taken.prompt_ids + taken.response_ids)
        self._turns[prefix] = Turn(len(messages), tokens)
        if len(self._turns) > MOST_TURNS:
            self._turns.popitem(last=False)


def continued(
    prompt: list[int], written: list[int], kept: list[int], decode: Callable[[list[int]], str]
) -> list[int]:
    """Return a prompt with the kept tokens of a turn in place of those that the template writes.

    prompt: all messages as the template writes them. written: those of the turn, reply included.
    kept: the turn's tokens, of which the last one ends the reply.

    The prompt stays as it is if the template leaves thoughts of the turn out, or writes the turn
    otherwise when more follows.
    """
    if kept[-1] not in written:
        return prompt
    end = len(written) - written[::-1].index(kept[-1])  # of the reply, as the template writes it
    cut = bool(decode(written[end:]).strip())
    thoughtless = decode(written).count(THOUGHT_ENDS) != decode(kept).count(THOUGHT_ENDS)
    if cut or thoughtless or prompt[:end] != written[:end]:
        return prompt
    return kept + prompt[end:]


def _prefixes(
    attempt: str, request: dict[str, Any], messages: list[dict[str, Any]]
) -> Iterator[bytes]:
    """Yield a digest for each message: of the tools, and of what has been said up to it."""
    variables = dict(request.get("chat_template_kwargs") or {})
    variables.pop(KEPT, None)
    digest = hashlib.sha256(orjson.dumps([attempt, request.get("tools"), variables]))
    for message in messages:
        calls = []
        for call in message.get("tool_calls") or []:
            function = call["function"]
            # What is no object an agent hands back as another text (episodes/tool_loop.py): all
            # such texts, and {}, are one here
            try:
                given = orjson.loads(function["arguments"])
            except orjson.JSONDecodeError:
                given = None
            text = function["arguments"] if given and isinstance(given, dict) else ""
            calls.append([call["id"], function["name"], text])
        said = [message["role"], message.get("content") or "", calls]
        digest.update(orjson.dumps(said))
        yield digest.digest()
