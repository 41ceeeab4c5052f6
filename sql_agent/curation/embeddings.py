"""Vectors of texts from an embedding endpoint, any provider litellm knows; kept on disk by content.

    vectors = await Embeddings("openai/NAME", base_url, key, Path("outputs/embeddings.sqlite")).of(["...", "..."])

The vectors have length 1, so a dot product is the cosine. The only user is
`utils/filter_new_question.py`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy

from common.llm import open_cache
from common.llm.endpoint import LLMEndpoint, load_litellm
from common.llm.errors import LLMError
from common.llm.retry import Patience
from common.terminal import watched

BATCH = 64  # texts of one request
ATTEMPTS = 5
TIMEOUT = 60.0  # seconds of one request; five times that for one batch with its retries


class Embeddings:
    """An embedding model by litellm's name of it. Errors are LLMError, without keys."""

    def __init__(self, model: str, base_url: str | None, api_key: str | None, cache: Path) -> None:
        self._endpoint = LLMEndpoint(model, base_url, api_key, TIMEOUT)
        self._cache = open_cache(cache)
        self.model = model
        self.calls = 0
        self.cached = 0

    async def of(self, texts: Sequence[str]) -> numpy.ndarray:
        """Return one row of length 1 for each text, float32.

        Raises:
            LLMError: the endpoint refuses or fails, or its vectors are no vectors of one length.
        """
        kept = {text: self._cache.get(self._key(text)) for text in texts}
        missing = [text for text, row in kept.items() if row is None]
        self.cached += len(texts) - len(missing)
        for start in watched(range(0, len(missing), BATCH), "embedding", "batches"):
            batch = missing[start : start + BATCH]
            for text, vector in zip(batch, await self._vectors(batch), strict=True):
                kept[text] = base64.b64encode(vector.tobytes()).decode()
                self._cache.put(self._key(text), kept[text] or "")
        rows = [
            numpy.frombuffer(base64.b64decode(kept[text] or ""), dtype=numpy.float32)
            for text in texts
        ]
        if len({len(row) for row in rows}) > 1:
            raise LLMError(
                f"{self.model}: its vectors differ in length; was the model changed?", "malformed"
            )
        return numpy.stack(rows)

    def _key(self, text: str) -> str:
        return hashlib.sha256(
            f"{self.model}\n{self._endpoint.base_url}\n{text}".encode()
        ).hexdigest()

    async def _vectors(self, texts: list[str]) -> numpy.ndarray:
        load_litellm()  # the import takes seconds once, which must not count as the endpoint's
        patience = Patience(ATTEMPTS, ATTEMPTS * TIMEOUT)
        return await patience.ask(lambda: self._request(texts), self.model)

    async def _request(self, texts: list[str]) -> numpy.ndarray:
        self.calls += 1
        reply = await self._endpoint.call_litellm(
            "aembedding", input=texts, encoding_format="float"
        )
        try:
            rows = sorted(reply.data, key=lambda item: item["index"])
            table = numpy.asarray([item["embedding"] for item in rows], dtype=numpy.float32)
            lengths = numpy.linalg.norm(table, axis=1, keepdims=True)
            if (
                len(table) != len(texts)
                or not numpy.isfinite(table).all()
                or not (lengths > 0).all()
            ):
                raise ValueError(
                    f"asked for {len(texts)} vectors, got {len(table)}, or some are zero"
                )
        except (TypeError, ValueError, KeyError) as error:
            raise LLMError(
                f"{self.model}: a reply that holds no vectors ({error})", "malformed"
            ) from None
        return table / lengths
