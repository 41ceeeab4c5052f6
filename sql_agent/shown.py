"""How the SQL agent's episodes look on a page: queries as SQL, results as tables."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from episodes.agent import Record
from episodes.shown import Shown, transcript


def shown(record: Record) -> list[Shown]:
    """Return the transcript, its calls as SQL and the tool's results as tables."""
    return [
        _call(piece) if "calls" in piece.notes else _result(piece) for piece in transcript(record)
    ]


def _call(piece: Shown) -> Shown:
    sql = _object(piece.text).get("sql")
    return replace(piece, text=sql, form="sql") if isinstance(sql, str) else piece


def _result(piece: Shown) -> Shown:
    result = _object(piece.text) if piece.who == "world" else {}
    columns = result.get("columns") or []
    rows = result.get("rows") or []
    are_lists = isinstance(columns, list) and isinstance(rows, list)
    if "status" not in result or not are_lists or not all(isinstance(row, list) for row in rows):
        return piece  # another tool's
    notes = {name: result.get(name) for name in ("status", "count")}
    table = [columns, *rows]
    cut = "…" if result.get("truncated") else ""
    return Shown(
        "world", str(result.get("error") or cut), "text", notes, table if len(table) > 1 else ()
    )


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
