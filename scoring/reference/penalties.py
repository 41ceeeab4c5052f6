"""What counts against an answer beside what it leaves out: copied cells, strange numbers, inventions, length and more.

Each returns a factor in [0, 1], 1 for an answer without fault. `known` is what the answer may say: question, reference
and gold as the words of their canonical text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rapidfuzz import fuzz

from scoring.reference.coverage import core_of
from scoring.reference.names import ends_known
from scoring.reference.text import RE, Reading, canonical, normalise, numbers, words_only


def precision(context: Iterable[list[str]], answer: str, known: str) -> float:
    """Length of known text against length of foreign cells in the answer; 1 without any."""
    cells = {cell for row in context for cell in row if len(cell) >= 4}  # shorter ones occur by chance
    foreign = {cell for cell in cells if cell not in known and cell in answer}
    if not foreign or not answer:
        return 1.0
    return max(0, len(answer) - sum(map(len, foreign))) / len(answer)


def number_agreement(wanted: Iterable[str], reading: Reading, known: str) -> float:
    """Gold's numbers against gold's and strange ones; where gold has none, strange ones count as inventions only."""
    gold = numbers("\n".join(wanted))
    strange = numbers(reading.text) - gold - numbers(known)
    return len(gold) / (len(gold) + len(strange)) if gold else 1.0


def support(reading: Reading, known: str, needed: int) -> float:
    """1 for an answer all of whose statements are known; towards 0.2 the more is said that is not."""
    invented = sum(len(core) for core in _items(reading) if not _is_known(core, known))
    return 1.0 - 0.8 * invented / (invented + max(1, needed))


def _items(reading: Reading) -> Iterable[str]:
    for clause, _ in reading.clauses:
        for part in RE.item.split(clause):
            core = core_of(RE.english.sub("", words_only(part)))
            if len(core) >= 2 and (not RE.around.search(part) or numbers(part)):
                yield core


def _is_known(core: str, known: str) -> bool:
    """Whether it is no more than a measure word (strange numbers count elsewhere), or 60 % of it stand in one place."""
    return len(re.sub(r"\d+", "", core)) <= 2 or core in known or fuzz.partial_ratio(core, known) >= 60


def subject(reading: Reading, known: str) -> float:
    """Below 1, down to 0.5, when the answer begins with the name of something nobody asked about."""
    match = RE.subject.match(reading.text)
    name = match.group(1) if match else ""
    if not RE.name.fullmatch(name) or ends_known(name, known) or re.search("[a-z]", name):
        return 1.0  # English names cannot be compared with the question's
    return 0.5 + fuzz.partial_ratio(name, known) / 200


def hedging(reading: Reading) -> float:
    """Below 1 for an answer that calls several of its statements uncertain."""
    return 0.8 if len(RE.perhaps.findall(reading.text)) > 1 else 1.0


def sincerity(reading: Reading) -> float:
    """Far below 1 for an answer that takes back what it says, or that speaks to a judge, not to who asked."""
    taken_back = 0.1 if RE.retraction.search(reading.text) else 1.0
    spoken_to = RE.to_the_judge.search(reading.text) and not RE.to_the_judge.search(canonical(reading.question))
    return taken_back * (0.2 if spoken_to else 1.0)


def brevity(needed: int, reading: Reading) -> float:
    """1 up to about twice the needed length, however short that is, then in proportion."""
    allowed = 2 * needed + len(reading.asked) + 30
    return min(1.0, allowed / max(1, len(normalise(reading.answer))))
