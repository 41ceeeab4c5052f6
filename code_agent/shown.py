"""How the code agent's episodes look on a page: programs as Python, with their output."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from episodes.agent import Record
from episodes.shown import POLICY, Shown, annotated

CODE = ("code", "cmd")  # parameters that are shown instead of the action's JSON


def shown(record: Record) -> list[Shown]:
    """Return the transcript, with actions shown as their program or command."""
    steps = record["steps"]
    notes = []
    for step in steps:
        action = {"action": step["action"], "problem": step.get("problem")}
        notes.append((action, {"kind": step["kind"], "status": step["status"]}))
    programs = iter([_program(step) for step in steps])
    return [
        _coloured(piece, next(programs, "")) if piece.who == POLICY else piece
        for piece in annotated(record, notes)
    ]


def _program(step: dict[str, Any]) -> str:
    params = step["params"] if isinstance(step["params"], dict) else {}
    return next((text for name in CODE if isinstance(text := params.get(name), str)), "")


def _coloured(piece: Shown, program: str) -> Shown:
    """Show a reply as its program if it holds nothing but the action."""
    if piece.text.lstrip().startswith("{") and program:
        return replace(piece, text=program, form="python")
    return replace(piece, form="json") if piece.text.lstrip().startswith("{") else piece
