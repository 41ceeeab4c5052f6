"""Whether a diagnosis is the gold one, by one of its names and nothing else: for every agent that diagnoses.

names_it("Likely acute appendicitis.", ["acute appendicitis", "appendicitis"])      # True
names_it("appendicitis or cholecystitis", ["acute appendicitis", "appendicitis"])   # False: a list names none
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from scoring.text import words_only

LONGEST = 200  # characters of a diagnosis
GAP = r"[ _*·-]{0,3}"  # between the letters of a name that is written apart; a comma or a new line is none
# Words before a diagnosis that leave it what it is.
HEDGES = (
    *("初步诊断", "最可能是", "可能是", "考虑为", "考虑", "疑似", "诊断为"),
    *(
        "final diagnosis",
        "the diagnosis is",
        "most likely",
        "likely",
        "probable",
        "possible",
        "suspected",
    ),
    *("轻度", "中度", "重度", "左侧", "右侧", "双侧", "mild", "moderate", "severe", "bilateral"),
    *("left-sided", "right-sided", "left", "right"),
)


def names_it(said: str, names: Iterable[str]) -> bool:
    """Whether the words said are one of the names, whatever case, space, punctuation and British spelling; another of
    the names may follow in parentheses.
    """
    known = {_plain(name) for name in names} - {""}
    if len(said) > LONGEST or not known:
        return False
    parts = [part for part in re.split(r"[()（）]", said) if part.strip()]
    return _bare(said, known) in known or (
        len(parts) > 1 and all(_bare(part, known) in known for part in parts)
    )


def mention(names: Iterable[str]) -> re.Pattern[str]:
    """What finds one of the names in a text, also spaced out or spelt the American way; an English one not inside
    another word.
    """
    return re.compile(
        "|".join(filter(None, map(_apart, sorted(names, key=len, reverse=True)))) or r"(?!)", re.I
    )


def _apart(name: str) -> str:
    letters = [re.escape(letter) for letter in re.findall(r"[^\W_]", name)]
    if not (letters and name.isascii()):
        return GAP.join(letters)
    american = re.findall(".", re.sub("[ao]e", "e", "".join(letters).lower()))
    return rf"(?<![a-z]){GAP.join('[ao]?e' if letter == 'e' else letter for letter in american)}(?![a-z])"


def _bare(said: str, known: Iterable[str]) -> str:
    """The words without the hedges before them, which a name may begin with."""
    left = _plain(said)
    for hedge in HEDGES:
        left = left if left in known else left.removeprefix(_plain(hedge))
    return left


def _plain(text: str) -> str:
    bare = "".join(
        letter
        for letter in unicodedata.normalize("NFKD", text)
        if not unicodedata.combining(letter)
    )
    return re.sub("[ao]e", "e", words_only(bare))  # anaemia and anemia, oedema and edema
