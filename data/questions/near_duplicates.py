"""Find questions that are nearly the same: MinHash over pairs of characters, banded, every candidate checked exactly.

Two questions are near when the Jaccard similarity of their sets of neighbouring characters is at least NEAR. Questions
of the same wording about different names stay well below it; "布洛芬缓释片怎么吃？" and "布洛芬缓释片 怎么吃" do not. A
signature costs a fixed number of operations a character, and a look-up compares with at most BANDS x BUCKET texts: the
whole is linear in the number of texts. A bucket that full holds a wording, not a question: near texts also meet in
buckets that their names take part in.

numpy does the arithmetic. datasketch would do the same, but brings scipy (110 MB) for one integral.

    found = NearDuplicates()
    found.add("q1", "布洛芬缓释片怎么吃？")
    found.nearest("布洛芬缓释片 怎么吃")     # ("q1", 1.0)
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from scoring.reference.text import words_only

if TYPE_CHECKING:
    import numpy

NEAR = 0.8
# A pair of similarity s is compared with probability 1 - (1 - s^8)^32: 0.997 at NEAR, 0.12 at 0.5.
BANDS, WIDTH, BUCKET = 32, 8, 64
SEED = 20250101


class NearDuplicates:
    """A growing set of texts that can be asked for the one most like another; `near` is the least similarity."""

    def __init__(self, near: float = NEAR) -> None:
        self.near = near
        self._pairs: dict[str, frozenset[int]] = {}
        self._bands: list[dict[bytes, list[str]]] = [{} for _ in range(BANDS)]

    @cached_property
    def _factors(self) -> numpy.ndarray:
        import numpy

        drawn = numpy.random.default_rng(SEED).integers(1, 2**63, size=(BANDS * WIDTH, 2), dtype=numpy.uint64)
        return drawn | numpy.uint64(1)

    def add(self, key: str, text: str) -> None:
        """Remember the text under `key`."""
        pairs = pairs_of(text)
        self._pairs[key] = pairs
        for band, part in zip(self._bands, self._signature(pairs), strict=True):
            bucket = band.setdefault(part, [])
            if len(bucket) < BUCKET:
                bucket.append(key)

    def nearest(self, text: str) -> tuple[str, float] | None:
        """Key and similarity of the most similar text remembered, the first of equals; None if none is near."""
        pairs = pairs_of(text)
        signature = self._signature(pairs)
        found = dict.fromkeys(
            key for band, part in zip(self._bands, signature, strict=True) for key in band.get(part, ())
        )
        scores = [(similarity(pairs, self._pairs[key]), key) for key in found]
        score, key = max(scores, key=lambda pair: pair[0], default=(0.0, ""))
        return (key, score) if score >= self.near and key in self._pairs else None

    def _signature(self, pairs: frozenset[int]) -> list[bytes]:
        """One short text a band: the least hashes of the set under WIDTH hash functions."""
        import numpy

        factors = self._factors
        values = numpy.fromiter(pairs, dtype=numpy.uint64, count=len(pairs))
        hashes = values[None, :] * factors[:, :1] + factors[:, 1:]  # modulo 2^64
        hashes ^= hashes >> numpy.uint64(31)
        hashes *= numpy.uint64(0x9E3779B97F4A7C15)
        least = (hashes >> numpy.uint64(32)).astype(numpy.uint32).min(axis=1, initial=2**32 - 1)
        raw = least.tobytes()
        size = len(raw) // BANDS
        return [raw[start : start + size] for start in range(0, len(raw), size)]


def pairs_of(text: str) -> frozenset[int]:
    """The neighbouring characters of the text's words, each pair as one number; a single character pairs with 0."""
    codes = [ord(character) for character in words_only(text)]
    return frozenset((first << 21) | second for first, second in zip(codes, codes[1:] or [0], strict=False))


def similarity(one: frozenset[int], other: frozenset[int]) -> float:
    """The Jaccard similarity of two sets; 1 for two empty ones."""
    union = len(one | other)
    return len(one & other) / union if union else 1.0
