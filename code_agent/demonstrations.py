"""Supervised data: gold episodes of the data's rows.

python -m training.cold_start code --base MODEL --out models/warm
python -m training.cold_start code --base MODEL --dialogues sft.jsonl --out models/sft      # of rollout.py --to-sft
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from code_agent.environment import CodeEnvironment, own
from code_agent.rehearsal import gold_steps
from common.settings import Settings
from episodes.episode import Conversation, Task


def gold_conversations(tasks: Sequence[Task], settings: Settings) -> Iterator[Conversation]:
    """Yield episodes that run the gold program and hand in what it prints."""
    environment = CodeEnvironment(settings, {})
    for task in tasks:
        episode = environment.rehearsed(own(task), gold_steps(own(task)))
        yield Conversation(episode.messages, [True] * episode.turns)
