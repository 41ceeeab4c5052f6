"""Gives every call of the policy a seed that two runs agree on: `--deterministic`.

Rollouts have random ids and arrive in any order, so a seed follows from what is asked: the run's seed, the weights that
answer, the conversation, and how often the same was asked before. Episodes of one prompt group are interchangeable, so
it does not matter which of them asks first; their set is the same in every run. Used by `training.middleware`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import orjson

SEEDS = 2**31


class RequestSeeds:
    """Seeds for the requests of one run; lives as long as its proxy."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._version = -1
        self._asked: Counter[bytes] = Counter()

    def add(self, body: bytes, version: int) -> bytes:
        """The request with a `seed`; one that is no completion passes as it is."""
        try:
            request = orjson.loads(body)
            said = [_said(message) for message in request["messages"]]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return body
        if version != self._version:
            self._version, self._asked = version, Counter()
        asked = hashlib.sha256(orjson.dumps([self.seed, version, said])).digest()
        number = self._asked[asked]
        self._asked[asked] += 1
        digest = hashlib.sha256(asked + number.to_bytes(4)).digest()
        return orjson.dumps({**request, "seed": int.from_bytes(digest[:4]) % SEEDS})


def _said(message: dict[str, Any]) -> list[Any]:
    """What a message says, without the ids of its tool calls, which vLLM draws at random."""
    calls = [call["function"] for call in message.get("tool_calls") or []]
    return [message.get("role"), message.get("content"), calls]
