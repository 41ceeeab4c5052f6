"""The partner of an agent, the record or a model, as flags and settings name it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Self

from common.settings import Settings
from episodes.agent import Options, Row, Teaching
from episodes.episode import AgentError, Conversation, Episode

PARTNERS = RECORD, LLM, SERVED = ("record", "llm", "served")


def partner_kind(role: str, options: Options) -> str:
    """Return what --ROLE names, the record by default.

    Raises AgentError: a model is named, which the record does not use.
    """
    kind = str(options.get(role) or RECORD)
    model = options.get(f"{role}_model")
    if kind == RECORD and model:
        raise AgentError(f"--{role}-model {model}: the record {role} has no model; add --{role}")
    return kind


def partner_model(role: str, kind: str, settings: Settings, llm_name: str) -> str:
    """Return the name of a partner's model. `llm_name` says in the error what names one.

    Raises AgentError: neither the flag nor the settings name a model.
    """
    model: str | None = getattr(settings, f"{role}_model")
    if model:
        return model
    expected = "a model folder or hub id" if kind == SERVED else llm_name
    raise AgentError(
        f"--{role} {kind} needs {expected}; give --{role}-model or set {role.upper()}_MODEL"
    )


class PromptedTeaching(Teaching):
    """Gold episodes in words that a file may replace. prompts: the file, None: the agent's own."""

    prompts: Path | None = None

    @abstractmethod
    def gold(self, row: Row, settings: Settings) -> Episode:
        """Return the perfect episode of a row, within its budget."""

    def reading(self, prompts: Path) -> Self:
        other = copy(self)
        other.prompts = prompts
        return other

    def demonstrations(
        self, role: str, rows: Sequence[Row], settings: Settings
    ) -> Iterable[Conversation]:
        if role != "policy":
            return super().demonstrations(role, rows, settings)
        gold = (self.gold(row, settings) for row in rows)
        return (Conversation(episode.messages, [True] * episode.turns) for episode in gold)
