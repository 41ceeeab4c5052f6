"""What a record without facets answers: what was said to the same question.

A question that is only near gets no answer, because "Do you have a fever?" is one word away from "Do
you have a cough?". These rows are meant for `--patient llm`.
"""

import re
from functools import lru_cache

from conditions.gold_sentence import secrets_of
from conditions.mention import mention
from consultation_agent.doctor_questions import (
    ENGLISH,
    HAN_RUN,
    SAID,
    SMALL_CHINESE,
    SMALL_ENGLISH,
    asking_of,
    content_of,
)
from consultation_agent.hearing import OTHERS, SIDES
from consultation_agent.likeness import heard
from consultation_agent.task import ConsultationTask
from scoring.text import simplified

SENTENCE_END = re.compile(r"\n+|(?<=[.!?;])\s+|(?<=[。！？；])")
ASKED = ("?", "？")
# Age and sex in brackets, as they stand behind a complaint of the reference
PERSON = re.compile(
    r"[(（][^()（）]*(?:\d+ ?(?:years?|岁|months?)|male|男|女)[^()（）]*[)）]", re.IGNORECASE
)
QUESTION_WORDS = {
    name: re.compile(pattern) for name, pattern in SAID["same_question"]["words"].items()
}
CHILD = re.compile(SAID["same_question"]["child"], re.IGNORECASE)
BY_NAME = 0.95  # least probability of a thing that is named alone: cough
LONGEST_NAME = 3  # Chinese characters of it
ASIDE = re.compile(SAID["same_question"]["aside"], re.IGNORECASE)

Sense = tuple[frozenset[str], frozenset[str]]  # question words, and words of content


def recalled(task: ConsultationTask, question: str) -> tuple[str, str] | None:
    """Return the name and the text of the record's answer to a question, None without one."""
    about_child = bool(CHILD.search(f"{task.opening} {task.exchanges}"))
    wanted = _sense(question, about_child)
    if not any(wanted):
        return None
    for number, (once, answer) in enumerate(task.exchanges):
        is_same = _sense(once, about_child) == wanted
        if is_same or _is_translated(once, question, about_child):
            text = _told(answer, hidden(task))
            return (f"exchange {number}", text) if text else None
    return None


def _is_translated(once: str, question: str, about_child: bool) -> bool:
    """Return whether two questions, one of them in Chinese, ask for one thing in the same way."""
    if bool(HAN_RUN.search(once)) == bool(HAN_RUN.search(question)):
        return False
    known, named = _named_in(once, about_child), _named_in(question, about_child)
    return bool(known[1]) and known == named


@lru_cache(maxsize=4096)
def _named_in(question: str, about_child: bool) -> tuple[frozenset[str], str]:
    """Return the question words, and the thing that is named alone, "" if unsure."""
    asked, text = _asked_of(question, about_child)
    chinese = "".join(HAN_RUN.findall(SMALL_CHINESE.sub("", text)))
    pieces = [*ENGLISH.findall(text), chinese]
    words = [word for word in pieces if word and word not in SMALL_ENGLISH]
    if len(words) != 1 or len(chinese) > LONGEST_NAME:  # knee surgery is not any
        return asked, ""
    item, probability = heard(words[0])
    is_name = probability >= BY_NAME and item not in SIDES | OTHERS
    return asked, item if is_name else ""


@lru_cache(maxsize=4096)
def _sense(question: str, about_child: bool) -> Sense:
    asked, text = _asked_of(question, about_child)
    return asked, frozenset(content_of(SMALL_CHINESE.sub("", text)))


def _asked_of(question: str, about_child: bool) -> tuple[frozenset[str], str]:
    """Return the question words and the rest of what a question asks, without words for the patient."""
    text = ASIDE.sub(" ", asking_of(simplified(question)))
    if about_child:
        text = CHILD.sub(" ", text)
    found = set[str]()
    for name, pattern in QUESTION_WORDS.items():
        if pattern.search(text):
            found.add(name)
            text = pattern.sub(" ", text)
    return frozenset(found), text


def _told(text: str, secrets: tuple[str, ...]) -> str:
    secret = mention(secrets)
    sentences = [one.strip() for one in SENTENCE_END.split(text)]
    told = [one for one in sentences if not one.endswith(ASKED) and not secret.search(one)]
    return " ".join(told).strip()


def complaint_of(task: ConsultationTask) -> str:
    """Return the patient's first words without questions and, if possible, the disease."""
    opening = PERSON.sub("", task.opening).strip()
    return _told(opening, hidden(task)) or opening


def hidden(task: ConsultationTask) -> tuple[str, ...]:
    """Return the texts that give the diagnosis away, or () for a case with options, where none does."""
    if task.options:
        return ()
    return secrets_of(task.names or (task.reference,))


def memories(task: ConsultationTask) -> dict[str, tuple[str, str]]:
    """Return the texts of the record by name, each with its question or, for a sentence, with itself.
    Texts that give the diagnosis away are left out.
    """
    parts = re.split(r"(?<=[.。!！?？])", task.description)
    sentences = filter(None, map(str.strip, parts))
    once = {f"exchange {number}": pair for number, pair in enumerate(task.exchanges)}
    held = once | {f"sentence {number}": (text, text) for number, text in enumerate(sentences)}
    secret = mention(hidden(task))
    return {name: pair for name, pair in held.items() if not secret.search(pair[1])}
