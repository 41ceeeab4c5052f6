"""Whether a clause of an answer says the same as a clause of gold, or its opposite: prohibitions, negations, antonyms.

agreement("孕妇禁用", "孕妇可用")                      # 0.0
agreement("孕妇禁用", "有孕妇的话不能用")               # 1.0
agreement("25度以下阴凉处保存", "25度以上阴凉处保存")   # 0.2

Word lists, not grammar: a denial phrased without these words, irony and double negation are not seen.
"""

from __future__ import annotations

from functools import lru_cache

from scoring.reference.text import DATA, RE

FLIPPED, DOUBTFUL, SOFTER = 0.0, 0.2, 0.4
ANTONYMS = [pair.split("/") for pair in DATA["antonyms"].split()]


def agreement(gold: str, answer: str) -> float:
    """How far the answer's clause keeps the sense of gold's, in [0, 1]; both canonical, both about the same thing."""
    return min(_stance(_marks(gold), _marks(answer)), _antonyms(gold, answer))


def denies(clause: str) -> bool:
    """Whether the clause says that something is not so."""
    marks = _marks(clause)
    return marks["deny"] or marks["ineffective"] or RE.excludes.search(clause) is not None


@lru_cache(maxsize=4096)
def _marks(clause: str) -> dict[str, bool]:
    """Which kinds of words the clause has, each counted as the strongest kind it belongs to."""
    rest = RE.harmless.sub("", clause)
    marks = {name: getattr(RE, name).search(rest) is not None for name in ("ineffective", "forbidden")}
    for name in ("needless", "allow", "ban", "caution", "deny"):
        marks[name] = getattr(RE, name).search(rest) is not None
        rest = getattr(RE, name).sub("", rest)
    return marks


def _stance(gold: dict[str, bool], answer: dict[str, bool]) -> float:
    """Gold prohibits, cautions, denies, or states; whether the answer does the same."""
    freed = (answer["allow"] or answer["needless"]) and not answer["ban"]
    if gold["ban"] or gold["caution"]:
        if freed and not (gold["allow"] or gold["needless"]):
            return FLIPPED
        if not gold["ban"]:
            return SOFTER if answer["forbidden"] else 1.0
        if answer["ban"] or answer["deny"]:
            return 1.0
        # Gold's prohibition is not repeated: fine where the question asked for it, not for "avoid this".
        return DOUBTFUL if answer["caution"] else 1.0 if gold["forbidden"] else SOFTER
    if gold["deny"]:
        return 1.0 if answer["deny"] or answer["ban"] else SOFTER
    return FLIPPED if answer["deny"] or answer["needless"] or answer["ineffective"] else 1.0


def _antonyms(gold: str, answer: str) -> float:
    for pair in ANTONYMS:
        for word, opposite in (pair, pair[::-1]):
            if word in gold and word not in answer and opposite in answer and opposite not in gold:
                return DOUBTFUL
    return 1.0
