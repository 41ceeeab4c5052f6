"""What happened in an episode, piece by piece, as a page shows it (docs/agents.md)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Record = dict[str, Any]
Notes = Mapping[str, Any]

PROMPT, POLICY, WORLD = "prompt", "policy", "world"


@dataclass(frozen=True)
class Shown:
    """One piece. who: PROMPT, POLICY or WORLD. form: how the text is coloured.

    notes: labels by name, shown if they have a value. table: rows of cells, the header first.
    """

    who: str
    text: str = ""
    form: str = "text"
    notes: Notes = field(default_factory=dict)
    table: Sequence[Sequence[Any]] = ()


def transcript(record: Record) -> list[Shown]:
    """Return the messages as pieces, tool calls apart, or [] without messages."""
    pieces: list[Shown] = []
    begun = False
    for message in record.get("transcript") or []:
        begun = begun or message["role"] == "assistant"
        if begun:
            pieces += _pieces(message)
        else:
            notes = {"role": message["role"]}
            pieces.append(Shown(PROMPT, _text(message["content"]), notes=notes))
    return pieces


def annotated(record: Record, notes: Iterable[tuple[Notes, Notes]]) -> list[Shown]:
    """Return the transcript, with a pair of `notes` for each reply and its answer."""
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
    """Return each turn of `policy` with the partner's turn after it, or {} at the end."""
    found = []
    for turn, after in zip(dialogue, [*dialogue[1:], {}], strict=True):
        if turn["role"] == policy:
            found.append((turn, {} if after.get("role") == policy else after))
    return found


def _pieces(message: Record) -> list[Shown]:
    if message["role"] != "assistant":
        return [Shown(WORLD, _text(message["content"]))]
    pieces = [Shown(POLICY, _text(message["content"]))] if message.get("content") else []
    for call in message.get("tool_calls") or ():
        function = call["function"]
        pieces.append(Shown(POLICY, function["arguments"], "json", {"calls": function["name"]}))
    return pieces


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
