"""What is kept of the SQL agent's episodes beyond the reward, and how a page shows it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

from episodes.agent import Record
from episodes.episode import Episode
from episodes.shown import Shown

RIGHT_FROM = 0.9  # of the score


def record_of(
    episode: Episode,
    scored: Mapping[str, float | None],
    checks: Mapping[str, float],
    unanswerable: bool,
    abstained: bool,
) -> Record:
    """Return the queries and the numbers to average, which begin with those that were scored.

    recovered: whether after a query that failed another ran. checks: every term's value, used or
    not.
    """
    queries = []
    for query in episode.events:
        result = query.result
        said = {"sql": query.sql, "ok": result.ok, "rows": result.count, "error": result.error}
        queries.append(said)
    ran = [query["ok"] for query in queries]
    facts = {
        **scored,
        "queried": float(bool(ran)),
        "sql_ok": fmean(ran) if ran else None,
        "recovered": None if all(ran) else float(any(ran[ran.index(False) :])),
        "abstention_precision": float(unanswerable) if abstained else None,
        "abstention_recall": float(abstained) if unanswerable else None,
    }
    return {
        "facts": facts,
        "checks": checks,
        "unanswerable": unanswerable,
        "abstained": abstained,
        "queries": queries,
        "sql": next((query["sql"] for query in reversed(queries) if query["ok"]), None),
    }


def failure(record: Record) -> str:
    """Return the first kind of failure that applies to a scored episode, from its end to its start.

    The end comes first, because an episode without an answer scores 0 whatever it had read.
    """
    if record["stop_reason"] != "answered":
        return "no_answer" if record["stop_reason"] == "no_answer" else "unfinished"
    if record["score"] >= RIGHT_FROM:
        return "right"
    if not record["queries"]:
        return "no_query"
    if not any(query["ok"] for query in record["queries"]):
        return "failed_query"
    return "wrong_query" if record["facts"]["execution_accuracy"] == 0 else "wrong_answer"


def shown(piece: Shown) -> Shown:
    """Return a piece of the transcript, a call as SQL and the tool's result as a table."""
    try:
        said = json.loads(piece.text)
    except ValueError:
        return piece
    if not isinstance(said, dict):
        return piece
    if "calls" in piece.notes:
        sql = said.get("sql")
        return replace(piece, text=sql, form="sql") if isinstance(sql, str) else piece
    if piece.who != "world" or "status" not in said:
        return piece
    notes = {name: said.get(name) for name in ("status", "count")}
    rows = said.get("rows")
    table = [said["columns"], *rows] if rows else ()
    cut = "…" if said.get("truncated") else ""
    return Shown("world", str(said.get("error") or cut), "text", notes, table)
