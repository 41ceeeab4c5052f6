"""What is kept of the SQL agent's episodes beyond the reward, and how a page shows it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from episodes.agent import Record
from episodes.episode import Episode
from episodes.shown import Shown, transcript
from sql_agent.judge.nothing import abstains
from sql_agent.reward import Query, is_unanswerable, term_values
from sql_agent.task import SqlTask

RIGHT_FROM = 0.9  # of the score


def of_queries(queries: Sequence[Query]) -> dict[str, float | None]:
    """Return how the queries of an episode went. recovered: after one that failed, another ran."""
    ran = [query.result.ok for query in queries]
    recovered = None
    if not all(ran):
        recovered = float(any(ran[ran.index(False) :]))
    return {
        "queried": float(bool(ran)),
        "sql_ok": fmean(ran) if ran else None,
        "recovered": recovered,
    }


def of_silence(is_unanswerable: bool, abstained: bool) -> dict[str, float | None]:
    """Return the precision and the recall of saying that nothing was found, where they apply."""
    return {
        "abstention_precision": float(is_unanswerable) if abstained else None,
        "abstention_recall": float(abstained) if is_unanswerable else None,
    }


def record_of(task: SqlTask, episode: Episode) -> Record:
    """Return numbers to average, the queries, and every term's value, used or not."""
    values = term_values(task, episode)
    unanswerable = is_unanswerable(task)
    abstained = abstains(episode.answer or "")
    facts = {
        "execution_accuracy": values.get("execution"),
        "evidence_recall": values.get("evidence_recall"),
        **of_queries(episode.events),
        **of_silence(unanswerable, abstained),
    }
    queries = []
    for query in episode.events:
        result = query.result
        said = {"sql": query.sql, "ok": result.ok, "rows": result.count, "error": result.error}
        queries.append(said)
    return {
        "facts": facts,
        "checks": values,
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


def shown(record: Record) -> list[Shown]:
    """Return the transcript, its calls as SQL and the tool's results as tables."""
    return list(map(_shown, transcript(record)))


def _shown(piece: Shown) -> Shown:
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
