"""The patient that needs no model: finds what a question asks for and answers it from the record, always alike.

    RecordPatient().reply_to(task, "有没有发烧？", [])      # Reply("informative", "有，身上发烫。", ("fever",))

Questions are understood in Chinese and English by the ask-words of data/conditions/phrases.toml, the longest at each
place, else by the wording nearest to them; in a sentence that names a facet symptoms are only what it is asked of
("恶心多久了？"), and what asks nothing, such as advice, is not answered. Rows of the reference, which have no facets, are answered by the nearest question once asked, else by a sentence of the description.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from types import MappingProxyType

from consultation_agent.patient import Exchange, Patient, Reply
from consultation_agent.task import ConsultationTask
from data.conditions.records import Facet, Phrase
from data.conditions.table import load_tables

LONGEST = 400  # characters of a question that a patient listens to
ALIKE, TELLING = 0.3, 1.5  # of a wording, and in pieces that no other item has: what a question must share with it
NEAR = 60.0  # of 100: a question or sentence that is nearer than this answers
SENTENCE = re.compile(r"[^?？!！。；;\n]+[?？]?")
CLAUSE = re.compile(r"[，,：:]")
CHOICE = re.compile(r"([^\W\d_a-z]{1,2})[不没]\1")  # 疼不疼
ASKING = re.compile(
    r"([^\W\d_a-z]{1,2})[不没]\1|[吗呢么哪怎]|什么|(?<![这那好前十])几|多[久大长少重]|是否|如何|没有?[?？]?$|还是|请问|[说讲谈]一?[下说讲谈]"
    r"|告诉|介绍|请[^，]{0,3}[指描述说讲]|描述一下|^\s*(?:and |or |so |but )?(?:do|does|did|is|are|was|were|have|has|had|can|could|any|wh\w+|how)\b|tell me|describe"
)
ADVICE = re.compile("如果|建议|马上|及时|尽快|不要|注意|考虑|放心|应该|记得|if you|please (?!tell|describe)")
TAG = re.compile("[，,](?:好吗|行吗|可以吗|好不好|明白[了]?吗|清楚了?吗|知道了?吗|记住了?吗)[?？]*")
EXAMPLE = re.compile("(?:比如|例如|譬如|such as|for example).*")
PIECE = re.compile(r"(?=([\u4e00-\u9fff]{2}|(?<![a-z])[a-z]{4,5}))")
ENDING = "(?:s|es|d|ed|ing)?(?![a-z])"
SAID = tomllib.loads(Path(__file__).with_name("said.toml").read_text(encoding="utf-8"))
HAN = re.compile(r"[\u4e00-\u9fff]")


class RecordPatient(Patient):
    """Answers from the record alone."""

    description: Mapping[str, str] = MappingProxyType({"patient": "record"})

    async def answer(self, task: ConsultationTask, question: str, asked: Sequence[Exchange]) -> Reply:
        return self.reply_to(task, question, asked)

    def reply_to(self, task: ConsultationTask, question: str, asked: Sequence[Exchange]) -> Reply:
        """What the patient says to a question, after those asked before."""
        told = {facet: earlier.reply for earlier in reversed(asked) for facet in earlier.reply.facets}
        if not task.words:
            return _remembered(task, question[:LONGEST], told)
        items = asked_for(question[:LONGEST], task.question)
        if not items:
            return Reply("off_topic", SAID["zh"]["off_topic"])
        if items[0] in told:
            return again(told[items[0]], task)
        reply = _told(task, items[0], told)
        if len(items) > 1:
            return Reply("compound", SAID["zh"]["compound"].format(text=reply.text), reply.facets)
        return reply


def question_for(item: str) -> str:
    """A question that asks for a facet or a symptom."""
    symptom = load_tables().symptoms.get(item)
    return SAID["questions"]["symptom"].format(word=symptom.ask[0]) if symptom else SAID["questions"][item]


def asked_for(question: str, complaint: str) -> list[str]:
    """What a question asks for, in its order: names of facets, symptoms, "age", "sex" and "accompanying".

    Sentences that ask nothing, such as advice, do not count.
    """
    asking = [sentence for sentence in SENTENCE.findall(TAG.sub("", question.lower())) if _asks(sentence)]
    found = [item for sentence in asking for item in _asked_in(sentence, complaint)]
    return list(dict.fromkeys(found)) or (_nearest(asking[-1]) if asking else [])


def _nearest(sentence: str) -> list[str]:
    """The item of which a wording has most in common with a sentence without an ask-word, where that is enough."""
    here, (wordings, weight) = _pieces(sentence), _wordings()
    best, nearest = ALIKE, list[str]()
    for item, pieces in wordings:
        shared = sum(weight[piece] for piece in pieces & here)
        if shared >= TELLING and (share := shared / sum(weight[piece] for piece in pieces)) > best:
            best, nearest = share, [item]
    return nearest


@cache
def _wordings() -> tuple[list[tuple[str, set[str]]], dict[str, float]]:
    """Every name and wording of what can be asked for in its pieces; what a piece tells, 1 where one item has it."""
    wordings, having = list[tuple[str, set[str]]](), dict[str, set[str]]()
    for item, thing in _things().items():
        values = thing.values.values() if isinstance(thing, Facet) else [thing]
        for text in (thing.zh, thing.en, *(text for one in values for text in (one.zh, one.en, *one.lay, *one.lay_en))):
            wordings.append((item, _pieces(text)))
            for piece in wordings[-1][1]:
                having.setdefault(piece, set()).add(item)
    return wordings, {piece: 1 / len(items) for piece, items in having.items()}


def _pieces(text: str) -> set[str]:
    """The pairs of neighbouring Chinese characters, and the beginnings of the longer English words."""
    return set(PIECE.findall(_plain(text)))


def _asks(sentence: str) -> bool:
    return sentence.endswith(("?", "？")) or bool(ASKING.search(sentence) and not ADVICE.search(sentence))


def _asked_in(sentence: str, complaint: str) -> list[str]:
    """What a sentence asks for; what stands before its first asking clause, or is an example, only where nothing else is.

    A word that the complaint has too says what the question is about, where it asks for anything else.
    """
    clauses = CLAUSE.split(EXAMPLE.sub("", sentence))
    first = next((number for number, clause in enumerate(clauses) if ASKING.search(clause)), 0)
    before = len(_plain("，".join(clauses[:first])))
    named = _named(_plain("，".join(clauses))) or _named(_plain(sentence))
    named = [word for word in named if word.end > before] or named
    named = [word for word in named if not all(part in _plain(complaint) for part in word.parts)] or named
    items = [word.item for word in named if not word.weak] or [word.item for word in named]
    symptoms = [item for item in items if item in load_tables().symptoms]
    facets = [item for item in items if item not in symptoms and item != "accompanying"]
    return facets or symptoms or items


def _plain(text: str) -> str:
    """A text as the ask-words are written: 疼不疼 and 疼痛 are 疼."""
    return CHOICE.sub(r"\1", text.lower()).replace("疼痛", "疼").replace("痛", "疼")


@dataclass(frozen=True)
class AskWord:
    """One reading of an ask-word: its parts in their order, and what finds it; where it was found, its end."""

    parts: tuple[str, ...]
    item: str
    weak: bool
    end: int = 0

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """An English part does not stand inside another word, such as "age" in "manage"; it may have an ending."""
        english = all(part.isascii() for part in self.parts)
        each = [rf"(?<![a-z]){re.escape(one)}{ENDING}" if english else re.escape(one) for one in self.parts]
        return re.compile((".{0,30}?" if english else ".{0,12}?").join(each))


def _named(sentence: str) -> list[AskWord]:
    """The ask-words of a sentence in its order; of two that overlap one."""
    here = {part for part in _ask_words() if part in sentence}
    words = (word for part in here for word in _ask_words()[part] if here.issuperset(word.parts))
    matches = [(match.span(), word) for word in words for match in word.pattern.finditer(sentence)]
    taken: list[tuple[int, int, AskWord]] = []
    for (start, end), word in sorted(matches, key=_before):
        if all(end <= left or right <= start for left, right, _ in taken):
            taken.append((start, end, word))
    return [replace(word, end=end) for _, end, word in sorted(taken, key=lambda one: one[0])]


def _before(match: tuple[tuple[int, int], AskWord]) -> tuple[bool, int, int, int, str]:
    """Which of two that overlap counts: no weak one, the longer one, the one with less between, then the first."""
    (start, end), word = match
    return word.weak, -sum(map(len, word.parts)), end - start, start, word.item


@cache
def _ask_words() -> dict[str, list[AskWord]]:
    """Every reading of every ask-word, by its first part; all other parts are there too."""
    words: dict[str, list[AskWord]] = {}
    for item, thing in _things().items():
        for word in (*thing.ask, *thing.ask_en):
            for parts in readings(word):
                for part in parts:
                    words.setdefault(part, [])
                words[parts[0]].append(AskWord(parts, item, word.startswith("~")))
    return words


def _things() -> dict[str, Phrase | Facet]:
    tables = load_tables()
    return {**tables.general, **tables.symptoms, **tables.facets}


def readings(word: str) -> Iterator[tuple[str, ...]]:
    """The texts that an ask-word of the table stands for, each as its parts: "尿|小便…疼" is 尿…疼 and 小便…疼."""
    return product(*(group.split("|") for group in _plain(word).removeprefix("~").split("…")))


def again(earlier: Reply, task: ConsultationTask) -> Reply:
    """What is said to a question that was asked before."""
    return Reply("repeated", SAID[_language(task)]["repeated"].format(text=earlier.text), earlier.facets)


def _language(task: ConsultationTask) -> str:
    return "zh" if HAN.search(task.question) else "en"


def memories(task: ConsultationTask) -> dict[str, tuple[str, str]]:
    """A record without facets, less what gives it away: by name the question, or the sentence again, and the answer."""
    sentences = [text.strip() for text in re.split(r"(?<=[.。!！?？])", task.description) if text.strip()]
    once = {f"exchange {number}": pair for number, pair in enumerate(task.exchanges)}
    held = once | {f"sentence {number}": (text, text) for number, text in enumerate(sentences)}
    return {name: pair for name, pair in held.items() if not _gives_away(task, pair[1])}


def _told(task: ConsultationTask, item: str, told: Container[str]) -> Reply:
    """What the record says of an item."""
    said, tables = SAID["zh"], load_tables()
    if item == "accompanying":
        more = next((name for name, there in task.symptoms.items() if there and name not in told), None)
        text = f"{task.words[more]}。" if more else said["nothing_else"]
        return Reply("informative", text, (item, more) if more else (item,))
    if item in task.words:
        return Reply("informative", f"{'有，' if item in tables.symptoms else ''}{task.words[item]}。", (item,))
    if item in tables.symptoms:
        return Reply("informative", said["absent"].format(word=tables.symptoms[item].ask[0]), (item,))
    if item == "age" and task.age is not None:
        return Reply("informative", said["age"].format(age=task.age), (item,))
    if item == "sex" and task.sex in said:
        return Reply("informative", said[task.sex], (item,))
    return Reply("unknown", said["unknown"], (item,))


def _remembered(task: ConsultationTask, question: str, told: Mapping[str, Reply]) -> Reply:
    """The answer to the nearest question once asked, else the nearest sentence that does not name the diagnosis."""
    from rapidfuzz import fuzz, process

    held = memories(task)
    for kind in ("exchange", "sentence"):
        fit = {name: text for name, (text, _) in held.items() if name.startswith(kind)}
        near = process.extractOne(question.lower(), fit, scorer=fuzz.token_set_ratio, score_cutoff=NEAR)
        if near and near[2] in told:
            return again(told[near[2]], task)
        if near:
            return Reply("informative", held[near[2]][1], (near[2],))
    return Reply("unknown", SAID[_language(task)]["unknown"])


def _gives_away(task: ConsultationTask, text: str) -> bool:
    return any(name and name.lower() in text.lower() for name in task.names or (task.reference,))
