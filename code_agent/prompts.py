"""The words that the policy reads, from prompts.toml."""

import hashlib
from collections.abc import Sequence

from code_agent.actions import ACTIONS
from code_agent.task import CodeTask
from common.toml import table_beside
from episodes.episode import Message

WORDS: dict[str, str] = table_beside(__file__)


def fingerprint() -> str:
    """Return the version and a hash of the texts."""
    digest = hashlib.sha256(f"{WORDS}{ACTIONS}".encode()).hexdigest()
    return f"{WORDS['version']} {digest[:8]}"


def opening(task: CodeTask, overview: str, permitted: Sequence[str], steps: int) -> list[Message]:
    """Return the messages that begin an episode."""
    actions = []
    for name in permitted:
        spec = ACTIONS[name]
        params = "; ".join(f"{param}: {meaning}" for param, meaning in spec["params"].items())
        actions.append(f"{name}: {spec['says']}. {params}.")
    system = WORDS["system"].format(actions="\n".join(actions), overview=overview)
    note = f"{task.note}\n" if task.note else ""
    user = said(f"{note}{task.question}", 1, steps, "submit" in permitted)
    return [{"role": "system", "content": system.strip()}, {"role": "user", "content": user}]


def said(text: str, step: int, steps: int, submits: bool) -> str:
    """Return a question or an observation, before reply number `step` of `steps`, if it has one."""
    if step > steps:
        return text
    words = WORDS["turn"].format(text=text, step=step, steps=steps)
    if step < steps:
        return words
    return f"{words}\n{WORDS['last' if submits else 'last_oracle']}"
