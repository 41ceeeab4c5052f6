"""What a record without facets tells, such as DoctorAgent-RL's rows: the questions once asked with
their answers, a description, and what the patient opened with.

    recalled(task, "Do you have any allergies?")      # Memory("sentence 3", "She has no allergies.", ...)

A question is answered by what tells of the same topic (topics.toml), or by the answer to a question
that asked for it; where it has no topic, by what has most of its content words. Small words decide
nothing, and what names the diagnosis is not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from consultation_agent.questions import asked_for, content_of, named_in, plain
from consultation_agent.task import ConsultationTask
from consultation_agent.topics import asked_topics, told_topics, topics
from data.conditions.table import load_tables
from scoring.diagnosis import mention
from scoring.gold_sentence import secrets_of

NEAR = 0.6  # of 1: a question once asked, or a sentence, that has so much of a question's content answers it
ASKED = ("?", "？")
PAIN = re.compile(
    r"疼|\bpain|\bach(?:e|ing)|hurt|\bsore|tender|cramp|\bsharp|\bdull|stabbing|throbbing|\w{3}algia|\w{3}ache"
)
BARE = re.compile(r"(?:yes|no|yeah|right|correct|ok|okay|有|没有?|是的?|对|嗯|不是)[.!。！]?", re.I)
OPEN = re.compile(
    r"\b(?:how|when|where|what|which|who)\b|多[久少长大]|几|什么|哪|怎么"
)  # what BARE is no answer to
CHOICE = re.compile(r"\bor\b|还是")  # of a side, such as "sharp or dull"
NOTHING = re.compile(r"\b(?:no|without|denies)\b[^,.;]*|没有?[^，。；]*")  # of what there is not
WHOLE = 0.3  # is what an answer of several sentences is worth less than the one sentence of it that tells
ENDING = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|,\s*(?=(?:no|denies|denied|without)\b)", re.I)
DENIED = re.compile(r"\s*(?:no|denies|denied|without|not|没有?|无)\b", re.I)
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
# A length of time that stands beside these is theirs, not the complaint's.
ELSEWHERE = frozenset((
    "job", "smoking", "alcohol", "water", "diet", "exercise", "pets", "drugs", "living", "travel", "tests", "visits",
    "vaccines", "periods", "pregnancy", "relatives", "operation", "hypertension", "diabetes", "heart", "medicines",
    "allergies", "history",
))  # fmt: skip


class Memory(NamedTuple):
    """A thing to tell. mentioned and asked: the topics that it tells of, and those its question asked."""

    name: str
    text: str
    question: str
    mentioned: frozenset[str]
    asked: frozenset[str]


def recalled(task: ConsultationTask, question: str) -> tuple[str, str] | None:
    """The name of what answers a question, and its words; None: nothing recorded does."""
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
    return (":".join((best.name, *sorted(wanted))), best.text) if best else None


def hidden(task: ConsultationTask) -> tuple[str, ...]:
    """What gives the diagnosis away; nothing does where the doctor has options to choose from."""
    if task.options:
        return ()
    return secrets_of(task.names or (task.reference,))


def age_of(task: ConsultationTask) -> str:
    found = AGE.search(f"{task.opening} {task.description}")
    return str(task.age or next(filter(None, found.groups()), "") if found else task.age or "")


def sex_of(task: ConsultationTask) -> str:
    """ "female" or "male", by a word or, in the description, by "she" and "he"; "" where neither is
    recorded.
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
        return [one.strip() for one in ENDING.split(text) if one.strip() and not found.search(one)]

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
    """Whether a text is nothing but questions of the patient's own."""
    return all(one.strip().endswith(ASKED) for one in ENDING.split(text) if one.strip())


def _memory(
    name: str, text: str, question: str = "", asked: frozenset[str] = frozenset()
) -> Memory:
    return Memory(name, text, question, told_topics(text) | {*_mentioned(text)}, asked)


@lru_cache(maxsize=4096)
def _mentioned(sentence: str) -> tuple[str, ...]:
    """The symptoms that a sentence of a record names."""
    words = [word for _, word in named_in(plain(sentence)) if not word.weak]
    return tuple(word.item for word in words if word.item in load_tables().symptoms)


@lru_cache(maxsize=4096)
def _asked(question: str) -> frozenset[str]:
    """The topics and the symptoms that a question asks for."""
    symptoms = {item for item in asked_for(question, "") if item in load_tables().symptoms}
    return frozenset(topic.name for topic in asked_topics(question)) | symptoms


def _asked_alike(question: str, complaint: str, held: Iterable[Memory]) -> Memory | None:
    """What was said to a question of nearly the same content beyond the complaint."""
    content = _beyond(question, complaint)
    once = [(_beyond(one.question, complaint), one) for one in held if one.question]
    shares = [
        (len(content & other) / len(content | other), one) for other, one in once if content | other
    ]
    share, best = max(shares, key=lambda found: found[0], default=(0.0, None))
    return best if share >= NEAR else None


def _beyond(question: str, complaint: str) -> set[str]:
    """The content of a question that the complaint has not; all of it where there is no other."""
    return content_of(question) - content_of(complaint) or content_of(question)


def _best(question: str, wanted: frozenset[str], held: Iterable[Memory]) -> Memory | None:
    """What tells most of what is asked for; of equals the first."""
    content, scored = content_of(question), list[tuple[float, Memory]]()
    sides = {name for name in wanted if _is_side(name)}
    pain = PAIN.search(plain(question))
    closed = sides == wanted and (CHOICE.search(question.lower()) or OPEN.search(question.lower()))
    for one in held:
        if closed and BARE.fullmatch(one.text.strip()):
            continue
        worth = _subject_worth(wanted - sides, one) if wanted - sides else _side_worth(sides, one)
        if (
            pain
            and not wanted - sides
            and not sides & one.asked
            and not PAIN.search(NOTHING.sub("", plain(one.text)))
        ):
            continue
        if worth:
            near = len(content & content_of(one.text)) / max(1, len(content))
            beside = 0.7 * len(sides & one.mentioned) if wanted - sides else 0
            less = 0.4 * one.name.startswith("complaint") + WHOLE * bool(one.question)
            scored.append((worth + beside + near - less, one))
    return max(scored, key=lambda found: found[0], default=(0.0, None))[1]


def _subject_worth(wanted: frozenset[str] | set[str], one: Memory) -> float:
    """How well a memory tells of what is asked for; 0: not at all."""
    mentioned = {name for name in wanted if _tells(name, one)}
    if mentioned & topics().keys() or (mentioned and not wanted & topics().keys()):
        return 3 + 0.5 * len(mentioned) + 1.5 * bool(wanted & one.asked)
    return 1.5 if wanted & one.asked and _answers(wanted, one) else 0.0


def _tells(name: str, one: Memory) -> bool:
    """Whether a memory tells of a topic, of what is under it, or that there is nothing of the kind."""
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


def _side_worth(sides: set[str], one: Memory) -> float:
    """How well a memory tells of a side of the complaint; what tells of another thing does not."""
    mentioned, asked = sides & one.mentioned, sides & one.asked
    mentioned -= POSITIVE if DENIED.match(one.text) else frozenset()
    if mentioned and (asked or not one.mentioned & ELSEWHERE):
        return 2 + 0.5 * len(mentioned) + 1.5 * bool(asked)
    return 1.2 if asked and _answers(frozenset(sides), one) else 0.0


def _answers(wanted: Iterable[str], one: Memory) -> bool:
    """Whether an answer that names nothing of what was asked is an answer to it: its question asked
    for nothing else, and it neither asks back nor tells of another subject.
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
    """What has most of a question's content beyond the complaint, where that is enough."""
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
