"""The steps of a supervised training: how fast each learns, and a file of those that were taken, with
which a stopped command goes on.
"""

import math
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from random import Random
from typing import Any

import torch

from common.files import FileError, replacing
from training.warmup.examples import Batch

FILE = "progress.pt"
# Writing 6 GB, those of a model of 0.5 billion parameters, takes about 10 seconds
SAVED_EVERY = 600.0
WINDOW = 50  # steps over which accuracy is averaged


class PreciseAdamW(torch.optim.AdamW):
    """AdamW on a copy in 32 bit, because a weight in bfloat16 would lose small updates."""

    def __init__(self, weight: torch.nn.Parameter, lr: float) -> None:
        self.weight = weight
        self.precise = weight.detach().float()
        super().__init__([self.precise], lr=lr, fused=True)

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        assert self.weight.grad is not None
        self.precise.grad = self.weight.grad.float()
        self.weight.grad = None
        super().step()
        self.precise.grad = None
        self.weight.copy_(self.precise)

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "precise": self.precise}

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        precise = state_dict.pop("precise")
        super().load_state_dict(state_dict)
        self.precise.copy_(precise)
        self.weight.copy_(precise)


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


class KeptSteps:
    """Saves the steps of a training in a folder, and restores them.

    model: only where the optimizers do not keep its weights. every: seconds between two savings.
    """

    def __init__(
        self,
        folder: Path,
        optimizers: Sequence[torch.optim.Optimizer],
        model: torch.nn.Module | None = None,
        every: float = SAVED_EVERY,
    ) -> None:
        self.file = folder / FILE
        self.parts: list[Any] = [*optimizers] if model is None else [model, *optimizers]
        self.every = every
        self.saved_at = time.monotonic()

    def restore(self, schedule: Schedule) -> None:
        """Go on with the saved steps, if there are any."""
        if not self.file.is_file():
            return
        try:
            state = torch.load(self.file, map_location="cpu", weights_only=True)
        except (OSError, EOFError, RuntimeError, UnpicklingError) as error:
            raise FileError(f"{self.file} cannot be read ({error}); remove its folder") from None
        for part, found in zip(self.parts, state["parts"], strict=True):
            part.load_state_dict(found)
        schedule.steps = state["steps"]
        schedule.decay_from = state["decay_from"]
        schedule.accuracies.extend(state["accuracies"])
        print(f"going on after step {schedule.steps}, from {self.file}", file=sys.stderr)

    def save_at_times(self, schedule: Schedule) -> None:
        if time.monotonic() - self.saved_at >= self.every:
            self._save(schedule)

    def save_and_tell(self, schedule: Schedule) -> None:
        if schedule.steps and self._save(schedule):
            kept = f"{schedule.steps} steps are kept in {self.file.parent}"
            print(f"{kept}; the same command goes on with them", file=sys.stderr)

    def _save(self, schedule: Schedule) -> bool:
        """Return whether the disk took the steps. The old file stays until the new one is written."""
        state = {
            "parts": [part.state_dict() for part in self.parts],
            "steps": schedule.steps,
            "decay_from": schedule.decay_from,
            "accuracies": list(schedule.accuracies),
        }
        self.saved_at = time.monotonic()
        try:
            with replacing(self.file) as draft:
                torch.save(state, draft)
        except (OSError, RuntimeError) as error:  # of torch's writer
            print(f"the last steps are not kept in {self.file}: {error}", file=sys.stderr)
            return False
        return True


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C until the end, because half an update would spoil the weights."""
    held: list[Any] = []
    handler = signal.signal(signal.SIGINT, lambda *_: held.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if held:
        raise KeyboardInterrupt
