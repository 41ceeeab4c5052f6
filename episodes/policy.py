"""A model behind an OpenAI-compatible endpoint as the policy of one episode.

policy = ChatPolicy(Endpoint("http://127.0.0.1:8000/v1", "tiny"), max_turns=3)
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Any

import openai
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

from common.llm.endpoint import ChatModel, LLMEndpoint
from common.llm.errors import LLMError
from common.llm.replies import BROKEN, FILTERED, LENGTH, ending_of, text_of, thought_of, tokens_in
from common.llm.retry import Patience
from episodes.episode import Message, Policy, ToolSpec
from episodes.outcomes import EpisodeError, PolicyStop

# How vLLM, litellm, OpenAI, llama.cpp, Gemini, TGI, Anthropic, Bedrock, DashScope, Moonshot and
# Zhipu word a prompt that does not fit.
CONTEXT_OVERFLOW = re.compile(
    r"context.{0,3}(length|window|size)|max_model_len|longer than the maximum|"
    r"maximum number of tokens|must have less than \d+ tokens|(prompt|input) is too long|"
    r"range of input length|model token limit|`max_new_tokens` must be|超长|\\u8d85\\u957f",
    re.IGNORECASE,
)
MAX_RETRIES = 2
# Seconds of a request to a model that somebody else serves, and how often it is asked
REPLY_SECONDS = 600.0
ATTEMPTS = 3
FIELDS_OF_CALLS = ("id", "type", "function", "index")
SHOWN = 200  # characters of what is wrong with a reply


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible endpoint and how to sample. None leaves a value to the server.

    `extra` goes into the body, e.g. {"top_k": -1}. `chat_model` answers in place of a server.
    """

    base_url: str
    model: str
    api_key: str | None = None
    temperature: float | None = 1.0
    top_p: float | None = 1.0
    max_tokens: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    chat_model: ChatModel | None = None


def endpoint_elsewhere(
    model: str, base_url: str | None = None, api_key: str | None = None, **sampling: Any
) -> Endpoint:
    """Return the endpoint of a model by litellm's name. Requests are adapted to what it takes."""
    where = LLMEndpoint(model, base_url, api_key, REPLY_SECONDS)
    patience = Patience(ATTEMPTS, ATTEMPTS * REPLY_SECONDS)
    chat = ChatModel(where, patience, translated=base_url is None)
    return Endpoint(base_url or "", model, chat_model=chat, **sampling)


class ChatPolicy(Policy):
    """The policy of one episode. `max_turns` replies are its budget."""

    def __init__(self, endpoint: Endpoint, max_turns: int) -> None:
        super().__init__(max_turns)
        self.endpoint = endpoint
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
        body: dict[str, Any] = {"model": self.endpoint.model, "messages": list(messages)}
        if tools:
            body["tools"] = list(tools)
            if self.turns + 1 == self.max_turns:
                body["tool_choice"] = "none"
        for name in ("temperature", "top_p", "max_tokens"):
            value = getattr(self.endpoint, name)
            if value is not None:
                body[name] = value
        try:
            completion = await self._ask(body)
            return self._message(completion)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {error}".splitlines()[0][:SHOWN]
            raise EpisodeError(
                "endpoint_error", f"the reply is no chat completion ({why})"
            ) from error

    async def _ask(self, body: dict[str, Any]) -> ChatCompletion:
        extra = self.endpoint.extra
        if self.endpoint.chat_model is not None:
            messages = [self._sent_back(message) for message in body["messages"]]
            return await _reply_of(
                self.endpoint.chat_model, {**body, **extra, "messages": messages}
            )
        client = await _client(self.endpoint)
        try:
            return await client.post("/chat/completions", body=body | extra, cast_to=ChatCompletion)
        except openai.OpenAIError as error:
            raise _blame(error) from error

    def _message(self, completion: ChatCompletion) -> Message:
        given = completion.model_dump(warnings=False)
        if not given.get("choices"):
            raise EpisodeError("endpoint_error", "the reply has no choices")
        choice = given["choices"][0]
        ending = ending_of(choice)
        if ending == FILTERED:
            raise EpisodeError("endpoint_error", f"the endpoint filtered the reply ({FILTERED})")
        if ending == BROKEN:
            reason = choice.get("finish_reason")
            raise EpisodeError("endpoint_error", f"the endpoint broke its reply off ({reason})")
        said = choice["message"]
        content = said.get("content")
        text = None if content is None else text_of(content)
        calls = said.get("tool_calls") or []
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
        self.finish_reason = ending
        most = self.endpoint.max_tokens
        if self.finish_reason == "tool_calls" and most is not None and tokens >= most:
            self.finish_reason = LENGTH  # vLLM does not say so of a reply that has a call
        return message

    def _sent_back(self, message: Message) -> Message:
        calls = message.get("tool_calls")
        if not calls:
            return message
        beside = self._beside_messages.get(calls[0]["id"], {})
        signed = [{**call, **self._beside_calls.get(call["id"], {})} for call in calls]
        return {**message, "content": message.get("content") or "", **beside, "tool_calls": signed}

    def _call(self, call: Any) -> dict[str, Any]:
        function = call["function"]
        name = function["name"]
        arguments = function.get("arguments")
        if not isinstance(name, str):
            raise ValueError("a tool call without a name")
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


def _blame(error: openai.OpenAIError) -> Exception:
    """Return PolicyStop for what is the policy's fault, EpisodeError for the machine's."""
    if isinstance(error, openai.BadRequestError) and CONTEXT_OVERFLOW.search(str(error)):
        return PolicyStop("context_overflow")
    if isinstance(error, openai.APIConnectionError):
        return EpisodeError("endpoint_unreachable", f"{error} ({error.request.url})")
    if isinstance(error, openai.APIStatusError):
        return EpisodeError("endpoint_error", f"status {error.status_code}: {str(error)[:300]}")
    return EpisodeError("endpoint_error", str(error)[:300])


async def _reply_of(model: ChatModel, body: dict[str, Any]) -> ChatCompletion:
    del body["model"]  # a `chat_model` sends its own name
    try:
        reply = await model.reply(body)
        said = reply["choices"][0]["message"]
        if not said.get("tool_calls"):
            text = text_of(said.get("content"))
            thought = thought_of(said)
            if thought and not text and not said.get("refusal"):
                text = f"<think>{thought}</think>"  # no answer, and not lost
            said["content"] = text  # OpenAI refuses to read null again
        return ChatCompletion.construct(**reply)
    except LLMError as error:
        answered = error.cause in ("refused", "status")  # llama.cpp says it with status 500
        if answered and CONTEXT_OVERFLOW.search(str(error)):
            raise PolicyStop("context_overflow") from None
        cause = "endpoint_unreachable" if error.cause == "connection" else "endpoint_error"
        raise EpisodeError(cause, str(error)) from None


Pool = AsyncGenerator[AsyncOpenAI, None]
_pools: dict[asyncio.AbstractEventLoop, tuple[AsyncOpenAI, Pool]] = {}


async def _client(endpoint: Endpoint) -> AsyncOpenAI:
    """Return a client. All clients of an event loop share a pool, as a TLS context takes long to
    make.
    """
    loop = asyncio.get_running_loop()
    if loop not in _pools:
        pool = _open_pool(loop)
        _pools[loop] = await anext(pool), pool
    return _pools[loop][0].with_options(
        base_url=endpoint.base_url, api_key=endpoint.api_key or "none"
    )


async def _open_pool(loop: asyncio.AbstractEventLoop) -> Pool:
    """Yield a client. The end of the event loop ends this generator, which closes the connections."""
    try:
        http = openai.DefaultAioHttpClient()
        async with AsyncOpenAI(api_key="none", max_retries=MAX_RETRIES, http_client=http) as client:
            yield client
    finally:
        del _pools[loop]
