"""The patient that needs no model: it finds what a question asks for and answers from the record.

RecordPatient().reply_to(task, "有没有发烧？", [])      # Reply("informative", "有，身上发烫。", ("fever",))
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from conditions.table import load_tables
from consultation_agent.doctor_questions import HAN_RUN, SAID, opens, plain, without_preface
from consultation_agent.hearing import ANOTHER_TIME, OTHER, UNRECORDED, parts_of, things_in
from consultation_agent.recall import complaint_of, recalled
from consultation_agent.task import ConsultationTask
from consultation_agent.topics import Topic, topics
from scoring.text import simplified

LONGEST = 400  # characters of a question that a patient listens to
GROWN = 18  # years
MOST = 3  # things that are answered at once
NAMED_CHILD = re.compile(
    f"(?>{SAID['same_question']['child']})(?!{SAID['same_question']['kin']})", re.IGNORECASE
)
ENDS = ("。", "？", "！", "?", "!", ".")
ONE_THING = re.compile(r"[，,]\s*(?=还是|后来|然后)")  # what is asked as a choice or in its order
KINDS = (
    "informative",  # what the record has, for the first time
    "repeated",  # asked before, in whatever words
    "unknown",  # understood, and not in the record
    "compound",  # several things asked at once; MOST are answered
    "off_topic",  # nothing a patient can be asked, or not understood
)


@dataclass(frozen=True)
class Reply:
    """A reply of a kind of KINDS, about these facets. leaked: a diagnosis was struck out of it.

    parts: what it was put together of, if several things were asked.
    """

    kind: str
    text: str
    facets: tuple[str, ...] = ()
    leaked: bool = False
    parts: tuple["Reply", ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Exchange:
    """A question and what the patient said to it."""

    question: str
    reply: Reply


def told(asked: Sequence[Exchange]) -> dict[str, Reply]:
    """Return by facet the first reply, or part of one, that mentioned it."""
    found: dict[str, Reply] = {}
    for exchange in asked:
        for reply in exchange.reply.parts or (exchange.reply,):
            for facet in reply.facets:
                found.setdefault(facet, reply)
    return found


class RecordPatient:
    """Answers from the record alone."""

    description: ClassVar = {"patient": "record"}

    async def check(self) -> None:
        """Need no service."""

    async def answer(
        self, task: ConsultationTask, question: str, asked: Sequence[Exchange]
    ) -> Reply:
        return self.reply_to(task, question, asked)

    def reply_to(self, task: ConsultationTask, question: str, asked: Sequence[Exchange]) -> Reply:
        """Return the patient's reply to a question, after the questions asked before."""
        question = simplified(question[:LONGEST])
        if task.age is not None and task.age < GROWN:
            question = NAMED_CHILD.sub("", question)  # who brings a child names it
        question = without_preface(ONE_THING.sub("", question))
        mentioned = told(asked)
        parts = parts_of(question)
        if task.words:
            replies = list[Reply]()
            for part in parts:
                replies += _Part(task, part, mentioned).replies(question)
            return _together(replies, SAID["zh"])
        whole = _recalled(task, question, mentioned)
        if whole.kind != "unknown" or len(parts) == 1:
            return whole
        replies = [_recalled(task, part, mentioned) for part in parts]
        return _together(replies, SAID[_language(task)])


class _Part:
    """One part of a question, as a patient with facets hears it who has mentioned some."""

    def __init__(
        self, task: ConsultationTask, question: str, mentioned: Mapping[str, Reply]
    ) -> None:
        self.task = task
        self.question = question
        self.mentioned = mentioned
        self.symptoms = load_tables().symptoms
        self.facets = load_tables().facets

    def replies(self, question: str) -> list[Reply]:
        """Return a reply to each thing that is asked for, where this is a part of `question`."""
        if opens(self.question):
            return [_opening(self.task.opening, self.task, self.mentioned)]
        return [self._about(item) for item in things_in(self.question, question)]

    def _about(self, item: str) -> Reply:
        topic = topics().get(item)
        if item in (OTHER, UNRECORDED, ANOTHER_TIME):
            kind = "off_topic" if item == OTHER else "unknown"
            return Reply(kind, SAID["zh"][kind])
        if topic and item not in self.task.words:
            return self._of_topic(topic)
        if item == self.task.complaint:
            return self._complaint()
        return self._of_item(item)

    def _holds(self, topic: Topic, item: str) -> bool:
        if item in self.symptoms or self.task.values.get(item) in topic.values:
            return True
        return bool(topic.own.search(self.task.words[item]))

    def _of_topic(self, topic: Topic) -> Reply:
        task = self.task
        side = topic.complaint.get(task.complaint)
        of = [side] if side else [*topic.of]
        name = topic.name if topic.name in of[:1] else f"{(*of, 'topic')[0]}:{topic.name}"
        if topic.only and task.sex in SAID["zh"] and task.sex != topic.only:
            return Reply("informative", SAID["zh"][task.sex], (name,))
        if side == "complaint":
            return self._complaint()
        known = [item for item in of if item in task.words]
        there = [item for item in known if side or self._holds(topic, item)]
        absent = [item for item in of if task.symptoms.get(item) is False]
        missing = []
        if not there and self.symptoms.keys() >= {*of}:
            saying = self._saying([topic.own])
            there = [saying] if saying else []
            missing = absent
        if there:
            new = [item for item in there if item not in self.mentioned]
            if not new:
                return again(self.mentioned[there[0]], task)
            text = "".join(_sentence(task.words[item]) for item in new)
            return Reply("informative", text, (*missing, *new))
        if name in self.mentioned:
            return again(self.mentioned[name], task)
        facets = self.facets.keys() & {*of}
        if topic.no and (not facets or facets & {*known}):
            return Reply("informative", topic.no, tuple(dict.fromkeys([name, *absent])))
        if absent and absent == of:
            return Reply("informative", self._denial(absent[0]), tuple(absent))
        return Reply("unknown", SAID["zh"]["unknown"], (name,))

    def _complaint(self) -> Reply:
        word = SAID["complaint"][self.task.complaint]
        return _opening(SAID["zh"]["complaint"].format(word=word), self.task, self.mentioned)

    def _of_item(self, item: str) -> Reply:
        task = self.task
        said = SAID["zh"]
        if item in self.mentioned:
            return again(self.mentioned[item], task)
        if item == "accompanying":
            for name, has in task.symptoms.items():
                if has and name not in self.mentioned:
                    return Reply("informative", _sentence(task.words[name]), (item, name))
            return Reply("informative", said["nothing_else"], (item,))
        if item in task.words:
            return Reply("informative", self._told(item), (item,))
        if item in self.symptoms:
            found = self._told_by(item)
            if found:
                return Reply("informative", self._told(found), (item, found))
            return Reply("informative", self._denial(item), (item,))
        if item == "age" and task.age is not None:
            return Reply("informative", said["age"].format(age=task.age), (item,))
        if item == "sex" and task.sex in said:
            return Reply("informative", said[task.sex], (item,))
        return Reply("unknown", said["unknown"], (item,))

    def _told(self, item: str) -> str:
        return _sentence(f"{'有，' if item in self.symptoms else ''}{self.task.words[item]}")

    def _denial(self, symptom: str) -> str:
        return str(SAID["zh"]["absent"].format(word=self.symptoms[symptom].ask[0]))

    def _told_by(self, item: str) -> str | None:
        """Return what the patient has whose words also name an absent symptom, as the question does."""
        asking = plain(self.question)
        named = [word for word in self.symptoms[item].ask if word in asking]
        own = [re.compile(rf"(?<![没不]){re.escape(word)}") for word in named]
        for topic in topics().values():
            if topic.of[:1] == [item] and self.symptoms.keys() >= {*topic.of}:
                own.append(topic.own)
        return self._saying(own)

    def _saying(self, own: Sequence[re.Pattern[str]]) -> str | None:
        for name, text in self.task.words.items():
            if any(one.search(plain(text)) for one in own):
                return name
        return None


def _together(replies: Sequence[Reply], said: Mapping[str, str]) -> Reply:
    each = list({reply.facets or (reply.text,): reply for reply in replies}.values())
    known = [reply for reply in each if reply.kind in ("informative", "repeated")]
    if len(each) == 1 or not known:
        return each[0]
    texts = list(dict.fromkeys(reply.text for reply in known))
    answered = [reply for reply in known if reply.text in texts[:MOST]]
    text = said["between"].join(texts[:MOST])
    if len(texts) > MOST:
        text = said["compound"].format(text=text)
    elif any(reply.kind in ("unknown", "off_topic") for reply in each):
        text = said["partly"].format(text=text)
    facets = dict[str, None]()
    for reply in answered:
        facets.update(dict.fromkeys(reply.facets))
    repeated = all(reply.kind == "repeated" for reply in each)
    kind = "repeated" if repeated else "compound"
    return Reply(kind, text, tuple(facets), parts=tuple(answered))


def _opening(text: str, task: ConsultationTask, mentioned: Mapping[str, Reply]) -> Reply:
    if "complaint" in mentioned:
        return again(mentioned["complaint"], task)
    return Reply("informative", text, ("complaint",))


def _sentence(text: str) -> str:
    return text if text.endswith(ENDS) else f"{text}。"


def question_for(item: str) -> str:
    """Return a question that asks for a facet or a symptom."""
    symptom = load_tables().symptoms.get(item)
    if not symptom:
        return str(SAID["questions"][item])
    return str(SAID["questions"]["symptom"].format(word=symptom.ask[0]))


def again(earlier: Reply, task: ConsultationTask) -> Reply:
    """Return the reply to a question that was asked before."""
    text = SAID[_language(task)]["repeated"].format(text=earlier.text)
    return Reply("repeated", text, earlier.facets)


def _language(task: ConsultationTask) -> str:
    return "zh" if HAN_RUN.search(task.question) else "en"


def _recalled(task: ConsultationTask, question: str, mentioned: Mapping[str, Reply]) -> Reply:
    said = SAID[_language(task)]
    if opens(question) and (text := complaint_of(task)):
        return _opening(text, task, mentioned)
    found = recalled(task, question)
    if not found:
        return Reply("unknown", said["unknown"])
    name, text = found
    if name in mentioned:
        return again(mentioned[name], task)
    return Reply("informative", text, (name,))
