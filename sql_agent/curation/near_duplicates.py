"""Finds questions that are nearly the same, by exact Jaccard similarity of their character pairs.

A text near another of n pairs lacks at most n - NEAR n of them. So only texts with one of its
rarest n - NEAR n + 1 pairs are compared (prefix filtering, Chaudhuri, Ganti and Kaushik 2006).
"""

import math
from typing import Any

from scoring.text import words_only

NEAR = 0.8


class NearDuplicates:
    """A growing set of texts that finds the most similar one. near: the least similarity."""

    def __init__(self, near: float = NEAR) -> None:
        self.near = near
        self._texts: list[tuple[Any, frozenset[str]]] = []
        self._holders: dict[str, list[int]] = {}  # by pair of characters, places in _texts

    def add(self, key: Any, text: str) -> None:
        pairs = pairs_of(text)
        for pair in pairs:
            self._holders.setdefault(pair, []).append(len(self._texts))
        self._texts.append((key, pairs))

    def nearest(self, text: str) -> tuple[Any, float] | None:
        """Return key and similarity of the first most similar text, or None if none is near."""
        pairs = pairs_of(text)
        holders = sorted((self._holders.get(pair, []) for pair in pairs), key=len)
        shared = math.ceil(self.near * len(pairs) - 1e-9)
        found = None
        for place in sorted(set().union(*holders[: len(pairs) - shared + 1])):
            key, known = self._texts[place]
            score = similarity(pairs, known)
            if score >= self.near and (found is None or score > found[1]):
                found = (key, score)
        return found


def pairs_of(text: str) -> frozenset[str]:
    """Return the pairs of neighbouring characters in the words of a text, or a shorter text itself."""
    words = words_only(text)
    return frozenset(words[at : at + 2] for at in range(max(1, len(words) - 1)))


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the Jaccard similarity of two sets that are not empty."""
    return len(one & other) / len(one | other)
