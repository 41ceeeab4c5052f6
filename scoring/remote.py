"""What all judges behind an address share: no needless call, a circuit breaker, named failures."""

import asyncio
import logging
import unicodedata
from dataclasses import replace
from time import monotonic

from cachetools import LRUCache

from common.llm.client import Usage
from common.llm.errors import LLMError, clean
from scoring.case import Case, Verdict

log = logging.getLogger(__name__)

ATTEMPTS = 4
LONGEST_WAIT = 5.0  # seconds between two attempts
CACHED_VERDICTS = 4096
FAILURES = 5  # in a row, until the judge is left alone
PAUSE = 30.0  # seconds it is left alone
OF_THE_CASE = (400, 413, 422)  # statuses that refuse what was sent, not who sent it
CAUSES = {"malformed": "judge_malformed", "timeout": "judge_timeout"}


class Breaker:
    """After FAILURES in a row only one call passes every PAUSE seconds, until one succeeds."""

    def __init__(self) -> None:
        self._failures = 0
        self._looked: float | None = None  # when it opened, or let the last call pass since

    def allows(self) -> bool:
        if self._looked is not None:
            if monotonic() - self._looked < PAUSE:
                return False
            self._looked = monotonic()
        return True

    def succeeded(self) -> None:
        self._failures = 0
        self._looked = None

    def failed(self) -> None:
        self._failures += 1
        if self._failures >= FAILURES:
            self._looked = monotonic()


class RemoteJudge:
    name: str

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.last_failure = ""
        self._verdicts: LRUCache[str, Verdict] = LRUCache(CACHED_VERDICTS)
        self._pending: dict[str, asyncio.Task[Verdict]] = {}

    async def judge(self, case: Case) -> Verdict:
        """Return the verdict on one answer. An earlier one, or 0 where it says nothing, needs no
        call. A score out of range is "judge_malformed", never clamped: it says nothing.
        """
        if not any(unicodedata.category(sign)[0] in "LNS" for sign in case.answer):
            return Verdict(0.0, {"degenerate": 1.0})  # it says nothing
        key = case.key
        known = self._verdicts.get(key)
        if known is not None:
            return replace(known, usage=Usage(cached=1))
        pending = self._pending.get(key)
        if pending is not None and pending.get_loop() is asyncio.get_running_loop():
            verdict = await asyncio.shield(pending)
            return replace(verdict, usage=Usage(cached=int(verdict.score is not None)))
        if not self.breaker.allows():
            return Verdict(None, cause="judge_unavailable")
        # An episode that is cancelled does not take the call from the others that wait for it.
        self._pending[key] = asyncio.create_task(self._judge_and_keep(key, case))
        return await asyncio.shield(self._pending[key])

    async def _judge_and_keep(self, key: str, case: Case) -> Verdict:
        spent = Usage()
        try:
            verdict = await self._ask(case, spent)
        except Exception as error:
            # Whatever the judge's client raises, the episode is unscored and the run goes on
            verdict = self._failure(error)
        else:
            self.breaker.succeeded()
        finally:
            self._pending.pop(key, None)
        verdict = replace(verdict, usage=spent)
        if verdict.score is not None:
            self._verdicts[key] = verdict
        return verdict

    async def _ask(self, case: Case, spent: Usage) -> Verdict:
        raise NotImplementedError

    def _failure(self, error: Exception) -> Verdict:
        asked = isinstance(error, LLMError)
        self.last_failure = str(error) if asked else f"{type(error).__name__}: {clean(str(error))}"
        log.warning("the %s judge failed: %s", self.name, self.last_failure)
        cause = CAUSES.get(getattr(error, "cause", ""), "judge_failed")
        # A judge that answers nonsense, or refuses this one case (a content filter), is there;
        # leaving it alone would let one odd answer hide the others. One that asks for a pause is
        # there too, and gets it.
        if cause == "judge_malformed" or getattr(error, "status", None) in OF_THE_CASE:
            self.breaker.succeeded()
        elif not getattr(error, "retry_after", None):
            self.breaker.failed()
        return Verdict(None, cause=cause)
