"""The part of a gain that comes from episodes that moved between groups, such as those that found
out more than before.

    gains_by(agent, before, after, seed=0)      # {"gain_by_asking": (0.21, [0.16, 0.27])}

An agent says in which group an episode is (`Showing.gain_groups`). The change of each group's share
times the mean of its headline before and after is summed over the groups; what is left of the gain
happened within them. A group that only one side has counts with that side's headline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from episodes.agent import Agent, Record
from evaluation.metrics import CHUNK, RESAMPLES, TAILS, headline_of

Part = tuple[float | None, list[float] | None]
Grouped = list[tuple[str, int, float]]  # of each episode its task, its group and its headline


def gains_by(
    agent: Agent, before: Sequence[Record], after: Sequence[Record], seed: int
) -> dict[str, Part]:
    """Return for each name of `gain_groups` its part of the gain, in [-1, 1], and the 95 % interval
    of that part, with tasks resampled in pairs.

    Episodes without a headline or a group are left out; (None, None) if fewer than two tasks are
    left.
    """
    names = dict.fromkeys(
        name for record in (*before, *after) for name in agent.showing.gain_groups(record)
    )
    return {
        name: _part(_grouped(agent, before, name), _grouped(agent, after, name), seed)
        for name in names
    }


def _grouped(agent: Agent, records: Sequence[Record], name: str) -> Grouped:
    known = [
        (record["id"], agent.showing.gain_groups(record).get(name), headline_of(agent, record))
        for record in records
    ]
    return [
        (task, group, value)
        for task, group, value in known
        if group is not None and value is not None
    ]


def _part(before: Grouped, after: Grouped, seed: int) -> Part:
    import numpy as np

    tasks = sorted({task for task, *_ in before} & {task for task, *_ in after})
    if len(tasks) < 2:
        return None, None
    groups, n = sorted({group for _, group, _ in before + after}), len(tasks)
    sides = np.array([_sums(side, tasks, groups) for side in (before, after)])
    generator, equal = np.random.default_rng(seed), np.full(n, 1 / n)
    drawn = [
        _moved(generator.multinomial(n, equal, size=CHUNK) / n, sides)
        for _ in range(RESAMPLES // CHUNK)
    ]
    limits: Any = np.percentile(np.concatenate(drawn), TAILS)
    return float(_moved(equal[None], sides)[0]), [float(bound) for bound in limits]


def _sums(side: Grouped, tasks: Sequence[str], groups: Sequence[int]) -> Any:
    """Return an array (2, tasks, groups): for each task the share of its episodes in each group,
    and their headlines weighted by that share.
    """
    import numpy as np

    often, sums = Counter(task for task, *_ in side), np.zeros((2, len(tasks), len(groups)))
    rows, columns = (
        {name: at for at, name in enumerate(tasks)},
        {group: at for at, group in enumerate(groups)},
    )
    for task, group, value in side:
        if task in rows:
            sums[:, rows[task], columns[group]] += np.array([1.0, value]) / often[task]
    return sums


def _moved(weights: Any, sides: Any) -> Any:
    """Return the part of the gain for each row of `weights` (rows, tasks), whose rows add up to 1.

    sides: of `_sums`, before and after (2, 2, tasks, groups).
    """
    import numpy as np

    share, value = (weights @ sides).swapaxes(0, 1)
    seen = share > 0
    headline = value / np.where(seen, share, 1.0)
    return ((share[1] - share[0]) * headline.sum(axis=0) / np.maximum(1, seen.sum(axis=0))).sum(
        axis=-1
    )
