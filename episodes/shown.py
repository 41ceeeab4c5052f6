"""What happened in an episode, piece by piece, as a person reads it on a page.

    for piece in agent.showing.shown(record):  # record: a line of an evaluation's episodes.jsonl
        piece.who, piece.text, piece.notes

By default that is the transcript. An agent says in `Showing.shown` how its events look
(docs/agents.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, takewhile
from typing import Any

Record = dict[str, Any]
Notes = Mapping[str, Any]

PROMPT, POLICY, WORLD = "prompt", "policy", "world"


@dataclass(frozen=True)
class Shown:
    """One piece. who: PROMPT (what the policy reads first), POLICY (what it wrote), or WORLD (what
    answered it).

    form: how the text is coloured: "text", "sql", "python" or "json". notes: short labels by name,
    such as the kind of a patient's reply; those without a value are left out. table: rows of cells,
    the header first.
    """

    who: str
    text: str = ""
    form: str = "text"
    notes: Notes = field(default_factory=dict)
    table: Sequence[Sequence[Any]] = ()


def transcript(record: Record) -> list[Shown]:
    """Return the messages of an episode, with tool calls as pieces of their own; [] if the record
    has no messages.
    """
    messages = record.get("transcript") or []
    first = len(list(takewhile(lambda message: message["role"] != "assistant", messages)))
    opening = [
        Shown(PROMPT, _text(message["content"]), notes={"role": message["role"]})
        for message in messages[:first]
    ]
    return [*opening, *chain.from_iterable(map(_pieces, messages[first:]))]


def annotated(record: Record, notes: Iterable[tuple[Notes, Notes]]) -> list[Shown]:
    """Return the transcript with notes: each pair of `notes`, in order, belongs to a reply of the
    policy and to what answered it.
    """
    found = []
    left = iter(notes)
    answered: Notes = {}
    for piece in transcript(record):
        own: Notes = {}
        if piece.who == POLICY:
            own, answered = next(left, ({}, {}))
        elif piece.who == WORLD:
            own = answered
            answered = {}
        found.append(replace(piece, notes={**piece.notes, **own}))
    return found


def exchanges(dialogue: Sequence[Record], policy: str) -> list[tuple[Record, Record]]:
    """Return each turn of the role `policy` with the partner's turn after it, {} if the policy
    speaks next.
    """
    pairs = zip(dialogue, [*dialogue[1:], {}], strict=True)
    return [
        (turn, {} if after.get("role") == policy else after)
        for turn, after in pairs
        if turn["role"] == policy
    ]


def _pieces(message: Record) -> list[Shown]:
    if message["role"] != "assistant":
        return [Shown(WORLD, _text(message["content"]))]
    said = [Shown(POLICY, _text(message["content"]))] if message.get("content") else []
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return said + [
        Shown(POLICY, call["arguments"], "json", {"calls": call["name"]}) for call in calls
    ]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
