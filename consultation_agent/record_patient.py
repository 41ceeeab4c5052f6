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
)
from consultation_agent.recall import complaint_of, recalled
from consultation_agent.task import ConsultationTask
from consultation_agent.topics import Topic, asked_first, asked_topics, asking_of, topics

LONGEST = 400  # characters of a question that a patient listens to
MOST = 3  # things that are answered at once
ENDS = ("。", "？", "！", "?", "!", ".")
ONE_THING = re.compile(r"[，,]\s*(?=还是|后来|然后)")  # what is asked as a choice or in its order
JOINT = re.compile("|".join(SAID["heard"]["joint"]))
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
        question = ONE_THING.sub("", question[:LONGEST])
        mentioned = told(asked)
        parts = parts_of(question)
        if task.words:
            replies = list[Reply]()
            for part in parts:
                replies += _to_each(task, part, mentioned)
            return _together(replies, SAID["zh"])
        whole = _recalled(task, question, mentioned)
        if whole.kind != "unknown" or len(parts) == 1:
            return whole
        replies = [_recalled(task, part, mentioned) for part in parts]
        return _together(replies, SAID[_language(task)])


def _to_each(task: ConsultationTask, question: str, mentioned: Mapping[str, Reply]) -> list[Reply]:
    """Return a reply to each thing that one part of a question asks for."""
    if opens(question):
        return [_opening(task.opening, task, mentioned)]
    about = _topics_asked(task, question)
    first = asked_first(question)
    if first and first.kind == "of another":
        return [_of_topic(task, first, mentioned)]
    of_itself = not (first or any(one.is_side for one in about) or "还是" in question)
    if task.complaint and of_itself and asks_whether(question, task.complaint):
        return [_complaint(task, mentioned)]
    items = _items_of(task, question, about)
    for topic in about:
        if topic.kind == "not of it":
            items = [item for item in items if item != "onset"]
            if not items:
                return [_of_topic(task, topic, mentioned)]
    is_one = first and (first.is_side or not (_joined(question) or {*first.of} & {*items}))
    if len(items) > 1 and not is_one:
        replies = list[Reply]()
        for item in items:
            named = _telling_first(task, _of_one_facet(question, [item]), item)
            for topic in named:
                replies.append(_of_topic(task, topic, mentioned))
            if not named:
                replies.append(_of_item(task, question, item, mentioned))
        return [*replies, *_beside(task, question, items, mentioned)]
    named = _topics_of(task, question, items)
    if named and _joined(question):
        others = [one for one in about if not (one.is_side or one in named)]
        named += [one for one in others if one.complaint.get(task.complaint) != "complaint"]
    if named:
        replies = [_of_topic(task, topic, mentioned) for topic in named]
        if _joined(question) and named[0].name != "relatives":
            for item in items:
                of_named = any(item in one.of for one in named)
                if item in load_tables().symptoms and not of_named:
                    replies.append(_of_item(task, question, item, mentioned))
        return replies
    if items:
        reply = _of_item(task, question, items[0], mentioned)
        return [reply, *_beside(task, question, items, mentioned)]
    if BODY.search(asking_of(question)):
        return [Reply("unknown", SAID["zh"]["unknown"])]
    return [Reply("off_topic", SAID["zh"]["off_topic"])]


def _items_of(task: ConsultationTask, question: str, about: Sequence[Topic]) -> list[str]:
    """Return the facets and symptoms that a question asks for by ask-words."""
    items = asked_for(question, task.opening)
    if not sure_words(question):
        is_named = about or mentions_of(question, task.complaint)
        if _is_of_another(task, question, about, items) or (has_more(question) and not is_named):
            items = []
    items = [item for item in items if not _is_own_complaint(task, question, item)]
    if items == ["severity"]:  # of what the patient does not have, it is asked whether they do
        named = [word.item for word in sure_words(question) if word.item in load_tables().symptoms]
        absent = [item for item in named if item not in task.words]
        items = [item for item in absent if not _is_own_complaint(task, question, item)] or items
    if not ITSELF.search(plain(question)):
        items = [item for item in items if item not in SIDES] or items
    return items


def _beside(
    task: ConsultationTask, question: str, items: Sequence[str], mentioned: Mapping[str, Reply]
) -> list[Reply]:
    """Return replies to the clauses of a question in which no ask-word of these items stands."""
    found = list[Reply]()
    for clause in clauses_without_words(question):
        for topic in _topics_asked(task, clause)[:1]:
            of_complaint = topic.is_side or topic.complaint.get(task.complaint)
            if not of_complaint and {*topic.of}.isdisjoint(items):
                found.append(_of_topic(task, topic, mentioned))
    return found


def _topics_asked(task: ConsultationTask, question: str) -> list[Topic]:
    """Return a question's topics, without the complaint itself where it asks for a detail of it."""
    detail = DETAIL.search(plain(question))
    asked = asked_topics(question)
    return [one for one in asked if not detail or one.complaint.get(task.complaint) != "complaint"]


def _is_own_complaint(task: ConsultationTask, question: str, item: str) -> bool:
    """Return whether an absent symptom is named only by words of the complaint: 腰疼 of flank pain."""
    is_absent = item in load_tables().symptoms and item not in task.words
    return is_absent and is_of_complaint(question, item, task.complaint, task.opening)


def _is_of_another(
    task: ConsultationTask, question: str, about: Sequence[Topic], items: Sequence[str]
) -> bool:
    """Return whether the weak ask-words of these items belong to another thing than the complaint."""
    others = [one for one in about if not one.is_side]
    sides = {one.of[0] for one in about if one.is_side}
    of_pain = bool(sides) and "疼" in plain(question)
    of_complaint = any(one.complaint.get(task.complaint) == "complaint" for one in others)
    if not others or of_complaint or of_pain or sides & {*items}:
        return False
    return load_tables().facets.keys() >= {*items}


def _told_by(task: ConsultationTask, question: str, item: str) -> str | None:
    """Return what the patient has that the words for an absent symptom also name."""
    symptoms = load_tables().symptoms
    words = [word for word in sure_words(question) if word.item == item]
    named = [pattern_of(word.parts) for word in words if len(word.parts) == 1]
    of_topic = list[re.Pattern[str]]()
    for topic in topics().values():
        if topic.of and item == topic.of[0] and symptoms.keys() >= {*topic.of}:
            of_topic.append(topic.own)
    for name in sorted(task.words, key=lambda name: name not in symptoms):
        symptom = symptoms.get(name)
        asks = [*symptom.ask, *symptom.ask_en] if symptom else []
        whole = [plain(ask) for ask in asks if "…" not in ask]
        told = plain(task.words[name])
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


def _topics_of(task: ConsultationTask, question: str, items: Sequence[str]) -> list[Topic]:
    found = _topics_asked(task, question)
    several = _of_one_facet(question, items)
    if len(several) > 1 and not asked_first(question):
        return _telling_first(task, several, items[0])
    subjects = [one for one in found if not one.is_side]
    if subjects and not items and _joined(question):
        return subjects
    first = asked_first(question)
    sides = [one for one in found if one.is_side]
    if sides and not items and not first and mentions_of(question, task.complaint):
        return sides[:1]
    places = [one for one in found if one.is_side and task.symptoms.keys() & {*items} & {*one.of}]
    if places and (first is None or first.is_side):
        return places[:1] if _joined(question) else []  # one place is answered by itself
    if first or not items:
        itself = [one for one in found if one.complaint.get(task.complaint) == "complaint"]
        others = [one for one in found if one not in itself]
        return [first] if first else [*others, *itself][:1]
    relatives = [one for one in several if one.name == "relatives"]
    return relatives[:1] or (several if len(several) == 1 else [])


def _telling_first(task: ConsultationTask, topics: Sequence[Topic], facet: str) -> list[Topic]:
    telling = [one for one in topics if _holds(task, one, facet)]
    return [*telling[:1], *(one for one in topics if one not in telling)]


def _joined(question: str) -> bool:
    return bool(JOINT.search(question.lower()))


def _of_one_facet(question: str, items: Sequence[str]) -> list[Topic]:
    facet = items[0] if len(items) == 1 and items[0] in load_tables().facets else None
    return [one for one in asked_topics(question) if [facet] == [*one.of][:1] and not one.kind]


def _of_topic(task: ConsultationTask, topic: Topic, mentioned: Mapping[str, Reply]) -> Reply:
    name = f"{topic.of[0] if topic.of else 'topic'}:{topic.name}"
    if topic.only and task.sex in SAID["zh"] and task.sex != topic.only:
        return Reply("informative", SAID["zh"][task.sex], (name,))
    side = topic.complaint.get(task.complaint, "")
    if side == "complaint":
        return _complaint(task, mentioned)
    there = [item for item in topic.of if _holds(task, topic, item)]
    there = [side] if side in task.words else there
    told = tuple(there)
    absent = tuple(item for item in topic.of if task.symptoms.get(item) is False)
    if not there and load_tables().symptoms.keys() >= {*topic.of}:
        there = [item for item, text in task.words.items() if topic.own.search(text)][:1]
        told = (*absent, *there)
    if there:
        seen = next((mentioned[item] for item in there if item in mentioned), None)
        text = "".join(_sentence(task.words[item]) for item in there)
        return again(seen, task) if seen else Reply("informative", text, told)
    if name in mentioned:
        return again(mentioned[name], task)
    facets = [item for item in topic.of if item in load_tables().facets]
    known = any(item in task.words for item in facets) or not facets
    if topic.no and known:
        return Reply("informative", topic.no, (name, *absent))
    return Reply("unknown", SAID["zh"]["unknown"], (name,))


def _holds(task: ConsultationTask, topic: Topic, item: str) -> bool:
    if item not in task.words:
        return False
    if item in load_tables().symptoms or task.values.get(item) in topic.values:
        return True
    return bool(topic.own.search(task.words[item]))


def _complaint(task: ConsultationTask, mentioned: Mapping[str, Reply]) -> Reply:
    word = load_tables().complaints[task.complaint].zh
    return _opening(SAID["zh"]["complaint"].format(word=word), task, mentioned)


def _opening(text: str, task: ConsultationTask, mentioned: Mapping[str, Reply]) -> Reply:
    if "complaint" in mentioned:
        return again(mentioned["complaint"], task)
    return Reply("informative", text, ("complaint",))


def _sentence(text: str) -> str:
    return text if text.endswith(ENDS) else f"{text}。"


def _told(task: ConsultationTask, item: str) -> str:
    yes = "有，" if item in load_tables().symptoms else ""
    return _sentence(f"{yes}{task.words[item]}")


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


def _of_item(
    task: ConsultationTask, question: str, item: str, mentioned: Mapping[str, Reply]
) -> Reply:
    if item in mentioned:
        return again(mentioned[item], task)
    said = SAID["zh"]
    tables = load_tables()
    if item == "accompanying":
        there = [name for name, has in task.symptoms.items() if has and name not in mentioned]
        if not there:
            return Reply("informative", said["nothing_else"], (item,))
        return Reply("informative", _sentence(task.words[there[0]]), (item, there[0]))
    if item in task.words:
        return Reply("informative", _told(task, item), (item,))
    if item in tables.symptoms:
        if name := _told_by(task, question, item):
            return Reply("informative", _told(task, name), (item, name))
        words = ["".join(word.parts) for word in sure_words(question) if word.item == item]
        pains = [word for word in words if word.endswith("疼")]
        word = pains[0] if pains else tables.symptoms[item].ask[0]
        return Reply("informative", said["absent"].format(word=word), (item,))
    if item == "age" and task.age is not None:
        return Reply("informative", said["age"].format(age=task.age), (item,))
    if item == "sex" and task.sex in said:
        return Reply("informative", said[task.sex], (item,))
    return Reply("unknown", said["unknown"], (item,))


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
