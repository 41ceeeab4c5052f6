"""What evaluations say beyond the reward: numbers of one episode, and its dialogue."""

from typing import Any

from consultation_agent.protocol import Conclusion, Malformed
from consultation_agent.record_patient import KINDS, Exchange
from consultation_agent.reward import (
    conclusion_of,
    conclusion_values,
    exchanges_of,
    found_facets,
    kinds_of,
)
from consultation_agent.task import ConsultationTask
from episodes.agent import Record
from episodes.episode import Episode
from episodes.partner_agent import dialogue_of

RIGHT_FROM = 0.5  # of the advice


def facts_of(task: ConsultationTask, episode: Episode) -> dict[str, float | None]:
    """Return an episode's numbers. Shares of questions are None if none was asked."""
    values = conclusion_values(task, conclusion_of(episode))
    kinds = kinds_of(episode)
    questions = sum(kinds[kind] for kind in KINDS)
    return {
        "diagnosis_accuracy": values["diagnosis"],
        "advice": values.get("recommendation"),
        "facet_recall": found_facets(task, episode),
        "questions": float(questions),
        "useful_questions": kinds["informative"] / questions if questions else None,
        "repeated_questions": kinds["repeated"] / questions if questions else None,
        "patient_leak": float(sum(one.reply.leaked for one in exchanges_of(episode))),
    }


def record_of(task: ConsultationTask, episode: Episode) -> Record:
    """Return the facts, gold, the facets to ask for, and the dialogue as it was understood."""
    return {
        "facts": facts_of(task, episode),
        "condition": task.condition,
        "gold": {"diagnosis": task.reference, "recommendation": task.recommendation},
        "distinguishing": list(task.distinguishing),
        "dialogue": dialogue_of(episode.events, episode, _turns),
    }


def _turns(event: Exchange | Malformed | Conclusion, text: str) -> list[dict[str, Any]]:
    if isinstance(event, Exchange):
        reply = event.reply
        patient = {
            "role": "patient",
            "content": reply.text,
            "kind": reply.kind,
            "facets": list(reply.facets),
        }
        return [{"role": "doctor", "content": event.question}, patient]
    said = {"problem": event.problem} if isinstance(event, Malformed) else vars(event)
    return [{"role": "doctor", "content": text, **said}]


def failure(record: Record) -> str:
    """Return the kind of a scored episode: the first that applies."""
    if not any("diagnosis" in turn for turn in record["dialogue"]):
        return "no_diagnosis"
    if record["facts"]["diagnosis_accuracy"] >= 1:
        advice = record["facts"]["advice"]
        return "right" if advice is None or advice >= RIGHT_FROM else "wrong_advice"
    return "asked_too_little" if (record["facts"]["facet_recall"] or 0) < 1 else "wrong_diagnosis"
