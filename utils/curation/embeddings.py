"""Vectors of texts from an embedding endpoint, any provider litellm knows; kept on disk by content.

    vectors = await Embeddings("openai/NAME", base_url, key, Path("outputs/embeddings.sqlite")).of(["...", "..."])

The vectors have length 1, so a dot product is the cosine. The only user is `utils/filter_new_question.py`.
"""

from __future__ import annotations

import base64
import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common.llm import load_litellm
from common.llm_cache import ReplyCache
from common.llm_error import LLMError, explain
from common.llm_pace import seconds_to_wait

if TYPE_CHECKING:
    import numpy
    from tenacity import RetryCallState

BATCH = 64  # texts of one request
ATTEMPTS = 5


class Embeddings:
    """An embedding model behind an endpoint. Errors are LLMError, without keys."""

    def __init__(self, model: str, base_url: str | None, api_key: str | None, cache: Path, timeout: float) -> None:
        """`model` is litellm's name; `timeout` is in seconds, for one request.

        Raises:
            LLMError: cause "setup", the cache can not be used.
        """
        self.model, self.base_url, self._api_key, self.timeout = model, base_url, api_key, timeout
        self.calls = self.cached = 0
        try:
            self._cache = ReplyCache(cache)
        except (sqlite3.Error, OSError) as error:
            raise LLMError(f"{cache} can not be used as the cache of embeddings: {error}", "setup") from None

    async def of(self, texts: Sequence[str]) -> numpy.ndarray:
        """One row of length 1 a text, float32.

        Raises:
            LLMError: the endpoint refuses or fails, or its vectors are no vectors of one length.
        """
        import numpy

        kept = [self._cache.get(self._key(text)) for text in texts]
        missing = list(dict.fromkeys(text for text, found in zip(texts, kept, strict=True) if found is None))
        self.cached += len(texts) - len(missing)
        fresh: dict[str, str] = {}
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            for text, vector in zip(batch, await self._ask(batch), strict=True):
                fresh[text] = base64.b64encode(vector.tobytes()).decode()
                self._cache.put(self._key(text), fresh[text])
        rows = [
            numpy.frombuffer(base64.b64decode(found or fresh[text]), dtype=numpy.float32)
            for text, found in zip(texts, kept, strict=True)
        ]
        if len({len(row) for row in rows}) > 1:
            raise LLMError(f"{self.model}: its vectors differ in length; was the model changed?", "malformed")
        return numpy.stack(rows)

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self.model}\n{self.base_url}\n{text}".encode()).hexdigest()

    async def _ask(self, texts: list[str]) -> list[numpy.ndarray]:
        from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt

        retrying = AsyncRetrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=_wait,
            retry=retry_if_exception(lambda error: isinstance(error, LLMError) and error.may_pass),
            reraise=True,
        )
        return await retrying(self._request, texts)

    async def _request(self, texts: list[str]) -> list[numpy.ndarray]:
        litellm = load_litellm()
        self.calls += 1
        try:
            reply = await litellm.aembedding(
                model=self.model,
                input=texts,
                api_base=self.base_url,
                api_key=self._api_key,
                timeout=self.timeout,
                encoding_format="float",
                num_retries=0,
                max_retries=0,
            )
        except Exception as error:  # litellm raises what its providers' clients raise
            raise explain(error, litellm, self.model, self._api_key) from None
        return self._vectors(reply, len(texts))

    def _vectors(self, reply: Any, count: int) -> list[numpy.ndarray]:
        import numpy

        try:
            found = sorted(reply.data, key=lambda item: item["index"])
            table = numpy.asarray([item["embedding"] for item in found], dtype=numpy.float32)
            lengths = numpy.linalg.norm(table, axis=1, keepdims=True)
        except (TypeError, ValueError, KeyError) as error:
            raise LLMError(f"{self.model}: a reply that holds no vectors ({error})", "malformed") from None
        if len(table) != count or not numpy.isfinite(table).all() or not (lengths > 0).all():
            raise LLMError(f"{self.model}: asked for {count} vectors, got {len(table)}, or some are zero", "malformed")
        return list(table / lengths)


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return seconds_to_wait(state.attempt_number, getattr(error, "retry_after", None))
