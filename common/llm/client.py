"""Answers of a model as objects of a pydantic schema, with retries, limits, a cache and counters."""

import asyncio
import hashlib
import json
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from pydantic import BaseModel, ValidationError

from common.llm.endpoint import Body, LLMEndpoint, load_litellm, without_secrets
from common.llm.errors import LLMError, clean
from common.llm.replies import FILTERED, FILTERED_STATUS, LENGTH, text_of, thought_of, tokens_in
from common.llm.retry import LONGEST_WAIT, Patience
from common.settings import Settings, reveal
from common.text_store import TextStore
from common.thoughts import after_thought

Message = dict[str, str]
Schema = TypeVar("Schema", bound=BaseModel)

SHOWN = 120  # characters of a malformed reply in a message
ABOUT_SCHEMA = re.compile(
    r"response_?format|schema|structured[ _]output|guided|grammar|\bjson\b", re.IGNORECASE
)
# How often the limit of tokens is doubled for a reply that it cut: 2,048 become 16,384
DOUBLED = 3


@dataclass
class Usage:
    """What was spent. `calls` counts failed tries too."""

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def add(self, other: "Usage") -> None:
        self.calls += other.calls
        self.cached += other.cached
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens

    def __str__(self) -> str:
        tokens = f"{self.prompt_tokens:,} + {self.completion_tokens:,} tokens"
        return f"{self.calls:,} calls, {self.cached:,} from the cache, {tokens}"


class LLMClient:
    """A client of one model, which many tasks of one event loop may share, and later loops reuse."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        cache: Path | None = None,
        timeout: float = 60.0,
        attempts: int = 5,
        longest_wait: float = LONGEST_WAIT,
        concurrency: int = 8,
    ) -> None:
        """Prepare a client. `model` is litellm's name. Without `cache` every ask is a call.

        `timeout` is the budget of one `ask` in seconds, with retries, without waiting for a free
        slot. Raises LLMError, cause "setup", if the cache file cannot be used.
        """
        self.model = model
        self.usage = Usage()
        self.patience = Patience(attempts, timeout, longest_wait)
        self.chat_model = LLMEndpoint(model, base_url, api_key, timeout, self.patience)
        self._cache = open_cache(cache) if cache else None
        self._concurrency = concurrency
        self._loop: asyncio.AbstractEventLoop | None = None
        self._form: int | None = None  # the strictest form of reply that this endpoint took
        self._doubled = 0  # how often the limit of tokens was too small for a reply
        self._most_doubled = DOUBLED

    @property
    def endpoint(self) -> str | None:
        """The base URL without a password or key in it."""
        return self.chat_model.base_url and without_secrets(self.chat_model.base_url)

    async def ask(
        self,
        messages: list[Message],
        schema: type[Schema],
        *,
        temperature: float = 0.0,
        max_tokens: int = 1024,
        spent: Usage | None = None,
    ) -> Schema:
        """Return the model's answer as a `schema`, from the cache if the same was asked before.

        The usage is added to `spent` and `self.usage`, also after a failure. If `max_tokens` cut
        the reply, more are asked for. Raises LLMError: after the attempts or the budget.
        """
        own = spent if spent is not None else Usage()
        limits = {"temperature": temperature, "max_tokens": max_tokens}
        try:
            return await self._once({**limits, "messages": messages}, schema, own)
        finally:
            self.usage.add(own)

    async def _once(self, question: Body, schema: type[Schema], spent: Usage) -> Schema:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            self._slots = asyncio.Semaphore(self._concurrency)
            self._same: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        key = self._content_key(question, schema) if self._cache else ""
        # With a cache two tasks with one question make one call.
        same = self._same.setdefault(key, asyncio.Lock()) if self._cache else asyncio.Lock()
        async with same, self._slots:
            known = self._cache.get(key) if self._cache else None
            if known is not None:
                # An older version, whose schema demanded less, may have kept what does not fit
                with suppress(ValueError):
                    kept = parse_reply(known, schema)
                    spent.cached += 1
                    return kept
            load_litellm()  # the import takes seconds once, which must not count against the budget
            text, value = await self.patience.ask(
                lambda: self._attempt(question, schema, spent), self.model
            )
            if self._cache:
                self._cache.put(key, text)
            return value

    def _content_key(self, question: Body, schema: type[BaseModel]) -> str:
        # The endpoint belongs to the content: two servers may serve different models under one
        # name.
        limits = [question["temperature"], question["max_tokens"]]
        where = [self.model, self.chat_model.base_url]
        content = [*where, question["messages"], _json_schema(schema), limits]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    async def _attempt(
        self, question: Body, schema: type[Schema], spent: Usage
    ) -> tuple[str, Schema]:
        if self._form is None:
            self._form = 0 if self.chat_model.takes_schemas else 1
        number = self._form
        while True:
            form = _forms(schema)[number]
            try:
                answer = await self._request(question, schema, form, spent)
            except LLMError as error:
                about_form = error.status is not None and ABOUT_SCHEMA.search(str(error))
                if not about_form or form is None:
                    raise
                number += 1
                if not error.may_pass:
                    self._form = max(self._form, number)
            else:
                self._form = max(self._form, number)  # others may have failed for a while
                return answer

    async def _request(
        self, body: Body, schema: type[Schema], form: Body | None, spent: Usage
    ) -> tuple[str, Schema]:
        if form is None or "json_schema" not in form:
            text = json.dumps(_json_schema(schema), ensure_ascii=False)
            asked = f"只输出一个符合下面 JSON Schema 的 JSON 对象：\n{text}"
            body = {**body, "messages": [*body["messages"], {"role": "user", "content": asked}]}
        if form is not None:
            body = {**body, "response_format": form}
        doubled = self._doubled
        body = {**body, "max_tokens": body["max_tokens"] * 2**doubled}
        spent.calls += 1
        try:
            reply = await self.chat_model.once(body)
        except LLMError as error:
            if not doubled or error.cause != "refused" or "token" not in str(error).lower():
                raise
            # More than the model has room for
            self._most_doubled = doubled - 1
            self._doubled = min(self._doubled, self._most_doubled)
            raise LLMError(str(error), "malformed", error.status) from None
        spent.prompt_tokens += tokens_in(reply, "prompt_tokens")
        spent.completion_tokens += tokens_in(reply, "completion_tokens")
        choice = reply["choices"][0]
        text = text_of(choice["message"].get("content"))
        thought = thought_of(choice["message"])
        if not text and thought.lstrip().startswith("{"):
            text = thought  # vLLM's parsers of thoughts take a reply without one for a thought
        try:
            return text, parse_reply(text, schema)
        except ValueError as error:
            why = clean(str(error), self.chat_model.api_key)
        if choice.get("finish_reason") == FILTERED:
            why = f"the endpoint filtered the reply ({FILTERED})"
            raise LLMError(f"{self.model}: {why}", "refused", FILTERED_STATUS)
        if choice.get("finish_reason") == LENGTH:
            self._doubled = max(self._doubled, min(doubled + 1, self._most_doubled))
            why = f"the reply was cut at {body['max_tokens']} tokens; {why}"
        elif thought and not text:
            why = f"the reply is a thought alone; {why}"
        raise LLMError(f"{self.model}: {why}", "malformed")


@lru_cache(maxsize=16)
def _json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    return schema.model_json_schema()


@lru_cache(maxsize=16)
def _forms(schema: type[BaseModel]) -> tuple[Body | None, ...]:
    strict = load_litellm().utils.type_to_response_format_param(schema)
    return strict, {"type": "json_object"}, None


def parse_reply(text: str, schema: type[Schema]) -> Schema:
    """Return the reply as a `schema`, without thoughts, a code block around it, or words before it.
    Raises ValueError if it does not fit, or names a key twice.
    """
    text = after_thought(text) or ""
    if "{" in text:  # words and the beginning of a code block may stand before it
        text = text[text.index("{") :].removesuffix("```")
    try:
        value = schema.model_validate_json(text, strict=True)
        json.loads(text, object_pairs_hook=_distinct)  # pydantic would take the last of two
        return value
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        why = f"{'.'.join(str(part) for part in first['loc']) or 'the reply'}: {first['msg']}"
    except ValueError as error:
        why = str(error)
    raise ValueError(f"expected {schema.__name__} as JSON; {why}; got {text[:SHOWN]!r}")


def _distinct(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError("a key stands twice")


def open_cache(path: Path) -> TextStore:
    """Return the file where replies are kept. Raises LLMError, cause "setup", if it cannot be used."""
    return TextStore(
        path,
        lambda error: LLMError(f"{path} cannot be used as the cache of replies: {error}", "setup"),
    )


def client_from_settings(settings: Settings, model: str | None = None, **options: Any) -> LLMClient:
    """Return a client of the teacher LLM, or of `model`. Raises LLMError ("setup"): none is set."""
    name = model or settings.teacher_model
    if not name:
        raise LLMError(
            "no LLM: set TEACHER_MODEL, in the environment or .env, to litellm's name of one",
            "setup",
        )
    return LLMClient(
        name,
        base_url=settings.teacher_base_url,
        api_key=reveal(settings.teacher_api_key),
        **options,
    )
