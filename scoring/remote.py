"""What all judges behind an address share: no needless call, retries, a circuit breaker, and named failures.

`RemoteJudge.judge` goes through these in turn:

1. an answer that says nothing is 0 without a call;
2. a case judged before in this process gets the same verdict again (the last 4,096 are kept);
3. a judge that failed five times in a row is left alone for 30 s ("judge_unavailable", see scoring/breaker.py);
4. what may pass (connection, 408, 409, 429, 5xx, malformed replies) is tried again with jitter inside one time budget;
5. then there is no score but a cause: "judge_timeout", "judge_malformed" (not the scores asked for, NaN, out of range:
   a failure, never a clamp) or "judge_failed". A judge that failed says nothing about the answer. The reason is logged.

The judges are `scoring.llm_judge.LLMJudge` and `scoring.reward_model.RewardModelJudge`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import weakref
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scoring.breaker import Breaker
from scoring.case import Case, Usage, Verdict
from scoring.reference.degenerate import is_degenerate

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

ATTEMPTS = 4
LONGEST_WAIT = 5.0  # seconds between two attempts
PASSING_STATUS = {408, 409, 429}
CACHED_VERDICTS = 4096
MOST_CONNECTIONS = 256
SHOWN = 300  # characters of a failure in the log


class MalformedReply(ValueError):
    """The judge replied with something other than the scores asked for."""


class RefusedCall(RuntimeError):
    """The endpoint answered with an HTTP status that is no success; the message holds its words."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text}")
        self.status_code = status


@dataclass(frozen=True)
class Scored:
    """One usable reply: the score, its parts, and its price where one is known."""

    score: float
    parts: dict[str, float]
    cost_usd: float | None


class RemoteJudge:
    """A judge behind an address; a subclass says how to ask once."""

    name: str

    def __init__(self, timeout: float) -> None:
        """`timeout` is the budget in seconds for one case, retries included."""
        from cachetools import LRUCache

        self.timeout = timeout
        self.breaker = Breaker()
        self.last_failure = ""
        self._verdicts: LRUCache[str, Verdict] = LRUCache(CACHED_VERDICTS)
        self._http = _Sessions()

    async def judge(self, case: Case) -> Verdict:
        """The verdict on one answer; see the module's text for what happens on the way."""
        if is_degenerate(case):
            return Verdict(0.0, {"degenerate": 1.0})
        known = self._verdicts.get(case.key)
        if known is not None:
            return replace(known, usage=Usage(cached=1))
        if not self.breaker.allows():
            return Verdict(None, cause="judge_unavailable")
        self._prepare()
        with self.breaker.call():
            verdict = await self._persist(case)
        if verdict.score is not None:
            self._verdicts[case.key] = verdict
        return verdict

    def _secrets(self) -> list[str]:
        """What must not be logged."""
        return []

    def _prepare(self) -> None:
        """What takes seconds once and is not the judge's time."""

    async def _ask(self, case: Case) -> Scored:
        """One reply; raises whatever its client raises, MalformedReply for a reply that is no score."""
        raise NotImplementedError

    async def _persist(self, case: Case) -> Verdict:
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

        calls = 0

        async def ask() -> Scored:
            nonlocal calls
            calls += 1
            return await self._ask(case)

        attempts = AsyncRetrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.2, max=LONGEST_WAIT),
            retry=retry_if_exception(_may_pass),
            reraise=True,
        )
        try:
            async with asyncio.timeout(self.timeout):
                scored: Scored = await attempts(ask)
        except Exception as error:  # whatever the judge's client raises, the episode is unscored and the run goes on
            return self._failure(error, calls)
        self.breaker.succeeded()
        # What failed attempts cost is not known.
        cost = scored.cost_usd if calls == 1 else None
        return Verdict(scored.score, scored.parts, usage=Usage(calls, 0, cost))

    def _failure(self, error: Exception, calls: int) -> Verdict:
        text = str(error)
        for secret in self._secrets():
            text = text.replace(secret, "***")  # some endpoints repeat the key they were sent
        self.last_failure = f"{type(error).__name__}: {text[:SHOWN]}"
        log.warning("the %s judge failed: %s", self.name, self.last_failure)
        malformed = isinstance(error, MalformedReply)
        # A judge that answers nonsense is there; leaving it alone would let one odd answer hide the others.
        (self.breaker.succeeded if malformed else self.breaker.failed)()
        cause = "judge_malformed" if malformed else "judge_timeout" if _is_timeout(error) else "judge_failed"
        return Verdict(None, cause=cause, usage=Usage(calls, 0, None))

    async def _post(self, url: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> str:
        """The text of a successful reply.

        Raises:
            RefusedCall: any other status; aiohttp.ClientError and TimeoutError: no reply.
        """
        async with self._http.session().post(url, json=body, headers=headers) as reply:
            text = await reply.text()
        if reply.status >= 300:
            raise RefusedCall(reply.status, text)
        return text


class _Sessions:
    """One pool of connections for the event loop that runs; that of an earlier loop is closed.

    aiohttp because it takes a seventh of httpx's processor time a call and a twentieth of litellm's.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        """The running loop's; nobody has to close it."""
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            if self._session is not None and self._session.connector is not None:
                _close(self._session.connector)
            connector = aiohttp.TCPConnector(limit=MOST_CONNECTIONS)
            self._loop, self._session = loop, aiohttp.ClientSession(connector=connector)
            weakref.finalize(self, _close, connector)
        return self._session


def _close(connector: aiohttp.BaseConnector) -> None:
    """Close it without waiting: at a process's end, and for a loop that ended, nothing can be waited for."""
    closing = connector.close().__await__()
    with suppress(StopIteration, RuntimeError):
        next(closing)


def strict_json(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        MalformedReply: it is none.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedReply(f"expected JSON, got {text[:200]!r}") from None


def finite_number(value: Any, name: str, low: float = float("-inf"), high: float = float("inf")) -> float:
    """A JSON number within bounds as float.

    Raises:
        MalformedReply: no number, not finite, or out of bounds.
    """
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # NaN fails every comparison; an integer too large for a float is no score either.
    if not is_number or not low <= value <= high or not abs(value) <= 1e300:
        bounds = f" in [{low:g}, {high:g}]" if low > float("-inf") else ""
        raise MalformedReply(f"{name} must be a finite number{bounds}, got {str(value)[:40]}")
    return float(value)


def _is_timeout(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or type(error).__name__ == "Timeout"  # litellm's own is no TimeoutError


def _may_pass(error: BaseException) -> bool:
    status = getattr(error, "status_code", None)
    if status is None:
        return isinstance(error, Exception)
    return status in PASSING_STATUS or status >= 500
