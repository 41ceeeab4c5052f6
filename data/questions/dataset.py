"""Fill the splits: deal out what belongs together, draw questions of each type, keep what is confirmed.

The order of things: read the database, find search words, tie families, deal them to the splits, then for each split
draw from the streams until every type has its rows. A draft is refused if something in it belongs to another split, if
its question was asked already, if it is nearly a question of another split, or if the database does not confirm it; the
next one takes its place. The work is linear in the number of rows asked for and of rows read.

    with open_catalogue(url, limit, rng) as catalogue:
        dataset = fill(catalogue, url, request, rng)
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from data.questions.confirm import Confirmer
from data.questions.entities import Catalogue
from data.questions.keywords import (
    COUNTED_ONLY,
    Mentions,
    SearchWord,
    disease_words,
    filter_values,
    names_of,
    search_words,
)
from data.questions.near_duplicates import NearDuplicates
from data.questions.questions import TASK_TYPES, Draft, Row, row_of
from data.questions.split import Families, Owners, deal
from data.questions.streams import Pool, Rates, stream, usable

# A family holds at most this share of the entities, so that even the smallest split can be filled.
LARGEST_FAMILY = 1 / 50
SMALLEST_BOUND = 8


@dataclass(frozen=True)
class Request:
    """What is to be made: rows of each type by split, each split's share of the entities, and how names are spoiled."""

    rows: Mapping[str, Mapping[str, int]]
    shares: Mapping[str, float]
    rates: Rates = field(default_factory=Rates)


@dataclass
class Dataset:
    """Rows by split, in the order of the request; a finder of the database's names; what was refused, by reason."""

    splits: dict[str, list[Row]]
    mentions: Mentions
    refused: Counter[str] = field(default_factory=Counter)

    def missing(self, request: Request) -> dict[tuple[str, str], int]:
        """Rows asked for and not made, by split and type, where there are any."""
        made = Counter((split, row["task_type"]) for split, rows in self.splits.items() for row in rows)
        wanted = {(split, kind): count for split, kinds in request.rows.items() for kind, count in kinds.items()}
        return {key: count - made[key] for key, count in wanted.items() if made[key] < count}


def fill(catalogue: Catalogue, url: str, request: Request, rng: random.Random) -> Dataset:
    """All rows; splits that are not the first are filled first, so that the largest gives way to them.

    Raises:
        DatabaseError: the database cannot be queried.
    """
    return _Filler(catalogue, request, rng).fill(url)


class _Filler:
    def __init__(self, catalogue: Catalogue, request: Request, rng: random.Random) -> None:
        self.catalogue, self.request, self.rng = catalogue, request, rng
        self.mentions = Mentions.of(catalogue)
        self.links = list(disease_words(catalogue))
        self.words = [*search_words(catalogue, rng), *filter_values(catalogue)]
        self.owners = Owners(self._deal())
        self.asked: set[str] = set()
        self.near = NearDuplicates()
        self.dataset = Dataset({split: [] for split in request.rows}, self.mentions)

    def _deal(self) -> dict[str, str]:
        """Families dealt out kind by kind, so that every split gets its share of each kind."""
        families = Families(max(SMALLEST_BOUND, int(len(self.catalogue.entities) * LARGEST_FAMILY)))
        kinds: dict[str, set[str]] = {}
        for kind, things in self._ties():
            if families.tie(things):
                kinds.setdefault(things[0], set()).add(kind)
        strata: dict[tuple[str, ...], list[list[str]]] = {}
        for group in families.groups():
            found = sorted(set().union(*(kinds.get(thing, ()) for thing in group)))
            strata.setdefault(tuple(found), []).append(group)
        split_of: dict[str, str] = {}
        for stratum in sorted(strata):
            split_of |= deal(strata[stratum], self.request.shares, self.rng)
        return split_of

    def _ties(self) -> Iterator[tuple[str, list[str]]]:
        """What one question would hold together, of a kind; the surest ties first, for later ones may be refused."""
        for entity in self.catalogue.entities:
            yield entity.table, list(dict.fromkeys([entity.name, *self.mentions.find(entity.name)]))
        for word in self.links:
            yield "link", self._held_by(word)
        for word in self.words:
            yield word.column, self._held_by(word)
        for entity in self.catalogue.entities:
            for text in entity.fields.values():
                named = self.mentions.find(text) if usable(text) else []
                if named:
                    yield entity.table, list(dict.fromkeys([entity.name, *named]))

    def _held_by(self, word: SearchWord) -> list[str]:
        names = [] if word.whole or word.column in COUNTED_ONLY else names_of(word, self.catalogue)
        return list(dict.fromkeys([word.text, *names, *self.mentions.find(word.text + "\n" + "\n".join(names))]))

    def fill(self, url: str) -> Dataset:
        first, *others = self.request.rows
        with Confirmer(url) as confirmer:
            for split in (*others, first):
                self.dataset.splits[split] = rows = self._fill_split(split, confirmer)
                for row in rows if split != first else ():  # nothing is compared with the last one filled
                    self.near.add(row["id"], row["question"])
        return self.dataset

    def _fill_split(self, split: str, confirmer: Confirmer) -> list[Row]:
        pool = self._pool(split)
        sources = {kind: self._accepted(stream(kind, pool), split) for kind in TASK_TYPES}
        left = dict(self.request.rows[split])
        rows: list[Row] = []
        ended: set[str] = set()
        while wanted := {kind: count for kind, count in left.items() if count and kind not in ended}:
            drafts = self._drawn(sources, wanted, ended)
            for draft, found in confirmer.confirm(drafts, sum(wanted.values())):
                if found is None:
                    self.dataset.refused["not confirmed"] += 1
                else:
                    rows.append(row_of(draft, found, split))
                    left[draft.task_type] -= 1
        self.rng.shuffle(rows)
        return rows

    def _drawn(
        self, sources: Mapping[str, Iterator[Draft]], wanted: Mapping[str, int], ended: set[str]
    ) -> Iterator[Draft]:
        """As many drafts of each type as are wanted; types whose stream gives fewer are added to `ended`."""
        for kind, count in wanted.items():
            drafts = list(islice(sources[kind], count))
            yield from drafts
            if len(drafts) < count:
                ended.add(kind)

    def _pool(self, split: str) -> Pool:
        mine = [entity for entity in self.catalogue.entities if self.owners.of(entity.name) == split]
        links, words = (
            [word for word in found if self.owners.may_use(self._held_by(word), split) and self._is_mine(word, split)]
            for found in (self.links, self.words)
        )
        return Pool(mine, links, words, self.catalogue, self.request.rates, self.rng)

    def _is_mine(self, word: SearchWord, split: str) -> bool:
        return self.owners.of(word.text) == split

    def _accepted(self, drafts: Iterable[Draft], split: str) -> Iterator[Draft]:
        for draft in drafts:
            reason = self._reason_against(draft, split)
            if reason:
                self.dataset.refused[reason] += 1
            else:
                yield draft

    def _reason_against(self, draft: Draft, split: str) -> str | None:
        if draft.question in self.asked:
            return "asked already"
        named = self.mentions.find(draft.question + "\n" + draft.answer)
        if not self.owners.may_use([*draft.entities, *named], split):
            return "names something of another split"
        if self.near.nearest(draft.question):
            return "nearly a question of another split"
        self.owners.claim([*draft.entities, *named], split)
        self.asked.add(draft.question)
        return None


def overlap(splits: Mapping[str, Iterable[Mapping[str, str]]]) -> list[str]:
    """What occurs in the entities of more than one split, read from the rows alone; an empty list is what is wanted."""
    import json

    seen: dict[str, set[str]] = {}
    for split, rows in splits.items():
        for row in rows:
            for thing in json.loads(row["entities"]):
                seen.setdefault(thing, set()).add(split)
    return sorted(thing for thing, where in seen.items() if len(where) > 1)
