"""The patient that needs no model: it finds what a question asks for and answers from the record,
always in the same way.

    RecordPatient().reply_to(task, "有没有发烧？", [])      # Reply("informative", "有，身上发烫。", ("fever",))

Questions are understood by the ask-words of data/conditions/phrases.toml (questions.py) and, where
these find nothing or something wider, by the topics of topics.toml. Rows of the reference, which
have no facets, are answered from what was once asked and described (memory.py).
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType

from consultation_agent.memory import hidden, recalled
from consultation_agent.patient import Exchange, Patient, Reply
from consultation_agent.questions import SAID, asked_for, asks_whether
from consultation_agent.task import ConsultationTask
from consultation_agent.topics import Topic, asked_first, asked_topics
from data.conditions.table import load_tables
from data.conditions.talk import sentence
from scoring.diagnosis import mention

LONGEST = 400  # characters of a question that a patient listens to
HAN = re.compile(r"[\u4e00-\u9fff]")


class RecordPatient(Patient):
    """Answers from the record alone."""

    description: Mapping[str, str] = MappingProxyType({"patient": "record"})

    async def answer(
        self, task: ConsultationTask, question: str, asked: Sequence[Exchange]
    ) -> Reply:
        return self.reply_to(task, question, asked)

    def reply_to(self, task: ConsultationTask, question: str, asked: Sequence[Exchange]) -> Reply:
        """Return the patient's reply to a question, after the questions asked before."""
        mentioned = {
            facet: earlier.reply for earlier in reversed(asked) for facet in earlier.reply.facets
        }
        question = question[:LONGEST]
        return (
            _from_facts(task, question, mentioned)
            if task.words
            else _recalled(task, question, mentioned)
        )


def _from_facts(task: ConsultationTask, question: str, mentioned: Mapping[str, Reply]) -> Reply:
    """What a patient says whose record has facets and symptoms."""
    if task.complaint and asks_whether(question, task.complaint):
        return _complaint(task, mentioned)
    items = asked_for(question, task.opening)
    topic = _topic_of(question, items)
    if topic:
        return _of_topic(task, topic, mentioned)
    if not items:
        return _not_understood(question)
    several = _of_one_facet(question, items)
    if len(several) > 1 and not any(_holds(task, one, items[0]) for one in several):
        reply = _of_topic(task, several[0], mentioned)
        text = SAID["zh"]["compound"].format(text=reply.text)
        return Reply("compound", text, reply.facets) if reply.kind == "informative" else reply
    if items[0] in mentioned:
        return again(mentioned[items[0]], task)
    reply = _mentioned(task, items[0], mentioned)
    if len(items) > 1:
        return Reply("compound", SAID["zh"]["compound"].format(text=reply.text), reply.facets)
    return reply


def _topic_of(question: str, items: Sequence[str]) -> Topic | None:
    """Return the topic that is answered in place of what the ask-words found, None if there is
    none.

    It is a topic that counts whatever they found, a topic if they found nothing, or the one thing
    of the facet that they name.
    """
    first = asked_first(question)
    if first or not items:
        return first or next(iter(asked_topics(question)), None)
    of_facet = _of_one_facet(question, items)
    relatives = [one for one in of_facet if one.name == "relatives"]
    return (relatives or of_facet)[0] if relatives or len(of_facet) == 1 else None


def _of_one_facet(question: str, items: Sequence[str]) -> list[Topic]:
    """Return the topics that a question names within the one facet that its ask-words found."""
    facet = items[0] if len(items) == 1 and items[0] in load_tables().facets else None
    return [one for one in asked_topics(question) if [facet] == [*one.of][:1] and not one.kind]


def _of_topic(task: ConsultationTask, topic: Topic, mentioned: Mapping[str, Reply]) -> Reply:
    """Return what the record says about a topic, else that there is nothing of the kind; an
    "unknown" reply if it says neither.
    """
    name = f"{topic.of[0] if topic.of else 'topic'}:{topic.name}"
    if topic.only and task.sex in SAID["zh"] and task.sex != topic.only:
        return Reply("informative", SAID["zh"][task.sex], (name,))
    side = topic.complaint.get(task.complaint, "")
    if side == "complaint":
        return _complaint(task, mentioned)
    there = [item for item in topic.of if _holds(task, topic, item)]
    there = [side] if side in task.words else there
    if there:
        seen = next((mentioned[item] for item in there if item in mentioned), None)
        text = "".join(sentence(task.words[item]) for item in there)
        return again(seen, task) if seen else Reply("informative", text, tuple(there))
    if name in mentioned:
        return again(mentioned[name], task)
    facets = [item for item in topic.of if item in load_tables().facets]
    known = any(item in task.words for item in facets) or not facets
    if topic.no and known:
        absent = tuple(item for item in topic.of if task.symptoms.get(item) is False)
        return Reply("informative", topic.no, (name, *absent))
    return Reply("unknown", SAID["zh"]["unknown"], (name,))


def _holds(task: ConsultationTask, topic: Topic, item: str) -> bool:
    """Return whether the patient's words for a symptom or a facet are about a topic."""
    if item not in task.words:
        return False
    return item in load_tables().symptoms or bool(topic.own.search(task.words[item]))


def _complaint(task: ConsultationTask, mentioned: Mapping[str, Reply]) -> Reply:
    """Return the reply to a question about the complaint itself."""
    if "complaint" in mentioned:
        return again(mentioned["complaint"], task)
    word = load_tables().complaints[task.complaint].zh
    return Reply("informative", SAID["zh"]["complaint"].format(word=word), ("complaint",))


def _not_understood(question: str) -> Reply:
    """Return the reply to a question that names nothing known: "unknown" for another patient's
    complaint, else "off_topic".
    """
    if any(asks_whether(question, one) for one in SAID["complaints"]):
        return Reply("unknown", SAID["zh"]["unknown"])
    return Reply("off_topic", SAID["zh"]["off_topic"])


def question_for(item: str) -> str:
    """Return a question that asks for a facet or a symptom."""
    symptom = load_tables().symptoms.get(item)
    return (
        SAID["questions"]["symptom"].format(word=symptom.ask[0])
        if symptom
        else SAID["questions"][item]
    )


def again(earlier: Reply, task: ConsultationTask) -> Reply:
    """Return the reply to a question that was asked before."""
    return Reply(
        "repeated", SAID[_language(task)]["repeated"].format(text=earlier.text), earlier.facets
    )


def _language(task: ConsultationTask) -> str:
    return "zh" if HAN.search(task.question) else "en"


def memories(task: ConsultationTask) -> dict[str, tuple[str, str]]:
    """Return the texts of a record without facets, by name, each with its question or, for a
    sentence, with itself. Texts that give the diagnosis away are left out.
    """
    sentences = [
        text.strip() for text in re.split(r"(?<=[.。!！?？])", task.description) if text.strip()
    ]
    once = {f"exchange {number}": pair for number, pair in enumerate(task.exchanges)}
    held = once | {f"sentence {number}": (text, text) for number, text in enumerate(sentences)}
    secret = mention(hidden(task))
    return {name: pair for name, pair in held.items() if not secret.search(pair[1])}


def _mentioned(task: ConsultationTask, item: str, mentioned: Container[str]) -> Reply:
    """Return what the record says about an item."""
    said, tables = SAID["zh"], load_tables()
    if item == "accompanying":
        more = next(
            (name for name, there in task.symptoms.items() if there and name not in mentioned), None
        )
        text = sentence(task.words[more]) if more else said["nothing_else"]
        return Reply("informative", text, (item, more) if more else (item,))
    if item in task.words:
        return Reply(
            "informative",
            sentence(f"{'有，' if item in tables.symptoms else ''}{task.words[item]}"),
            (item,),
        )
    if item in tables.symptoms:
        return Reply(
            "informative", said["absent"].format(word=tables.symptoms[item].ask[0]), (item,)
        )
    if item == "age" and task.age is not None:
        return Reply("informative", said["age"].format(age=task.age), (item,))
    if item == "sex" and task.sex in said:
        return Reply("informative", said[task.sex], (item,))
    return Reply("unknown", said["unknown"], (item,))


def _recalled(task: ConsultationTask, question: str, mentioned: Mapping[str, Reply]) -> Reply:
    """Return the reply of a record without facets, "unknown" if it has no answer."""
    said = SAID[_language(task)]
    found = recalled(task, question)
    if not found:
        return Reply("unknown", said["unknown"])
    name, text = found
    if name in mentioned:
        return again(mentioned[name], task)
    if name in ("age", "sex"):
        text = said["age"].format(age=text) if name == "age" else said[text]
    return Reply("informative", text, (name,))
