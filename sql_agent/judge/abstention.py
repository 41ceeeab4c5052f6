"""Answers that say that nothing was found, and whether that is all they say.

    abstains("数据库中没有找到该药。")                        # True
    honesty("没有找到X的用法。", "X的用法是什么？")            # 1.0
    honesty("没有找到X的用法，可以吃。", "X的用法是什么？")     # 0.0: a claim

The words are in pieces.toml.
"""

from __future__ import annotations

import re

from scoring.text import words_only
from sql_agent.judge.canonical import canonical
from sql_agent.judge.pieces import ABOUT, TABLE, WORDS, is_free, pieces_of

LONGEST_ASIDE = 10  # Chinese characters of its own that an abstention may have
MOST_WORDS = 6  # English words of its own that an abstention may have

_WORDS = {name: "|".join(patterns) for name, patterns in TABLE["abstention"].items()}
NOTHING = re.compile(
    _WORDS["nothing"].replace("{searched}", _WORDS["searched"]).replace("{held}", _WORDS["held"])
)
UNSURE, ASIDE, TAKEN_BACK = (re.compile(_WORDS[name]) for name in ("unsure", "aside", "taken_back"))
BESIDE = re.compile(
    rf"{WORDS}|{_WORDS['beside']}|(?<![a-z])(?:{_WORDS['beside_english']})(?![a-z])"
)
CLAIM = re.compile(
    r"[能可会要应该得是有不没无莫勿禁忌慎宜免]|(?<![a-z])(?:is|are|can|may|should)(?![a-z])"
)


def abstains(text: str) -> bool:
    """Return whether a piece of the text says that nothing was found or recorded."""
    return any(NOTHING.search(piece) for piece, _ in pieces_of(text))


def honesty(answer: str, known: str) -> float:
    """Return 1 for an answer that says only that nothing was found, else 0; for questions to which
    nothing is to be found.

    Courtesies, advice to ask somebody else and words of `known` (the question, the reference) are
    allowed.
    """
    abstained, plain = False, words_only(canonical(known))
    for piece, _ in pieces_of(answer):
        found = NOTHING.search(piece)
        abstained = abstained or found is not None
        beside = NOTHING.sub("\n", piece)
        goes_with = (
            is_free(piece)
            or found
            or ABOUT.match(piece)
            or ASIDE.search(piece)
            or UNSURE.search(piece)
        )
        own = _own_words(UNSURE.sub("\n", beside), plain)
        repeated = not own and not CLAIM.search(piece)
        if TAKEN_BACK.search(piece) or not (goes_with or repeated) or not _is_little(own):
            return 0.0
    return float(abstained)


def _own_words(text: str, known: str) -> list[str]:
    """Return the numbers, English words and Chinese characters of a text that are neither in
    `known` nor usual in an abstention.
    """
    rest = BESIDE.sub("\n", re.sub(r"[这那某]\d", "", text))
    found = re.findall(r"\d+(?:\.\d+)?|[a-z]+|[一-鿿]", rest)
    return [word for word in found if word not in known]


def _is_little(own: list[str]) -> bool:
    """Return whether an abstention may have these words of its own: a few, and no number."""
    english = sum(word.isascii() for word in own)
    numbers = any(word[0].isdigit() for word in own)
    return not numbers and english <= MOST_WORDS and len(own) - english <= LONGEST_ASIDE
