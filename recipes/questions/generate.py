"""Fill the splits: deal out what belongs together, draw questions of each type, keep what is
confirmed.

A draft is refused if something in it belongs to another split, if its question was asked already,
if it is nearly a question of another split, or if the database does not confirm it. The next one
takes its place.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from common.terminal import QUICK_SECONDS, progress
from recipes.questions import entities
from recipes.questions.drafts import Draft, row_of
from recipes.questions.entities import Catalogue, Mentions, SearchWord
from recipes.questions.split import Families, Owners, deal
from recipes.questions.streams import STREAMS, Pool, Rates, usable
from scoring.case import Case
from sql_agent.curation.near_duplicates import NearDuplicates
from sql_agent.intake.question_files import Row, nested
from sql_agent.judge.reference import ReferenceJudge
from tools.sql.query import QueryTool

# A family holds at most this share of the entities, so that even the smallest split can be filled.
LARGEST_FAMILY = 1 / 50
SMALLEST_BOUND = 8
HELD_OUT = "test"  # the split in which half of the questions have wordings of their own


@dataclass(frozen=True)
class Request:
    """The rows of each type by split, each split's share of the entities, and how names are
    altered.
    """

    rows: Mapping[str, Mapping[str, int]]
    shares: Mapping[str, float]
    rates: Rates = field(default_factory=Rates)


@dataclass
class Dataset:
    """Rows by split, in the order of the request.

    It also has a finder of the database's names, what was refused, by reason, the columns that no
    question asks for, by table, and lines about rows that no question is about.
    """

    splits: dict[str, list[Row]]
    mentions: Mentions
    refused: Counter[str] = field(default_factory=Counter)
    not_asked: dict[str, list[str]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def missing(self, request: Request) -> Counter[tuple[str, str]]:
        """Return the numbers of rows requested and not made, by split and type."""
        made = Counter(
            (split, row["task_type"]) for split, rows in self.splits.items() for row in rows
        )
        wanted = {
            (split, kind): count
            for split, kinds in request.rows.items()
            for kind, count in kinds.items()
        }
        return Counter(wanted) - made


class Generator:
    def __init__(self, catalogue: Catalogue, request: Request, rng: random.Random) -> None:
        self.catalogue = catalogue
        self.request = request
        self.rng = rng
        self.mentions = Mentions(name for names in catalogue.names.values() for name in names)
        self.links = list(entities.disease_words(catalogue))
        self.words = [*entities.search_words(catalogue, rng), *entities.filter_values(catalogue)]
        self.owners = Owners(self._deal())
        self.asked: set[str] = set()
        self.near = NearDuplicates()
        self.dataset = Dataset({split: [] for split in request.rows}, self.mentions)
        self.dataset.not_asked = entities.not_asked(catalogue)
        self.dataset.left_out = entities.left_out(catalogue)

    def fill(self, url: str) -> Dataset:
        """Return all rows. The first split is filled last, so that the largest gives way to the
        others.

        Raises DatabaseError: the database cannot be queried.
        """
        # Hints take far longer than the query, and are not read here
        tool = QueryTool(url, cache=False, hints=False)
        first, *others = self.request.rows
        for split in (*others, first):
            self.dataset.splits[split] = rows = self._fill_split(split, tool)
            # The first split is filled last, so nothing is compared with it
            for row in rows if split != first else ():
                self.near.add(row["id"], row["question"])
        seen = {row["wording"] for row in self.dataset.splits[first]}
        for row in (row for rows in self.dataset.splits.values() for row in rows):
            row["wording"] = "seen" if row["wording"] in seen else "unseen"
        return self.dataset

    def _deal(self) -> dict[str, str]:
        """Return the split of each thing. Every split gets its share of each kind of family."""
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
        """Yield what a question would tie, with its kind, the surest first: later ones may be
        refused.
        """
        for entity in self.catalogue.entities:
            yield entity.table, [entity.name, *self.mentions.find(entity.name)]
        for word in self.links:
            yield "link", self._held_by(word)
        for word in self.words:
            yield word.column, self._held_by(word)
        for entity in self.catalogue.entities:
            for text in entity.fields.values():
                named = self.mentions.find(text) if usable(text) else []
                if named:
                    yield entity.table, [entity.name, *named]

    def _held_by(self, word: SearchWord) -> list[str]:
        counted = word.whole or word.column in entities.COUNTED_ONLY
        names = [] if counted else entities.names_of(word, self.catalogue)
        return [word.text, *names, *self.mentions.find("\n".join([word.text, *names]))]

    def _fill_split(self, split: str, tool: QueryTool) -> list[Row]:
        pool = self._pool(split)
        judge = ReferenceJudge()
        sources = {kind: self._accepted(stream(pool), split) for kind, stream in STREAMS.items()}
        left = dict(self.request.rows[split])
        rows: list[Row] = []
        with progress(split, sum(left.values()), "questions", quick=QUICK_SECONDS) as bar:
            while any(left.values()):
                for kind, count in left.items():
                    drafts = list(islice(sources[kind], count))  # fewer if the stream has ended
                    before = len(rows)
                    for draft in drafts:
                        if (lines := confirmed(draft, tool, judge)) is not None:
                            rows.append(row_of(draft, lines, split))
                            bar.update()
                    left[kind] = len(drafts) - (len(rows) - before)
                    self.dataset.refused.update(["not confirmed"] * left[kind])
        self.rng.shuffle(rows)
        return rows

    def _pool(self, split: str) -> Pool:
        def mine(words: list[SearchWord]) -> list[SearchWord]:
            own = [word for word in words if self.owners.get(word.text) == split]
            return [word for word in own if self.owners.may_use(self._held_by(word), split)]

        own = [
            entity for entity in self.catalogue.entities if self.owners.get(entity.name) == split
        ]
        links = mine(self.links)
        words = mine(self.words)
        return Pool(
            own, links, words, self.catalogue, self.request.rates, self.rng, split == HELD_OUT
        )

    def _accepted(self, drafts: Iterable[Draft], split: str) -> Iterator[Draft]:
        for draft in drafts:
            if reason := self._reason_against(draft, split):
                self.dataset.refused[reason] += 1
            else:
                yield draft

    def _reason_against(self, draft: Draft, split: str) -> str | None:
        if draft.question in self.asked:
            return "asked already"
        things = [*draft.entities, *self.mentions.find(draft.question + "\n" + draft.answer)]
        if not self.owners.may_use(things, split):
            return "names something of another split"
        if self.near.nearest(draft.question):
            return "nearly a question of another split"
        self.owners.update(dict.fromkeys(things, split))
        self.asked.add(draft.question)
        return None


def confirmed(draft: Draft, tool: QueryTool, judge: ReferenceJudge) -> list[list[Any]] | None:
    """Return what the SQL of a draft returns, or None if that is not what the draft expects, or its
    answer is not worth 1.

    Raises DatabaseError: the database cannot be used.
    """
    result = tool.run(draft.sql)
    if not result.ok or result.truncated or result.columns != list(draft.columns):
        return None
    if sorted(result.rows, key=repr) != sorted(map(list, draft.rows), key=repr):
        return None
    gold = {
        "structured_gt": {"columns": result.columns, "rows": result.rows},
        "evidence": draft.evidence,
    }
    case = Case(draft.question, draft.answer, draft.answer, [result.to_json()], gold)
    verdict = judge.compare(case, by_reference=False)
    return result.rows if verdict.score == 1 else None


def overlap(splits: Mapping[str, Iterable[Row]]) -> list[str]:
    """Return what occurs in the entities of more than one split, read from the rows alone."""
    return _in_several(
        (thing, split)
        for split, rows in splits.items()
        for row in rows
        for thing in nested(row, "entities")
    )


def _in_several(things: Iterable[tuple[str, str]]) -> list[str]:
    """Return what occurs in more than one split, given things with a split each."""
    counts = Counter(thing for thing, _ in set(things))
    return sorted(thing for thing, splits in counts.items() if splits > 1)
