"""What a patient without facets may say, such as one of DoctorAgent-RL's rows, which have earlier questions
with their answers, a description, and the patient's first words.

    memories_of("I cough.", (("Any fever?", "No."),), "", ())      # (Memory("exchange 0", "No.", ...), ...)

A text that gives the diagnosis away is never said. recall.py finds the one that answers a question.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from conditions.diagnosis import mention
from conditions.gold_sentence import secrets_of
from conditions.table import load_tables
from consultation_agent.doctor_questions import SENTENCE, asked_for, named_in, plain
from consultation_agent.task import ConsultationTask
from consultation_agent.topics import asked_topics, told_topics

ASKED = ("?", "？")
ENDING = re.compile(
    r"\n+|(?<=[.!?;])\s+|(?<=[。！？；])|,\s*(?=(?:no|denies|denied|without)\b)", re.I
)
DENIED = re.compile(r"\s*(?:no|denies|denied|without|not|没有?|无)\b", re.I)
EMPTY = re.compile(r"[\w ]+[:：]\s*[-–—]?")  # the heading of a part that says nothing
PERSON = re.compile(
    r"[(（][^()（）]*(?:\d+ ?(?:years?|岁|months?)|male|男|女)[^()（）]*[)）]", re.I
)
AGE = re.compile(
    r"(\d{1,3})[ -]?(?:years?|yrs?)[ -]old|(?:aged|age of|age:) ?(\d{1,3})"
    r"|(\d{1,3}) ?(?:y/?o\b|岁)|[(（][^()（）]*?(\d{1,3}) years?[)）]",
    re.I,
)
SEX = {
    "female": (r"\b(?:female|woman|girl|lady)\b|女", r"\bshe\b"),
    "male": (r"\b(?:male|man|boy|gentleman)\b|男", r"\bhe\b"),
}
# Where a sentence that names the disease may be cut, so that the rest of it can be told.
CLAUSE = re.compile(r"[,;，；]\s*(?=(?:and|but|so|then)\b)|[，；]", re.I)


class Memory(NamedTuple):
    """A text that the patient may say. mentioned and asked: the topics that it is about, and those
    that its question asked for. question: what a whole answer was given to; context: what the answer
    of which it is a sentence was given to.
    """

    name: str
    text: str
    question: str
    context: str
    mentioned: frozenset[str]
    asked: frozenset[str]


def complaint_of(task: ConsultationTask) -> str:
    """Return the patient's first words, without questions to the doctor and sentences that name the
    disease unless there is nothing else: saying again what was said gives nothing away.
    """
    held = memories_of(task.opening, task.exchanges, task.description, hidden(task))
    said = " ".join(one.text for one in held if one.name.startswith("complaint"))
    return said or PERSON.sub("", task.opening).strip()


def hidden(task: ConsultationTask) -> tuple[str, ...]:
    """Return the texts that give the diagnosis away; () for a case with options, where
    none does.
    """
    if task.options:
        return ()
    return secrets_of(task.names or (task.reference,))


def age_of(task: ConsultationTask) -> str:
    found = AGE.search(f"{task.opening} {task.description}")
    return str(task.age or next(filter(None, found.groups()), "") if found else task.age or "")


def sex_of(task: ConsultationTask) -> str:
    """Return "female" or "male", by a word or, in the description, by "she" and "he"; "" if the
    record says neither.
    """
    for kind, text in enumerate((f"{task.opening} {task.description}", task.description)):
        found = {sex: re.search(words[kind], text, re.I) for sex, words in SEX.items()}
        places = [(match.start(), sex) for sex, match in found.items() if match]
        if task.sex or places:
            return task.sex or min(places)[1]
    return ""


@lru_cache(maxsize=512)
def memories_of(
    complaint: str,
    exchanges: tuple[tuple[str, str], ...],
    description: str,
    secrets: tuple[str, ...],
) -> tuple[Memory, ...]:
    found = mention(secrets)

    def safe(text: str) -> list[str]:
        told = [one.strip() for whole in ENDING.split(text) for one in _without(found, whole)]
        return [one for one in told if one and not EMPTY.fullmatch(one)]

    held = list[Memory]()
    for number, (question, answer) in enumerate(exchanges):
        sentences = safe(answer)
        mentioned = _memory(f"exchange {number}", " ".join(sentences), question, question)
        held += [mentioned] * bool(sentences)
        held += [
            _memory(f"exchange {number}/{at}", one, "", question)
            for at, one in enumerate(sentences)
        ]
    for name, text in (("sentence", description), ("complaint", PERSON.sub("", complaint))):
        held += [_memory(f"{name} {at}", one) for at, one in enumerate(safe(text))]
    return tuple(one for one in held if not _asks_back(one.text))


def _without(secret: re.Pattern[str], sentence: str) -> list[str]:
    """Return a sentence, or of one that tells a secret the clauses that do not."""
    if not secret.search(sentence):
        return [sentence]
    return [one for one in CLAUSE.split(sentence) if not secret.search(one)]


def _asks_back(text: str) -> bool:
    """Return whether a text consists only of questions by the patient."""
    return all(one.strip().endswith(ASKED) for one in ENDING.split(text) if one.strip())


def _memory(name: str, text: str, question: str = "", context: str = "") -> Memory:
    asked = frozenset(item for one in SENTENCE.findall(context) for item in asked_by(one))
    return Memory(name, text, question, context, told_topics(text) | {*_mentioned(text)}, asked)


@lru_cache(maxsize=4096)
def _mentioned(sentence: str) -> tuple[str, ...]:
    """Return the symptoms that a sentence of a record names."""
    words = [word for _, word in named_in(plain(sentence)) if not word.weak]
    return tuple(word.item for word in words if word.item in load_tables().symptoms)


@lru_cache(maxsize=4096)
def asked_by(question: str) -> frozenset[str]:
    """Return the topics and the symptoms that a question asks for."""
    symptoms = {item for item in asked_for(question, "") if item in load_tables().symptoms}
    return frozenset(topic.name for topic in asked_topics(question)) | symptoms
