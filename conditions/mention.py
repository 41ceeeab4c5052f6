"""Where a text names a diagnosis, so that a partner's words that give it away can be left out."""

import re
from collections.abc import Iterable

GAP = r"[ _*·-]{0,3}"  # between the letters of a name that is written apart; a comma or a new line is none


def mention(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds one of the names in a text, also spaced out or in American
    spelling. English names match whole words only.
    """
    apart = [_apart(name) for name in sorted(names, key=len, reverse=True)]
    return re.compile("|".join(filter(None, apart)) or r"(?!)", re.I)


def _apart(name: str) -> str:
    letters = [re.escape(letter) for letter in re.findall(r"[^\W_]", name)]
    if not (letters and name.isascii()):
        return GAP.join(letters)
    if len(letters) == 2:  # in small letters "as" and "oh" are words
        return rf"(?-i:(?<![A-Za-z]){GAP.join(letters).upper()}(?![A-Za-z]))"
    american = re.sub("[ao]e", "e", "".join(letters).lower())
    spelt = GAP.join("[ao]?e" if letter == "e" else letter for letter in american)
    return rf"(?<![a-z]){spelt}(?![a-z])"
