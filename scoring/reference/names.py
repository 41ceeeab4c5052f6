"""Names of drugs and diseases in an answer: which of gold's it mentions, and which nobody asked about.

named(("莎洛胶囊", "维诺散"), "维诺散,莎洛胶囊", asked="", ordered=False)     # 1.0: in any order
strange_names("维诺散,朵朵片", known="维诺散")                                # {"朵朵片"}

All texts are canonical.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from rapidfuzz import fuzz

from scoring.reference.text import RE, words_only

STEM = 0.75  # what a drug without its dosage form is worth
THE_SAME = 75  # of 100: from here a name is that of something known
NOT_ORDERED = 0.5  # names in another order, where gold's counts


@lru_cache(maxsize=4096)
def aliases(name: str) -> tuple[str, ...]:
    """The name, then its shorter forms: without salt and dosage form, without the qualifier in front."""
    stem = RE.salt.sub("", RE.name_end.sub("", name))
    short = re.sub(r"^(?:原发性|继发性|急性|慢性|特发性)", "", stem)
    return tuple(
        alias for alias in dict.fromkeys((name, stem, short)) if len(alias) > 2 or alias == name
    )


def mentioned(name: str, others: Sequence[str], text: str) -> bool:
    """Whether the text has the name, or a form of it that no other name has."""
    for alias in aliases(name):
        if alias in text and not any(alias in other for other in others if other != name):
            return alias == name or not RE.form.match(text, text.find(alias) + len(alias))
    return False


def subjects(clause: str, names: Sequence[str], known: str, opens: bool) -> frozenset[str] | None:
    """The names a clause is about; none where it names the only thing asked about, None where it names nothing.

    A clause that opens a sentence may name something that `known` has not: what follows is said of that.
    """
    found = frozenset(name for name in names if mentioned(name, names, clause))
    match = RE.subject.match(clause) if opens and known and not found else None
    name = match[1] if match else ""
    if not name or RE.no_name.search(name):
        return found or None
    return frozenset() if is_known(name, known) else frozenset([name])


def is_known(name: str, known: str) -> bool:
    """Whether known text has the name, or one spelt nearly so; a dosage form or 病 alone does not count."""
    ends = (name[i:] for i in range(len(name) - 2))
    stem = RE.name_end.sub("", name)
    by_end = any(end in known and len(RE.name_end.sub("", end)) > 1 for end in ends)
    apart = f"{' ' * len(stem)}{known}{' ' * len(stem)}"  # else a part of the name at the text's edge would do
    return (
        name in known or by_end or (len(stem) > 1 and fuzz.partial_ratio(stem, apart) >= THE_SAME)
    )


def named(names: Sequence[str], text: str, asked: str, ordered: bool) -> float:
    """The share of gold's names in the text. Words of the question are no find, nor are names the text denies."""
    found = [_worth(name, text, asked) for name in names]
    places = [place for worth, place in found if worth]
    kept = not ordered or places == sorted(places)
    clauses = [clause for clause in RE.clause.split(text) if any(name in clause for name in names)]
    denied = bool(clauses) and all(
        RE.excludes.search(RE.harmless.sub("", clause)) for clause in clauses
    )
    return (
        sum(worth for worth, _ in found)
        / len(names)
        * (1.0 if kept else NOT_ORDERED)
        * (0.0 if denied else 1.0)
    )


def _worth(name: str, text: str, asked: str) -> tuple[float, int]:
    """What the text's way to write the name is worth, and where it stands."""
    for alias in aliases(name):
        place = text.find(alias) if alias == name or alias not in asked else -1
        if place >= 0 and (alias == name or not RE.form.match(text, place + len(alias))):
            return (1.0 if alias == name else STEM), place
    return 0.0, -1


def strange_names(text: str, known: str) -> set[str]:
    """Names of drugs and diseases in the text, however they are strung together, that known text has not."""
    found = [
        name
        for part in RE.between.split(text)
        for name in RE.drug.findall(part) or RE.name.findall(part)
    ]
    return {
        name
        for name in found
        if not RE.no_name.search(name) and not is_known(words_only(name), known)
    }
