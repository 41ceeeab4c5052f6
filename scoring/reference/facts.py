"""What a text states, piece by piece: who or what, how much, allowed or not, and of which name.

    facts_of("成人一次0.5克，儿童一次0.25克，饭后服用")      # three facts; the first two are of different persons
    Reading("成人每次500毫克，饭后吃").clauses              # an answer in the pieces in which facts are looked for

A fact is a piece of a clause between enumeration marks with what holds for it: rivals in it ("饭前" is not "饭后"),
persons named before it, the name its passage is about, and whether its clause allows, forbids or denies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from scoring.reference.names import mentioned, subjects
from scoring.reference.text import DATA, RE, amounts, canonical, cut, one_word, terms, words_only

NUMBER_WEIGHT = 6.0  # what a number weighs, in characters
ASKED_WEIGHT = 0.2  # of a word that the question has, and of one that states nothing by itself
LEAST_WEIGHT = 1.0  # of a fact
SAME, ROUGH = (
    0.004,
    0.09,
)  # relative difference of numbers that are equal but for rounding; of months, said in weeks
MONTH = 24 * 28  # hours: from here a time is a rough one

RIVALS = [
    (group.split(), kept) for kept in (False, True) for group in DATA["kept" if kept else "rivals"]
]
FILLER, GENERAL = frozenset(DATA["filler"].split()), frozenset(DATA["general"].split())
STANCES = ("needless", "allow", "forbid", "caution", "avoid", "deny")

signs_of = lru_cache(maxsize=8192)(frozenset[str])
Roles = tuple[frozenset[str], ...]  # by group, the rivals there are
Words = tuple[tuple[str, float], ...]  # each with its weight
Amount = tuple[float, str]


@dataclass(frozen=True)
class Clause:
    """A piece of canonical text. `names`: what its passage is about; `head`: what heads its list ("禁用:")."""

    text: str
    roles: Roles
    names: frozenset[str]
    head: str = ""
    parts: tuple[Clause, ...] = ()  # of several clauses in one

    @property
    def stance(self) -> str:
        """One of STANCES, or "" for a plain statement."""
        return _stance(self.text) or (
            _stance(self.head) if RE.short_head.fullmatch(self.head) else ""
        )


@dataclass(frozen=True)
class Fact:
    """A piece of gold: its words, its numbers with their units, the rivals in it and before it, and its clause."""

    text: str
    words: Words
    amounts: frozenset[Amount]
    roles: Roles
    clause: Clause

    @cached_property
    def weight(self) -> float:
        return weight_of(self.words) + NUMBER_WEIGHT * len(self.amounts)

    @property
    def is_empty(self) -> bool:
        return self.clause.text == self.clause.head or all(
            word in GENERAL for word, _ in self.words
        )


class Reading:
    """A text as it is compared. `names`: those of gold, if several; `known`: what may be said, in canonical form."""

    def __init__(self, text: str, names: Sequence[str] = (), known: str = "") -> None:
        self.text, self.known = canonical(text), known
        self.words, self.amounts, self.roles = (
            words_only(self.text),
            amounts(self.text),
            _roles(self.text),
        )
        sentences = _sentences(self.text, tuple(names), known)
        self.clauses = [clause for sentence in sentences for clause in sentence]
        two = [[*first, *second] for first, second in pairwise(sentences)]
        self.sentences = [_joined(clauses) for clauses in sentences + two if len(clauses) > 1]

    @cached_property
    def items(self) -> list[Words]:
        """The words of each item that has something to say."""
        found = [words_of(item) for clause in self.clauses for item in items_of(clause.text)]
        return [words for words in found if weight_of(words) > LEAST_WEIGHT]


def _sentences(text: str, names: tuple[str, ...], known: str) -> list[list[Clause]]:
    """The clauses of each sentence; a name holds until the next one, a head until the full stop."""
    found: list[list[Clause]] = []
    about, head = frozenset[str](), ""
    for sentence in RE.sentence.split(text.replace("。", "。\n")):
        parts = [part for part in RE.clause.split(sentence) if words_only(part)]
        head, about = (head if sentence else ""), (frozenset() if "|" in sentence else about)
        alone = [name for name in names if mentioned(name, names, sentence)]
        about = frozenset(alone) if len(alone) == 1 else about
        held: Roles = (frozenset(),) * len(RIVALS)
        clauses = []
        for part in parts:
            own = zip(_roles(part), held, RIVALS, strict=True)
            held = tuple(mine or (before if kept else mine) for mine, before, (_, kept) in own)
            named = subjects(part, names, known, part is parts[0])
            named = frozenset(names) if named is None and RE.both.search(part) else named
            about = about if named is None else named
            head = part if part.endswith(":") else head
            clauses.append(Clause(part, held, about, head))
        found += [clauses] if clauses else []
    return found


def _joined(parts: Sequence[Clause]) -> Clause:
    roles = tuple(
        frozenset().union(*group) for group in zip(*(part.roles for part in parts), strict=True)
    )
    names = frozenset[str]().union(*(part.names for part in parts))
    return Clause(",".join(part.text for part in parts), roles, names, parts=tuple(parts))


@lru_cache(maxsize=8192)
def _roles(text: str) -> Roles:
    return tuple(
        frozenset(name for name, words in group if any(word in text for word in words))
        for group in _rivals()
    )


@lru_cache(maxsize=1)
def _rivals() -> list[list[tuple[str, list[str]]]]:
    """Of each group the rivals by name, with all canonical words for each."""
    return [
        [(entry, [one_word(word) for word in entry.split("|")]) for entry in group]
        for group, _ in RIVALS
    ]


@lru_cache(maxsize=8192)
def _stance(clause: str) -> str:
    rest = RE.harmless.sub("", clause)
    return next((stance for stance in STANCES if getattr(RE, stance).search(rest)), "")


def facts_of(text: str, names: tuple[str, ...] = (), asked: str = "") -> list[Fact]:
    """The facts of a gold text; what the question (words of its canonical text) says already is none."""
    found = []
    for clause in (
        clause for sentence in _sentences(canonical(text), names, "") for clause in sentence
    ):
        for item in items_of(clause.text):
            own = zip(_roles(item), clause.roles, RIVALS, strict=True)
            roles = tuple(held if kept else mine for mine, held, (_, kept) in own)
            fact = Fact(item, words_of(item, asked), amounts(item), roles, clause)
            says = weight_of(tuple(pair for pair in fact.words if pair[0] not in asked))
            if words_only(item) not in asked and (fact.amounts or says >= LEAST_WEIGHT):
                found.append(fact)
    return [fact for fact in found if fact.amounts or not fact.is_empty] or found


def items_of(clause: str) -> list[str]:
    """The clause's pieces between enumeration marks."""
    return [part for part in RE.item.split(clause) if words_only(part)]


@lru_cache(maxsize=8192)
def words_of(item: str, asked: str = "") -> Words:
    """The words of content with their weights: their length, less for common words and for those the question has."""
    rest = re.sub("[者的]", " ", RE.amount.sub(" ", RE.not_word.sub(" ", item)))
    found = [(word, says) for word, says in cut(rest) if word not in FILLER]
    found = found or [(word, ASKED_WEIGHT) for word, _ in cut(rest)]
    return tuple(
        (word, len(word) * says * (ASKED_WEIGHT if word in asked else 1.0)) for word, says in found
    )


def claims(word: str) -> bool:
    """Whether the word is a term of the field or one of RIVALS, so that something may be claimed with it."""
    return word not in GENERAL and (word in terms() or any(_roles(word)))


def weight_of(words: Words) -> float:
    return sum(weight for _, weight in words)


def has(there: Iterable[Amount], amount: Amount) -> bool:
    """Whether one of the amounts is this one; a number without a unit is that number of any unit."""
    number, unit = amount
    same = ROUGH if unit == "小时" and number > MONTH else SAME
    return any(
        abs(n - number) <= same * number and (u == unit or not u or not unit) for n, u in there
    )
