"""Pairs of a better and a worse conversation about one task, and where they come from.

    pairs, left_out = pairs_of_episodes([Path("outputs/evaluations/code-mine")], agent, margin=0.2)
    pairs, left_out = pairs_of_file(Path("pairs.jsonl"), agent)

Episodes are lines of `episodes.record`, as evaluations and runs write them; only those with
messages and a score can be used. A file has the public form, one pair a line: `prompt`, `chosen`
and `rejected`, each a text or a list of messages; `chosen` and `rejected` may begin with the prompt
instead. Beside them a line may have `task`, `tools`, `agent`, `chosen_score` and `rejected_score`.
What is left out is counted by its reason. docs/training.md has the form.
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
from episodes.record import current

EPISODES = "episodes.jsonl"
UNSCORED = "a side has no score"
LeftOut = Counter[str]


@dataclass(frozen=True)
class Side:
    """A conversation, its prompt included. answer: what a judge reads. score: None if a file of
    pairs has none.
    """

    messages: list[Message]
    answer: str
    score: float | None = None

    @property
    def prompt(self) -> list[Message]:
        """The messages before the policy's first reply."""
        return self.messages[: self._begin]

    @property
    def replies(self) -> list[str]:
        """What the policy wrote, a text a reply, calls of tools included."""
        return [_written(one) for one in self.messages[self._begin :] if one["role"] == "assistant"]

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
    """Return pairs of each task's episodes that had the same tools: the best beside the worst, the
    second best beside the second worst and so on, as long as their scores differ by `margin` at
    least.

    Raises UsageError: a place has no episodes, or another agent's.
    """
    tasks: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    left_out = LeftOut()
    for place in places:
        for line in _episodes(place, agent):
            reason = _unusable(line)
            if reason:
                left_out[reason] += 1
            else:
                tasks[str(line["id"]), json.dumps(line.get("tools"))].append(line)
    pairs = []
    for lines in tasks.values():
        ranked = sorted(lines, key=lambda line: -line["score"])
        sides = zip(ranked, reversed(ranked), strict=True)
        found = [
            _pair(better, worse, agent)
            for better, worse in sides
            if better["score"] - worse["score"] >= margin
        ]
        pairs += found
        left_out["tasks whose episodes earn alike"] += not found
    return pairs, +left_out


def pairs_of_file(path: Path, agent: Agent) -> tuple[list[Pair], LeftOut]:
    """Return the pairs of a file and how many lines have an episode without a score.

    Raises UsageError: a line of another form or of another agent, or no lines.
    """
    pairs = []
    left_out = LeftOut()
    number = 0
    for number, row in read_jsonl(path):
        where = f"{path}, line {number}"
        if row.get("agent", agent.name) != agent.name:
            raise AgentError(
                f"{where}: expected a pair of the {agent.name} agent, got {row['agent']!r}"
            )
        if any(name in row and row[name] is None for name in ("chosen_score", "rejected_score")):
            left_out[UNSCORED] += 1
        else:
            pairs.append(_pair_of_row(row, agent, where))
    if not number:
        raise UsageError(f"{path} has no lines; expected one pair a line: prompt, chosen, rejected")
    return pairs, left_out


def _unusable(line: dict[str, Any]) -> str | None:
    messages = line.get("transcript")
    if line["score"] is None:
        return "episodes without a score"
    if not messages:
        return "episodes without messages"
    if not isinstance(messages, list) or not all(map(is_message, messages)):
        return "episodes with messages that no template renders"
    if not any(one["role"] == "assistant" for one in messages):
        return "episodes without a reply"
    return None


def _episodes(place: Path, agent: Agent) -> list[dict[str, Any]]:
    path = place / EPISODES if place.is_dir() else place
    if place.is_dir() and not path.is_file():
        histories = any(place.glob("history_*.json"))
        what = (
            "history files of rollouts; write pairs "
            "with that command's --to-dpo FILE and give --pairs FILE"
            if histories
            else f"no {EPISODES}; give the folder of a finished evaluation or of a run"
        )
        raise UsageError(f"{place} has {what}")
    _same_agent(path.with_name("scores.json"), agent)
    found = []
    for number, row in read_jsonl(path):
        line = current(row)
        where = f"{path}, line {number}"
        if "id" not in line or "score" not in line or not _is_score(line["score"]):
            raise UsageError(f"{where}: expected an episode with id and score, got {shortly(row)}")
        if line.get("agent", agent.name) != agent.name:
            raise AgentError(f"{where}: an episode of {line['agent']!r}, not of {agent.name}")
        found.append(line)
    return found


def _is_score(found: Any) -> bool:
    """Return whether it is a number, or null: not scored."""
    return found is None or (isinstance(found, int | float) and not isinstance(found, bool))


def _same_agent(scores: Path, agent: Agent) -> None:
    try:
        name = json.loads(scores.read_text(encoding="utf-8")).get("agent", agent.name)
    except (OSError, ValueError, AttributeError):
        return  # no evaluation's folder
    if name != agent.name:
        raise AgentError(f"{scores.parent} has episodes of the {name} agent, not of {agent.name}")


def _pair(better: dict[str, Any], worse: dict[str, Any], agent: Agent) -> Pair:
    chosen, rejected = (
        Side(line["transcript"], line.get("answer") or "", float(line["score"]))
        for line in (better, worse)
    )
    tools = better.get("tools") or agent.tools
    return Pair(str(better["id"]), str(better.get("question", "")), chosen, rejected, tuple(tools))


def _pair_of_row(row: dict[str, Any], agent: Agent, where: str) -> Pair:
    chosen, rejected = (_side(row, name, where) for name in ("chosen", "rejected"))
    prompt = chosen.prompt
    asked = [one["content"] for one in prompt if one["role"] == "user" and one.get("content")]
    question = str(row.get("question") or (asked[-1] if asked else ""))
    task = str(row.get("task", question))
    return Pair(task, question, chosen, rejected, _tools(row, agent, where))


def _tools(row: dict[str, Any], agent: Agent, where: str) -> tuple[ToolSpec, ...]:
    """Return the tools of a line, or the agent's own where it names none."""
    found = row.get("tools") or agent.tools
    if isinstance(found, str):  # a table with columns of one type keeps them as JSON
        try:
            found = json.loads(found)
        except ValueError:
            raise UsageError(f"{where}, tools: not JSON: {shortly(found)}") from None
    if not isinstance(found, list | tuple) or not all(isinstance(one, dict) for one in found):
        raise UsageError(f"{where}, tools: expected a list of tools, got {shortly(found)}")
    return tuple(found)


def _side(row: dict[str, Any], name: str, where: str) -> Side:
    prompt = _messages(row.get("prompt", []), "user", f"{where}, prompt")
    replied = _messages(row.get(name), "assistant", f"{where}, {name}")
    whole = bool(replied) and replied[0]["role"] != "assistant"
    messages = replied if whole else [*prompt, *replied]
    if not any(one["role"] != "assistant" for one in messages):
        raise UsageError(f"{where}: expected a prompt, in prompt or before the reply of {name}")
    said = [one for one in messages if one["role"] == "assistant"]
    answer = str(said[-1].get("content") or "") if said else ""
    score = row.get(f"{name}_score")
    if not _is_score(score):
        raise UsageError(f"{where}: expected a number in {name}_score, got {score!r}")
    return Side(messages, answer, score)


def _messages(found: Any, role: str, where: str) -> list[Message]:
    """Return the messages of a column: a text is one of `role`, none where it is blank."""
    if isinstance(found, str):
        return [{"role": role, "content": found}] if found.strip() else []
    if not isinstance(found, list) or not all(map(is_message, found)):
        raise UsageError(f"{where}: expected a text or a list of messages, got {shortly(found)}")
    return [*found]


def _written(message: Message) -> str:
    calls = [call["function"] for call in message.get("tool_calls") or []]
    said = [f"{call['name']} {call['arguments']}" for call in calls]
    return "\n".join([str(message.get("content") or ""), *said]).strip()
