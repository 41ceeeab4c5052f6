"""The SQL agent's facts beyond the reward (docs/evaluate-and-serve.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import Any

from episodes.agent import Record
from episodes.episode import Episode
from sql_agent.judge.nothing import abstains
from sql_agent.reward import is_unanswerable, term_values
from sql_agent.task import SqlTask

RIGHT_FROM = 0.9  # of the score


def facts_of(task: SqlTask, episode: Episode) -> Mapping[str, float | None]:
    """Return numbers of one episode to average."""
    values = term_values(task, episode, ("execution", "evidence_recall"))
    return {
        "execution_accuracy": values.get("execution"),
        "evidence_recall": values.get("evidence_recall"),
        "queried": float(bool(episode.events)),
    }


def record_of(task: SqlTask, episode: Episode) -> Record:
    """Return the queries of an episode, and every term's value, used or not."""
    queries = []
    for query in episode.events:
        result = query.result
        said = {"sql": query.sql, "ok": result.ok, "rows": result.count, "error": result.error}
        queries.append(said)
    return {
        "checks": term_values(task, episode),
        "unanswerable": is_unanswerable(task),
        "abstained": abstains(episode.answer or ""),
        "queries": queries,
        "sql": next((query["sql"] for query in reversed(queries) if query["ok"]), None),
    }


def summarise(records: Sequence[Record]) -> Mapping[str, Any]:
    """Return ratios over scored episodes that are not means of single episodes.

    docs/evaluate-and-serve.md defines them.
    """
    queries = [[query["ok"] for query in record["queries"]] for record in records]
    failed = [flags for flags in queries if not all(flags)]
    # EHRSQL's: 1 right, 0 silent, -1 wrong, which RS(N) counts N times
    reliability = [record["reliability"] for record in records if "reliability" in record]
    return {
        "sql_ok": _share(chain(*queries)),
        "abstention": {
            "precision": _share(one["unanswerable"] for one in records if one["abstained"]),
            "recall": _share(record["abstained"] for record in records if record["unanswerable"]),
            "abstained": sum(record["abstained"] for record in records),
            "unanswerable": sum(record["unanswerable"] for record in records),
        },
        "recovery": {
            "share": _share(any(flags[flags.index(False) :]) for flags in failed),
            "episodes": len(failed),
        },
        "reliability": {
            "RS(0)": _share(max(0, one) for one in reliability),
            "RS(10)": _share(one if one > 0 else 10 * one for one in reliability),
        },
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


def _share(flags: Iterable[float]) -> float | None:
    values = list(flags)
    return fmean(values) if values else None
