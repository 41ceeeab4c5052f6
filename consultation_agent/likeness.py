"""What a question asks for by its likeness to questions of doctors.

heard("裤带紧了几个眼？")      # Heard("weight_loss", 1.0)

A naive Bayes classifier (Manning, Raghavan, Schütze: Introduction to Information Retrieval, 13.2)
over the pieces of likeness.toml's questions. It is counted when it is first asked, so a question that
is added there is known at once.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from common.toml import table_beside
from conditions.table import load_tables
from consultation_agent.doctor_questions import HAN_RUN, SAID, plain

# Pieces overlap and are counted as if they did not, so all probabilities would be near 0 or 1
FLATTENED = 4.0
RARE = 5.0  # the logarithm of how many times rarer a piece that counts once is
UNSEEN = 0.1  # of a count: what a piece that never stood with an item counts
AROUND = 0.15  # of a piece: what one counts that stands in the question, and not in the part
BESIDE = re.compile(r"[\s，。？！、,.?!]")
WORD = re.compile(r"[a-z']+")


class Heard(NamedTuple):
    """The item that a question is most likely to ask for, and how likely it is."""

    item: str
    probability: float


class Counted(NamedTuple):
    """whole: of each question, its item. pieces: of each piece, the items it stood with. weights: of
    each piece, how rare it is. questions, totals: of each item.
    """

    whole: dict[str, str]
    pieces: dict[str, Counter[str]]
    weights: dict[str, float]
    questions: Counter[str]
    totals: Counter[str]


@lru_cache(maxsize=4096)
def heard(part: str, question: str = "") -> Heard:
    """Return what a part of a question is most likely to ask for: a name in likeness.toml.

    What stands around it counts a little: in 膝盖红不红，摸着热不热？ the last part asks for no fever.
    """
    counted = _counted()
    said = plain(part)
    same = counted.whole.get(_bare(said))
    if same:
        return Heard(same, 1.0)
    around, likely = _around(plain(question))
    likely = likely.copy()
    _add(likely, {piece: 1 - AROUND * (piece in around) for piece in _pieces(said)})
    best = max(likely, key=lambda item: likely[item])
    odds = {item: math.exp((one - likely[best]) / FLATTENED) for item, one in likely.items()}
    alike = [item for item in odds if {*item.split("+")} & {*best.split("+")}]
    return Heard(best, sum(odds[item] for item in alike) / sum(odds.values()))


@lru_cache(maxsize=64)
def _around(question: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return the pieces of a question with what they count, and by it how likely each item is."""
    shares = dict.fromkeys(_pieces(question), AROUND)
    likely = {item: math.log(asked) for item, asked in _counted().questions.items()}
    _add(likely, shares)
    return shares, likely


def _add(likely: dict[str, float], shares: Mapping[str, float]) -> None:
    """Add to each item what these shares of pieces say for it."""
    counted = _counted()
    known = [piece for piece in shares if piece in counted.pieces]
    weights = {piece: shares[piece] * counted.weights[piece] for piece in known}
    length = sum(weights.values())
    for item, times in counted.totals.items():
        likely[item] += length * math.log(UNSEEN / (times + UNSEEN * len(counted.pieces)))
    for piece, weight in weights.items():
        for item, times in counted.pieces[piece].items():
            likely[item] += weight * math.log(times / UNSEEN + 1)


@cache
def _counted() -> Counted:
    whole = dict[str, str]()
    pieces = defaultdict[str, Counter[str]](Counter)
    questions = Counter[str]()
    totals = Counter[str]()
    for item, text in _examples():
        said = plain(text)
        whole[_bare(said)] = item
        questions[item] += 1
        for piece in _pieces(said):
            totals[item] += 1
            pieces[piece][item] += 1
    count = questions.total()
    weights = {piece: math.log(count / items.total()) / RARE for piece, items in pieces.items()}
    return Counted(whole, pieces, weights, questions, totals)


def _examples() -> Iterator[tuple[str, str]]:
    for item, texts in table_beside(__file__).items():
        for text in texts:
            yield item, text
    for item, symptom in load_tables().symptoms.items():
        for word in symptom.ask:
            yield item, SAID["questions"]["symptom"].format(word=word)


def _bare(said: str) -> str:
    return BESIDE.sub("", said)


def _pieces(said: str) -> list[str]:
    """Return the characters of a Chinese text and their pairs, or the words of another and its runs
    of four letters, each once and always in the same order.
    """
    if HAN_RUN.search(said):
        line = f"^{_bare(said)}$"
        pieces = dict.fromkeys(line)
        length = 2
    else:
        words = WORD.findall(said)
        line = f" {' '.join(words)} "
        pieces = dict.fromkeys(f"^{word}$" for word in words)
        length = 4
    for start in range(len(line) - length + 1):
        pieces[line[start : start + length]] = None
    return list(pieces)
