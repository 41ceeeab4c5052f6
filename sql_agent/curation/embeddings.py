"""Vectors of texts from an embedding endpoint of any litellm provider, kept on disk by content.

vectors = await Embeddings("openai/NAME", base_url, key, Path("outputs/cache.sqlite")).of(["..."])
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy

from common.llm import LLMError, open_cache
from common.llm.endpoint import LLMEndpoint, load_litellm
from common.llm.retry import Patience
from common.terminal import watched

BATCH = 64  # texts of one request
ATTEMPTS = 5
TIMEOUT = 60.0  # seconds of one request


class Embeddings:
    """An embedding model by its litellm name. Errors are LLMError, without keys."""

    def __init__(self, model: str, base_url: str | None, api_key: str | None, cache: Path) -> None:
        self._endpoint = LLMEndpoint(model, base_url, api_key, TIMEOUT)
        self._cache = open_cache(cache)
        self.model = model
        self.calls = 0

    async def of(self, texts: Sequence[str]) -> numpy.ndarray:
        """Return a float32 row of length 1 for each text, so that a dot product is the cosine.

        Raises LLMError: the endpoint refuses or fails, or its vectors are unusable.
        """
        keys = {}
        for text in texts:
            content = f"{self.model}\n{self._endpoint.base_url}\n{text}"
            keys[text] = hashlib.sha256(content.encode()).hexdigest()
        missing = [text for text, key in keys.items() if self._cache.get(key) is None]
        load_litellm()  # the import takes seconds once, which must not count as the endpoint's
        for start in watched(range(0, len(missing), BATCH), "embedding", "batches"):
            batch = missing[start : start + BATCH]
            patience = Patience(ATTEMPTS, ATTEMPTS * TIMEOUT)
            vectors = await patience.ask(partial(self._request, batch), self.model)
            for text, vector in zip(batch, vectors, strict=True):
                self._cache.put(keys[text], base64.b64encode(vector.tobytes()).decode())
        rows = []
        for text in texts:
            kept = base64.b64decode(self._cache.get(keys[text]) or "")
            rows.append(numpy.frombuffer(kept, dtype=numpy.float32))
        if len({len(row) for row in rows}) > 1:
            seen = f"{self.model}: its vectors differ in length; was the model changed?"
            raise LLMError(seen, "malformed")
        return numpy.stack(rows)

    async def _request(self, texts: list[str]) -> numpy.ndarray:
        self.calls += 1
        reply = await self._endpoint.call_litellm(
            "aembedding", input=texts, encoding_format="float"
        )
        try:
            items = sorted(reply.data, key=lambda item: item["index"])
            table = numpy.asarray([item["embedding"] for item in items], dtype=numpy.float32)
            lengths = numpy.linalg.norm(table, axis=1, keepdims=True)
        except (TypeError, ValueError, KeyError) as error:
            raise LLMError(
                f"{self.model}: no vectors in its reply ({error})", "malformed"
            ) from None
        if len(table) != len(texts) or not numpy.isfinite(table).all() or not lengths.all():
            seen = f"asked for {len(texts)} vectors, got {len(table)}, or some are zero"
            raise LLMError(f"{self.model}: {seen}", "malformed")
        return table / lengths
