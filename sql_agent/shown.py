"""How the SQL agent's episodes look on a page: queries as SQL, results as tables."""

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
    result = _object(piece.text)
    if piece.who != "world" or "status" not in result:
        return piece
    notes = {name: result.get(name) for name in ("status", "count")}
    rows = result.get("rows")
    table = [result["columns"], *rows] if rows else ()
    cut = "…" if result.get("truncated") else ""
    return Shown("world", str(result.get("error") or cut), "text", notes, table)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
