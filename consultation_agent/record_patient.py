"""The patient that needs no model: finds what a question asks for and answers it from the record,
always alike.

    RecordPatient().reply_to(task, "有没有发烧？", [])      # Reply("informative", "有，身上发烫。", ("fever",))

Questions are understood in Chinese and English by the ask-words of data/conditions/phrases.toml,
the longest at each place, else by the wording nearest to them; in a sentence that names a facet
symptoms are only what it is asked of ("恶心多久了？"), and what asks nothing, such as advice, is not
answered. Rows of the reference, which have no facets, are answered by a question once asked of the
same things, else by a sentence of the description that tells of them; content words decide, never
small ones, and what neither tells is not known.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product
from math import fsum
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from consultation_agent.patient import Exchange, Patient, Reply
from consultation_agent.task import ConsultationTask
from data.conditions.records import Facet, Phrase
from data.conditions.table import load_tables
from scoring.diagnosis import mention
from scoring.framing import unframed

LONGEST = 400  # characters of a question that a patient listens to
ALIKE, TELLING = (
    0.3,
    1.5,
)  # of a wording, and in pieces that no other item has: what a question must share with it
NEAR = 0.6  # of 1: a question once asked or a sentence that has so much of a question's content answers it
SENTENCE = re.compile(r"[^?？!！。；;\n]+[?？]?")
CHOICE = re.compile(r"([^\W\d_a-z]{1,2})[不没]\1")  # 疼不疼
PIECE = re.compile(r"(?=([\u4e00-\u9fff]{2}|(?<![a-z])[a-z]{4,5}))")
SAID = tomllib.loads(Path(__file__).with_name("said.toml").read_text(encoding="utf-8"))
ASKING, ADVICE, TAG, EXAMPLE = (
    re.compile("|".join(SAID["heard"][name])) for name in ("asking", "advice", "tag", "example")
)
HAN = re.compile(r"[\u4e00-\u9fff]")
HAN_RUN, ENGLISH, STEM = re.compile(r"[\u4e00-\u9fff]+"), re.compile(r"[a-z]+"), 5
ARTICLE = re.compile(r"^(?:an?|the) ", re.IGNORECASE)
SMALL_CHINESE = re.compile(SAID["small"]["chinese"])
SMALL_ENGLISH = frozenset(SAID["small"]["english"].split())


class RecordPatient(Patient):
    """Answers from the record alone."""

    description: Mapping[str, str] = MappingProxyType({"patient": "record"})

    async def answer(
        self, task: ConsultationTask, question: str, asked: Sequence[Exchange]
    ) -> Reply:
        return self.reply_to(task, question, asked)

    def reply_to(self, task: ConsultationTask, question: str, asked: Sequence[Exchange]) -> Reply:
        """What the patient says to a question, after those asked before."""
        told = {
            facet: earlier.reply for earlier in reversed(asked) for facet in earlier.reply.facets
        }
        if not task.words:
            return _remembered(task, question[:LONGEST], told)
        question = question[:LONGEST]
        if task.complaint and asks_whether(question, task.complaint):
            return _complaint(task, told)
        items = asked_for(question, task.question)
        if not items:
            return _not_understood(question)
        subject = _subject(question, items)
        if subject and items[0] in task.words:
            return _of_subject(task, items[0], subject, told)
        if items[0] in told:
            return again(told[items[0]], task)
        reply = _told(task, items[0], told)
        if len(items) > 1:
            return Reply("compound", SAID["zh"]["compound"].format(text=reply.text), reply.facets)
        return reply


def asks_whether(question: str, complaint: str) -> bool:
    """Whether a question, or the last clause of one, asks for a complaint and for nothing else: no
    other word of it says anything.
    """
    asking = [one for one in SENTENCE.findall(TAG.sub("", question.lower())) if _asks(one)]
    texts = [_plain(text) for one in asking[-1:] for text in (one, re.split("[，,]", one)[-1])]
    words = [parts for word in SAID["complaints"][complaint] for parts in readings(word)]
    return any(_nothing_but(parts, text) for text in texts for parts in words)


def _nothing_but(parts: tuple[str, ...], text: str) -> bool:
    """Whether a text says these parts in their order, and else only small words."""
    if not _pattern(parts).search(text):
        return False
    for part in parts:
        text = _pattern((part,)).sub(" ", text, count=1)
    return not content_of(text)


def content_of(text: str) -> set[str]:
    """The words of a text that say something: English ones by their beginning, Chinese ones by
    pairs of characters.
    """
    plain = _plain(text)
    english = {word[:STEM] for word in ENGLISH.findall(plain) if word not in SMALL_ENGLISH}
    runs = HAN_RUN.findall(SMALL_CHINESE.sub(" ", plain))
    return english | {run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1))}


def _complaint(task: ConsultationTask, told: Mapping[str, Reply]) -> Reply:
    """What is said to a question whether there is what the patient came for."""
    if "complaint" in told:
        return again(told["complaint"], task)
    word = load_tables().complaints[task.complaint].zh
    return Reply("informative", SAID["zh"]["complaint"].format(word=word), ("complaint",))


def _not_understood(question: str) -> Reply:
    """Of a complaint that is not the patient's own the record says nothing."""
    if any(asks_whether(question, one) for one in SAID["complaints"]):
        return Reply("unknown", SAID["zh"]["unknown"])
    return Reply("off_topic", SAID["zh"]["off_topic"])


def _subject(question: str, items: Sequence[str]) -> str | None:
    """The one thing of a facet that a question asks for; None: the facet as a whole, several
    things, or several facets.
    """
    found = [
        name
        for name, one in SAID["subjects"].items()
        if [one["of"]] == [*items] and re.search(one["ask"], question, re.IGNORECASE)
    ]
    return found[0] if len(found) == 1 else None


def _of_subject(
    task: ConsultationTask, item: str, subject: str, told: Mapping[str, Reply]
) -> Reply:
    """What the record says of one thing of a facet: what it tells of it, else that there is none of
    it.
    """
    known, name = SAID["subjects"][subject], f"{item}:{subject}"
    if re.search(known["told"], task.words[item]):
        return again(told[item], task) if item in told else _told(task, item, told)
    return again(told[name], task) if name in told else Reply("informative", known["no"], (name,))


def question_for(item: str) -> str:
    """A question that asks for a facet or a symptom."""
    symptom = load_tables().symptoms.get(item)
    return (
        SAID["questions"]["symptom"].format(word=symptom.ask[0])
        if symptom
        else SAID["questions"][item]
    )


def asked_for(question: str, complaint: str) -> list[str]:
    """What a question asks for, in its order: names of facets, symptoms, "age", "sex" and
    "accompanying".
    """
    asking = [one for one in SENTENCE.findall(TAG.sub("", question.lower())) if _asks(one)]
    found = [item for sentence in asking for item in _asked_in(sentence, _plain(complaint))]
    return list(dict.fromkeys(found)) or [
        item for sentence in asking[-1:] for item in _nearest(sentence)
    ]


def _asks(sentence: str) -> bool:
    return sentence.endswith(("?", "？")) or bool(
        ASKING.search(sentence) and not ADVICE.search(sentence)
    )


def _asked_in(sentence: str, complaint: str) -> list[str]:
    """What a sentence asks for. Only where nothing else is: examples, what stands before the first
    clause that asks, and words that the complaint has too, which say what the question is about.
    """
    clauses = re.split("(?<=[，,：:])", EXAMPLE.sub("", sentence))
    first = next((number for number, clause in enumerate(clauses) if ASKING.search(clause)), 0)
    before = len(_plain("".join(clauses[:first])))
    named = _named(_plain("".join(clauses))) or _named(_plain(sentence))
    words = [word for end, word in named if end > before] or [word for _, word in named]
    words = [word for word in words if not all(part in complaint for part in word.parts)] or words
    items = [word.item for word in words if not word.weak] or [word.item for word in words]
    symptoms = [item for item in items if item in load_tables().symptoms]
    return (
        [item for item in items if item not in symptoms and item != "accompanying"]
        or symptoms
        or items
    )


def _plain(text: str) -> str:
    """A text as the ask-words are written: 疼不疼 and 疼痛 are 疼."""
    return CHOICE.sub(r"\1", text.lower()).replace("疼痛", "疼").replace("痛", "疼")


class AskWord(NamedTuple):
    """One reading of an ask-word: its parts in their order; whether it counts only where nothing
    else is named.
    """

    parts: tuple[str, ...]
    item: str
    weak: bool


def _named(sentence: str) -> list[tuple[int, AskWord]]:
    """The ask-words of a sentence in its order, and where they end. Of two that overlap it is not
    the weak one, then the longer one, then the one with less between its parts.
    """
    here, found, left = (
        {part for part in _ask_words() if part in sentence},
        list[tuple[int, int, AskWord]](),
        sentence,
    )
    words = [word for part in here for word in _ask_words()[part] if here.issuperset(word.parts)]
    matches = [
        (word, *match.span()) for word in words for match in _pattern(word.parts).finditer(sentence)
    ]
    for word, start, end in sorted(
        matches, key=lambda m: (m[0].weak, -len("".join(m[0].parts)), m[2] - m[1], *m[1:])
    ):
        if "\0" not in left[start:end]:
            left = left[:start] + "\0" * (end - start) + left[end:]
            found.append((start, end, word))
    return [(end, word) for _, end, word in sorted(found)]


@cache
def _pattern(parts: tuple[str, ...]) -> re.Pattern[str]:
    """An English part does not stand inside another word, such as "age" in "manage"; it may have an
    ending.
    """
    if all(part.isascii() for part in parts):
        return re.compile(
            ".{0,30}?".join(
                rf"(?<![a-z]){re.escape(one)}(?:s|es|d|ed|ing)?(?![a-z])" for one in parts
            )
        )
    return re.compile(".{0,12}?".join(map(re.escape, parts)))


@cache
def _ask_words() -> dict[str, list[AskWord]]:
    """Every reading of every ask-word, by its first part; all other parts are there too."""
    asks = [
        (item, word) for item, thing in _things().items() for word in (*thing.ask, *thing.ask_en)
    ]
    words = [
        AskWord(parts, item, word.startswith("~"))
        for item, word in asks
        for parts in readings(word)
    ]
    by_part: dict[str, list[AskWord]] = {part: [] for word in words for part in word.parts}
    for word in words:
        by_part[word.parts[0]].append(word)
    return by_part


def _things() -> dict[str, Phrase | Facet]:
    tables = load_tables()
    return {**tables.general, **tables.symptoms, **tables.facets}


def readings(word: str) -> Iterator[tuple[str, ...]]:
    """The texts that an ask-word of the table stands for, each as its parts: "尿|小便…疼" is 尿…疼 and
    小便…疼.
    """
    return product(*(group.split("|") for group in _plain(word).removeprefix("~").split("…")))


def _nearest(sentence: str) -> list[str]:
    """The item of which a wording has most in common with a sentence, where that is enough."""
    here, (wordings, having) = _pieces(sentence), _wordings()
    told = [
        (fsum(1 / having[piece] for piece in pieces & here), item, pieces)
        for item, pieces in wordings
    ]
    shares = [
        (s / fsum(1 / having[one] for one in pieces), item)
        for s, item, pieces in told
        if s >= TELLING
    ]
    return [item for share, item in [max(shares, default=(0, ""))] if share > ALIKE]


@cache
def _wordings() -> tuple[list[tuple[str, set[str]]], Counter[str]]:
    """The pieces of every name and wording of what can be asked for, and how many items have a
    piece.
    """
    pieces: dict[str, list[set[str]]] = {}
    for item, thing in _things().items():
        phrases = thing.values.values() if isinstance(thing, Facet) else [thing]
        pieces[item] = [
            _pieces(text) for one in phrases for text in (one.zh, one.en, *one.lay, *one.lay_en)
        ]
    having = Counter(piece for texts in pieces.values() for piece in set().union(*texts))
    return [(item, text) for item, texts in pieces.items() for text in texts], having


def _pieces(text: str) -> set[str]:
    """The pairs of neighbouring Chinese characters, and the beginnings of the longer English words."""
    return set(PIECE.findall(_plain(text)))


def again(earlier: Reply, task: ConsultationTask) -> Reply:
    """What is said to a question that was asked before."""
    return Reply(
        "repeated", SAID[_language(task)]["repeated"].format(text=earlier.text), earlier.facets
    )


def _language(task: ConsultationTask) -> str:
    return "zh" if HAN.search(task.question) else "en"


def memories(task: ConsultationTask) -> dict[str, tuple[str, str]]:
    """A record without facets, less what gives it away: by name the question, or the sentence
    again, and the answer.
    """
    sentences = [
        text.strip() for text in re.split(r"(?<=[.。!！?？])", task.description) if text.strip()
    ]
    once = {f"exchange {number}": pair for number, pair in enumerate(task.exchanges)}
    held = once | {f"sentence {number}": (text, text) for number, text in enumerate(sentences)}
    return {name: pair for name, pair in held.items() if not _gives_away(task, pair[1])}


def _told(task: ConsultationTask, item: str, told: Container[str]) -> Reply:
    """What the record says of an item."""
    said, tables = SAID["zh"], load_tables()
    if item == "accompanying":
        more = next(
            (name for name, there in task.symptoms.items() if there and name not in told), None
        )
        text = f"{task.words[more]}。" if more else said["nothing_else"]
        return Reply("informative", text, (item, more) if more else (item,))
    if item in task.words:
        return Reply(
            "informative",
            f"{'有，' if item in tables.symptoms else ''}{task.words[item]}。",
            (item,),
        )
    if item in tables.symptoms:
        return Reply(
            "informative", said["absent"].format(word=tables.symptoms[item].ask[0]), (item,)
        )
    if item == "age" and task.age is not None:
        return Reply("informative", said["age"].format(age=task.age), (item,))
    if item == "sex" and task.sex in said:
        return Reply("informative", said[task.sex], (item,))
    return Reply("unknown", said["unknown"], (item,))


def _remembered(task: ConsultationTask, question: str, told: Mapping[str, Reply]) -> Reply:
    """The answer to a question once asked of the same thing, else a sentence that tells of it; not
    recorded otherwise.
    """
    held, items = memories(task), {*asked_for(question, "")}
    for kind in ("exchange", "sentence"):
        fit = {name: text for name, (text, _) in held.items() if name.startswith(kind)}
        near = _nearest_memory(question, task.question, items, fit)
        if near in told:
            return again(told[near], task)
        if near:
            return Reply("informative", held[near][1], (near,))
    return Reply("unknown", SAID[_language(task)]["unknown"])


def _nearest_memory(
    question: str, complaint: str, items: set[str], texts: Mapping[str, str]
) -> str:
    """The text that has most of what the question says beyond the complaint, or is of the same
    things; "": none is.
    """
    content = content_of(question)
    content = content - content_of(complaint) or content
    shares = [
        (len(content & content_of(text)) / len(content), name)
        for name, text in texts.items()
        if content
    ]
    best, name = max(shares, default=(0.0, ""))
    if best >= NEAR:
        return name
    same = [
        (share, name)
        for share, name in shares
        if items and items & ({*asked_for(texts[name], "")} or {*_mentioned(texts[name])})
    ]
    return max(same, default=(0.0, ""))[1]


@lru_cache(maxsize=4096)
def _mentioned(sentence: str) -> tuple[str, ...]:
    """What a sentence of a record tells of, by the words that ask for it."""
    words = _named(_plain(sentence))
    return tuple(word.item for _, word in words if not word.weak)


def _gives_away(task: ConsultationTask, text: str) -> bool:
    """Whether a text names the diagnosis; a gold that is a sentence, by what follows "This is a"
    too.
    """
    disease = ARTICLE.sub("", unframed(task.reference))
    return bool(mention(task.names or (task.reference, disease)).search(text))
