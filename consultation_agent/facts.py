"""What the consultation agent's evaluations say beyond the reward: numbers of one episode, and its dialogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consultation_agent.patient import KINDS, Exchange
from consultation_agent.protocol import Conclusion, Malformed
from consultation_agent.reward import (
    conclusion_of,
    diagnosis_value,
    found_facets,
    kinds_of,
    recommendation_value,
)
from consultation_agent.task import ConsultationTask
from episodes.agent import Episode, Record

RIGHT_FROM = 0.5  # of the advice


def facts_of(task: ConsultationTask, episode: Episode) -> Mapping[str, float | None]:
    """Numbers whose mean says something; shares of questions are None where none was asked."""
    conclusion, kinds = conclusion_of(episode), kinds_of(episode)
    questions = sum(kinds[kind] for kind in KINDS)
    return {
        "diagnosis_accuracy": diagnosis_value(task, conclusion.diagnosis) if conclusion else 0.0,
        "advice": recommendation_value(task, conclusion.recommendation) if conclusion else 0.0,
        "facet_recall": found_facets(task, episode),
        "questions": float(questions),
        "useful_questions": kinds["informative"] / questions if questions else None,
        "repeated_questions": kinds["repeated"] / questions if questions else None,
    }


def record_of(task: ConsultationTask, episode: Episode) -> Record:
    """The conclusion with gold beside it, and what each reply of the doctor was."""
    conclusion = conclusion_of(episode)
    return {
        "condition": task.condition,
        "department": task.task_type,
        "gold_recommendation": task.recommendation,
        "diagnosis": conclusion.diagnosis if conclusion else None,
        "recommendation": conclusion.recommendation if conclusion else None,
        "distinguishing": list(task.distinguishing),
        "dialogue": [_event(event) for event in episode.events],
    }


def _event(event: Exchange | Malformed | Conclusion) -> dict[str, Any]:
    if isinstance(event, Exchange):
        reply = event.reply
        return {"question": event.question, "kind": reply.kind, "answer": reply.text, "facets": list(reply.facets)}
    return {"malformed": event.problem} if isinstance(event, Malformed) else {"conclusion": str(event)}


def failure(record: Record) -> str:
    """The kind of a scored episode, one of `ConsultationAgent.failures`: the first that holds."""
    if record["diagnosis"] is None:
        return "no_diagnosis"
    if record["facts"]["diagnosis_accuracy"] >= 1:
        return "right" if record["facts"]["advice"] >= RIGHT_FROM else "wrong_advice"
    return "asked_too_little" if (record["facts"]["facet_recall"] or 0) < 1 else "wrong_diagnosis"
