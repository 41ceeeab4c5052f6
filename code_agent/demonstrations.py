"""Supervised data: gold episodes of the data's rows.

python -m training.cold_start code --base MODEL --out models/warm
python -m training.cold_start code --base MODEL --dialogues sft.jsonl --out models/sft      # of rollout.py --to-sft
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from code_agent.prompts import load_prompts
from code_agent.rehearsal import gold_steps, rehearse
from code_agent.task import CodeTask
from code_agent.tasks import get_task_class
from common.settings import Settings
from episodes.agent import Conversation, Task


def gold_conversations(tasks: Sequence[Task], settings: Settings) -> Iterator[Conversation]:
    """Run the gold program, hand in what it prints."""
    sets = {}
    for task in tasks:
        assert isinstance(task, CodeTask)
        if task.task_set not in sets:
            sets[task.task_set] = get_task_class(task.task_set)()
        turns = task.max_turns or settings.max_turns
        episode = rehearse(sets[task.task_set], task, load_prompts(), turns, gold_steps(task))
        yield Conversation(episode.messages, [True] * episode.turns)
