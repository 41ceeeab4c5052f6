"""What a doctor's question asks for, by the ask-words of conditions/phrases.toml, the longest at each place.

asked_for("恶心多久了？", "肚子疼")      # ["onset"]
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain, product
from typing import NamedTuple

from common.toml import table_beside
from conditions.condition_types import Facet, Phrase
from conditions.table import load_tables

SENTENCE = re.compile(r"[^?？!！。；;\n]+[?？]?")
CHOICE = re.compile(r"([^\W\d_a-z]{1,2})[不没]\1")  # 疼不疼
SAID = table_beside(__file__, "said.toml")
HEARD = {name: re.compile("|".join(SAID["heard"][name])) for name in SAID["heard"]}
ASKING, ADVICE, TAG, EXAMPLE = (HEARD[name] for name in ("asking", "advice", "tag", "example"))
CLAUSE, ITSELF, BODY, OPENING = (HEARD[name] for name in ("clause", "itself", "body", "opening"))
MORE, DETAIL, JOINT, PREFACE = (HEARD[name] for name in ("more", "detail", "joint", "preface"))
WHEN = re.compile("(?<!什么)(?<!啥)的时候")  # what stands before it is no more than the occasion
ONE_CLAUSE = "[^，,。；;.]"  # a letter between the parts of an ask-word
HAN_RUN = re.compile(r"[\u4e00-\u9fff]+")
ENGLISH = re.compile(r"[a-z]+")
STEM = 5  # letters by which an English word is known
SIDES = frozenset(SAID["heard"]["sides"])
# A clause with something behind it
BEFORE = re.compile(r"[^，,。.!！:：?？]*[，,。.!！:：]\s*(?:(?:and|so|but|now)\b\s*)?(?=\S)", re.I)
SMALL_CHINESE = re.compile(SAID["small"]["chinese"])
SMALL_ENGLISH = frozenset(SAID["small"]["english"].split())


class AskWord(NamedTuple):
    """One reading of an ask-word: its parts in order, and whether it yields to anything else."""

    parts: tuple[str, ...]
    item: str
    weak: bool


def asks_whether(question: str, complaint: str) -> bool:
    """Return whether a question, or its last clause, asks for a complaint and nothing else."""
    asking = _asking_sentences(question)
    if not asking or DETAIL.search(asking[-1]):
        return False
    texts = [plain(asking[-1]), plain(re.split("[，,]", asking[-1])[-1])]
    for text, parts in product(texts, _words_for(complaint)):
        rest = text
        for part in parts:
            rest = pattern_of((part,)).sub(" ", rest, count=1)
        if pattern_of(parts).search(text) and not content_of(rest):
            return True
    return False


def _words_for(complaint: str) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(map(readings, SAID["complaints"].get(complaint, ())))


def opens(question: str) -> bool:
    """Return whether a question opens a consultation, as "What brings you in?", and no more."""
    text = plain(TAG.sub("", question))
    if not OPENING.search(text) or MORE.search(text):
        return False
    return not content_of(OPENING.sub(" ", text))


def _asking_sentences(question: str) -> list[str]:
    return [one for one in SENTENCE.findall(TAG.sub("", question.lower())) if asks(one)]


def content_of(text: str) -> set[str]:
    """Return the words of content: beginnings of English ones, pairs of Chinese characters."""
    text = plain(text)
    found = {word[:STEM] for word in ENGLISH.findall(text) if word not in SMALL_ENGLISH}
    for run in HAN_RUN.findall(SMALL_CHINESE.sub(" ", text)):
        found.update(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return found


def without_preface(question: str) -> str:
    """Return a question without the clauses that only lead up to it: "嗯，", "Okay, and "."""
    while before := BEFORE.match(question):
        clause = before[0].lower()
        if asks(clause) or (content_of(clause) and not PREFACE.search(clause)):
            break
        question = question[before.end() :]
    return question


def asked_for(question: str, complaint: str) -> list[str]:
    """Return what is asked for in order: facets, symptoms, "age", "sex", "accompanying"."""
    found = dict[str, None]()
    for sentence in _asking_sentences(question):
        found.update(dict.fromkeys(_asked_in(sentence, plain(complaint))))
    return list(found)


def _clauses(sentence: str) -> list[str]:
    return list(filter(None, CLAUSE.split(EXAMPLE.sub("", sentence))))


def parts_of(question: str) -> list[str]:
    """Return the sentences of a question that ask, or the clauses that each ask for something.

    A side, such as how long, is asked of the thing before it. One part is the question itself.
    """
    parts = list[tuple[str, list[str]]]()
    for sentence in _asking_sentences(question):
        asking = list[tuple[str, list[str]]]()
        for clause in _clauses(sentence):
            if items := _asked_by_itself(clause):
                asking.append((clause, items))
        parts += asking if len(asking) > 1 else [(sentence, _asked_by_itself(sentence))]
    kept = list[str]()
    for number, (part, items) in enumerate(parts):
        is_side = bool(items) and SIDES - {"relieving"} >= {*items}
        of_another = is_side and not SIDES.issuperset(parts[0][1])
        if not number or not of_another or ITSELF.search(plain(part)):
            kept.append(part if asks(part) else f"{part}?")
    return kept if len(parts) > 1 else [question]


def is_of_complaint(question: str, item: str, complaint: str, opening: str) -> bool:
    """Return whether each word that asks for an item is one of the opening, or stands inside a
    mention of the complaint.
    """
    mentions = mentions_of(question, complaint)
    said = plain(opening)
    for start, end, word in named_in(plain(question)):
        is_inside = any(first <= start and end <= last for first, last in mentions)
        is_said = all(part in said for part in word.parts)
        if word.item == item and not (is_inside or is_said):
            return False
    return True


def mentions_of(question: str, complaint: str) -> list[tuple[int, int]]:
    """Return where a question, as `plain` writes it, names the complaint: starts and ends."""
    text = plain(question)
    found = list[tuple[int, int]]()
    for parts in _words_for(complaint):
        found += [match.span() for match in pattern_of(parts, ONE_CLAUSE).finditer(text)]
    return found


def clauses_without_words(question: str) -> list[str]:
    """Return the clauses of a question in which no ask-word stands."""
    found = list[str]()
    for sentence in _asking_sentences(question):
        for clause in _clauses(sentence):
            if not named_in(plain(clause)):
                found.append(clause if asks(clause) else f"{clause}?")
    return found


def has_more(question: str) -> bool:
    """Return whether a question has words of content beside its ask-words."""
    text = plain(question)
    for start, end, _ in named_in(text):
        text = text[:start] + " " * (end - start) + text[end:]
    return bool(content_of(text))


def sure_words(question: str) -> list[AskWord]:
    """Return the ask-words of a question that are not weak."""
    return [word for *_, word in named_in(plain(question)) if not word.weak]


def _asked_by_itself(clause: str) -> list[str]:
    if not ASKING.search(clause) or ADVICE.search(clause):
        return []
    return [word.item for word in sure_words(clause)]


def asks(sentence: str) -> bool:
    if sentence.endswith(("?", "？")):
        return True
    return bool(ASKING.search(sentence) and not ADVICE.search(sentence))


def _asked_in(sentence: str, complaint: str) -> list[str]:
    clauses = re.split("(?<=[，,：:])", EXAMPLE.sub("", sentence))
    first = next((number for number, clause in enumerate(clauses) if ASKING.search(clause)), 0)
    whole = plain(sentence)
    before = len(plain("".join(clauses[:first])))
    before = max(before, *(match.end() for match in WHEN.finditer(whole)), 0)
    named = named_in(plain("".join(clauses))) or named_in(whole)
    words = [word for _, end, word in named if end > before] or [word for *_, word in named]
    words = [one for one in words if not all(part in complaint for part in one.parts)] or words
    items = [word.item for word in words if not word.weak] or [word.item for word in words]
    symptoms = [item for item in items if item in load_tables().symptoms]
    facets = [item for item in items if item not in (*symptoms, "accompanying")]
    return facets or symptoms or items


def plain(text: str) -> str:
    """Return a text in the spelling of the ask-words: 疼不疼 and 疼痛 are 疼."""
    text = CHOICE.sub(r"\1", text.lower()).replace("平常", "平时")
    return text.replace("疼痛", "疼").replace("痛", "疼")


@lru_cache(maxsize=4096)
def named_in(sentence: str) -> tuple[tuple[int, int, AskWord], ...]:
    """Return the ask-words of a sentence in order, each with its start and end. Of two that overlap
    the one that is not weak counts, then the longer, then the denser one. Parts of a word stand in
    one clause, unless no word does.
    """
    matches = _matches(sentence, ONE_CLAUSE) or _matches(sentence, ".")
    found = list[tuple[int, int, AskWord]]()
    left = sentence
    for word, start, end in sorted(matches, key=_surest_first):
        if "\0" not in left[start:end]:
            left = left[:start] + "\0" * (end - start) + left[end:]
            found.append((start, end, word))
    return tuple(sorted(found))


def _matches(sentence: str, between: str) -> list[tuple[AskWord, int, int]]:
    here = {part: words for part, words in ask_words().items() if part in sentence}
    found = list[tuple[AskWord, int, int]]()
    for words in here.values():
        for word in words:
            if here.keys() >= {*word.parts}:
                for match in pattern_of(word.parts, between).finditer(sentence):
                    found.append((word, *match.span()))
    return found


def _surest_first(match: tuple[AskWord, int, int]) -> tuple[bool, int, int, int, int]:
    word, start, end = match
    return word.weak, -len("".join(word.parts)), end - start, len(word.parts), start


@cache
def pattern_of(parts: tuple[str, ...], between: str = ".") -> re.Pattern[str]:
    """Return a pattern that finds an ask-word's parts in order. between: a pattern of a letter."""
    # An English part must not be inside another word, such as "age" in "manage"
    if all(part.isascii() for part in parts):
        whole = [rf"(?<![a-z]){re.escape(one)}(?:s|es|d|ed|ing)?(?![a-z])" for one in parts]
        return re.compile(f"{between}{{0,30}}?".join(whole))
    return re.compile(f"{between}{{0,12}}?".join(map(re.escape, parts)))


@cache
def ask_words() -> dict[str, list[AskWord]]:
    """Return all readings of ask-words by their first part. Other parts have none."""
    tables = load_tables()
    by_part: dict[str, list[AskWord]] = {}
    things: dict[str, Phrase | Facet] = {**tables.general, **tables.symptoms, **tables.facets}
    for item, thing in things.items():
        for word in (*thing.ask, *thing.ask_en):
            for parts in readings(word):
                for part in parts:
                    by_part.setdefault(part, [])
                by_part[parts[0]].append(AskWord(parts, item, word.startswith("~")))
    return by_part


def readings(word: str) -> Iterator[tuple[str, ...]]:
    """Return the parts of each text of an ask-word: "尿|小便…疼" is 尿…疼 and 小便…疼."""
    return product(*(group.split("|") for group in plain(word).removeprefix("~").split("…")))
