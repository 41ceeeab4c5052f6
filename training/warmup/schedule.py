"""The learning rate of a supervised training, which may end before its limit."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from random import Random

from training.warmup.examples import Batch

WINDOW = 50  # steps over which accuracy is averaged
ASKED_EVERY = 500  # steps between two looks at what the agent itself can do


class Schedule:
    """The learning rate of each step, until the training ends after at most `limit` steps.

    It rises for `warm_up` steps, stays until the accuracy of the last 50 steps reaches `target` and
    `ready` agrees (asked every ASKED_EVERY steps at most), then falls to 0 in `decay` steps.
    """

    def __init__(
        self,
        limit: int,
        decay: int,
        warm_up: int,
        target: float = math.inf,
        ready: Callable[[], bool] = lambda: True,
    ) -> None:
        self.decay = decay
        self.warm_up = warm_up
        self.target = target
        self.ready = ready
        self.asked_at = -ASKED_EVERY
        self.decay_from = limit - decay
        self.steps = 0
        self.accuracies: deque[float] = deque(maxlen=WINDOW)

    @property
    def end(self) -> int:
        return self.decay_from + self.decay

    @property
    def accuracy(self) -> float:
        """The share of learned tokens that greedy decoding would get right, over the last steps."""
        return sum(self.accuracies) / len(self.accuracies)

    def factor(self, step: int) -> float:
        """Return the factor of the learning rate in a step, counted from 0."""
        return min(
            1.0, (step + 1) / self.warm_up, max(0.0, 1 - (step - self.decay_from) / self.decay)
        )

    def until_end(self, data: Sequence[Batch], random: Random) -> Iterator[Batch]:
        while True:
            for batch in random.sample(data, len(data)):
                if self.steps >= self.end:
                    return
                yield batch

    def update(self, accuracy: float) -> None:
        self.steps += 1
        self.accuracies.append(accuracy)
        self.look()

    def look(self) -> None:
        """Ask `ready` if it is due. A look that Ctrl-C ends stays due."""
        if (
            self.steps < self.decay_from
            and len(self.accuracies) == WINDOW
            and self.accuracy >= self.target
            and self.steps - self.asked_at >= ASKED_EVERY
        ):
            if self.ready():
                self.decay_from = self.steps
            self.asked_at = self.steps
