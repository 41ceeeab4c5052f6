"""Answers from records without facets, such as DoctorAgent-RL's rows, which have earlier questions
with their answers, a description, and the patient's first words.

    recalled(task, "Do you have any allergies?")      # Memory("sentence 3", "She has no allergies.", ...)

A question is answered by a text about the same topic (topics.toml), or by the answer to an earlier
question about it; a question without a topic, by the text that has most of its content words. Small
words do not count, and a text that names the diagnosis is never said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from consultation_agent.doctor_questions import HAN_RUN, asked_for, content_of, named_in, plain
from consultation_agent.task import ConsultationTask
from consultation_agent.topics import asked_topics, told_topics, topics
from data.conditions.table import load_tables
from scoring.diagnosis import mention
from scoring.gold_sentence import secrets_of

# The share of a question's content that an earlier question or a sentence must have to answer it
NEAR = 0.6
ASKED = ("?", "？")
PAIN = re.compile(
    r"疼|\bpain|\bach(?:e|ing)|hurt|\bsore|tender|cramp|\bsharp|\bdull|stabbing|throbbing|\w{3}algia|\w{3}ache"
)
BARE = re.compile(r"(?:yes|no|yeah|right|correct|ok|okay|有|没有?|是的?|对|嗯|不是)[.!。！]?", re.I)
OPEN = re.compile(
    r"\b(?:how|when|where|what|which|who)\b|多[久少长大]|几|什么|哪|怎么"
)  # what BARE is no answer to
WHEN = re.compile(r"\bwhen (?:was|were|did|is|are|have|has)\b|什么时候|哪[天年月]")
DATED = frozenset({"onset", "earlier"})  # the topics of a text that dates something
DIGIT = re.compile(r"\d")
ANY = re.compile(r"\bany\b|什么|哪些")
CHOICE = re.compile(r"\bor\b|还是")  # of a side, such as "sharp or dull"
NOTHING = re.compile(r"\b(?:no|without|denies)\b[^,.;]*|没有?[^，。；]*")  # of what there is not
# An answer of several sentences is worth this much less than its one sentence that answers, and so
# is what there is not than what there is, where a question is open
WHOLE = 0.3
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
HEALTHY = re.compile(r"\bno\b|\bnot\b|none|never|healthy|unremarkable|没|无|健康|挺好")
POSITIVE = frozenset(
    {"onset", "place", "severity", "character", "frequency", "duration", "aggravating"}
)  # "no lump on the left" is none
# Sides that one thing has at another time than the next: the end of a fever is not that of a cough.
IN_TIME = frozenset({"onset", "course", "frequency", "duration", "earlier"})
# A length of time that stands beside these is theirs, not the complaint's.
ELSEWHERE = frozenset((
    "job", "smoking", "alcohol", "water", "diet", "exercise", "pets", "drugs", "living", "travel", "tests", "visits",
    "vaccines", "periods", "pregnancy", "relatives", "operation", "hypertension", "diabetes", "heart", "medicines",
    "allergies", "history",
))  # fmt: skip


# Parts of the body: a question about one is not answered by what is said of others alone.
PARTS = tuple(
    re.compile(words)
    for words in (
        r"\bhead|头(?!晕|昏)|脑袋",
        r"\bchest|\bheart|胸|心口",
        r"stomach|abdom|bell(?:y|ies)|tummy|\bguts?\b|肚|腹|胃",
        r"\bback (?:pain|ache|hurt)|\b(?:my|your|lower|upper) back\b|\bwaist|腰|背",
        r"\blegs?\b|\bknees?\b|\bankles?\b|\bfoot\b|\bfeet\b|腿|膝|脚",
        r"\barms?\b|\bhands?\b|\bwrists?\b|\bshoulders?\b|胳膊|手(?!术)|肩",
        r"\beyes?\b|眼",
        r"\bears?\b|耳",
        r"throat|嗓|喉|咽",
    )
)


class Memory(NamedTuple):
    """A text that the patient may say. mentioned and asked: the topics that it is about, and those
    that its question asked for.
    """

    name: str
    text: str
    question: str
    mentioned: frozenset[str]
    asked: frozenset[str]


def recalled(task: ConsultationTask, question: str) -> tuple[str, str] | None:
    """Return the name and the text of the memory that answers a question; None if the record has no
    answer.
    """
    held = _memories(task.opening, task.exchanges, task.description, hidden(task))
    items = asked_for(question, "")
    for item, value in (("age", age_of(task)), ("sex", sex_of(task))):
        if items[:1] == [item] and value:
            return item, value
    same = _asked_alike(question, task.opening, held)
    if same:
        return same.name, same.text
    wanted = _asked(question)
    best = _best(question, wanted, held) if wanted else _by_content(question, task.opening, held)
    best = best or _of_the_part_that_hurts(question, held)
    return (":".join((best.name, *sorted(wanted))), best.text) if best else None


def _of_the_part_that_hurts(question: str, held: Iterable[Memory]) -> Memory | None:
    """Return what the patient came with, where a question asks for pain in the part that it names;
    None for another question.
    """
    named = _parts_in(question) if PAIN.search(plain(question)) else frozenset[int]()
    complaint = (one for one in held if one.name.startswith("complaint"))
    return next((one for one in complaint if named & _parts_in(one.text)), None)


@lru_cache(maxsize=4096)
def _parts_in(text: str) -> frozenset[int]:
    """Return the parts of the body that a text names, by their place in PARTS."""
    return frozenset(at for at, part in enumerate(PARTS) if part.search(text.lower()))


def complaint_of(task: ConsultationTask) -> str:
    """Return the patient's first words, without questions to the doctor and sentences that name the
    disease unless there is nothing else: saying again what was said gives nothing away.
    """
    held = _memories(task.opening, task.exchanges, task.description, hidden(task))
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
def _memories(
    complaint: str,
    exchanges: tuple[tuple[str, str], ...],
    description: str,
    secrets: tuple[str, ...],
) -> tuple[Memory, ...]:
    found = mention(secrets)

    def safe(text: str) -> list[str]:
        told = [one.strip() for one in ENDING.split(text) if not found.search(one)]
        return [one for one in told if one and not EMPTY.fullmatch(one)]

    held = list[Memory]()
    for number, (question, answer) in enumerate(exchanges):
        asked, sentences = _asked(question), safe(answer)
        mentioned = _memory(f"exchange {number}", " ".join(sentences), question, asked)
        held += [mentioned] * bool(sentences)
        held += [
            _memory(f"exchange {number}/{at}", one, "", asked) for at, one in enumerate(sentences)
        ]
    for name, text in (("sentence", description), ("complaint", PERSON.sub("", complaint))):
        held += [_memory(f"{name} {at}", one) for at, one in enumerate(safe(text))]
    return tuple(one for one in held if not _asks_back(one.text))


def _asks_back(text: str) -> bool:
    """Return whether a text consists only of questions by the patient."""
    return all(one.strip().endswith(ASKED) for one in ENDING.split(text) if one.strip())


def _memory(
    name: str, text: str, question: str = "", asked: frozenset[str] = frozenset()
) -> Memory:
    return Memory(name, text, question, told_topics(text) | {*_mentioned(text)}, asked)


@lru_cache(maxsize=4096)
def _mentioned(sentence: str) -> tuple[str, ...]:
    """Return the symptoms that a sentence of a record names."""
    words = [word for _, word in named_in(plain(sentence)) if not word.weak]
    return tuple(word.item for word in words if word.item in load_tables().symptoms)


@lru_cache(maxsize=4096)
def _asked(question: str) -> frozenset[str]:
    """Return the topics and the symptoms that a question asks for."""
    symptoms = {item for item in asked_for(question, "") if item in load_tables().symptoms}
    return frozenset(topic.name for topic in asked_topics(question)) | symptoms


def _asked_alike(question: str, complaint: str, held: Iterable[Memory]) -> Memory | None:
    """Return the memory whose question has nearly the same content beyond the complaint; None if
    none is near enough.
    """
    content = _beyond(question, complaint)
    once = [(_beyond(one.question, complaint), one) for one in held if one.question]
    shares = [
        (len(content & other) / len(content | other), one) for other, one in once if content | other
    ]
    share, best = max(shares, key=lambda found: found[0], default=(0.0, None))
    return best if share >= NEAR else None


def _beyond(question: str, complaint: str) -> set[str]:
    """Return the content of a question without that of the complaint, or all of it if nothing else
    is left.
    """
    return content_of(question) - content_of(complaint) or content_of(question)


def _best(question: str, wanted: frozenset[str], held: Sequence[Memory]) -> Memory | None:
    """Return the memory that says most about what the question asks for, the first of equals; None
    if none does.
    """
    content, scored = content_of(question), list[tuple[float, Memory]]()
    sides = {name for name in wanted if _is_side(name)}
    subjects = wanted - sides
    is_open = bool(OPEN.search(question.lower()))
    complaint = _subjects(one for one in held if one.name.startswith("complaint"))
    for one in held:
        worth = _subject_worth(subjects, one) if subjects else _side_worth(sides, one, complaint)
        if not worth or not _fits(question, subjects, sides, one):
            continue
        near = len(content & content_of(one.text)) / max(1, len(content))
        beside = 0.7 * len(sides & one.mentioned) if subjects else 0
        denied = is_open and bool(DENIED.match(one.text))
        less = 0.4 * one.name.startswith("complaint") + WHOLE * (bool(one.question) + denied)
        scored.append((worth + beside + near - less, one))
    return max(scored, key=lambda found: found[0], default=(0.0, None))[1]


def _fits(question: str, subjects: frozenset[str], sides: set[str], one: Memory) -> bool:
    """Return whether a memory has the form of an answer: it is about the same part of the body, it
    dates what is asked with "when", and it speaks of pain where a side of a pain is asked for.
    """
    part = _parts_in(question)
    others = _parts_in(one.text)
    several = len(subjects & topics().keys()) > 1  # such as "headaches or dizzy spells"
    named = several and subjects & one.mentioned
    if part and others and part.isdisjoint(others) and not named:
        return False
    if BARE.fullmatch(one.text.strip()) and not _settled(question, subjects, one):
        return False
    if WHEN.search(question.lower()) and not (DATED & one.mentioned or DIGIT.search(one.text)):
        return False
    of_pain = PAIN.search(plain(question)) and not subjects and not sides & one.asked
    return not of_pain or bool(PAIN.search(NOTHING.sub("", plain(one.text))))


def _settled(question: str, subjects: frozenset[str], one: Memory) -> bool:
    """Return whether a bare yes or no to an earlier question answers this one.

    "No" to a colonoscopy says nothing of blood tests, so the two must share a word, if they are in
    one language, or the earlier one asked for any of them.
    """
    if not subjects and (CHOICE.search(question.lower()) or OPEN.search(question.lower())):
        return False
    in_one_language = bool(HAN_RUN.search(question)) == bool(HAN_RUN.search(one.question))
    shared = content_of(question) & content_of(one.question)
    return not in_one_language or bool(shared) or bool(ANY.search(one.question.lower()))


def _subject_worth(wanted: frozenset[str] | set[str], one: Memory) -> float:
    """Return how well a memory answers a question about these subjects; 0 if not at all."""
    mentioned = {name for name in wanted if _tells(name, one)}
    if mentioned & topics().keys() or (mentioned and not wanted & topics().keys()):
        return 3 + 0.5 * len(mentioned) + 1.5 * bool(wanted & one.asked)
    return 1.5 if wanted & one.asked and _answers(wanted, one) else 0.0


def _tells(name: str, one: Memory) -> bool:
    """Return whether a memory says something about a topic or what is under it, or that there is
    nothing of the kind.
    """
    topic = topics().get(name)
    if name in one.mentioned or topic is None:
        return name in one.mentioned
    if topic.kind == "general":
        others = "relatives" in one.mentioned or DENIED.match(one.text)
        return bool(one.mentioned & _under(name)) and not others
    general = (
        topic.under and topic.under in one.mentioned and not one.mentioned & _under(topic.under)
    )
    return bool(general and HEALTHY.search(plain(one.text)))


def _under(name: str) -> set[str]:
    return {topic.name for topic in topics().values() if topic.under == name}


def _subjects(held: Iterable[Memory]) -> frozenset[str]:
    """Return the topics that memories are about, without sides such as how long."""
    return frozenset(name for one in held for name in one.mentioned if not _is_side(name))


def _side_worth(sides: set[str], one: Memory, complaint: frozenset[str]) -> float:
    """Return how well a memory answers a question about sides of the complaint; 0 for one about
    another thing.

    complaint: the topics of what the patient came with, if they are known.
    """
    mentioned, asked = sides & one.mentioned, sides & one.asked
    subjects = _subjects([one]) | {name for name in one.asked if not _is_side(name)}
    if sides <= IN_TIME and subjects and complaint and subjects.isdisjoint(complaint):
        return 0.0
    mentioned -= POSITIVE if DENIED.match(one.text) else frozenset()
    if mentioned and (asked or not one.mentioned & ELSEWHERE):
        return 2 + 0.5 * len(mentioned) + 1.5 * bool(asked)
    return 1.2 if asked and _answers(frozenset(sides), one) else 0.0


def _answers(wanted: Iterable[str], one: Memory) -> bool:
    """Return whether an answer that names nothing of what was asked is an answer to it.

    It is one if its own question asked for nothing else, and if it neither asks back nor is about
    another subject.
    """
    if not one.question or one.text.rstrip().endswith(ASKED):
        return False
    if BARE.fullmatch(one.text.strip()) and OPEN.search(one.question.lower()):
        return False
    asked, mentioned = ({*names} - {*wanted} for names in (one.asked, one.mentioned))
    beyond = {name for name in mentioned if not _is_side(name)}
    return not beyond and not asked and (not mentioned or not {*wanted} & {*one.mentioned})


def _is_side(name: str) -> bool:
    return name in topics() and topics()[name].is_side


def _by_content(question: str, complaint: str, held: Iterable[Memory]) -> Memory | None:
    """Return the memory that has most of a question's content beyond the complaint; None if that is
    not enough.
    """
    content = _beyond(question, complaint)
    shares = [
        (len(content & content_of(text)) / len(content), one)
        for one in held
        if content
        for text in _texts(one)
    ]
    share, best = max(shares, key=lambda found: found[0], default=(0.0, None))
    return best if share >= NEAR else None


def _texts(one: Memory) -> Iterator[str]:
    yield one.text
    if one.question:
        yield one.question
