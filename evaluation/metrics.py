"""From the records of an evaluation's episodes to its numbers.

Several episodes of a task are one cluster: every number is a mean over tasks of the mean over a
task's episodes. Unscored episodes are left out. Without anything to measure a number is None, not
0.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from math import comb, sqrt
from operator import itemgetter
from statistics import NormalDist, fmean, variance
from typing import Any

import numpy as np
from scipy.special import stdtrit

from episodes.agent import Agent, Record
from episodes.episode import AgentError

Clusters = list[list[float]]

# Columns by which tasks are grouped; "" is in no group
GROUPINGS = ("task_type", "difficulty", "wording")
SUCCESS = 0.9  # an episode succeeds when its answer's score is at least this
FEW = 10  # tasks; fewer have no interval in a table and no verdict
SAME = 1e-9  # a smaller change is none
LEVEL = 0.05  # of the randomisation test, and what the 95 % intervals leave out
RESAMPLES = 10_000
CHUNK = 500  # resamples drawn at a time, and fewer of many tasks: memory stays at DRAWN numbers
DRAWN = 4_000_000
SEED = 0  # of the resamples: the same records give the same interval
BETTER, WORSE, UNCLEAR, TOO_FEW = "better", "worse", "unclear", "too few"


def summarise(agent: Agent, records: Sequence[Record]) -> dict[str, Any]:
    """Return the scores of all records, and of each group in every grouping."""
    found = {"overall": scores_of(agent, records)}
    for column in GROUPINGS:
        groups = groups_of(records, column).items()
        found[f"by_{column}"] = {name: scores_of(agent, part) for name, part in groups}
    return found


def groups_of(records: Sequence[Record], column: str) -> dict[str, list[Record]]:
    """Return the records by their value in a grouping, or {} for records older than it."""
    names = sorted({record.get(column, "") for record in records} - {""})
    return {name: [record for record in records if record.get(column) == name] for name in names}


def scores_of(agent: Agent, records: Sequence[Record]) -> dict[str, Any]:
    """Return the numbers of a group of episodes (docs/evaluate-and-serve.md), with the agent's."""
    scored = [record for record in records if record["score"] is not None]
    causes = Counter(record["unscored"] for record in records if record["score"] is None)
    score = clusters(scored, itemgetter("score"))
    # An endpoint that counts none gives 0 for the prompt, which no prompt has
    counted = [record for record in scored if record["prompt_tokens"]]
    latency = None
    if scored:
        seconds = [record["seconds"] for record in scored]
        p50, p95 = _percentiles(seconds, (50, 95))
        latency = {"mean": fmean(seconds), "p50": p50, "p95": p95}
    return {
        "n": len(score),
        "episodes": len(scored),
        "unscored": dict(causes),
        "score": mean(score),
        "ci95": interval([*map(fmean, score)]),
        "terms": _means(scored, "terms"),
        "checks": _means(scored, "checks"),
        "judge_parts": _means(scored, "measures"),
        **_facts(agent, records),
        "pass@k": _passes(score),
        "turns": mean(clusters(scored, itemgetter("turns"))),
        "tokens": {
            name: mean(clusters(counted, itemgetter(f"{name}_tokens")))
            for name in ("prompt", "completion")
        },
        "stop_reasons": dict(sorted(Counter(record["stop_reason"] for record in scored).items())),
        "unfinished": mean(clusters(scored, lambda r: r["stop_reason"] != "answered")),
        "latency": latency,
    }


def _facts(agent: Agent, records: Sequence[Record]) -> dict[str, Any]:
    headline = agent.columns[0].metric
    shown = {column.metric for column in agent.columns if column.interval}
    found: dict[str, Any] = {}
    for name, values in _named(records, "facts").items():
        found[name] = mean(values)
        if name in shown or name == headline:
            found[f"{name}_ci95"] = interval([*map(fmean, values)])
    return found


def headline_of(agent: Agent, record: Record) -> float | None:
    """Return the number that demos and comparisons report. Raises AgentError: not a fact."""
    value = record["score"]
    headline = agent.columns[0].metric
    if headline != "score" and value is not None:
        facts = record["facts"]
        if headline not in facts:
            raise AgentError(
                f"{agent.name}: the first column is {headline!r}; "
                f"expected score or one of {[*facts]}"
            )
        value = facts[headline]
    return None if value is None else float(value)


def clusters(records: Iterable[Record], value: Callable[[Record], float | bool | None]) -> Clusters:
    """Return the values of each question's episodes, without those that have none."""
    found: dict[str, list[float]] = {}
    for record in records:
        number = value(record)
        if number is not None:
            found.setdefault(record["id"], []).append(float(number))
    return list(found.values())


def mean(of: Clusters) -> float | None:
    """Return the mean over questions of the mean over a question's episodes, or None."""
    return fmean(map(fmean, of)) if of else None


def interval(values: Sequence[float]) -> list[float] | None:
    """Return the 95 % interval of the mean, a value a task: Wilson's in [0, 1], else a bootstrap.

    One task says nothing about the spread, so its interval is all of [0, 1]. None without values,
    or for one value of another scale.
    """
    is_share = bool(values) and min(values) >= 0 and max(values) <= 1
    if len(values) < 2:
        return [0.0, 1.0] if is_share else None
    if is_share:
        return wilson(values)
    return interval_of_types([values])


def wilson(values: Sequence[float]) -> list[float]:
    """Return Wilson's 95 % interval of the mean of values in [0, 1].

    Values between 0 and 1 spread less than shares of the same mean and count as more tasks: the
    effective sample size, corrected for a spread that few tasks tell (Korn and Graubard 1998,
    Survey Methodology 24, 193-201).
    """
    n: float = len(values)
    mean_value = fmean(values)
    of_a_share = mean_value * (1 - mean_value)
    z = NormalDist().inv_cdf(1 - LEVEL / 2)
    if any(0 < value < 1 for value in values) and variance(values) > SAME:
        of_a_mean = float(stdtrit(len(values) - 1, 1 - LEVEL / 2))  # Student's t
        n *= of_a_share / variance(values) * (z / of_a_mean) ** 2
    center = (mean_value + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * sqrt(of_a_share / n + z**2 / (4 * n**2))
    return [max(0.0, center - reach), min(1.0, center + reach)]


def interval_of_types(types: Sequence[Sequence[float]]) -> list[float] | None:
    """Return the 95 % bootstrap interval of the mean over types, whose tasks are resampled. None if
    a type has fewer than two tasks, which say nothing about its spread.
    """
    if not types or min(map(len, types)) < 2:
        return None
    generator = np.random.default_rng(SEED)
    means = np.zeros(RESAMPLES)
    for values in types:
        data = np.asarray(values)
        drawn = _drawn(generator, len(data), len(data))
        means += np.concatenate([data[places].mean(axis=1) for places in drawn])
    return _percentiles(means / len(types), (100 * LEVEL / 2, 100 * (1 - LEVEL / 2)))


def _drawn(generator: Any, below: int, count: int) -> Iterator[Any]:
    """Yield RESAMPLES draws of `count` numbers below a number, as many at a time as memory holds."""
    chunk = min(CHUNK, max(1, DRAWN // count))
    for begun in range(0, RESAMPLES, chunk):
        yield generator.integers(0, below, size=(min(chunk, RESAMPLES - begun), count))


def _percentiles(values: Any, shares: tuple[float, float]) -> list[float]:
    found: Any = np.percentile(values, shares)
    return [float(value) for value in found]


def randomisation_test(changes: Sequence[float]) -> float:
    """Return the two-sided p of paired changes: how often chance signs give a sum as far from 0.

    Where all have one size, as for answers right or wrong, this is the exact sign test. Else the
    sizes count, and RESAMPLES draws stand for all signs.
    """
    sizes = np.array([abs(change) for change in changes if abs(change) > SAME])
    better = sum(change > SAME for change in changes)
    if not len(sizes):
        return 1.0
    if sizes.max() - sizes.min() < SAME:
        fewer = min(better, len(sizes) - better)
        ways = sum(comb(len(sizes), k) for k in range(fewer + 1))
        return min(1.0, 2 * ways / 2 ** len(sizes))
    as_far = 1  # the changes themselves
    for signs in _drawn(np.random.default_rng(SEED), 2, len(sizes)):
        sums = (signs * 2 - 1) @ sizes
        as_far += int((abs(sums) >= abs(sum(changes)) - SAME).sum())
    return as_far / (RESAMPLES + 1)


def judge_changes(types: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return what paired changes by type say: `ci95`, `better`, `worse`, `sign_p` and `verdict`.

    A change is better or worse where the interval leaves 0 out and the test says so as well.
    """
    changes = list(chain.from_iterable(types))
    p = randomisation_test(changes)
    bounds = interval_of_types(types)
    if len(changes) == 1:
        bounds = [-1.0, 1.0]
    elif bounds is not None and max(changes) - min(changes) < SAME:
        bounds = _of_one_change(changes[0], len(changes)) or bounds
    verdict = UNCLEAR
    if len(changes) < FEW or bounds is None:
        verdict = TOO_FEW
    elif p < LEVEL and bounds[0] > SAME:
        verdict = BETTER
    elif p < LEVEL and bounds[1] < -SAME:
        verdict = WORSE
    return {
        "ci95": bounds,
        "better": sum(change > SAME for change in changes),
        "worse": sum(change < -SAME for change in changes),
        "sign_p": p,
        "verdict": verdict,
    }


def _of_one_change(change: float, n: int) -> list[float] | None:
    """Return the 95 % interval where `n` tasks all stayed the same, or all turned right or wrong."""
    # Resampled they would leave no doubt. As many others as Wilson's interval allows may have changed
    if min(abs(change), abs(1 - abs(change))) > SAME:
        return None
    other = wilson([0.0] * n)[1]
    return [change - other * (1 + change), change + other * (1 - change)]


def pass_at(samples: int, successes: int, k: int) -> float:
    """Return pass@k, that one of k samples succeeds (Chen et al. 2021, arXiv 2107.03374)."""
    return 1.0 - comb(samples - successes, k) / comb(samples, k)


def _passes(score: Clusters) -> dict[str, float]:
    counts = [(len(cluster), sum(value >= SUCCESS for value in cluster)) for cluster in score]
    most = min(map(len, score), default=0)
    return {str(k): fmean(pass_at(*count, k) for count in counts) for k in range(1, most + 1)}


def _means(scored: Sequence[Record], column: str) -> dict[str, float | None]:
    return {name: mean(values) for name, values in sorted(_named(scored, column).items())}


def _named(records: Sequence[Record], column: str) -> dict[str, Clusters]:
    found: dict[str, dict[str, list[float]]] = {}
    for record in records:
        for name, value in record.get(column, {}).items():
            of_name = found.setdefault(name, {})
            if record["score"] is not None and value is not None:
                of_name.setdefault(record["id"], []).append(float(value))
    return {name: list(by_task.values()) for name, by_task in found.items()}
