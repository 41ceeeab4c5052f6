"""The patient that needs no model: finds what a question asks for and answers it from the record, always alike.

    RecordPatient().reply_to(task, "有没有发烧？", [])      # Reply("informative", "有，身上发烫。", ("fever",))

Questions are understood in Chinese and English by the ask-words of data/conditions/phrases.toml, the longest at each
place; in a sentence that names a facet symptoms are only what it is asked of ("恶心多久了？"). Rows of the
reference, which have no facets, are answered by the nearest question once asked, else by a sentence of the description.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

from consultation_agent.patient import Exchange, Patient, Reply
from consultation_agent.task import ConsultationTask
from data.conditions.records import Facet, Phrase
from data.conditions.table import load_tables

LONGEST = 400  # characters of a question that a patient listens to
NEAR = 60.0  # of 100: a question or sentence that is nearer than this answers
SENTENCE = re.compile(r"[?？!！。；;\n]+")
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

    A word that the complaint has too says what the question is about, where it asks for anything else.
    """
    found: list[str] = []
    for sentence in SENTENCE.split(question):
        named = _named(sentence)
        others = [item for word, item in named if word not in complaint] or [item for _, item in named]
        symptoms = [item for item in others if item in load_tables().symptoms]
        facets = [item for item in others if item not in symptoms and item != "accompanying"]
        found += facets or symptoms or others
    return list(dict.fromkeys(found))


def _named(sentence: str) -> list[tuple[str, str]]:
    """The ask-words of a sentence in its order, and what each asks for; of two that overlap the longer one."""
    left, found = sentence.lower(), list[tuple[int, str, str]]()
    for word, pattern, item in _ask_words():
        if word in left:
            found += ((match.start(), word, item) for match in pattern.finditer(left))
            left = pattern.sub("\0" * len(word), left)
    return [(word, item) for _, word, item in sorted(found)]


@cache
def _ask_words() -> list[tuple[str, re.Pattern[str], str]]:
    """Every ask-word, the longest first, with what finds it and what it asks for."""
    tables = load_tables()
    things: dict[str, Phrase | Facet] = {**tables.general, **tables.symptoms, **tables.facets}
    items = {word.lower(): name for name, thing in things.items() for word in (*thing.ask, *thing.ask_en)}
    return [
        (word, re.compile(_whole(word)), items[word]) for word in sorted(items, key=lambda word: (-len(word), word))
    ]


def _whole(word: str) -> str:
    """An English word does not stand inside another, such as "age" in "manage"."""
    return rf"(?<![a-z]){re.escape(word)}(?![a-z])" if word.isascii() else re.escape(word)


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
