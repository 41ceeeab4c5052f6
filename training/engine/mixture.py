"""The order in which a step's tasks are drawn if several agents are trained together.

Rows without a weight keep their order, which verl then shuffles.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from random import Random
from typing import Any

from episodes.joint import WEIGHT, WHOSE


def draws(rows: Sequence[Mapping[str, Any]], seed: int) -> list[int]:
    """Return the line numbers of an epoch, in order.

    Agents take turns by weight, as evenly as can be, so that a batch holds each agent's share to
    within one task. An epoch ends when every line was drawn. By then an agent with few lines, or a
    large weight, has drawn some of its lines again, in another order.
    """
    if not rows or WEIGHT not in rows[0]:
        return list(range(len(rows)))
    lines: dict[str, list[int]] = {}
    weights: dict[str, float] = {}
    for number, row in enumerate(rows):
        lines.setdefault(row[WHOSE], []).append(number)
        weights[row[WHOSE]] = float(row[WEIGHT])
    total = sum(weights.values())
    length = max(ceil(len(lines[name]) * total / weights[name]) for name in lines)

    def shuffled_again_and_again(name: str) -> Iterator[int]:
        random = Random(f"{seed}/{name}")
        while True:
            yield from random.sample(lines[name], len(lines[name]))

    queues = {name: shuffled_again_and_again(name) for name in lines}
    taken = dict.fromkeys(lines, 0)
    order = []
    for position in range(1, length + 1):
        due = {name: position * weights[name] / total - taken[name] for name in lines}
        name = max(due, key=lambda one: due[one])
        taken[name] += 1
        order.append(next(queues[name]))
    return order
