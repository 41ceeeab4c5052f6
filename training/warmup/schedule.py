"""The learning rate of a supervised training, which may end before its limit."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from random import Random

from training.warmup.examples import Batch

WINDOW = 50  # steps over which accuracy is averaged


class Schedule:
    """The learning rate of each step, until the training ends after at most `limit` steps.

    It rises for `warm_up` steps, stays until the accuracy of the last 50 steps reaches `target`, then
    falls to 0 in `decay` steps.
    """

    def __init__(self, limit: int, decay: int, warm_up: int, target: float = math.inf) -> None:
        self.decay = decay
        self.warm_up = warm_up
        self.target = target
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
        falling = max(0.0, 1 - (step - self.decay_from) / self.decay)
        return min(1.0, (step + 1) / self.warm_up, falling)

    def until_end(self, data: Sequence[Batch], random: Random) -> Iterator[Batch]:
        while True:
            for batch in random.sample(data, len(data)):
                if self.steps >= self.end:
                    return
                yield batch

    def update(self, accuracy: float) -> None:
        self.steps += 1
        self.accuracies.append(accuracy)
        mastered = len(self.accuracies) == WINDOW and self.accuracy >= self.target
        if mastered and self.steps < self.decay_from:
            self.decay_from = self.steps
