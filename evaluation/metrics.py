"""From the records of an evaluation's episodes to its numbers.

    scores = summarise(agent, records, seed=0)  # {"overall": {...}, "by_task_type": {...}, ...}

A record is a line of `episodes.jsonl` (`evaluation/results.py`). Several samples of a question are
one cluster: every number is a mean over questions of the mean over a question's episodes, and
intervals come from resampling questions. Unscored episodes are counted and otherwise left out. A
number for which there was nothing to measure is None, not 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import comb
from operator import itemgetter
from statistics import fmean
from typing import Any

from episodes.agent import Agent, Record
from episodes.episode import AgentError

Clusters = list[list[float]]

# Columns by which tasks are grouped; "" is in no group
GROUPINGS = (
    "task_type",
    "difficulty",
    "wording",
)
SUCCESS = 0.9  # an episode succeeds when its answer's score is at least this
RESAMPLES = 10_000
CHUNK = 500  # resamples drawn at a time, and fewer of many questions: memory stays at DRAWN numbers
DRAWN = 4_000_000
TAILS = (2.5, 97.5)  # percentiles: a 95 % interval


def summarise(agent: Agent, records: Sequence[Record], seed: int) -> dict[str, Any]:
    """Return the scores of all records, and of each group in every grouping."""
    return {"overall": scores_of(agent, records, seed)} | {
        f"by_{column}": {
            name: scores_of(agent, part, seed) for name, part in groups_of(records, column).items()
        }
        for column in GROUPINGS
    }


def groups_of(records: Sequence[Record], column: str) -> dict[str, list[Record]]:
    """Return the records by their value in one of GROUPINGS; {} for records older than that
    grouping.
    """
    names = sorted({record.get(column, "") for record in records} - {""})
    return {name: [record for record in records if record.get(column) == name] for name in names}


def scores_of(agent: Agent, records: Sequence[Record], seed: int) -> dict[str, Any]:
    """Return the numbers of one group of episodes; docs/evaluate-and-serve.md defines each.

    The agent's facts are added by name; those that its table shows with an interval also have
    NAME_ci95.
    """
    scored = [record for record in records if record["score"] is not None]
    score = clusters(scored, itemgetter("score"))
    return {
        "n": len(score),
        "episodes": len(scored),
        "unscored": dict(
            Counter(record["unscored"] for record in records if record["score"] is None)
        ),
        "score": mean(score),
        "ci95": interval([*map(fmean, score)], seed),
        "terms": _means(scored, "terms"),
        "checks": _means(scored, "checks"),
        "judge_parts": _means(scored, "measures"),
        **_facts(agent, records, seed),
        **agent.showing.summarise(scored),
        **_passes(score),
        "turns": mean(clusters(scored, itemgetter("turns"))),
        "tokens": {
            name: mean(clusters(scored, itemgetter(f"{name}_tokens")))
            for name in ("prompt", "completion")
        },
        "stop_reasons": dict(sorted(Counter(record["stop_reason"] for record in scored).items())),
        "unfinished": mean(clusters(scored, lambda r: r["stop_reason"] != "answered")),
        "latency": _latency([record["seconds"] for record in scored]),
    }


def _facts(agent: Agent, records: Sequence[Record], seed: int) -> dict[str, Any]:
    """Return the mean of every fact, with an interval for those that the agent's table or a demo
    reports.
    """
    facts = _named(records, "facts")
    shown = {column.metric for column in agent.showing.columns if column.interval} | {
        agent.showing.headline
    }
    spreads = {name: [*map(fmean, values)] for name, values in facts.items() if name in shown}
    intervals = {f"{name}_ci95": interval(means, seed) for name, means in spreads.items()}
    return {name: mean(values) for name, values in facts.items()} | intervals


def headline_of(agent: Agent, record: Record) -> float | None:
    """Return the number of one episode that demos and comparisons report; None if it is unscored.

    Raises AgentError: the agent's headline is not one of its facts.
    """
    value = record["score"]
    if agent.showing.headline != "score" and value is not None:
        facts = record["facts"]
        if agent.showing.headline not in facts:
            raise AgentError(
                f"{agent.name}: headline is {agent.showing.headline!r}; "
                f"expected score or one of {[*facts]}"
            )
        value = facts[agent.showing.headline]
    return None if value is None else float(value)


def clusters(records: Iterable[Record], value: Callable[[Record], float | bool | None]) -> Clusters:
    """Return the values of each question's episodes, without episodes that have no value and
    questions that have none.
    """
    found: dict[str, list[float]] = {}
    for record in records:
        number = value(record)
        if number is not None:
            found.setdefault(record["id"], []).append(float(number))
    return list(found.values())


def mean(of: Clusters) -> float | None:
    """Return the mean over questions of the mean over a question's episodes; None without
    questions.
    """
    return fmean(map(fmean, of)) if of else None


def interval(
    values: Sequence[float], seed: int, bounds: tuple[float, float] = (0.0, 1.0)
) -> list[float] | None:
    """Return the 95 % percentile bootstrap interval [low, high] of the mean, with one value a
    question; None without values.

    One question says nothing about the spread of questions, so its interval is `bounds`.
    """
    if len(values) < 2:
        return list(bounds) if values else None
    return interval_of_types([values], seed)


def interval_of_types(types: Sequence[Sequence[float]], seed: int) -> list[float] | None:
    """Return the same interval for the mean over types of question; the questions of each type are
    resampled.

    None if a type has fewer than two questions, which say nothing about its spread.
    """
    import numpy as np

    if not types or min(map(len, types)) < 2:
        return None
    generator = np.random.default_rng(seed)
    means = np.mean([_resampled(values, generator) for values in types], axis=0)
    limits: Any = np.percentile(means, TAILS)
    return [float(bound) for bound in limits]


def _resampled(values: Sequence[float], generator: Any) -> Any:
    """Return the means of RESAMPLES draws, made in pieces that fit into memory."""
    import numpy as np

    data = np.asarray(values)
    chunk = min(CHUNK, max(1, DRAWN // len(data)))
    sizes = [(min(chunk, RESAMPLES - begun), len(data)) for begun in range(0, RESAMPLES, chunk)]
    return np.concatenate(
        [data[generator.integers(0, len(data), size=size)].mean(axis=1) for size in sizes]
    )


def pass_at(samples: int, successes: int, k: int) -> float:
    """Return the chance that at least one of k samples drawn from these succeeds: pass@k (Chen et
    al. 2021, arXiv 2107.03374).
    """
    return 1.0 - comb(samples - successes, k) / comb(samples, k)


def pass_all(samples: int, successes: int, k: int) -> float:
    """Return the chance that all of k samples drawn from these succeed: pass^k (Yao et al. 2024,
    arXiv 2406.12045).
    """
    return comb(successes, k) / comb(samples, k)


def _passes(score: Clusters) -> dict[str, dict[str, float]]:
    """Return pass@k and pass^k for every k up to the fewest scored samples of any question."""
    largest = min(map(len, score), default=0)
    counts = [(len(cluster), sum(value >= SUCCESS for value in cluster)) for cluster in score]

    def by_k(chance: Callable[[int, int, int], float]) -> dict[str, float]:
        return {
            str(k): fmean([chance(samples, successes, k) for samples, successes in counts])
            for k in range(1, largest + 1)
        }

    return {"pass@k": by_k(pass_at), "pass^k": by_k(pass_all)}


def _means(scored: Sequence[Record], column: str) -> dict[str, float | None]:
    return {name: mean(values) for name, values in sorted(_named(scored, column).items())}


def _named(records: Sequence[Record], column: str) -> dict[str, Clusters]:
    """Return the clusters of each number in a column of named numbers, by name, over scored
    episodes.
    """
    names = dict.fromkeys(name for record in records for name in record.get(column, {}))
    scored = [record for record in records if record["score"] is not None]
    return {name: clusters(scored, _number(column, name)) for name in names}


def _number(column: str, name: str) -> Callable[[Record], float | None]:
    """Return what reads the number `name` of a record's column; None where the record has none of
    that name.
    """
    return lambda record: record.get(column, {}).get(name)


def _latency(seconds: Sequence[float]) -> dict[str, float] | None:
    """Return mean, median and 95th percentile of an episode's seconds, scoring included; None
    without episodes.
    """
    import numpy as np

    if not seconds:
        return None
    found: Any = np.percentile(seconds, (50, 95))
    return {"mean": fmean(seconds), "p50": float(found[0]), "p95": float(found[1])}
