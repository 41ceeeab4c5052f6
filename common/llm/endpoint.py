"""One request to a model: plain HTTP where its provider speaks OpenAI's protocol, else by litellm.

Judges' requests avoid litellm: a call costs 4.9 ms of processor time with it, 0.4 ms with aiohttp
alone (`.venv/bin/python -m bench.scoring`).
"""

import asyncio
import logging
import os
import re
import warnings
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp

from common.llm.errors import SHOWN, LLMError, clean, explain, of_status, one_line
from common.llm.replies import BROKEN, completed, decoded, error_in, value_in
from common.llm.retry import Patience
from common.proxies import is_socks, named_proxies

log = logging.getLogger(__name__)

MOST_CONNECTIONS = 256  # requests of one client at once

# What an endpoint may refuse, and is then asked without, in this order
GIVEN_UP = ("top_p", "max_tokens", "temperature", "tool_choice")
# A refusal that names one of these is about its value; one that names max_tokens may be about the
# room that is left for them
FREE_OF_LIMITS = ("top_p", "temperature")
ABOUT_VALUES = (400, 422)
NOT_FOUND = 404
NEWER_NAMES = {"max_tokens": "max_completion_tokens"}
UNSUPPORTED = re.compile(r"unsupported|not support|cannot both|deprecated", re.IGNORECASE)

# How endpoints refuse a request for a reply in one piece (DashScope, ModelScope)
NO_STREAM = re.compile(r"stream mode|stream=false|non-streaming", re.IGNORECASE)
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}

Body = dict[str, Any]
Pool = AsyncGenerator[aiohttp.ClientSession, None]
_pools: dict[asyncio.AbstractEventLoop, tuple[aiohttp.ClientSession, Pool]] = {}


async def post(
    url: str, body: Body, *, timeout: float, key: str | None = None, who: str = ""
) -> Any:
    """Return the JSON value of a successful reply. `who` names the endpoint in messages.
    Raises LLMError: no reply, another status, or a reply that is not JSON.
    """
    who = who or without_secrets(url)
    headers = {"Authorization": f"Bearer {key}"} if key else None
    limit = aiohttp.ClientTimeout(total=timeout)
    proxy = proxy_of(url)
    if proxy and is_socks(proxy):
        why = f"{', '.join(named_proxies())} names a SOCKS proxy, which requests to models do not speak"
        raise LLMError(f"{who}: {why}; name an HTTP proxy, or the host in NO_PROXY", "refused")
    try:
        session = await _session()
        sending = session.post(url, json=body, headers=headers, timeout=limit, proxy=proxy)
        async with sending as reply:
            text = decoded(await reply.read(), reply.charset)
    except TimeoutError:
        raise LLMError(f"{who}: no reply in time", "timeout") from None
    except (ValueError, aiohttp.NonHttpUrlClientError) as error:
        why = f"the address or key makes no request ({clean(str(error), key)})"
        raise LLMError(f"{who}: {why}", "refused") from None
    except (aiohttp.ClientError, OSError) as error:
        why = clean(str(error), key)
        raise LLMError(f"{who}: no connection ({why})", "connection") from None
    if reply.status < 300:
        with suppress(ValueError, RecursionError):
            return value_in(text)
    asked = f" (asked: {reply.method} {without_secrets(str(reply.url))})"
    # A redirect may have made a GET of it
    hint = asked if reply.history or reply.status == NOT_FOUND else ""
    if reply.status == 401 and not key:
        hint = " (no API key was sent)"
    if reply.status >= 300:
        raise of_status(who, reply.status, one_line(text, key), reply.headers, hint)
    raise LLMError(f"{who}: expected JSON, got {clean(text, key)!r}{hint}", "malformed")


async def _session() -> aiohttp.ClientSession:
    """Return the connections of the running event loop, which all requests share."""
    loop = asyncio.get_running_loop()
    if loop not in _pools:
        pool = _open_pool(loop)
        _pools[loop] = await anext(pool), pool
    return _pools[loop][0]


async def _open_pool(loop: asyncio.AbstractEventLoop) -> Pool:
    """Yield a session. The end of the event loop ends this generator, which closes the connections."""
    try:
        # Callers bound how many requests are in flight
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            yield session
    finally:
        del _pools[loop]


@lru_cache(maxsize=16)
def proxy_of(url: str) -> str | None:
    """Return the environment's proxy: aiohttp's `trust_env` costs two threads a request."""
    parts = urlsplit(url)
    named = {} if proxy_bypass(parts.hostname or "") else getproxies()
    proxy = named.get(parts.scheme)
    if not proxy and not is_socks(named.get("all", "")):  # which aiohttp does not speak
        proxy = named.get("all")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy  # as curl reads it


class Provider(NamedTuple):
    """Where litellm would call a model. speaks_openai: it takes a plain POST."""

    model: str
    base_url: str
    api_key: str | None
    speaks_openai: bool


@dataclass(eq=False, repr=False)  # the repr would show the secret
class LLMEndpoint:
    """A model by litellm's name of it, for whole chat replies.

    timeout: seconds of one request. patience: None for one try. translated: litellm carries every
    request.
    """

    model: str
    base_url: str | None
    api_key: str | None
    timeout: float
    patience: Patience | None = None
    translated: bool = False
    # Of GIVEN_UP; "stream": replies in one piece
    _refused: set[str] = field(default_factory=set, init=False)

    @cached_property
    def provider(self) -> Provider:
        """The provider. Raises LLMError: litellm does not know the name."""
        litellm = load_litellm()
        try:
            model, name, key, base = litellm.get_llm_provider(
                self.model, api_base=self.base_url, api_key=self.api_key
            )
        except Exception as error:  # litellm raises what its providers' clients raise
            raise explain(error, litellm, self.model, self.api_key) from None
        address = (self.base_url or base or "").rstrip("/")
        known = name == "openai" or name in litellm.openai_compatible_providers
        return Provider(model, address, self.api_key or key, bool(address) and known)

    @property
    def takes_schemas(self) -> bool:
        """Whether a JSON schema reaches the provider. Otherwise litellm would drop it silently."""
        if self.provider.speaks_openai:
            return True
        return "response_format" in (load_litellm().get_supported_openai_params(self.model) or ())

    async def reply(self, body: Body) -> dict[str, Any]:
        """Return OpenAI's JSON of a completion, asked for with patience. Raises LLMError."""
        load_litellm()  # the import takes seconds once, which must not count against the budget
        patience = self.patience or Patience(1, self.timeout)
        return await patience.ask(lambda: self.once(body), self.model)

    async def once(self, body: Body) -> dict[str, Any]:
        """Return OpenAI's JSON of a completion, asked for once. Raises LLMError."""
        request = dict(body)
        for name in self._refused & request.keys():
            value = request.pop(name)
            if name in NEWER_NAMES:
                request[NEWER_NAMES[name]] = value
        if "stream" in self._refused:
            request |= STREAMED
        try:
            if self.provider.speaks_openai and not self.translated:
                reply = await post(
                    f"{self.provider.base_url}/chat/completions",
                    {"model": self.provider.model, **request},
                    key=self.provider.api_key,
                    timeout=self.timeout,
                    who=self.model,
                )
            else:
                reply = await self._translated(request)
        except LLMError as error:
            refused = refused_part(error, request)
            if refused is None:
                raise
            is_news = refused not in (*self._refused, "stream", *NEWER_NAMES)
            self._refused.add(refused)
            try:
                answered = await self.once(body)
            except LLMError as still:
                if still.cause == "refused":  # it was not about that
                    self._refused.discard(refused)
                raise
            if is_news:
                log.warning("%s is asked without %s, which it refuses", self.model, refused)
            return answered
        return completion_in(reply, self.model, self.api_key)

    async def _translated(self, request: Body) -> Any:
        litellm = load_litellm()
        try:
            found = await litellm.acompletion(
                model=self.model,
                api_base=self.base_url,
                api_key=self.api_key,
                timeout=self.timeout,
                num_retries=0,
                max_retries=0,
                drop_params=True,
                **request,
            )
            return found.model_dump()
        except Exception as error:  # litellm raises what its providers' clients raise
            raise explain(error, litellm, self.model, self.api_key) from None


def completion_in(reply: Any, who: str, key: str | None) -> dict[str, Any]:
    """Return a reply as OpenAI's JSON of a completion. Raises LLMError: it is an error, or none."""
    if error := error_in(reply):
        status, said = error
        words = one_line(said, key)
        if status is not None:
            raise of_status(who, status, words)
        raise LLMError(f"{who}: an error for a reply: {words[:SHOWN]}", "status", words=words)
    found = completed(reply)
    if found is None:
        seen = clean(str(reply), key)
        raise LLMError(f"{who}: expected a completion, got {seen}", "malformed")
    choice = found["choices"][0]
    if choice["finish_reason"] == BROKEN:
        why = clean(str(choice.get("error") or reply["choices"][0].get("finish_reason")), key)
        raise LLMError(f"{who}: the endpoint broke its reply off ({why})", "status")
    return found


def refused_part(error: LLMError, request: Body) -> str | None:
    """Return what of GIVEN_UP in a request an endpoint refuses, by its own words, or "stream"."""
    words = str(error)
    if error.cause != "refused":
        return None
    if NO_STREAM.search(words) and "stream" not in request:
        return "stream"
    may_be_meant: tuple[str, ...] = FREE_OF_LIMITS if error.status in ABOUT_VALUES else ()
    if UNSUPPORTED.search(words):
        may_be_meant = GIVEN_UP
    named = (name for name in may_be_meant if name in request and re.search(rf"\b{name}\b", words))
    return next(named, None)


def without_secrets(url: str) -> str:
    """Return the address without user, password and query."""
    return one_line(re.sub(r"//[^/]*@", "//", url.split("?")[0]), None)


def providers() -> frozenset[str]:
    """Return the providers litellm knows: what may stand before the slash of a model name."""
    listed = load_litellm().provider_list
    return frozenset(str(getattr(provider, "value", provider)) for provider in listed)


def load_litellm() -> Any:
    """Import litellm late: it takes seconds, and would ask the internet for prices."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True
    # A cancelled call leaves coroutines of litellm unawaited; the warning helps no user.
    warnings.filterwarnings(
        "ignore", r"coroutine '\w+\.(acompletion|async_\w+)' was never awaited", RuntimeWarning
    )
    return litellm
