"""The topics of questions, by the patterns of topics.toml: for questions in which no ask-word is
found.

    [topic.name for topic in asked_topics("大便怎么样？")]      # ["bowels"]
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache

from common.toml import table_beside
from consultation_agent.doctor_questions import EXAMPLE, SENTENCE, TAG, asks, plain

NEVER = "(?!)"
FULL_STOP = re.compile(r"(?<=[a-z]{2})\.\s")


@dataclass(frozen=True)
class Topic:
    """One topic, with the columns of topics.toml. A side belongs to what else a question names."""

    name: str
    ask: re.Pattern[str]
    own: re.Pattern[str]
    first: re.Pattern[str]
    kind: str = ""
    under: str = ""
    of: Sequence[str] = ()
    values: Sequence[str] = ()
    no: str = ""
    only: str = ""
    instead_of: Sequence[str] = ()
    complaint: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_side(self) -> bool:
        return self.kind == "of it"


@cache
def topics() -> dict[str, Topic]:
    """Return all topics by name, in the order of the file."""
    table = table_beside(__file__)
    found = {}
    for name, columns in table.items():
        asks_for = columns.pop("ask")
        if "under" in columns:
            columns["of"] = table[columns["under"]]["of"]
        own = columns.pop("own", "." if columns.get("kind") == "of it" else NEVER)
        first = columns.pop("first", NEVER)
        if first not in (NEVER, "."):
            asks_for = [*asks_for, first]
        ask = re.compile("|".join(f"(?:{one})" for one in asks_for))
        found[name] = Topic(name, ask, re.compile(own), re.compile(first), **columns)
    return found


@lru_cache(maxsize=4096)
def asked_topics(question: str) -> tuple[Topic, ...]:
    """Return a question's topics, subjects before sides, without those more general."""
    asking = asking_of(question)
    found = [one for one in topics().values() if one.ask.search(asking)]
    others = set[str]()
    for one in found:
        others.update((*one.instead_of, one.under))
    kept = [one for one in found if one.name not in others]
    return tuple(sorted(kept, key=lambda one: one.is_side))


@lru_cache(maxsize=4096)
def asked_first(question: str) -> Topic | None:
    """Return the topic that a question is about whatever its ask-words say, or None."""
    asking = asking_of(question)
    for one in topics().values():
        if one.first.search(asking) and one.ask.search(asking):
            return one
    return None


def asking_of(question: str) -> str:
    """Return the sentences of a question that ask, without examples."""
    sentences = SENTENCE.findall(FULL_STOP.sub("\n", TAG.sub("", question.lower())))
    return plain(" ".join(EXAMPLE.sub("", one) for one in sentences if asks(one)))
