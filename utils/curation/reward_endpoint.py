"""Ask a reward model for raw scores: POST {"prompt", "response"} -> {"score"}. Used by `utils/reward_scale.py`.

Unlike the judge in `scoring/remote.py`, which needs a score in [0, 1] within its time, this wants the number as it is.

    async with RewardEndpoint(url, timeout=60) as endpoint:
        await endpoint.score("question", "answer")      # -3.7
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Any

from common.llm_error import clean
from common.llm_pace import retry_after, seconds_to_wait

if TYPE_CHECKING:
    import httpx

ATTEMPTS = 5
PASSING_STATUS = {408, 409, 429}  # and every 5xx


class ScoreError(Exception):
    """No score after all attempts; the message says why."""


class RewardEndpoint:
    """A reward model behind one URL; `timeout` is the budget in seconds of one score, retries included."""

    def __init__(self, url: str, timeout: float) -> None:
        self._url, self._timeout = url, timeout

    async def __aenter__(self) -> RewardEndpoint:
        import httpx

        self._client = httpx.AsyncClient(timeout=self._timeout)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def score(self, prompt: str, response: str) -> float:
        """The raw score, any finite number.

        Raises:
            ScoreError: the endpoint refuses, or gave no number in time.
        """
        problem = "no reply"
        try:
            async with asyncio.timeout(self._timeout):
                for attempt in range(1, ATTEMPTS + 1):
                    score, problem, wait = await self._ask({"prompt": prompt, "response": response})
                    if score is not None:
                        return score
                    if wait is None:
                        break
                    if attempt < ATTEMPTS:
                        await asyncio.sleep(seconds_to_wait(attempt, wait))
        except TimeoutError:
            problem = f"nothing usable within {self._timeout:g} s ({problem})"
        raise ScoreError(f"{without_secrets(self._url)}: {problem}")

    async def _ask(self, body: dict[str, str]) -> tuple[float | None, str, float | None]:
        """One request: the score, or what was wrong and the seconds the endpoint asks to wait (None: it is final)."""
        import httpx

        try:
            reply = await self._client.post(self._url, json=body)
        except httpx.InvalidURL as error:
            return None, clean(str(error), None), None
        except httpx.HTTPError as error:
            final = isinstance(error, httpx.UnsupportedProtocol)
            return None, clean(str(error) or type(error).__name__, None), None if final else 0.0
        if reply.is_success:
            return _score_of(reply)
        passing = reply.status_code in PASSING_STATUS or reply.status_code >= 500
        wait = retry_after(reply.headers.get("retry-after")) or 0.0
        return None, f"HTTP {reply.status_code}: {clean(reply.text, None)}", wait if passing else None


def _score_of(reply: httpx.Response) -> tuple[float | None, str, float]:
    try:
        score: Any = reply.json()["score"]
    except (ValueError, TypeError, KeyError, RecursionError):
        score = None
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        return None, f'expected {{"score": NUMBER}}, got {clean(reply.text, None)[:120]!r}', 0.0
    return float(score), "", 0.0


def without_secrets(url: str) -> str:
    """The address without user, password and query."""
    return clean(url.split("?")[0], None)
