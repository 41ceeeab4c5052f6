"""Names of drugs and diseases in an answer: how each is written, which are right, which nobody asked for.

named(["莎洛胶囊", "维诺散"], Reading("维诺散、莎洛胶囊、朵朵片", ""), ordered=False)     # 0.74: one too many
"""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz import fuzz

from scoring.reference.polarity import denies
from scoring.reference.text import RE, Reading, canonical, words_only

NEAR_NAME, SHORT_NAME = 0.25, 0.75  # a name almost copied; a drug without its dosage form


def mentions(name: str, names: list[str], text: str) -> list[tuple[int, int, str]]:
    """Where the text mentions the name, or a part of it that no other name has: (start, end, name)."""
    for alias in aliases(canonical(name)):
        if alias and not any(alias in canonical(other) for other in names if other != name):
            found = [(*match.span(), name) for match in re.finditer(re.escape(alias), text)]
            marks = [mark for mark in found if alias == canonical(name) or not RE.form.match(text, mark[1])]
            if marks:
                return marks
    return []


@lru_cache(maxsize=4096)
def aliases(name: str) -> tuple[str, ...]:
    """The name, then its shorter forms: without salt and dosage form, without the qualifier in front."""
    stem = RE.salt.sub("", RE.form_end.sub("", name))
    short = re.sub(r"^(?:原发性|继发性|急性|慢性|特发性)", "", stem)
    return tuple(alias for alias in dict.fromkeys((name, stem, short)) if len(alias) > 2 or alias == name)


def named(names: list[str], reading: Reading, ordered: bool) -> float:
    """Share of the gold names in the answer, against extra names; half of it where order matters and is not kept.

    Returns 0 where the answer's clauses with the names deny them.
    """
    places: list[int] = []
    worth, by_stem = 0.0, False
    for name in names:
        value, place = _name_worth(canonical(name), reading)
        worth += value
        by_stem |= value == SHORT_NAME
        places += [place] if place >= 0 else []
    if not worth:
        return 0.0
    extra = len(extra_names(reading, names)) + (_extra_stems(reading, names) if by_stem else 0.0)
    kept = not ordered or places == sorted(places)
    score = worth / (len(names) + 0.7 * extra)  # an invented name costs less than a missing one
    return score * (1.0 if kept else 0.5) * (0.0 if _all_denied(names, reading) else 1.0)


def _name_worth(name: str, reading: Reading) -> tuple[float, int]:
    """What the answer's way to write the name is worth, and where it stands; -1 for nowhere.

    A part of the name that the question has is no find: who asks for drugs with 芙洛吉素 has said 芙洛吉 already.
    """
    text = reading.text
    if name in text:
        return 1.0, text.find(name)
    for alias in aliases(name)[1:]:
        place = text.find(alias) if alias not in reading.asked else -1
        if place >= 0 and not RE.form.match(text, place + len(alias)):
            return SHORT_NAME, place
    match = fuzz.partial_ratio_alignment(name, text) if len(text) >= len(name) else None
    return (NEAR_NAME, match.dest_start) if match and match.score / 100 >= 0.79 else (0.0, -1)


def extra_names(reading: Reading, known: list[str]) -> set[str]:
    """Names of drugs or diseases in the answer that are neither gold's nor the question's."""
    gold = sorted(map(canonical, known), key=len, reverse=True)
    spared = words_only("、".join(gold)) + reading.asked
    found: set[str] = set()
    for clause, _ in reading.clauses:
        for name in gold:
            clause = clause.replace(name, "、")
        found |= {name for name in _items_named(clause) if not ends_known(words_only(name), spared)}
    return found


def _items_named(clause: str) -> list[str]:
    """The clause's names: all drugs, however they are strung together, and diseases that stand for themselves."""
    found: list[str] = []
    for part in RE.between.split(clause):
        found += RE.drug.findall(part) or (RE.name.findall(part) if RE.name.fullmatch(part) else [])
    return [name for name in found if not RE.no_name.search(name)]


def ends_known(name: str, known: str) -> bool:
    """Whether the end of the name is in the known text; a dosage form alone does not count."""
    return any(name[i:] in known and len(RE.form_end.sub("", name[i:])) > 1 for i in range(len(name)))


def _extra_stems(reading: Reading, names: list[str]) -> float:
    """About how many other names an answer has that writes names without their dosage form."""
    rest = RE.bracketed.sub("", reading.text)
    for alias in (alias for name in names for alias in aliases(canonical(name))):
        rest = rest.replace(alias, "")
    rest = RE.drug.sub("", RE.courtesy.sub("", rest))
    own = sum(character not in reading.asked for character in words_only(rest))
    return max(0, own - 2) / 3  # two characters may stand beside them; a name without its form has about three


def _all_denied(names: list[str], reading: Reading) -> bool:
    clauses = [clause for clause, _ in reading.clauses if any(canonical(name) in clause for name in names)]
    return bool(clauses) and all(denies(clause) for clause in clauses)
