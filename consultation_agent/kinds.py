"""Of what kind an answer must be, and whether a text is of it: a colour where a colour is asked for.

    says_what("What colour is it?", "It is greenish.")      # True
    says_what("What colour is it?", "It is loose.")         # False

The kinds are in kinds.toml, and so are the things that are not each other, such as two tests.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from consultation_agent.doctor_questions import SAID, content_of, named_in, plain
from consultation_agent.topics import topics

TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
THINGS = tuple(re.compile(one) for one in TABLE["things"]["each"])
JOINT = re.compile("|".join(SAID["heard"]["joint"]))
# What only illustrates a question, such as "have you tried anything, like tablets?"
EXAMPLE = re.compile(r"(?:[,，] ?(?:like|say)\b|such as|for example|e\.g\.|比如|例如).*")
WORD = re.compile(r"[a-z'’]+|[\u4e00-\u9fff]")
PAIN = re.compile(
    r"疼|\bpain(?!\W?(?:kill|relie|med))|\bach(?:e|ing)|hurt|\bsore|tender|cramp|\bsharp|\bdull|stabbing|throbbing|\w{3}algia|\w{3}ache"
)
# Parts of the body: a question about one is not answered by what is said of others alone.
PARTS = tuple(
    re.compile(words)
    for words in (
        r"(?<!light-)\bhead|头(?!晕|昏)|脑袋",
        r"\bchest|\bheart|胸|心口",
        r"stomach|abdom|bell(?:y|ies)|tummy|\bguts?\b|肚|腹|胃",
        r"\bback (?:pain|ache|hurt)|\b(?:my|your|lower|upper) back\b|\bwaist|腰|背",
        r"\blegs?\b|\bknees?\b|\bankles?\b|\bfoot\b|\bfeet\b|腿|膝|脚",
        r"\barms?\b|\bhands?\b|\bwrists?\b|\bshoulders?\b|胳膊|手(?!术)|肩",
        r"\beyes?\b|眼",
        r"\bears?\b|耳",
        r"throat|嗓|喉|咽",
        r"\bmouth|tongue|嘴|舌",
    )
)
NEVER = r"(?!)"
NUMBER = re.compile(r"\d+")
SHORT = 3  # words that a wording may have and be known as a whole


class Kind(NamedTuple):
    """A kind of answer: what asks for it, what tells it, and what a question for something else has."""

    name: str
    ask: re.Pattern[str]
    told: re.Pattern[str]
    but: re.Pattern[str]
    by_context: bool


@cache
def kinds() -> tuple[Kind, ...]:
    """Return all kinds in the order of the file."""
    return tuple(
        Kind(
            name,
            re.compile(one["ask"]),
            re.compile(one["told"]),
            re.compile(one.get("but", NEVER)),
            "context" in one,
        )
        for name, one in TABLE.items()
        if "ask" in one
    )


@lru_cache(maxsize=4096)
def kinds_of(question: str) -> tuple[Kind, ...]:
    """Return the kinds of answer that a question asks for."""
    text = plain(question)
    return tuple(kind for kind in kinds() if kind.ask.search(text) and not kind.but.search(text))


def says_what(question: str, text: str, context: str = "") -> bool:
    """Return whether a text says something of every kind that a question asks for.

    context: the earlier question that the text answers, which tells some kinds.
    """
    whole = f"{context} {text}"
    return all(
        kind.told.search(plain(whole if kind.by_context else text)) for kind in kinds_of(question)
    )


def names_it(question: str, text: str) -> bool:
    """Return whether a text names the things that a question names, or one of them where the question
    joins several by "or".
    """
    named = things_in(question)
    told = named & things_in(text)
    return told == named or bool(told and JOINT.search(question.lower()))


@lru_cache(maxsize=16384)
def things_in(text: str) -> frozenset[int]:
    """Return the things that a text names, by their place in THINGS."""
    return frozenset(at for at, thing in enumerate(THINGS) if thing.search(plain(text)))


@lru_cache(maxsize=4096)
def parts_in(text: str) -> frozenset[int]:
    """Return the parts of the body that a text names, by their place in PARTS."""
    return frozenset(at for at, part in enumerate(PARTS) if part.search(text.lower()))


def numbers_of(text: str) -> frozenset[str]:
    """Return the numbers of a text, without those of a scale from 0 or 1 to 10."""
    return frozenset(NUMBER.findall(text)) - {"0", "1", "10"}


@lru_cache(maxsize=4096)
def left_of(question: str) -> frozenset[str]:
    """Return the content of a question that no topic, kind or thing knows: a text must have it to
    answer.
    """
    left = EXAMPLE.sub("", plain(question))
    for _ in range(2):  # a longer wording may hide a shorter one inside it
        for start, end in list(_known(left)):
            left = left[:start] + " " * (end - start) + left[end:]
    content = content_of(left) - _generic()
    return frozenset(word for word in content if len(word) > 1)


def _known(text: str) -> Iterator[tuple[int, int]]:
    """Return where the known words of a question are. Of a longer wording these are the first and the
    last, since anything may be between them.
    """
    asks = [one.ask for one in topics().values()] + [one.ask for one in kinds()]
    for pattern in (*asks, *THINGS, *PARTS, PAIN):
        for match in pattern.finditer(text):
            words = [
                (match.start() + one.start(), match.start() + one.end())
                for one in WORD.finditer(match[0])
            ]
            yield from _whole(text, words if len(words) <= SHORT else [words[0], words[-1]])
    yield from ((end - len(word.parts[-1]), end) for end, word in named_in(text))


def _whole(text: str, spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Return spans as far as their words go: a pattern may end inside of one."""
    for start, end in spans:
        while end < len(text) and text[end].isascii() and text[end].isalpha():
            end += 1
        while start and text[start - 1].isascii() and text[start - 1].isalpha():
            start -= 1
        yield start, end


@cache
def _generic() -> frozenset[str]:
    return frozenset(content_of(SAID["small"]["generic"]))
