"""An evaluation's episodes in the form of DoctorAgent-RL's evaluation, for its own programs to
read.

    python -m evaluation.evaluate consultation --model DIR --format doctoragent     # writes doctoragent_0.json

A list of {id, self_report, true_diagnosis, true_recommendation, simulation_dialogue [{role,
content, tokens, is_diagnosis}], total_turns, category}, one episode of a case each. The labels of a
diagnosis are English whatever its language, because its programs split it there. `tokens` are those
the policy wrote: 0 for the patient. Its information precision is the share of the patient's turns
without one of its two sentences of refusal. So a turn without a new answer has the sentence of its
kind in place of the patient's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from episodes.agent import Record

REFUSALS = {
    "repeated": "Sorry, you've asked this question before.",
    "unknown": "Sorry, I cannot answer your question.",
    "off_topic": "Sorry, I cannot answer your question.",
}


def doctoragent(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the items of one file.

    A record has `gold` {diagnosis, recommendation} and `dialogue`, in order: {role: "doctor" or
    "patient", content, tokens}; a diagnosis has {diagnosis, recommendation}, too.
    """
    return [
        {
            "id": record["id"],
            "self_report": record["question"],
            "true_diagnosis": record["gold"]["diagnosis"],
            "true_recommendation": record["gold"]["recommendation"],
            "simulation_dialogue": [_turn(turn) for turn in record["dialogue"]],
            "total_turns": record["turns"],
            "category": record["task_type"],
        }
        for record in records
    ]


def _turn(turn: dict[str, Any]) -> dict[str, Any]:
    concludes = "diagnosis" in turn
    labelled = "Diagnosis: {diagnosis}\nRecommendation: {recommendation}"
    said = REFUSALS.get(turn.get("kind", ""), turn["content"])
    content = labelled.format_map(turn) if concludes else said
    return {
        "role": turn["role"],
        "content": content,
        "tokens": turn.get("tokens", 0),
        "is_diagnosis": concludes,
    }
