"""What went wrong in an episode of an evaluation, and how many points each kind of failure costs.

    kind_of(record)                      # "wrong_query"
    by_failure(before, after)["no_query"]["gain"]

A record is a line of `episodes.jsonl`. Every scored episode has exactly one kind; docs/learning.md defines them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaluation.metrics import SUCCESS, Record

RIGHT = "right"
KINDS = (RIGHT, "no_query", "wrong_query", "failed_query", "wrong_answer", "no_answer", "unfinished")


def kind_of(record: Record) -> str:
    """The kind of a scored episode: the first of the reasons that holds, in the order of an episode's end to its start.

    How it ended comes first, because an episode without an answer scores 0 whatever it had read.
    """
    if record["stop_reason"] == "no_answer":
        return "no_answer"
    if record["stop_reason"] != "answered":
        return "unfinished"
    if record["score"] >= SUCCESS:
        return RIGHT
    if not record["queries"]:
        return "no_query"
    if not any(query["ok"] for query in record["queries"]):
        return "failed_query"
    return "wrong_query" if record["execution_match"] is False else "wrong_answer"


def by_failure(before: Sequence[Record], after: Sequence[Record]) -> dict[str, dict[str, Any]]:
    """For each kind `before` and `after` (see `costs`), and `gain`: the points of the score it costs less than before.

    With one episode a question the gains add up to the gain of the score.
    """
    first, second = costs(before), costs(after)
    return {
        kind: {
            "before": first[kind],
            "after": second[kind],
            "gain": round(first[kind]["lost"] - second[kind]["lost"], 2),
        }
        for kind in KINDS
    }


def costs(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """For each kind the `episodes`, their `share`, and the points `lost` to full marks; of 100, over scored episodes.

    Raises:
        ValueError: no episode has a score.
    """
    scored = [record for record in records if record["score"] is not None]
    if not scored:
        raise ValueError("no episode has a score")
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for record in scored:
        found[kind_of(record)].append(1.0 - record["score"])
    return {
        kind: {
            "episodes": len(losses),
            "share": round(100 * len(losses) / len(scored), 2),
            "lost": round(100 * sum(losses) / len(scored), 2),
        }
        for kind, losses in found.items()
    }
