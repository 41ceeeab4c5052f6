"""A model behind an OpenAI-compatible endpoint as the policy of one episode."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from common.llm.endpoint import LLMEndpoint, completion_in, post
from common.llm.errors import LLMError
from common.llm.replies import FILTERED, LENGTH, text_of, thought_of, tokens_in
from common.llm.retry import Patience
from episodes.episode import Message, Policy, ToolSpec
from episodes.outcomes import EpisodeError, PolicyStop

# How vLLM, SGLang, litellm, OpenAI, llama.cpp, Gemini, TGI, Anthropic, Bedrock, xAI, DashScope,
# Moonshot, SiliconFlow and Zhipu word a prompt that does not fit.
CONTEXT_OVERFLOW = re.compile(
    r"context.{0,3}(length|window|size|limit)|max_(model|seq)_len|longer than the maximum|"
    r"(prompt|input)s?[ _](length|size|tokens?)\b[^.]{0,40}(exceed|too (long|large))|"
    r"tokens in the (prompt|input)[^.]{0,40}exceed|too many (prompt|input) tokens|"
    r"maximum prompt length|maximum number of tokens|must have less than \d+ tokens|"
    r"(prompt|input) is too long|"
    r"range of input length|model token limit|`max_new_tokens` must be|超长|\\u8d85\\u957f",
    re.IGNORECASE,
)
REPLY_SECONDS = 600.0  # of one request
ATTEMPTS = 3
OF_ACCOUNTS = (402, 429)  # may count input tokens, of a credit or of a minute
BUSY_ATTEMPTS = 12  # in about 90 s: a limit of requests a minute passes, an empty account does not
FIELDS_OF_CALLS = ("id", "type", "function", "index", "name", "arguments")
# What no server refuses in an earlier call of a tool that is not there
NOT_IN_NAMES = re.compile(r"[^\w-]", re.ASCII)
LONGEST_NAME = 64
SHOWN = 200  # characters of what is wrong with a reply


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible endpoint and how to sample. None leaves a value to the server.

    `extra` goes into the body, e.g. {"top_k": -1}. `chat_model` answers in place of a server of
    ours, which gets every request as it is: what a model is trained on has this very sampling.
    """

    base_url: str
    model: str
    api_key: str | None = None
    temperature: float | None = 1.0
    top_p: float | None = 1.0
    max_tokens: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    chat_model: LLMEndpoint | None = None


def endpoint_elsewhere(
    model: str, base_url: str | None = None, api_key: str | None = None, **sampling: Any
) -> Endpoint:
    """Return the endpoint of a model by litellm's name. Requests are adapted to what it takes."""
    patience = Patience(ATTEMPTS, ATTEMPTS * REPLY_SECONDS, busy_attempts=BUSY_ATTEMPTS)
    translated = base_url is None
    chat = LLMEndpoint(model, base_url, api_key, REPLY_SECONDS, patience, translated)
    return Endpoint(base_url or "", model, chat_model=chat, **sampling)


class ChatPolicy(Policy):
    """The policy of one episode. `max_turns` replies are its budget."""

    def __init__(self, endpoint: Endpoint, max_turns: int) -> None:
        super().__init__(max_turns)
        self.endpoint = endpoint
        self._patience = Patience(ATTEMPTS, ATTEMPTS * REPLY_SECONDS, pauses_count=True)
        self._ids: set[str] = set()  # of the tool calls so far
        # What came beside a call, and beside a message with calls, by the id of the (first) call
        self._beside_calls: dict[str, dict[str, Any]] = {}
        self._beside_messages: dict[str, dict[str, Any]] = {}

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        """Return the next message. With the last one allowed, tools are sent and forbidden.

        Without them the prompt would not begin with the earlier turns' tokens. Raises
        PolicyStop: "max_turns" or "context_overflow". Raises EpisodeError: the endpoint fails.
        """
        if self.turns >= self.max_turns:
            raise PolicyStop("max_turns")
        body: dict[str, Any] = {"messages": list(messages)}
        if tools:
            body["tools"] = list(tools)
            if self.turns + 1 == self.max_turns:
                body["tool_choice"] = "none"
        for name in ("temperature", "top_p", "max_tokens"):
            value = getattr(self.endpoint, name)
            if value is not None:
                body[name] = value
        try:
            return self._message(await self._ask({**body, **self.endpoint.extra}))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {error}".splitlines()[0][:SHOWN]
            raise EpisodeError(
                "endpoint_error", f"the reply is no chat completion ({why})"
            ) from error

    async def _ask(self, body: dict[str, Any]) -> dict[str, Any]:
        model = self.endpoint.chat_model
        try:
            if model is None:
                given = await self._patience.ask(lambda: self._post(body), self.endpoint.model)
            else:
                offered = {tool["function"]["name"] for tool in body.get("tools", ())}
                messages = [self._sent_back(message, offered) for message in body["messages"]]
                given = await model.reply({**body, "messages": messages})
            found = completion_in(given, self.endpoint.model, self.endpoint.api_key)
        except LLMError as error:
            # llama.cpp says it with status 500, which of a server of ours is a fault
            answered = ("refused",) if model is None else ("refused", "status")
            fits = error.status in OF_ACCOUNTS or not CONTEXT_OVERFLOW.search(error.words)
            if error.cause in answered and not fits:
                raise PolicyStop("context_overflow") from None
            cause = "endpoint_unreachable" if error.cause == "connection" else "endpoint_error"
            raise EpisodeError(cause, str(error)) from None
        return found if model is None else _with_its_thought(found)

    async def _post(self, body: dict[str, Any]) -> Any:
        where = self.endpoint
        request = {"model": where.model, **body}
        url = f"{where.base_url.rstrip('/')}/chat/completions"
        return await post(url, request, timeout=REPLY_SECONDS, key=where.api_key)

    def _message(self, given: dict[str, Any]) -> Message:
        choice = given["choices"][0]
        if choice["finish_reason"] == FILTERED:
            raise EpisodeError("endpoint_error", f"the endpoint filtered the reply ({FILTERED})")
        said = choice["message"]
        content = said.get("content")
        text = None if content is None else text_of(content)
        calls = _calls_in(said)
        if not text and not calls and said.get("refusal"):
            text = str(said["refusal"])
        message: Message = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [self._call(call) for call in calls]
            if thought := said.get("reasoning_content"):
                first = message["tool_calls"][0]["id"]
                self._beside_messages[first] = {"reasoning_content": thought}
        self.turns += 1
        self.prompt_tokens += tokens_in(given, "prompt_tokens")
        tokens = tokens_in(given, "completion_tokens")
        self.completion_tokens += tokens
        self.finish_reason = choice["finish_reason"]
        most = self.endpoint.max_tokens
        # vLLM says so of a cut reply as well. One beyond the limit has thoughts that DashScope lets be
        if self.finish_reason == "tool_calls" and tokens == most:
            self.finish_reason = LENGTH
        return message

    def _sent_back(self, message: Message, offered: set[str]) -> Message:
        calls = message.get("tool_calls")
        if not calls:
            return message
        beside = self._beside_messages.get(calls[0]["id"], {})
        signed = []
        for call in calls:
            function = call["function"]
            if function["name"] not in offered:
                name = NOT_IN_NAMES.sub("_", function["name"])[:LONGEST_NAME] or "_"
                function = {**function, "name": name}
            signed.append({**call, "function": function, **self._beside_calls.get(call["id"], {})})
        return {**message, "content": message.get("content") or "", **beside, "tool_calls": signed}

    def _call(self, call: Any) -> dict[str, Any]:
        function = call.get("function", call)  # some endpoints leave the level out
        name = function["name"]
        arguments = function.get("arguments")
        if not isinstance(name, str):
            raise ValueError("a tool call without a name")
        # JSON that was written twice. A model of ours is trained on what it writes
        if self.endpoint.chat_model and str(arguments).startswith('"'):
            with suppress(ValueError):
                arguments = json.loads(arguments)
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else json.dumps(arguments, ensure_ascii=False)
        known = str(call.get("id") or "")
        if not known or known in self._ids:
            known = f"call_{len(self._ids)}_of_{self.turns}"
        self._ids.add(known)
        beside = self._beside_calls[known] = {}
        for part, value in call.items():
            if part not in FIELDS_OF_CALLS and value is not None:
                beside[part] = value
        return {"id": known, "type": "function", "function": {"name": name, "arguments": arguments}}


def _calls_in(said: dict[str, Any]) -> list[Any]:
    """Return the tool calls, also one in the form that OpenAI had before."""
    calls = said.get("tool_calls") or said.get("function_call") or []
    return calls if isinstance(calls, list) else [calls]


def _with_its_thought(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply with a text: its thought if it has nothing else, which is then not lost."""
    said = reply["choices"][0]["message"]
    if not _calls_in(said):
        text = text_of(said.get("content"))
        thought = thought_of(said)
        if thought and not text and not said.get("refusal"):
            text = f"<think>{thought}</think>"
        said["content"] = text  # OpenAI refuses to read null again
    return reply
