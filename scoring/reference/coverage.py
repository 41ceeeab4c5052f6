"""How much of gold an answer says: texts item by item, values with the name they belong to.

coverage(["一次15毫克，一日3次，饭后服用"], Reading("每次15mg，每天三次", ""))     # 0.83: the meal is missing

Items are the parts of a gold text between punctuation; each is weighed by its length and looked for in the answer's
clauses. A clause that turns the item's sense around (scoring/reference/polarity.py) earns nothing for it.
"""

from __future__ import annotations

from functools import lru_cache
from operator import mul

from scoring.reference.names import mentions
from scoring.reference.polarity import agreement
from scoring.reference.text import RE, Reading, canonical, closeness, numbers, words_only

SHORTEST_ITEM, LONGEST_ITEM = 2, 60
ITEM_WEIGHT, NUMBER_WEIGHT = 3, 6  # what an item weighs, in characters, beside its length; one with a number
UNSPLIT = 0.8  # an item spread over several clauses


def coverage(texts: list[str], reading: Reading) -> float:
    """The mean over the gold texts of the share of each that the answer has."""
    return sum(_share(text, reading) for text in texts) / len(texts) if texts else 0.0


def _share(text: str, reading: Reading) -> float:
    items = items_of(text)
    # What the question says already is no answer, unless gold says nothing else.
    items = tuple(item for item in items if item[1] not in reading.asked) or items
    weights = [len(core) + ITEM_WEIGHT + NUMBER_WEIGHT * bool(numbers(core)) for _, core in items]
    credits = (_credit(clause, core, reading) for clause, core in items)
    return sum(map(mul, weights, credits)) / sum(weights) if items else 0.0


@lru_cache(maxsize=4096)
def items_of(text: str) -> tuple[tuple[str, str], ...]:
    """The items of a gold text: (the clause it stands in, its words without fillers)."""
    found: list[tuple[str, str]] = []
    for clause in RE.clause.split(canonical(text)):
        parts = [words_only(part) for part in RE.item.split(RE.limit.sub(r"、\1、", clause))]
        if any(0 < len(part) < SHORTEST_ITEM for part in parts):
            parts = [words_only(clause)]
        found += [(clause, core_of(part)) for part in parts if part]
    return tuple(found)


def core_of(words: str) -> str:
    """The words without fillers, unless next to nothing would be left."""
    if len(words) > LONGEST_ITEM:
        return words
    core, before = words, ""
    while core != before:
        before, core = core, RE.filler.sub("", core)
    return core if len(core) >= SHORTEST_ITEM else words


def _credit(clause: str, core: str, reading: Reading) -> float:
    """How well the best clause says the item; where several say the same, the one that disagrees with gold most."""
    found = [(closeness(core, words), other, words) for other, words in reading.clauses]
    best = max((close for close, _, _ in found), default=0.0)
    spread = UNSPLIT * closeness(core, reading.words) if best < UNSPLIT else 0.0
    if spread > best:
        return spread * agreement(clause, reading.text)
    if not best:
        return 0.0
    said = [(other, words) for close, other, words in found if close >= 0.9 * best]
    if len(said) > 1:
        said = _about_the_same(clause, said)
    return best * min(agreement(clause, other) for other, _ in said)


def _about_the_same(clause: str, said: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The clauses most like gold's as a whole, and those nearly so."""
    alike = [closeness(words_only(clause), words) for _, words in said]
    least = min(0.4, max(alike))
    return [pair for pair, like in zip(said, alike, strict=True) if like >= least]


def grouped(groups: dict[str, list[str]], reading: Reading) -> float:
    """The mean over the names of the share of their values said with them."""
    parts = _passages(list(groups), reading)
    total = 0.0
    for name, texts in groups.items():
        own = Reading(parts[name], reading.question) if parts[name] else None
        if not texts:
            total += own is not None
            continue
        said = coverage(texts, own) if own else 0.0
        if own and any(coverage(other, own) > said for key, other in groups.items() if key != name):
            said *= 0.4  # the passage fits another name better
        total += max(said, 0.25 * coverage(texts, reading))  # values in the answer, but not with their name
    return total / len(groups)


def _passages(names: list[str], reading: Reading) -> dict[str, str]:
    """The text after each name up to the next other name; names in a row share what follows them."""
    text = reading.text
    marks = sorted(mark for name in names for mark in mentions(name, names, text))
    passages = dict.fromkeys(names, "")
    joint: set[str] = set()
    for number, (start, end, name) in enumerate(marks):
        following = marks[number + 1][0] if number + 1 < len(marks) else len(text)
        passage = text[end:following]
        joint.add(name)
        if following < len(text) and len(passage) <= 3 and start < following:
            continue  # "A和B都是……"
        for member in joint:
            passages[member] += passage + "\n"
        joint = set()
    return passages
