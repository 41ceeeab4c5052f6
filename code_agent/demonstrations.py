"""Supervised data: gold episodes of the data's rows, and episodes that were played and kept.

python -m training.cold_start code --base MODEL --out models/warm
python -m training.cold_start code --base MODEL --dialogues sft.jsonl --out models/sft      # of rollout.py --to-sft
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from reprlib import repr as shortly

from code_agent.prompts import load_prompts
from code_agent.rehearsal import gold_steps, rehearse
from code_agent.task import CodeTask
from code_agent.tasks import get_task_class
from common.jsonl import read_jsonl
from common.settings import Settings
from episodes.agent import AgentError, Conversation, Task


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


def kept_episodes(path: Path) -> list[Conversation]:
    """The lines of a file, each the `messages` of a right episode. Raises AgentError: no such file, or empty."""
    found = []
    for number, row in read_jsonl(path):
        messages = row.get("messages")
        roles = [one.get("role") for one in messages] if isinstance(messages, list) else []
        if "assistant" not in roles or not all(isinstance(one.get("content"), str) for one in messages or ()):
            raise AgentError(f"{path}, line {number}: expected messages of an episode, got {shortly(row)}")
        found.append(Conversation(messages or [], [True] * roles.count("assistant")))
    if not found:
        raise AgentError(f"{path} has no episodes; rollout.py --to-sft writes them")
    return found
