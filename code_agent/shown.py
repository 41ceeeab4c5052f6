"""How the code agent's episodes look on a page: programs as Python, with their output."""

from __future__ import annotations

from dataclasses import replace

from episodes.agent import Record
from episodes.shown import POLICY, Shown, annotated


def shown(record: Record) -> list[Shown]:
    """Return the transcript, with actions shown as their program or command."""
    steps = record["steps"]
    notes = []
    for step in steps:
        action = {"action": step["action"], "problem": step.get("problem")}
        notes.append((action, {"kind": step["kind"], "status": step["status"]}))
    pieces = []
    number = 0
    for piece in annotated(record, notes):
        if piece.who == POLICY:
            params = steps[number]["params"] if number < len(steps) else {}
            params = params if isinstance(params, dict) else {}
            number += 1
            if piece.text.lstrip().startswith("{"):  # a reply that holds nothing but the action
                program = params.get("code") or params.get("cmd")
                if isinstance(program, str):
                    piece = replace(piece, text=program, form="python")
                else:
                    piece = replace(piece, form="json")
        pieces.append(piece)
    return pieces
