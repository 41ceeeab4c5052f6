"""The one way to ask an LLM for structured answers: any provider litellm knows; an answer that fits, or an error.

What it adds to litellm: a strict JSON schema made from a pydantic model, with JSON mode where an endpoint refuses that;
retries with jitter that honour Retry-After; limits of concurrency and of requests a minute; a cache on disk by content;
counters of calls, tokens and cost. Keys come from the environment and appear in no message.

    client = client_from_settings(load_settings(), cache=Path("outputs/llm_cache.sqlite"))
    answer = await client.ask([{"role": "user", "content": "..."}], Verdict)
    answer.value, answer.cached, client.usage
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sqlite3
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic
from weakref import WeakValueDictionary

from common.llm_cache import ReplyCache
from common.llm_error import LLMError, clean, explain
from common.llm_pace import Pace, seconds_to_wait
from common.llm_reply import Message, Schema, parse_reply, tell_schema

if TYPE_CHECKING:
    from tenacity import RetryCallState

    from common.settings import Settings


ABOUT_SCHEMA = re.compile(r"response_?format|schema|structured[ _]output", re.IGNORECASE)


@dataclass
class Usage:
    """What a client did so far.

    `calls` are requests sent, retries included; `cost_usd` is None once a reply came from a model of unknown price.
    """

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0

    def __str__(self) -> str:
        cost = "cost unknown (no price for this model)" if self.cost_usd is None else f"${self.cost_usd:.4f}"
        tokens = f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens"
        return f"{self.calls:,} calls, {self.cached:,} from the cache, {tokens}, {cost}"


@dataclass(frozen=True)
class Answer(Generic[Schema]):
    """An answer that fits the schema; `cached` when no call was made for it."""

    value: Schema
    cached: bool


@dataclass(frozen=True)
class _Question(Generic[Schema]):
    messages: list[Message]
    schema: type[Schema]
    temperature: float
    max_tokens: int


class LLMClient:
    """Asks one model. Many tasks of one event loop may share it, and one loop after another may use it."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        cache: Path | None = None,
        timeout: float = 60.0,
        attempts: int = 5,
        concurrency: int = 8,
        requests_per_minute: float | None = None,
    ) -> None:
        """`model` is litellm's name; `timeout` is the budget in seconds of one `ask`, retries and their waits included.

        The budget starts when the call may start: waiting for a free slot or for the rate limit is not counted.
        Without `cache` every ask is a call.

        Raises:
            LLMError: cause "setup", the cache file can not be used.
        """
        self.model, self.base_url, self.timeout, self.attempts = model, base_url, timeout, attempts
        self.usage = Usage()
        self._api_key, self._cache_file, self._concurrency = api_key, cache, concurrency
        self._cache = self._open(cache) if cache else None
        self._pace = Pace(requests_per_minute)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._schema_refused = False

    @property
    def endpoint(self) -> str | None:
        """The base URL without a password in it."""
        return clean(self.base_url, self._api_key) if self.base_url else None

    async def ask(
        self, messages: list[Message], schema: type[Schema], *, temperature: float = 0.0, max_tokens: int = 1024
    ) -> Answer[Schema]:
        """The model's answer as a `schema`; from the cache if the same was asked before, in any process.

        Raises:
            LLMError: after the attempts or the budget; what may pass was tried again (connection, 408, 409, 429, 5xx,
                replies that do not fit the schema).
        """
        self._enter_loop()
        question = _Question(messages, schema, temperature, max_tokens)
        key = self._content_key(question)
        same = self._same.setdefault(key, asyncio.Lock())  # two tasks with one question make one call
        async with same, self._slots:
            kept = self._kept(key, schema)
            if kept is not None:
                self.usage.cached += 1
                return Answer(kept, cached=True)
            await self._pace.turn()
            text = await self._persist(question)
            self._keep(key, text)
            return Answer(parse_reply(text, schema), cached=False)

    def _enter_loop(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._slots = loop, asyncio.Semaphore(self._concurrency)
            self._same: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def _content_key(self, question: _Question[Any]) -> str:
        # The endpoint belongs to the content: two servers may serve different models under one name.
        schema = question.schema.model_json_schema()
        limits = [question.temperature, question.max_tokens]
        content = [self.model, self.base_url, question.messages, schema, limits]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def _open(self, file: Path) -> ReplyCache:
        try:
            return ReplyCache(file)
        except (sqlite3.Error, OSError) as error:
            raise self._cache_error(error) from None

    def _kept(self, key: str, schema: type[Schema]) -> Schema | None:
        try:
            text = self._cache.get(key) if self._cache else None
        except sqlite3.Error as error:
            raise self._cache_error(error) from None
        try:
            return None if text is None else parse_reply(text, schema)
        except ValueError:  # kept by an older version whose schema demanded less: ask again
            return None

    def _keep(self, key: str, text: str) -> None:
        try:
            if self._cache:
                self._cache.put(key, text)
        except sqlite3.Error as error:
            raise self._cache_error(error) from None

    def _cache_error(self, error: Exception) -> LLMError:
        return LLMError(f"{self._cache_file} can not be used as the cache of LLM answers: {error}", "setup")

    async def _persist(self, question: _Question[Any]) -> str:
        """A reply that fits, after as many attempts as it takes and the limits allow."""
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, stop_before_delay

        retrying = AsyncRetrying(
            stop=stop_after_attempt(self.attempts) | stop_before_delay(self.timeout),
            wait=_wait,
            retry=retry_if_exception(lambda error: isinstance(error, LLMError) and error.may_pass),
            reraise=True,
        )
        litellm = load_litellm()  # importing it takes seconds once, which are not the model's
        last: LLMError | None = None

        async def attempt() -> str:
            nonlocal last
            if last is not None:
                await self._pace.turn()
            try:
                return await self._attempt(litellm, question)
            except LLMError as error:
                last = error
                raise

        try:
            async with asyncio.timeout(self.timeout):
                return await retrying(attempt)
        except TimeoutError:
            before = f"; before that: {last}" if last else ""
            message = f"{self.model}: no usable answer within {self.timeout:g} s{before}"
            raise LLMError(message, "timeout", last.status if last else None) from None

    async def _attempt(self, litellm: Any, question: _Question[Any]) -> str:
        """One usable reply. An endpoint that refuses schemas is asked at once in JSON mode, now and ever after."""
        if not self._schema_refused and self._takes_schemas(litellm):
            try:
                return await self._call(litellm, question, question.messages, question.schema)
            except LLMError as error:
                if error.cause != "refused" or not ABOUT_SCHEMA.search(str(error)):
                    raise
                self._schema_refused = True
        told = tell_schema(question.messages, question.schema)
        return await self._call(litellm, question, told, {"type": "json_object"})

    def _takes_schemas(self, litellm: Any) -> bool:
        """Whether litellm passes a schema on to this provider; else it would drop it without a word."""
        try:
            return "response_format" in (litellm.get_supported_openai_params(self.model) or ())
        except Exception:  # a provider litellm does not know: the call itself says so, in better words
            return True

    async def _call(self, litellm: Any, question: _Question[Any], messages: list[Message], response_format: Any) -> str:
        """One request; what fails becomes an LLMError without secrets."""
        self.usage.calls += 1
        try:
            reply = await litellm.acompletion(
                model=self.model,
                messages=messages,
                response_format=response_format,
                temperature=question.temperature,
                max_tokens=question.max_tokens,
                api_base=self.base_url,
                api_key=self._api_key,
                timeout=self.timeout,
                drop_params=True,
                num_retries=0,
                max_retries=0,
            )
        except Exception as error:  # litellm raises what its providers' clients raise
            raise self._explained(error, litellm) from None
        self._count(litellm, reply)
        text = reply.choices[0].message.content or "" if reply.choices else ""
        try:
            parse_reply(text, question.schema)
        except ValueError as error:
            raise LLMError(f"{self.model}: {clean(str(error), self._api_key)}", "malformed") from None
        return text

    def _explained(self, error: Exception, litellm: Any) -> LLMError:
        explained = explain(error, litellm, self.model, self._api_key)
        seconds = explained.retry_after
        if seconds is not None and seconds <= self.timeout:
            self._pace.pause(seconds)  # the endpoint means all callers, not this one alone
        return explained

    def _count(self, litellm: Any, reply: Any) -> None:
        used = getattr(reply, "usage", None)
        self.usage.prompt_tokens += getattr(used, "prompt_tokens", 0) or 0
        self.usage.completion_tokens += getattr(used, "completion_tokens", 0) or 0
        if self.usage.cost_usd is None:
            return
        try:
            self.usage.cost_usd += litellm.completion_cost(reply, model=self.model)
        except Exception:  # litellm's way of saying that it has no price for this model
            self.usage.cost_usd = None


def client_from_settings(settings: Settings, *, model: str | None = None, **options: Any) -> LLMClient:
    """A client of the teacher LLM; `model` overrides TEACHER_MODEL, `options` are LLMClient's.

    Raises:
        LLMError: cause "setup", no model is set.
    """
    name = model or settings.teacher_model
    if not name:
        raise LLMError("no LLM: set TEACHER_MODEL, in the environment or .env, to litellm's name of one", "setup")
    key = settings.teacher_api_key.get_secret_value() if settings.teacher_api_key else None
    return LLMClient(name, base_url=settings.teacher_base_url, api_key=key, **options)


def load_litellm() -> Any:
    """litellm, imported late: it takes seconds, and would ask the internet for prices and print advertisements."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    # A call that is cancelled leaves coroutines of litellm unawaited; nobody at a terminal can use the warning.
    warnings.filterwarnings("ignore", r"coroutine '\w+\.(acompletion|async_\w+)' was never awaited", RuntimeWarning)
    return litellm


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return seconds_to_wait(state.attempt_number, getattr(error, "retry_after", None))
