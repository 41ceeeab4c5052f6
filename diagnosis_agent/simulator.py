"""The interface of a simulator: it gets an order for a case, and returns the result and its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diagnosis_agent.protocol import Order
from diagnosis_agent.task import DiagnosisTask

KINDS = (
    "recorded",  # the case has it, or a model wrote it
    "normal",  # of an invented case: it exists, and the case has nothing of it
    "not_recorded",  # the record does not say
    "unavailable",  # there is no such examination, or several were ordered at once
    "repeated",  # ordered before, by whatever name; the text is the same
    "withheld",  # a model's text that names the diagnosis
)


@dataclass(frozen=True)
class Result:
    """The result of one order.

    name: the examination's own name, or the policy's words where it is unavailable. text: what the
    policy reads of it, alike every time. kind: one of KINDS.
    """

    name: str
    text: str
    kind: str


@dataclass(frozen=True)
class Exchange:
    """An order and its result."""

    order: Order
    result: Result


class Simulator(ABC):
    """Examines one case, in the same way in every episode. description: what its results depend on,
    as JSON values.
    """

    description: Mapping[str, str]

    @abstractmethod
    async def examine(self, task: DiagnosisTask, name: str, past: Sequence[Result]) -> Result:
        """Return the result of an examination, after earlier results.
        Raises EpisodeError: its model failed.
        """

    async def check(self) -> None:  # noqa: B027 (nothing to ask)
        """Ask for a sign of life. Raises ServiceError."""
