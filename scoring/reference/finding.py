"""Gold's facts in an answer, and what the answer states beside them.

    fact = facts_of("成人一次0.5克")[0]
    find(fact, Reading("成人每次500毫克"))                   # Finding(share=1.0, contradicted=False)
    find(fact, Reading("儿童每次500毫克"))                   # contradicted: that is another person's dose
    invented(Reading("饭后服用，会导致失明"), Reading("饭后服用"), "")  # one statement that nobody knows

A fact is found by its words, in any order, in one clause or else in one sentence or two; its numbers must be there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from operator import itemgetter

from scoring.reference.facts import (
    GENERAL,
    NUMBER_WEIGHT,
    Clause,
    Fact,
    Reading,
    Words,
    has,
    items_of,
    signs_of,
    weight_of,
    words_of,
)
from scoring.reference.text import RE, amounts, terms

ALIKE = 0.95  # a word of which only characters are there earns so much of their share
NOTHING, WHOLE = 0.17, 0.36  # shares of a fact's words: up to here it is not said, from here it is
SPREAD, SAID_LIKE = (
    0.9,
    0.9,
)  # words found only across clauses; clauses with so much of the best share say the same
FOUND = 0.5  # from here a fact counts as said
LITTLE, STRANGE = (
    1.2,
    2.6,
)  # weight of strange words: up to here an item says nothing new, from here it does
RELATED = 6.0  # times so much beside something of known text: a paraphrase keeps some of it
ELSEWHERE = 2.0  # the same in a clause that says no fact of gold: one of them otherwise?
LONGEST = 16  # characters that are looked for at once
BESIDE, APART = (
    0.06,
    0.15,
)  # what a strange item without a term counts, beside something of known text and without it
UNLIKE = 0.72  # the share of a known item's words that a paraphrase may lack

Places = Collection[Clause]
SMALL = {
    (1.0, "次"),
    *((float(number), unit) for number in range(6) for unit in ("", "种", "个")),
}  # no claims
STRICT = ("forbid", "caution", "avoid")
HALF = ("deny", "needless", *STRICT)  # what is denied or forbidden is half a statement


@dataclass(frozen=True)
class Finding:
    """How far a fact is said, in [0, 1], and whether the answer says otherwise."""

    share: float = 0.0
    contradicted: bool = False
    where: tuple[Clause, ...] = field(default=(), compare=False)


def find(fact: Fact, reading: Reading) -> Finding:
    """How well the answer states the fact."""
    shares = [(_share(fact, clause), clause) for clause in reading.clauses]
    best, where = max(shares, key=itemgetter(0), default=(0.0, None))
    if best < WHOLE:
        shares += [(SPREAD * _share(fact, sentence), sentence) for sentence in reading.sentences]
        best, where = max(shares, key=itemgetter(0), default=(0.0, None))
    worth = min(1.0, (best - NOTHING) / (WHOLE - NOTHING))
    if where is None or worth <= 0:
        return Finding()
    said = [clause for share, clause in shares if share >= SAID_LIKE * best]
    agreeing = [clause for clause in said if not _conflict(fact, clause, reading.known)]
    if not agreeing:
        return Finding(0.0, worth >= FOUND and not where.parts, (where,))
    opposed = any(_opposed(fact, clause) for clause in said if clause.text not in reading.known)
    return Finding(worth, worth >= FOUND and opposed, where.parts or (where,))


def _share(fact: Fact, clause: Clause) -> float:
    """The share of the fact's words and numbers in the clause, by weight."""
    signs = signs_of(fact.text)
    if len(signs & signs_of(clause.text)) < NOTHING * len(signs):
        return 0.0
    there = amounts(clause.text) if fact.amounts else frozenset()
    found = sum(has(there, amount) for amount in fact.amounts)
    if fact.amounts and not found:
        return 0.0
    share = (
        weight_of(fact.words) - _unlike(fact.words, clause.text) + NUMBER_WEIGHT * found
    ) / fact.weight
    return share * found / len(fact.amounts) if fact.amounts else share


def _unlike(words: Words, text: str) -> float:
    """The weight of the words that the text lacks."""
    return sum(weight * (1 - _likeness(word, text)) for word, weight in words if word not in text)


def _likeness(word: str, text: str) -> float:
    """What the word's characters in the text are worth; of a long word (青霉素 for 红霉素) less than their share."""
    there = 0.0 if word.isascii() else sum(sign in text for sign in word) / len(word)
    return ALIKE * there ** max(1, len(word) - 1) if there else 0.0


def _conflict(fact: Fact, clause: Clause, known: str) -> bool:
    """Whether the clause says of another name, person, side or time what the fact says, or the opposite of it."""
    if clause.names and not fact.clause.names & clause.names:
        return True
    if clause.text in known:
        return False
    rivals = zip(fact.roles, clause.roles, strict=True)
    return any(mine and other and not mine & other for mine, other in rivals) or _opposed(
        fact, clause
    )


def _opposed(fact: Fact, clause: Clause) -> bool:
    """Whether the clause allows what gold forbids, denies what gold states, and so on."""
    if clause.parts:
        return any(_opposed(fact, part) for part in clause.parts if _share(fact, part) >= NOTHING)
    gold, answer = fact.clause.stance, clause.stance
    if gold in STRICT:
        return answer in ("allow", "needless") or {gold, answer} == {"forbid", "caution"}
    if not _literal(fact, clause.text):
        return False
    if _denies(fact, fact.clause.text):
        return not RE.deny.search(clause.text) and answer not in STRICT
    return _denies(fact, clause.text)


def _literal(fact: Fact, text: str) -> bool:
    """Whether most of the fact is in the text as it is."""
    numbers = NUMBER_WEIGHT * sum(has(amounts(text), amount) for amount in fact.amounts)
    return (
        numbers + sum(weight for word, weight in fact.words if word in text) >= FOUND * fact.weight
    )


def _denies(fact: Fact, text: str) -> bool:
    """Whether a denial stands before most of the fact's words in the text."""
    masked = RE.harmless.sub(lambda match: "＿" * len(match[0]), text)
    denial = RE.deny.search(masked) or RE.needless.search(masked)
    there = [(weight, text.rfind(word)) for word, weight in fact.words]
    there += [(NUMBER_WEIGHT, text.find(f"{number:g}")) for number, _ in fact.amounts]
    after = sum(weight for weight, place in there if denial and place >= denial.start())
    all_there = sum(weight for weight, place in there if place >= 0)
    return after > all_there / 2


def invented(
    reading: Reading, known: Reading, asked: str, places: Places = (), any_word: bool = False
) -> float:
    """How many of the answer's items name something that known text does not bear out, each from 0 to 1.

    Without a term of the field an item claims little, unless names are asked for (`any_word`). What is denied counts
    half, and what stands in one of the `places` that say something of gold less.
    """
    found = 0.0
    for clause in reading.clauses:
        strange = any(not has(known.amounts, amount) for amount in amounts(clause.text) - SMALL)
        empty = RE.polite.search(clause.text) or RE.denial.match(clause.text)
        if not RE.short_head.fullmatch(clause.text) and (strange or not empty):
            half = 0.5 if not strange and clause.stance in HALF else 1.0
            related = RELATED if clause in places else ELSEWHERE
            items = items_of(clause.text.replace("(", "").replace(")", ""))
            for item in items:
                beside = _is_related(item, known, asked)
                claimed = 1.0 if any_word or _has_term(item, known) else BESIDE if beside else APART
                found += (
                    half * claimed * _strangeness(item, known, asked, related if beside else 1.0)
                )
    return found


def _has_term(item: str, known: Reading) -> bool:
    """Whether the item has a drug or a term that known text has not: no other words for something known."""
    strange = (word for word, _ in words_of(item) if word in terms() and word not in GENERAL)
    return _has_drug(item, known) or any(word not in known.text for word in strange)


def _has_drug(item: str, known: Reading) -> bool:
    """Whether the item has what ends like a drug's name, and known text has not."""
    return any(name[-3:] not in known.text for name in RE.agent.findall(item))


def _strangeness(item: str, known: Reading, asked: str, related: float) -> float:
    """From 0 to 1, by the weight of the words that known text lacks; `related` times so much is needed."""
    if _has_drug(item, known):
        return 1.0
    words = words_of(_without(item, known.text))
    words = tuple(pair for pair in words if pair[0] not in asked and pair[0] not in GENERAL)
    if weight_of(tuple(pair for pair in words if pair[0] not in known.text)) <= LITTLE:
        return 0.0
    lacking = min(_unlike(words, clause.text) for clause in [*known.clauses, *known.sentences])
    return min(1.0, max(0.0, (lacking / related - LITTLE) / (STRANGE - LITTLE)))


def _is_related(item: str, known: Reading, asked: str) -> bool:
    """Whether the item has a number of known text, a word of it, or enough of one of its items."""
    if any(unit and has(known.amounts, (number, unit)) for number, unit in amounts(item)):
        return True
    if any(
        (word in known.text or (len(word) > 3 and word[-2:] in known.text)) and weight >= 1
        for word, weight in words_of(item)
        if word not in asked
    ):
        return True
    return any(_unlike(words, item) <= UNLIKE * weight_of(words) for words in known.items)


def _without(item: str, known: str) -> str:
    """The item without its stretches of three and more characters that known text has."""
    kept, place = [], 0
    while place < len(item):
        sizes = range(min(LONGEST, len(item) - place), 2, -1)
        size = next((size for size in sizes if item[place : place + size] in known), 0)
        kept.append(" " if size else item[place])
        place += size or 1
    return "".join(kept)
