"""The interface of a patient: it gets a question, and returns its words and their kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from consultation_agent.task import ConsultationTask

KINDS = (
    "informative",  # what the record has, for the first time
    "repeated",  # asked before, in whatever words
    "unknown",  # understood, and not in the record
    "compound",  # several things asked at once; the first is answered
    "off_topic",  # nothing a patient can be asked, or not understood
)


@dataclass(frozen=True)
class Reply:
    """A patient's reply. kind: one of KINDS. facets: those that the text is about. leaked: whether
    a name of the diagnosis was struck out of it.
    """

    kind: str
    text: str
    facets: tuple[str, ...] = ()
    leaked: bool = False


@dataclass(frozen=True)
class Exchange:
    """A question and what the patient said to it."""

    question: str
    reply: Reply


def told(asked: Sequence[Exchange]) -> dict[str, Reply]:
    """Return by facet the first reply that mentioned it."""
    found: dict[str, Reply] = {}
    for exchange in asked:
        for facet in exchange.reply.facets:
            found.setdefault(facet, exchange.reply)
    return found


class Patient(ABC):
    """Answers questions about one record, in the same way in every episode. description: what its
    answers depend on.
    """

    description: Mapping[str, str]

    @abstractmethod
    async def answer(
        self, task: ConsultationTask, question: str, asked: Sequence[Exchange]
    ) -> Reply:
        """Return the patient's reply to a question, after the questions asked before.
        Raises EpisodeError: its model failed.
        """

    async def check(self) -> None:  # noqa: B027 (nothing to ask)
        """Ask for a sign of life. Raises ServiceError."""
