"""Read pairs of a better and a worse conversation about one task.

    pairs, left_out = pairs_of_episodes([Path("outputs/evaluations/code-mine")], agent, margin=0.2)
    pairs = pairs_of_file(Path("pairs.jsonl"), agent)

A file has one pair a line: `prompt`, `chosen` and `rejected`, each a text or a list of messages.
The latter two may begin with the prompt instead. A line may also have `task` and `tools`. What is
left out is counted by its reason.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shortly
from typing import Any

from common.command import UsageError
from common.jsonl import read_jsonl
from episodes.agent import Agent
from episodes.episode import AgentError, Message, ToolSpec
from episodes.kept import is_message
from training.report.summary import read_object

EPISODES = "episodes.jsonl"
LeftOut = Counter[str]


@dataclass(frozen=True)
class Side:
    """A conversation with its prompt. answer: what a judge reads."""

    messages: list[Message]
    answer: str

    @property
    def prompt(self) -> list[Message]:
        """The messages before the policy's first reply."""
        return self.messages[: self._begin]

    @property
    def replies(self) -> list[str]:
        """The policy's texts, one a reply, calls of tools included."""
        texts = []
        for message in self.messages[self._begin :]:
            if message["role"] == "assistant":
                said = [str(message.get("content") or "")]
                for call in message.get("tool_calls") or []:
                    said.append(f"{call['function']['name']} {call['function']['arguments']}")
                texts.append("\n".join(said).strip())
        return texts

    @property
    def length(self) -> int:
        """The characters that the policy wrote."""
        return sum(map(len, self.replies))

    @property
    def _begin(self) -> int:
        roles = [one["role"] for one in self.messages]
        return roles.index("assistant") if "assistant" in roles else len(roles)


@dataclass(frozen=True)
class Pair:
    """Two conversations about one task. question: what a judge reads of the task."""

    task: str
    question: str
    chosen: Side
    rejected: Side
    tools: Sequence[ToolSpec] = ()


def pairs_of_episodes(
    places: Sequence[Path], agent: Agent, margin: float
) -> tuple[list[Pair], LeftOut]:
    """Return pairs of each task's episodes that had the same tools.

    The best stands beside the worst, the second best beside the second worst and so on, as long
    as their scores differ by `margin`. Raises UsageError: no episodes, or another agent's.
    """
    tasks: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    left_out = LeftOut()
    for place in places:
        for line in _episodes(place, agent):
            messages = line.get("transcript") or []
            if line["score"] is None:
                left_out["episodes without a score"] += 1
            elif not any(is_message(one) and one["role"] == "assistant" for one in messages):
                left_out["episodes without messages"] += 1
            else:
                tasks[str(line["id"]), json.dumps(line.get("tools"))].append(line)
    pairs: list[Pair] = []
    for lines in tasks.values():
        ranked = sorted(lines, key=_score)
        before = len(pairs)
        for worse, better in zip(ranked, reversed(ranked), strict=True):
            if _score(better) - _score(worse) >= margin:
                chosen = Side(better["transcript"], better.get("answer") or "")
                rejected = Side(worse["transcript"], worse.get("answer") or "")
                question = str(better.get("question", ""))
                tools = tuple(better.get("tools") or agent.tools)
                pairs.append(Pair(str(better["id"]), question, chosen, rejected, tools))
        left_out["tasks whose episodes earn alike"] += len(pairs) == before
    return pairs, +left_out


def pairs_of_file(path: Path, agent: Agent) -> list[Pair]:
    """Return the pairs of a file. Raises UsageError: a line of another form."""
    pairs = []
    for number, row in read_jsonl(path):
        where = f"{path}, line {number}"
        chosen = _side(row, "chosen", where)
        rejected = _side(row, "rejected", where)
        asked = [one["content"] for one in chosen.prompt if one["role"] == "user"]
        question = str(asked[-1] if asked else "")
        tools = row.get("tools") or agent.tools
        if not isinstance(tools, list | tuple) or not all(isinstance(one, dict) for one in tools):
            raise UsageError(f"{where}, tools: expected a list of tools, got {shortly(tools)}")
        task = str(row.get("task", question))
        pairs.append(Pair(task, question, chosen, rejected, tuple(tools)))
    return pairs


def _episodes(place: Path, agent: Agent) -> list[dict[str, Any]]:
    path = place / EPISODES if place.is_dir() else place
    if not path.is_file():
        raise UsageError(
            f"{place} has no {EPISODES}; give the folder of a finished evaluation or of a run (of "
            "history files, the program that played them writes pairs: --to-dpo FILE, then --pairs FILE)"
        )
    _check_agent(read_object(path.with_name("scores.json")), agent, str(place))
    found = []
    for number, line in read_jsonl(path):
        where = f"{path}, line {number}"
        if "id" not in line or not isinstance(line.get("score", ""), int | float | None):
            raise UsageError(f"{where}: expected an episode with id and score, got {shortly(line)}")
        _check_agent(line, agent, where)
        found.append(line)
    return found


def _check_agent(found: dict[str, Any], agent: Agent, where: str) -> None:
    if found.get("agent", agent.name) != agent.name:
        raise AgentError(f"{where}: expected the {agent.name} agent's, got {found['agent']!r}")


def _score(line: dict[str, Any]) -> float:
    return float(line["score"])


def _side(row: dict[str, Any], name: str, where: str) -> Side:
    messages = _messages(row.get(name), "assistant", f"{where}, {name}")
    if not messages or messages[0]["role"] == "assistant":
        messages = [*_messages(row.get("prompt", []), "user", f"{where}, prompt"), *messages]
    if all(one["role"] == "assistant" for one in messages):
        raise UsageError(f"{where}: expected a prompt, in prompt or before the reply of {name}")
    said = [one for one in messages if one["role"] == "assistant"]
    answer = str(said[-1].get("content") or "") if said else ""
    return Side(messages, answer)


def _messages(found: Any, role: str, where: str) -> list[Message]:
    """Return the messages of a column. A text is one of `role`, a blank text none."""
    if isinstance(found, str):
        return [{"role": role, "content": found}] if found.strip() else []
    if not isinstance(found, list) or not all(map(is_message, found)):
        raise UsageError(f"{where}: expected a text or a list of messages, got {shortly(found)}")
    return [*found]
