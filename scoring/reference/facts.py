"""Facts of a text, and which of gold's an answer states: who or what, how much, allowed or not, of which name.

    fact = facts_of("成人一次0.5克，儿童一次0.25克")[0]
    find(fact, Reading("成人每次500毫克"))                   # Finding(share=1.0, contradicted=False)
    find(fact, Reading("儿童每次500毫克"))                   # contradicted: that is another person's dose

A fact is a piece of a clause between enumeration marks with what holds for it: rivals in it ("饭前" is not "饭后"),
persons and sides named before it in the sentence, the name its passage is about, and whether its clause allows, forbids
or denies. It is found by its words, in any order, in one clause or else one sentence; its numbers must be there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from scoring.reference.names import subjects
from scoring.reference.text import DATA, RE, amounts, canonical, cut, one_word, words_only

NUMBER_WEIGHT = 6.0  # what a number weighs, in characters
ASKED_WEIGHT = 0.2  # of a word that the question has
ALIKE = 0.95  # a word of which only characters are there earns so much of their share
NOTHING, WHOLE = 0.2, 0.6  # shares of a fact's words: up to here it is not said, from here it is
MUCH, EVEN, REPLACED = 0.45, 0.2, 0.4  # so much of a fact gave way to about as much: what is left of it
SPREAD = 0.9  # words found only across the clauses of a sentence
SAID_LIKE = 0.9  # clauses with so much of the best share say the same
FOUND = 0.5  # from here a fact counts as said
NAMELESS = 0.3  # a value without its name where there are several
LITTLE, STRANGE = 1.2, 1.9  # weight of strange words: up to here an item says nothing new, from here it does
RELATED = 4.0  # times so much beside something of known text: a paraphrase keeps some of it
UNLIKE = 0.72  # the share of a known item's words that a paraphrase may lack

RIVALS = [(group.split(), kept) for kept in (False, True) for group in DATA["kept" if kept else "rivals"]]
FILLER = frozenset(DATA["filler"].split())
KEPT = len(DATA["kept"])
HEAD = re.compile(r"[^:\d]{1,16}:")
STRICT = ("forbid", "caution", "avoid")
Roles = tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Clause:
    """A piece of canonical text with its rivals by group, the names its passage is about, its sentence's number (-1: several
    clauses), and what heads its list ("禁用:")."""

    text: str
    roles: Roles
    names: frozenset[str]
    sentence: int
    head: str = ""

    @property
    def stance(self) -> str:
        return _stance(self.text) or _stance(self.head)


@dataclass(frozen=True)
class Fact:
    """A piece of gold: its words with their weights, its numbers with their units, and what holds for it."""

    text: str
    words: tuple[tuple[str, float], ...]
    amounts: frozenset[tuple[float, str]]
    roles: Roles
    clause: Clause

    @property
    def weight(self) -> float:
        return sum(weight for _, weight in self.words) + NUMBER_WEIGHT * len(self.amounts)


@dataclass(frozen=True)
class Finding:
    """How far a fact is said, and whether the answer says otherwise."""

    share: float = 0.0
    contradicted: bool = False


class Reading:
    """A text as it is compared. `names`: those of gold, if several; `known`: words that may be said (canonical)."""

    def __init__(self, text: str, names: Sequence[str] = (), known: str = "") -> None:
        self.text, self.known = canonical(text), known
        self.amounts, self.words = amounts(self.text), words_only(self.text)
        self.roles = _roles(self.text)
        self.clauses = _clauses(self.text, tuple(names), known)
        whole: dict[int, list[Clause]] = {}
        for clause in self.clauses:
            whole.setdefault(clause.sentence, []).append(clause)
        sentences = [_joined(parts) for parts in whole.values()]
        self.sentences = sentences + [_joined(pair) for pair in pairwise(sentences)]


    @cached_property
    def contents(self) -> list[tuple[tuple[str, float], ...]]:
        """The words of each item, but of those that have little to say."""
        found = [_words(item) for clause in self.clauses for item in items_of(clause.text)]
        return [words for words in found if sum(weight for _, weight in words) >= 2]


def _joined(parts: Sequence[Clause]) -> Clause:
    roles = tuple(frozenset().union(*group) for group in zip(*(part.roles for part in parts), strict=True))
    names = frozenset[str]().union(*(part.names for part in parts))
    return Clause(",".join(part.text for part in parts), roles, names, -1)


def _clauses(text: str, names: tuple[str, ...], known: str) -> list[Clause]:
    found: list[Clause] = []
    about, head = frozenset[str](), ""
    for number, sentence in enumerate(RE.sentence.split(text.replace("。", "。\n"))):
        head = head if sentence else ""
        held: Roles = (frozenset(),) * len(RIVALS)
        parts = [part for part in RE.clause.split(sentence) if words_only(part)]
        for part in parts:
            own = _roles(part)
            held = tuple(mine or (old if kept else mine) for mine, old, (_, kept) in zip(own, held, RIVALS, strict=True))
            named = subjects(part, names, known, part is parts[0])
            about = about if named is None else named
            head = part if part.endswith(":") else head
            found.append(Clause(part, held, about, number, head))
    return found


@lru_cache(maxsize=8192)
def _roles(text: str) -> Roles:
    return tuple(frozenset(name for name, words in group if any(word in text for word in words)) for group in _rivals())


@lru_cache(maxsize=1)
def _rivals() -> list[list[tuple[str, list[str]]]]:
    """Of each group the rivals: the first word of each, and all that say the same, in canonical form."""
    return [[(entry, [one_word(word) for word in entry.split("|")]) for entry in group] for group, _ in RIVALS]


@lru_cache(maxsize=2048)
def facts_of(text: str, names: tuple[str, ...] = (), asked: str = "") -> tuple[Fact, ...]:
    """The facts of a gold text; what the question (words of its canonical text) says already is none."""
    found = []
    for clause in _clauses(canonical(text), names, ""):
        for item in items_of(clause.text):
            own = zip(_roles(item), clause.roles, RIVALS, strict=True)
            roles = tuple(held if kept else mine for mine, held, (_, kept) in own)
            fact = Fact(item, _words(item, asked), amounts(item), roles, clause)
            if words_only(item) not in asked and fact.weight >= 1:
                found.append(fact)
    return tuple(found)


def items_of(clause: str) -> list[str]:
    """The clause's pieces between enumeration marks; the whole where one would be a single character."""
    parts = [part for part in RE.item.split(clause) if words_only(part)]
    return [clause] if any(len(words_only(part)) < 2 for part in parts) else parts


@lru_cache(maxsize=8192)
def _words(item: str, asked: str = "") -> tuple[tuple[str, float], ...]:
    """The words of content with their weights: their length, less for common words and for those the question has."""
    rest = re.sub("[者的]", " ", RE.amount.sub(" ", RE.not_word.sub(" ", item)))
    found = [(word, says) for word, says in cut(rest) if word not in FILLER]
    found = found or [(word, ASKED_WEIGHT) for word, _ in cut(rest)]
    return tuple((word, len(word) * says * (ASKED_WEIGHT if word in asked else 1.0)) for word, says in found)


def find(fact: Fact, reading: Reading, several: bool = False) -> Finding:
    """How well the answer states the fact. `several`: gold has values of several names."""
    shares = [(_share(fact, clause), clause) for clause in reading.clauses]
    best = max((share for share, _ in shares), default=0.0)
    if best < WHOLE and not (fact.amounts and any(fact.roles[-KEPT:])):
        shares += [(SPREAD * _share(fact, clause), clause) for clause in reading.sentences]
        best = max((share for share, _ in shares), default=0.0)
    worth = min(1.0, (best - NOTHING) / (WHOLE - NOTHING))
    if worth <= 0:
        return Finding()
    if _replaced(fact, max(shares, key=lambda pair: pair[0])[1].text, reading.known):
        worth *= REPLACED
    said = [clause for share, clause in shares if share >= SAID_LIKE * best]
    agreeing = [clause for clause in said if not _conflict(fact, clause, reading.known)]
    if not agreeing:
        return Finding(0.0, worth >= FOUND)
    nameless = several and not any(clause.names for clause in agreeing)
    both = worth >= FOUND and any(_opposed(fact, clause) for clause in said if clause.text not in reading.known)
    return Finding(worth * (NAMELESS if nameless else 1.0), both)


def _replaced(fact: Fact, text: str, known: str) -> bool:
    """Whether much of the fact is missing where most of it is said, and as much stands there that nobody knows."""
    items = [(_unlike(fact.words, item), item) for item in items_of(text)]
    missing, item = min(items, default=(0.0, ""))
    strange = sum(weight for word, weight in _words(item) if word not in known)
    return missing >= MUCH * fact.weight and abs(strange - missing) <= EVEN * missing


def _share(fact: Fact, clause: Clause) -> float:
    """The share of the fact's words and numbers in the clause, by weight."""
    text, there = clause.text, amounts(clause.text)
    said = sum(weight * _likeness(word, text) for word, weight in fact.words)
    found = sum(has(there, amount) for amount in fact.amounts)
    share = (said + NUMBER_WEIGHT * found) / fact.weight
    return share * found / len(fact.amounts) if fact.amounts else share


def _likeness(word: str, text: str) -> float:
    if word in text:
        return 1.0
    return 0.0 if word.isascii() else ALIKE * sum(sign in text for sign in word) / len(word)


def has(there: Iterable[tuple[float, str]], amount: tuple[float, str]) -> bool:
    """Whether one of the amounts is this one; a number without a unit is that number of any unit."""
    number, unit = amount
    return any(abs(n - number) <= 0.004 * number and (u == unit or not u or not unit) for n, u in there)


def _conflict(fact: Fact, clause: Clause, known: str) -> bool:
    """Whether the clause says of another name, person, side or time what the fact says, or the opposite of it."""
    if clause.names and not fact.clause.names & clause.names:
        return True
    if clause.text in known:
        return False
    rivals = zip(fact.roles, clause.roles, strict=True)
    return any(mine and other and not mine & other for mine, other in rivals) or _opposed(fact, clause)


def _opposed(fact: Fact, clause: Clause) -> bool:
    """Whether the clause allows what gold forbids, forbids or denies what gold states, and so on."""
    if clause.sentence < 0:
        return False
    gold, answer = fact.clause.stance, clause.stance
    if gold in STRICT and answer in STRICT:
        return {gold, answer} == {"forbid", "caution"}
    if gold in STRICT:
        return answer in ("allow", "needless")
    if _denies(fact, fact.clause.text):
        return not RE.deny.search(clause.text) and answer not in STRICT
    return answer == "needless" or _denies(fact, clause.text)


def _denies(fact: Fact, text: str) -> bool:
    """Whether a denial stands before most of the fact's words in the text, or ends it."""
    masked = RE.harmless.sub(lambda match: "＿" * len(match[0]), text)
    denial = RE.deny.search(masked)
    there = [(weight, text.rfind(word)) for word, weight in fact.words if word in text]
    there += [(NUMBER_WEIGHT, place) for number, _ in fact.amounts if (place := text.find(f"{number:g}")) >= 0]
    after = sum(weight for weight, place in there if denial and place >= denial.start())
    return after > sum(weight for weight, _ in there) / 2 or RE.deny_end.search(masked) is not None


@lru_cache(maxsize=8192)
def _stance(clause: str) -> str:
    """What the clause does with what it names: the first that applies."""
    rest = RE.harmless.sub("", clause)
    kinds = ("needless", "allow", "forbid", "caution", "avoid", "deny")
    return next((kind for kind in kinds if getattr(RE, kind).search(rest)), "")


def invented(reading: Reading, known: Reading, asked: str) -> float:
    """How many of the answer's items known text does not bear out, each from 0 to 1; courtesies are none.

    What is denied or advised against counts half: "not a bacterium but a virus" says one thing in two ways.
    """
    total = 0.0
    for clause in reading.clauses:
        if HEAD.fullmatch(clause.text):
            continue
        strange = any(not has(known.amounts, amount) for amount in amounts(clause.text))
        if strange or not (RE.polite.search(clause.text) or RE.denial.match(clause.text)):
            half = 0.5 if not strange and clause.stance in ("deny", "needless", *STRICT) else 1.0
            total += half * sum(_strangeness(item, known, asked) for item in items_of(clause.text))
    return total


def _strangeness(item: str, known: Reading, asked: str) -> float:
    """From 0 to 1, by the weight of the item's words that known text lacks; much more is needed beside a known one."""
    rest = _without(item, known.text)
    words = [(word, weight) for word, weight in _words(rest) if word not in asked]
    own = sum(weight for word, weight in words if word not in known.text)
    if own <= LITTLE:
        return 0.0
    unlike = min((_unlike(words, sentence.text) for sentence in known.sentences), default=own)
    scale = RELATED if _is_related(item, known, asked) else 1.0
    return min(1.0, max(0.0, (unlike / scale - LITTLE) / (STRANGE - LITTLE)))


def _is_related(item: str, known: Reading, asked: str) -> bool:
    """Whether the item has a number of known text, a word of it, or enough of the characters of one of its clauses."""
    if any(has(known.amounts, amount) and amount[1] for amount in amounts(item)):
        return True
    if any(word in known.text and weight >= 1 for word, weight in _words(item) if word not in asked):
        return True
    return any(_unlike(words, item) <= UNLIKE * sum(weight for _, weight in words) for words in known.contents)


def _without(item: str, known: str) -> str:
    """The item without its stretches of three and more characters that known text has."""
    kept, place = [], 0
    while place < len(item):
        size = next((size for size in range(len(item) - place, 2, -1) if item[place : place + size] in known), 0)
        kept.append(" " if size else item[place])
        place += size or 1
    return "".join(kept)


def _unlike(words: Sequence[tuple[str, float]], text: str) -> float:
    return sum(weight * (1 - _likeness(word, text)) for word, weight in words)
