"""Which episodes keep their messages and tokens, and that what is kept is what was trained.

Keeps of docs/runs.md that a step keeps the messages and tokens of at most four episodes, and
what their stretches hold.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import settings as fuzzing
from hypothesis import strategies as st

from training.engine.kept_sample import pieces, stretches
from training.engine.trajectories import TokenSequence

SEQUENCE = TokenSequence([1, 2], [3, 4, 9, 5], [1, 1, 0, 1], [-0.5, -0.25, 0.0, -1.23456])


def letters(ids: list[int]) -> str:
    return "".join(chr(96 + number) for number in ids)


def utf8(ids: list[int]) -> str:
    """A tokenizer of bytes, each of which is a token."""
    return bytes(ids).decode("utf-8", "replace")


def test_stretches_are_trained_or_not_and_hold_every_token_once() -> None:
    found = stretches(SEQUENCE, letters)
    assert found == [
        {"trained": False, "ids": [1, 2], "texts": ["ab"]},
        {"trained": True, "ids": [3, 4], "texts": ["c", "d"], "log_probs": [-0.5, -0.25]},
        {"trained": False, "ids": [9], "texts": ["i"]},
        {"trained": True, "ids": [5], "texts": ["e"], "log_probs": [-1.2346]},
    ]


@fuzzing(max_examples=30)
@given(st.text(max_size=20))
def test_every_token_has_a_piece_of_the_text_though_a_character_has_several(text: str) -> None:
    ids = [*text.encode()]
    texts = pieces(ids, utf8)
    assert len(texts) == len(ids)
    assert "".join(texts) == text
