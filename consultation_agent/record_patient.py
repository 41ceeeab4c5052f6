"""The patient that needs no model: it finds what a question asks for and answers from the record.

RecordPatient().reply_to(task, "有没有发烧？", [])      # Reply("informative", "有，身上发烫。", ("fever",))
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from conditions.table import load_tables
from consultation_agent.doctor_questions import (
    BODY,
    DETAIL,
    HAN_RUN,
    ITSELF,
    JOINT,
    SAID,
    SIDES,
    asked_for,
    asks_whether,
    clauses_without_words,
    has_more,
    is_of_complaint,
    mentions_of,
    opens,
    parts_of,
    pattern_of,
    plain,
    sure_words,
    without_preface,
)
from consultation_agent.likeness import likely_item
from consultation_agent.recall import complaint_of, recalled
from consultation_agent.task import ConsultationTask
from consultation_agent.topics import Topic, asked_first, asked_topics, asking_of, topics

LONGEST = 400  # characters of a question that a patient listens to
MOST = 3  # things that are answered at once
ENDS = ("。", "？", "！", "?", "!", ".")
ONE_THING = re.compile(r"[，,]\s*(?=还是|后来|然后)")  # what is asked as a choice or in its order
KINDS = (
    "informative",  # what the record has, for the first time
    "repeated",  # asked before, in whatever words
    "unknown",  # understood, and not in the record
    "compound",  # several things asked at once; the first is answered
    "off_topic",  # nothing a patient can be asked, or not understood
)


@dataclass(frozen=True)
class Reply:
    """A reply of a kind of KINDS, about these facets. leaked: a diagnosis was struck out of it."""

    kind: str
    text: str
    facets: tuple[str, ...] = ()
    leaked: bool = False


@dataclass(frozen=True)
class Exchange:
    """A question and what the patient said to it."""

    question: str
    reply: Reply


def told(asked: Sequence[Exchange]) -> dict[str, Reply]:
    """Return by facet the first reply that mentioned it."""
    found: dict[str, Reply] = {}
    for exchange in asked:
        for facet in exchange.reply.facets:
            found.setdefault(facet, exchange.reply)
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
        question = without_preface(ONE_THING.sub("", question[:LONGEST]))
        mentioned = told(asked)
        parts = parts_of(question)
        if task.words:
            replies = list[Reply]()
            for part in parts:
                replies += _Part(task, part, mentioned).replies()
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
        self.plain = plain(question)
        self.words = sure_words(question)
        self.is_joint = bool(JOINT.search(question.lower()))
        self.symptoms = load_tables().symptoms
        self.facets = load_tables().facets
        self.first = asked_first(question)
        self.topics = self._topics(question)
        self.sides = [topic for topic in self.topics if topic.is_side]
        self.subjects = [topic for topic in self.topics if not topic.is_side]

    def replies(self) -> list[Reply]:
        """Return a reply to each thing that is asked for."""
        if opens(self.question):
            return [_opening(self.task.opening, self.task, self.mentioned)]
        if self.first and self.first.kind == "of another":
            return [self._of_topic(self.first)]
        heard = self._by_words()
        understood = {facet.partition(":")[0] for reply in heard for facet in reply.facets}
        if self.first:
            if not self.first.of:  # of what no item tells, as a pregnancy
                return heard
            understood.update(self.first.of)
        item = likely_item(asking_of(self.question), self.task, understood)
        return [self._of_item(item)] if item else heard

    def _by_words(self) -> list[Reply]:
        of_itself = not (self.first or self.sides or "还是" in self.question)
        if self.task.complaint and of_itself and asks_whether(self.question, self.task.complaint):
            return [self._complaint()]
        items = self._items()
        for topic in self.topics:
            if topic.kind == "not of it":
                items = [item for item in items if item != "onset"]
                if not items:
                    return [self._of_topic(topic)]
        first = self.first
        is_one = first and (first.is_side or not (self.is_joint or {*first.of} & {*items}))
        if len(items) > 1 and not is_one:
            replies = list[Reply]()
            for item in items:
                of_topics = [self._of_topic(topic) for topic in self._topics_of_facet(item)]
                replies += of_topics or [self._of_item(item)]
            return [*replies, *self._beside(items)]
        named = self._named(items)
        if named and self.is_joint:
            others = [topic for topic in self.subjects if topic not in named]
            named += [topic for topic in others if not self._is_complaint(topic)]
        if named:
            replies = [self._of_topic(topic) for topic in named]
            of_named = {item for topic in named for item in topic.of}
            if self.is_joint and named[0].name != "relatives":
                unsaid = [one for one in items if one in self.symptoms and one not in of_named]
                replies += map(self._of_item, unsaid)
            return replies
        if items:
            return [self._of_item(items[0]), *self._beside(items)]
        kind = "unknown" if BODY.search(asking_of(self.question)) else "off_topic"
        return [Reply(kind, SAID["zh"][kind])]

    def _topics(self, question: str) -> list[Topic]:
        # A question for a detail of the complaint does not ask whether it is there
        detail = DETAIL.search(plain(question))
        asked = asked_topics(question)
        return [topic for topic in asked if not (detail and self._is_complaint(topic))]

    def _is_complaint(self, topic: Topic) -> bool:
        return topic.complaint.get(self.task.complaint) == "complaint"

    def _items(self) -> list[str]:
        """Return the facets and symptoms that ask-words ask for."""
        items = asked_for(self.question, self.task.opening)
        if not self.words:
            is_named = self.topics or mentions_of(self.question, self.task.complaint)
            if self._is_of_another(items) or (has_more(self.question) and not is_named):
                items = []
        items = [item for item in items if not self._is_own_complaint(item)]
        if items == ["severity"]:  # of what the patient does not have, it is asked whether they do
            named = [word.item for word in self.words if word.item in self.symptoms]
            absent = [item for item in named if item not in self.task.words]
            items = [item for item in absent if not self._is_own_complaint(item)] or items
        if not ITSELF.search(self.plain):
            items = [item for item in items if item not in SIDES] or items
        return items

    def _is_own_complaint(self, item: str) -> bool:
        """Return whether an absent symptom is named only by words of the complaint: 腰疼 of flank pain."""
        is_absent = item in self.symptoms and item not in self.task.words
        complaint = self.task.complaint
        return is_absent and is_of_complaint(self.question, item, complaint, self.task.opening)

    def _is_of_another(self, items: Sequence[str]) -> bool:
        """Return whether the weak ask-words of these items belong to another thing than the complaint."""
        of = {topic.of[0] for topic in self.sides}
        of_complaint = any(map(self._is_complaint, self.subjects)) or of & {*items}
        of_pain = self.sides and "疼" in self.plain
        return (
            bool(self.subjects) and not (of_complaint or of_pain) and self.facets.keys() >= {*items}
        )

    def _beside(self, items: Sequence[str]) -> list[Reply]:
        """Return replies to the clauses in which no ask-word of these items stands."""
        found = list[Reply]()
        for clause in clauses_without_words(self.question):
            for topic in self._topics(clause)[:1]:
                of_complaint = topic.is_side or topic.complaint.get(self.task.complaint)
                if not of_complaint and {*topic.of}.isdisjoint(items):
                    found.append(self._of_topic(topic))
        return found

    def _named(self, items: Sequence[str]) -> list[Topic]:
        """Return the topics that are answered in place of these items."""
        first = self.first
        several = self._topics_of_facet(items[0]) if len(items) == 1 else []
        if len(several) > 1 and not first:
            return several
        if self.subjects and not items and self.is_joint:
            return self.subjects
        symptoms = self.task.symptoms.keys() & {*items}
        places = [topic for topic in self.sides if symptoms & {*topic.of}]
        if places and (first is None or first.is_side):
            return places[:1] if self.is_joint else []  # one place is answered by itself
        if first or items:
            return [first] if first else several
        if self.sides and mentions_of(self.question, self.task.complaint):
            return self.sides[:1]
        return sorted(self.topics, key=self._is_complaint)[:1]

    def _topics_of_facet(self, item: str) -> list[Topic]:
        """Return the topics that only this facet may tell of, the one that it tells of first."""
        asked = asked_topics(self.question) if item in self.facets else ()
        topics = [topic for topic in asked if [item] == [*topic.of][:1] and not topic.kind]
        telling = [topic for topic in topics if self._holds(topic, item)]
        return [*telling[:1], *(topic for topic in topics if topic not in telling)]

    def _holds(self, topic: Topic, item: str) -> bool:
        if item not in self.task.words:
            return False
        if item in self.symptoms or self.task.values.get(item) in topic.values:
            return True
        return bool(topic.own.search(self.task.words[item]))

    def _of_topic(self, topic: Topic) -> Reply:
        task = self.task
        name = f"{topic.of[0] if topic.of else 'topic'}:{topic.name}"
        if topic.only and task.sex in SAID["zh"] and task.sex != topic.only:
            return Reply("informative", SAID["zh"][task.sex], (name,))
        if self._is_complaint(topic):
            return self._complaint()
        side = topic.complaint.get(task.complaint, "")
        there = [item for item in topic.of if self._holds(topic, item)]
        told = there = [side] if side in task.words else there
        absent = [item for item in topic.of if task.symptoms.get(item) is False]
        if not there and self.symptoms.keys() >= {*topic.of}:
            there = [item for item, text in task.words.items() if topic.own.search(text)][:1]
            told = [*absent, *there]
        if there:
            seen = next((self.mentioned[item] for item in there if item in self.mentioned), None)
            text = "".join(_sentence(task.words[item]) for item in there)
            return again(seen, task) if seen else Reply("informative", text, tuple(told))
        if name in self.mentioned:
            return again(self.mentioned[name], task)
        facets = self.facets.keys() & {*topic.of}
        if topic.no and (not facets or facets & task.words.keys()):
            return Reply("informative", topic.no, (name, *absent))
        return Reply("unknown", SAID["zh"]["unknown"], (name,))

    def _complaint(self) -> Reply:
        word = load_tables().complaints[self.task.complaint].zh
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
            if found := self._told_by(item):
                return Reply("informative", self._told(found), (item, found))
            words = ["".join(word.parts) for word in self.words if word.item == item]
            pains = [word for word in words if word.endswith("疼")]
            word = pains[0] if pains else self.symptoms[item].ask[0]
            return Reply("informative", said["absent"].format(word=word), (item,))
        if item == "age" and task.age is not None:
            return Reply("informative", said["age"].format(age=task.age), (item,))
        if item == "sex" and task.sex in said:
            return Reply("informative", said[task.sex], (item,))
        return Reply("unknown", said["unknown"], (item,))

    def _told(self, item: str) -> str:
        return _sentence(f"{'有，' if item in self.symptoms else ''}{self.task.words[item]}")

    def _told_by(self, item: str) -> str | None:
        """Return what the patient has that the words for an absent symptom also name."""
        own = [word.parts for word in self.words if word.item == item]
        named = [pattern_of(parts) for parts in own if len(parts) == 1]
        of_topic = list[re.Pattern[str]]()
        for topic in topics().values():
            if topic.of and item == topic.of[0] and self.symptoms.keys() >= {*topic.of}:
                of_topic.append(topic.own)
        for name in sorted(self.task.words, key=lambda name: name not in self.symptoms):
            symptom = self.symptoms.get(name)
            asks = [*symptom.ask, *symptom.ask_en] if symptom else []
            whole = [plain(ask) for ask in asks if "…" not in ask]
            told = plain(self.task.words[name])
            if any(own.search("\n".join([told, *whole])) for own in of_topic):
                return name
            if any(_is_named(asked, told, whole) for asked in named):
                return name
        return None


def _is_named(asked: re.Pattern[str], told: str, asks: Sequence[str]) -> bool:
    """Return whether words name what is asked, or an ask-word is that at some place: 眼睛痒 is 痒."""
    if asked.search(told):
        return True
    for ask in asks:
        found = asked.search(ask)
        before = ask[: found.start()] if found else ""
        if found and (BODY.search(before) or not HAN_RUN.search(before)):  # 想吐 is not 吐
            return True
    return False


def _together(replies: Sequence[Reply], said: Mapping[str, str]) -> Reply:
    each = list({reply.facets or (reply.text,): reply for reply in replies}.values())
    known = [reply for reply in each if reply.kind in ("informative", "repeated")]
    if len(each) == 1 or not known:
        return each[0]
    texts = list(dict.fromkeys(reply.text for reply in known))
    text = said["between"].join(texts[:MOST])
    if len(texts) > MOST:
        text = said["compound"].format(text=text)
    elif any(reply.kind in ("unknown", "off_topic") for reply in each):
        text = said["partly"].format(text=text)
    facets = dict[str, None]()
    for reply in known[:MOST]:
        facets.update(dict.fromkeys(reply.facets))
    repeated = all(reply.kind == "repeated" for reply in each)
    return Reply("repeated" if repeated else "compound", text, tuple(facets))


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
