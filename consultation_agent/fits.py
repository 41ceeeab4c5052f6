"""What a question asks for, and whether a text of a record without facets has the form of an answer to it.

    fits(asked_of("When did it start?"), one, came)      # False where the memory dates nothing

A text answers only if it is of the kinds that are asked for, names what the question names, and
speaks of the same part of the body and of the same time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from consultation_agent.doctor_questions import HAN_RUN, content_of, plain
from consultation_agent.kinds import (
    JOINT,
    PAIN,
    Kind,
    kinds_of,
    left_of,
    names_it,
    numbers_of,
    parts_in,
    says_what,
    things_in,
)
from consultation_agent.memory import ENDING, Memory, asked_by
from consultation_agent.topics import asked_topics, told_topics, topics

# Sides by which one cause is asked for
CAUSES = frozenset({"aggravating", "triggers", "relieving", "meals"})
BARE = re.compile(r"(?:yes|no|yeah|right|correct|ok|okay|有|没有?|是的?|对|嗯|不是)[.!。！]?", re.I)
OPEN = re.compile(
    r"\b(?:how|when|where|what|which|who)\b|多[久少长大]|几|什么|哪|怎么"
)  # what BARE is no answer to
# Topics and symptoms that are a pain in a part of the body
PAINS = frozenset({"stomach_ache", "abdominal_cramps", "chest", "head", "back", "joints"})
# Kinds of time
TIMES = frozenset({"date", "length"})
NONE = re.compile(r"(?:no|没有?)[.。]?", re.I)
# A denial with the three words after it, so that "no blood in my stool" does not deny a stool.
DENIES = re.compile(
    r"(?:\b(?:no|never|without|not(?= (?:taken|had|used|been|eaten|done|tried)))|n['’]t|没有?|无)"
    r"(?: (?:been|gone) to (?:the |a )?\w+ for)?"
    r"(?!\W*(?:feel|really|much|very)\b)((?:\W*[a-z]+){1,3}|[\u4e00-\u9fff]{1,4})",
    re.I,
)
EARLIER = re.compile(r"\bbefore\b|previous|in the past|以前|之前|曾")
ANY = re.compile(r"\bany\b|什么|哪些")
CHOICE = re.compile(r"\bor\b|还是")  # of a side, such as "sharp or dull"
NOTHING = re.compile(r"\b(?:no|without|denies)\b[^,.;]*|没有?[^，。；]*")  # of what there is not
# What something was taken for is not what is asked: neither relief nor another thing.
PURPOSE = re.compile(
    r"\b(?:to|that would) (?:relieve|ease|help|settle|soothe|stop|improve)\b(?: (?:it|this))?"
    r"|\b(anything|something|medicines?|medications?|treatments?|tablets|pills) for (?:the|your|this|that|it)"
    r"(?: \w+)?"
)
PLANS = re.compile(r"\b(?:i['’]ll|will|going to)\b|打算|准备", re.I)  # tell of what is not yet
NOW = re.compile(r"\bnow\b|current|at the moment|at present|these days|still|现在|目前|最近")
PAST = re.compile(
    r"\bago\b|yesterday|used to|\blast (?:week|month|year|night)|previously|\bwas\b|\bwere\b|\bhad\b"
    r"|\bstarted\b|(?:night|day) before|以前|之前|昨"
)


class Asked(NamedTuple):
    """What a question asks for: the topics and symptoms that it is about, the sides of them, and the
    kinds that an answer must be of.
    """

    text: str
    names: frozenset[str]
    topics: frozenset[str]
    subjects: frozenset[str]
    sides: frozenset[str]
    kinds: tuple[Kind, ...]

    @property
    def is_open(self) -> bool:
        return bool(OPEN.search(self.text))

    @property
    def about_else(self) -> bool:
        """Whether it names something beside the complaint."""
        return bool(self.subjects or left_of(self.text))

    @property
    def any_does(self) -> bool:
        """Whether it names several things of which one is enough, as in "fever or chills"."""
        return bool(JOINT.search(self.text))


class Came(NamedTuple):
    """What a patient came with: the first words and the topics that they are about."""

    text: str
    subjects: frozenset[str]


def asked_of(question: str) -> Asked:
    question = PURPOSE.sub(r"\1", question.lower())
    names = asked_by(question)
    sides = frozenset(name for name in names if is_side(name))
    things = frozenset(one.name for one in asked_topics(question) if not one.is_side)
    return Asked(plain(question), names, things, names - sides, sides, kinds_of(question))


def came_with(held: Iterable[Memory]) -> Came:
    first = [one for one in held if one.name.startswith("complaint")]
    return Came(" ".join(one.text for one in first), subjects_of(first))


def of_the_complaint(asked: Asked, came: Came) -> Asked:
    """Return what is asked without the pain that the patient came with as a subject, where a side or a
    kind of it is asked for.
    """
    same_part = parts_in(asked.text) & parts_in(came.text)
    hurts = PAIN.search(asked.text) and PAIN.search(plain(came.text))
    if not (same_part and hurts and (asked.sides or asked.kinds)):
        return asked
    return asked._replace(topics=asked.topics - PAINS, subjects=asked.subjects - PAINS)


def subjects_of(held: Iterable[Memory]) -> frozenset[str]:
    """Return the topics that memories are about, without sides such as how long."""
    return frozenset(name for one in held for name in one.mentioned if not is_side(name))


def is_side(name: str) -> bool:
    return name in topics() and topics()[name].is_side


def fits(asked: Asked, one: Memory, came: Came) -> bool:
    """Return whether a memory has the form of an answer: it is of the kinds that are asked for, about
    the things and the part of the body that are named, of the same time, and it has the words that
    no topic knows.
    """
    bare = bool(BARE.fullmatch(one.text.strip()))
    if bare and not _settled(asked, one):
        return False
    if BARE.match(one.text.strip()) and CHOICE.search(asked.text) and not asked.subjects:
        return False
    if PLANS.search(one.text) and not PLANS.search(asked.text):
        return False
    said = f"{one.context} {one.text}" if bare else one.text
    of_kind = (
        {*asked.kinds} <= {*kinds_of(one.context)}
        if bare
        else says_what(asked.text, one.text, one.context)
    )
    return (
        of_kind
        and _in_one_sentence(asked, one)
        and _names(asked, one, said, came)
        and _of_the_part(asked, one)
        and _of_the_time(asked, one)
        and _of_the_pain(asked, one, came)
    )


def _in_one_sentence(asked: Asked, one: Memory) -> bool:
    """Return whether, of an answer of several sentences, one that is not about another thing tells the
    time that is asked: in "The rash came today. I had a fever on Monday." today is not that of the fever.
    """
    kinds = [kind for kind in asked.kinds if kind.name in TIMES]
    sentences = ENDING.split(one.text)
    if not (kinds and asked.subjects and one.question):
        return True
    return any(
        all(kind.told.search(plain(text)) for kind in kinds)
        and (not (about := _subjects_in(text)) or about & asked.subjects)
        for text in sentences
    )


def _subjects_in(text: str) -> frozenset[str]:
    return frozenset(name for name in told_topics(text) if not is_side(name))


def _names(asked: Asked, one: Memory, said: str, came: Came) -> bool:
    """Return whether a memory names all that a question names, itself or by what it answers."""
    around = f"{said} {one.context}"
    if asked.kinds or (asked.sides if asked.is_open else asked.sides - CAUSES):
        around = f"{around} {came.text}"
    if denies_all(asked, one):
        return True
    alone = not subjects_of([one]) - asked.subjects and things_in(one.context) <= things_in(
        asked.text
    )
    if not names_it(asked.text, around if alone else said):
        return False
    return left_of(asked.text) <= content_of(around) and numbers_of(asked.text) <= numbers_of(said)


def denies_all(asked: Asked, one: Memory) -> bool:
    """Return whether a memory denies all that is of a topic, and so what a question names of it, such
    as "no tests", or "no" to "any tests".
    """
    general = {topics()[name].under or name for name in asked.subjects & topics().keys()}
    if NONE.fullmatch(one.text.strip()):
        return bool(general & one.asked) and bool(ANY.search(one.context.lower()))
    denied = (match[1] for match in DENIES.finditer(one.text))
    return bool(general) and any(
        general <= told_topics(clause) and not things_in(clause) for clause in denied
    )


def _of_the_part(asked: Asked, one: Memory) -> bool:
    part, others = parts_in(asked.text), parts_in(one.text)
    several = len(asked.subjects & topics().keys()) > 1  # such as "headaches or dizzy spells"
    named = several and asked.subjects & one.mentioned
    return bool(not part or not others or part & others or named)


def _of_the_time(asked: Asked, one: Memory) -> bool:
    """Return whether a memory does not tell of another time than the question asks for."""
    if NOW.search(asked.text) and PAST.search(plain(one.text)) and not NOW.search(plain(one.text)):
        return False
    dated = "onset" in asked.sides or any(kind.name == "date" for kind in asked.kinds)
    earlier = "earlier" in one.mentioned or EARLIER.search(plain(one.context))
    once = earlier and "onset" not in one.asked
    return not (dated and once and not asked.about_else and "earlier" not in asked.sides)


def _of_the_pain(asked: Asked, one: Memory, came: Came) -> bool:
    """Return whether a memory speaks of pain where a question does, unless that is what the patient
    came with and another side of it is asked for.
    """
    if asked.any_does and asked.subjects & one.mentioned:
        return True
    if not PAIN.search(asked.text) or PAIN.search(NOTHING.sub("", plain(one.text))):
        return True
    denied = PAIN.search(plain(one.text)) and not asked.sides and not asked.kinds
    about = not asked.subjects and PAIN.search(plain(came.text))
    first = one.name.startswith("complaint")
    of_it = not subjects_of([one]) and (asked.sides & one.asked or PAIN.search(plain(one.context)))
    return bool(denied or (about and (first or of_it)))


def _settled(asked: Asked, one: Memory) -> bool:
    """Return whether a bare yes or no to an earlier question answers this one.

    "No" to a colonoscopy says nothing of blood tests, so the two must share a word, if they are in
    one language, or the earlier one asked for any of them.
    """
    if not asked.subjects and (CHOICE.search(asked.text) or OPEN.search(asked.text)):
        return False
    in_one_language = bool(HAN_RUN.search(asked.text)) == bool(HAN_RUN.search(one.context))
    shared = content_of(asked.text) & content_of(one.context)
    shared_things = things_in(asked.text) & things_in(one.context)
    return (
        not in_one_language
        or bool(shared or shared_things)
        or bool(ANY.search(one.context.lower()))
    )
