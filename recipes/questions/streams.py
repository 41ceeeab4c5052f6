"""Stream questions of each type about one split's entities: every field and wording in equal
shares.

A stream first asks each thing once, then again in another wording, until all wordings are used.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from recipes.questions.drafts import Called, Draft, about_fields, about_word, without_answer
from recipes.questions.entities import Catalogue, Entity, SearchWord, is_plain, names_of
from recipes.questions.wordings import (
    ADMINISTRATION,
    COMPARE,
    COUNT,
    MISNAMING,
    MULTI,
    NEEDS,
    QUESTIONS,
    SEARCH,
    TO_DRUG,
    WORDS,
    Phrases,
)
from scoring.text import words_only
from sql_agent.tables import ASKABLE, NAME_COLUMN
from tools.sql.result import neutralise

LONGEST_TEXT = 300  # characters of all texts of an answer. The tool cuts cells at 500
# Most characters of three fields together, so that their answer is no longer than others
THREE_FIELDS = 40
HEAD = 2  # characters of a made-up name that come from one name. The rest comes from another
PASSES = 4  # times that pairs and made-up names are drawn again

# What people call an entity comes with a part that finds it and no other: the gold SQL uses only
# what the question says.
ALIKE = {pair[at]: pair[1 - at] for pair in reversed(MISNAMING["alike"].split()) for at in (0, 1)}
ENDING, IN_BRACKETS, ALSO_CALLED = (
    re.compile(MISNAMING[name]) for name in ("ending", "in_brackets", "also_called")
)

EATEN = re.compile(ADMINISTRATION["eaten"])
APPLIED = re.compile(ADMINISTRATION["applied"])

T = TypeVar("T")
Words = Sequence[SearchWord]


@dataclass(frozen=True)
class Rates:
    """Shares of one-field questions that call the entity by another name than its own."""

    typo: float = 0.12
    partial: float = 0.10


@dataclass
class Pool:
    """The things that questions of one split may be about.

    links: the diseases that drugs name. words: search words and filter values. held_out: half of
    the questions are in wordings that no other split has.
    """

    entities: Sequence[Entity]
    links: Words
    words: Words
    catalogue: Catalogue
    rates: Rates
    rng: random.Random
    held_out: bool = False

    def of(self, table: str) -> list[Entity]:
        """Return the split's entities of one table, shuffled."""
        members = [entity for entity in self.entities if entity.table == table]
        self.rng.shuffle(members)
        return members


def usable(text: str) -> bool:
    """Return whether a text can be an answer: short, with words in it, and shown unchanged by the
    tool.
    """
    return len(text) <= LONGEST_TEXT and bool(words_only(text)) and neutralise(text) == text


def in_turn(streams: Iterable[Iterable[T]]) -> Iterator[T]:
    waiting = [iter(one) for one in streams]
    while waiting:
        for one in list(waiting):
            try:
                yield next(one)
            except StopIteration:
                waiting.remove(one)


def worded(things: Sequence[T], wordings: Phrases, pool: Pool) -> Iterator[tuple[T, str]]:
    """Yield each thing with a wording, then with the next one, wordings in equal shares."""
    order = wordings.order(pool.rng, pool.held_out)
    for turn in range(len(order)):
        for number, thing in enumerate(things):
            yield thing, order[(number + turn) % len(order)]


def _columns(pool: Pool, table: str) -> list[str]:
    return [column for column in ASKABLE[table] if column in pool.catalogue.columns[table]]


def _orders(pool: Pool, table: str) -> dict[str, list[str]]:
    return {
        column: QUESTIONS[column].order(pool.rng, pool.held_out) for column in _columns(pool, table)
    }


def _field(kind: str, table: str, column: str, pool: Pool) -> Iterator[Draft]:
    members = [entity for entity in pool.of(table) if usable(entity.fields[column])]
    general = [
        template
        for template in QUESTIONS[column].order(pool.rng, pool.held_out)
        if template not in NEEDS
    ]
    for entity, template in worded(members, QUESTIONS[column], pool):
        if not any(need in entity.fields[column] for need in NEEDS.get(template, ("",))):
            template = pool.rng.choice(general)
        if not suits(template, entity):
            continue
        called = _called(entity, pool)
        yield about_fields(kind, [entity], [column], template, "", called)


def suits(words: str, *entities: Entity) -> bool:
    """Return whether the words go with the form of a drug: nobody eats eye drops."""
    if not EATEN.search(words):
        return True
    texts = [f"{entity.name}\n{entity.fields.get('dosage', '')}" for entity in entities]
    return all("口服" in text or not APPLIED.search(text) for text in texts)


def _word(column: str, rng: random.Random, *entities: Entity) -> str:
    word = rng.choice(WORDS[column])
    return word if suits(word, *entities) else WORDS[column][0]


def _called(entity: Entity, pool: Pool) -> Called | None:
    """Return another name at the set rates, or None if none of them identifies the entity."""
    drawn = pool.rng.random()
    if drawn < pool.rates.typo:
        return misspelt(entity, pool.catalogue, pool.rng)
    if drawn < pool.rates.typo + pool.rates.partial:
        return shortened(entity, pool.catalogue)
    return None


def misspelt(entity: Entity, catalogue: Catalogue, rng: random.Random) -> Called | None:
    """Return the name with one wrong character, placed so that an identifying part is left, or
    None.
    """
    name = entity.name
    places = [at for at, character in enumerate(name) if character in ALIKE]
    rng.shuffle(places)
    for at in places:
        part = max(name[:at], name[at + 1 :], key=len)
        typed = name[:at] + ALIKE[name[at]] + name[at + 1 :]
        if typed not in catalogue.names[entity.table] and _finds(
            entity, NAME_COLUMN[entity.table], part, catalogue
        ):
            return Called(typed, part, NAME_COLUMN[entity.table])
    return None


def shortened(entity: Entity, catalogue: Catalogue) -> Called | None:
    """Return another name that belongs to the entity alone, or None.

    It is a brand name in brackets of the name, a name that the overview gives, or the name without
    its dosage form or ending.
    """
    name = entity.name
    brands = [(part, NAME_COLUMN[entity.table]) for part in IN_BRACKETS.findall(name)]
    others = [
        (part, "overview")
        for part in ALSO_CALLED.findall(entity.fields.get("overview", ""))
        if part not in name
    ]
    bare = [(part, NAME_COLUMN[entity.table]) for part in [ENDING.sub("", name)] if part != name]
    for part, column in (*brands, *others, *bare):
        if _finds(entity, column, part, catalogue):
            return Called(part, part, column)
    return None


def _finds(entity: Entity, column: str, part: str, catalogue: Catalogue) -> bool:
    return is_plain(part) and catalogue.find(entity.table, column, part, 1) == [entity.row_id]


def _several(table: str, pool: Pool) -> Iterator[Draft]:
    rng = pool.rng
    for entity, template in worded(pool.of(table), MULTI, pool):
        columns = [column for column in _columns(pool, table) if usable(entity.fields[column])]
        chosen = rng.sample(columns, min(3, len(columns)))
        if (
            sum(len(entity.fields[column]) for column in chosen) > THREE_FIELDS
            or rng.random() < 0.5
        ):
            chosen = chosen[:2]
        if len(chosen) > 1 and sum(len(entity.fields[column]) for column in chosen) <= LONGEST_TEXT:
            *others, last = [_word(column, rng, entity) for column in chosen]
            yield about_fields(
                "multi_field", [entity], chosen, template, "、".join(others) + "和" + last
            )


def _compare(kind: str, table: str, column: str, pool: Pool) -> Iterator[Draft]:
    members = [entity for entity in pool.of(table) if usable(entity.fields[column])]
    for _ in range(PASSES):
        pool.rng.shuffle(members)
        pairs = list(zip(members[::2], members[1::2], strict=False))
        order = COMPARE.order(pool.rng, pool.held_out)
        for number, pair in enumerate(pairs):
            texts = [entity.fields[column] for entity in pair]
            if texts[0] != texts[1] and sum(map(len, texts)) <= LONGEST_TEXT:
                word = _word(column, pool.rng, *pair)
                yield about_fields(kind, pair, [column], order[number % len(order)], word)


def _by_word(
    kind: str, wordings: Mapping[str, Phrases], counted: bool, pool: Pool
) -> Iterator[Draft]:
    words = {
        column: [w for w in pool.words if w.column == column and (counted or not w.whole)]
        for column in wordings
    }
    return in_turn(
        _about_words(kind, words[column], wordings[column], counted, pool) for column in wordings
    )


def _about_words(
    kind: str, words: Words, wordings: Phrases, counted: bool, pool: Pool
) -> Iterator[Draft]:
    for word, template in worded(words, wordings, pool):
        yield about_word(kind, word, template, None if counted else names_of(word, pool.catalogue))


def _empty(table: str, pool: Pool) -> Iterator[Draft]:
    members = pool.of(table)
    wordings = _orders(pool, table)
    cells = [
        (entity, column)
        for entity in members
        for column in wordings
        if not entity.fields[column].strip()
    ]
    for turn in range(PASSES):
        for number, (entity, column) in enumerate(cells):
            template = wordings[column][(number + turn) % len(wordings[column])]
            if suits(template, entity):
                cell = entity.cells[column]
                yield without_answer(table, entity.name, column, template, ((cell,),))


def _made_up(table: str, pool: Pool) -> Iterator[Draft]:
    members = pool.of(table)
    wordings = _orders(pool, table)
    rng = pool.rng
    for number in range(PASSES * len(members) if len(members) > 1 else 0):
        first, second = rng.sample(members, 2)
        cut = min(HEAD, len(first.name) // 2)
        name = first.name[:cut] + second.name[cut:]
        if pool.catalogue.is_unknown(name):
            turn, at = divmod(number, len(wordings))
            column, order = list(wordings.items())[at]
            yield without_answer(table, name, column, order[turn % len(order)], ())


def _by_column(
    maker: Callable[..., Iterator[Draft]], kind: str, table: str, pool: Pool
) -> Iterator[Draft]:
    return in_turn(maker(kind, table, column, pool) for column in _columns(pool, table))


# The types of question: the one home of their names.
STREAMS: dict[str, Callable[[Pool], Iterator[Draft]]] = {
    "drug_field": partial(_by_column, _field, "drug_field", "drugs_info"),
    "disease_field": partial(_by_column, _field, "disease_field", "disease"),
    "multi_field": lambda pool: in_turn(_several(table, pool) for table in ASKABLE),
    "compare_drugs": partial(_by_column, _compare, "compare_drugs", "drugs_info"),
    "compare_diseases": partial(_by_column, _compare, "compare_diseases", "disease"),
    "drug_search_by_kw": partial(_by_word, "drug_search_by_kw", SEARCH, False),
    "disease_to_drug": lambda pool: _about_words(
        "disease_to_drug", pool.links, TO_DRUG, False, pool
    ),
    "count_filter": partial(_by_word, "count_filter", COUNT, True),
    # Mostly made-up names: what is misnamed finds nothing either.
    "unanswerable": lambda pool: in_turn(
        make(table, pool) for table in ASKABLE for make in (_empty, _made_up, _made_up)
    ),
}
# Share of each type in every split.
MIX = dict(zip(STREAMS, (0.25, 0.22, 0.10, 0.07, 0.05, 0.08, 0.06, 0.07, 0.10), strict=True))
