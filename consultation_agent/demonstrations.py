"""What the doctor is warmed up with: gold consultations of the rows, every reply of the doctor to be learned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from common.settings import Settings
from consultation_agent.prompts import load_prompts
from consultation_agent.rehearsal import gold_episode
from consultation_agent.task import task_of
from episodes.agent import Conversation, Row


def gold_conversations(rows: Iterable[Row], settings: Settings) -> Iterator[Conversation]:
    """One conversation a row, within the run's budget of turns."""
    prompts = load_prompts()
    for row in rows:
        episode = gold_episode(task_of(row), prompts, settings.max_turns)
        yield Conversation(episode.messages, [True] * episode.turns)
