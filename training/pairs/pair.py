"""Read pairs of a better and a worse conversation about one task.

    pairs, left_out = pairs_of_episodes([Path("outputs/evaluations/code-mine")], agent, margin=0.2)
    pairs = pairs_of_file(Path("pairs.jsonl"), agent)

A file has one pair a line: `prompt`, `chosen` and `rejected`, each a text or a list of messages.
The latter two may begin with the prompt instead. A line may also have `task` and `tools`. What is
left out is counted by its reason.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from reprlib import repr as shortly
from typing import Any

from common.command import UsageError
from common.jsonl import read_jsonl, read_object
from episodes.agent import Agent
from episodes.episode import AgentError, Message, ToolSpec
from episodes.kept import is_message, is_tool

EPISODES = "episodes.jsonl"
LeftOut = Counter[str]


@dataclass(frozen=True)
class Pair:
    """Two conversations about one task, each with its prompt."""

    task: str
    chosen: list[Message]
    rejected: list[Message]
    tools: Sequence[ToolSpec] = ()


def prompt_of(side: Sequence[Message]) -> list[Message]:
    """Return the messages before the policy's first reply."""
    return [*takewhile(lambda message: message["role"] != "assistant", side)]


def replies_of(side: Sequence[Message]) -> list[str]:
    """Return the policy's texts, one a reply, calls of tools included."""
    texts = []
    for message in side:
        if message["role"] == "assistant":
            said = [str(message.get("content") or "")]
            for call in message.get("tool_calls") or []:
                said.append(f"{call['function']['name']} {call['function']['arguments']}")
            texts.append("\n".join(said).strip())
    return texts


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
            messages = line.get("transcript")
            if not isinstance(messages, list) or not all(map(is_message, messages)):
                messages = []
            if line.get("mode") == "val":
                left_out["validation episodes"] += 1
            elif line["score"] is None:
                left_out["episodes without a score"] += 1
            elif not any(one["role"] == "assistant" for one in messages):
                left_out["episodes without messages"] += 1
            else:
                tasks[str(line["id"]), json.dumps(line.get("tools"))].append(line)
    pairs: list[Pair] = []
    for lines in tasks.values():
        ranked = sorted(lines, key=itemgetter("score"))
        before = len(pairs)
        for worse, better in zip(ranked, reversed(ranked), strict=True):
            if round(better["score"] - worse["score"], 9) >= margin:  # 0.7 - 0.5 is less than 0.2
                tools = tuple(better.get("tools") or agent.tools)
                sides = (better["transcript"], worse["transcript"])
                pairs.append(Pair(str(better["id"]), *sides, tools))
        if len(pairs) == before:
            left_out["tasks without two episodes that differ by --margin"] += 1
    return pairs, left_out


def pairs_of_file(path: Path, agent: Agent) -> list[Pair]:
    """Return the pairs of a file. Raises UsageError: a line of another form."""
    pairs = []
    for number, row in read_jsonl(path):
        where = f"{path}, line {number}"
        chosen = _side(row, "chosen", where)
        rejected = _side(row, "rejected", where)
        tools = row.get("tools") or agent.tools
        if not isinstance(tools, list | tuple) or not all(map(is_tool, tools)):
            raise UsageError(f"{where}, tools: expected a list of tools, got {shortly(tools)}")
        asked = [one["content"] for one in prompt_of(chosen) if one["role"] == "user"]
        task = str(row.get("task", asked[-1] if asked else ""))
        pairs.append(Pair(task, chosen, rejected, tuple(tools)))
    return pairs


def _episodes(place: Path, agent: Agent) -> Iterator[dict[str, Any]]:
    path = place / EPISODES if place.is_dir() else place
    if not path.is_file():
        raise UsageError(
            f"{place} has no {EPISODES}; give the folder of a finished evaluation or of a run (of "
            "history files, the program that played them writes pairs: --to-dpo FILE, then --pairs FILE)"
        )
    _check_agent(read_object(path.with_name("scores.json")), agent, str(place))
    for number, line in read_jsonl(path):
        where = f"{path}, line {number}"
        scored = isinstance(line.get("score", ""), int | float | None)
        if "id" not in line or not scored or not isinstance(line.get("tools") or [], list):
            expected = "expected an episode with id and score, and tools in a list"
            raise UsageError(f"{where}: {expected}, got {shortly(line)}")
        _check_agent(line, agent, where)
        yield line


def _check_agent(found: dict[str, Any], agent: Agent, where: str) -> None:
    if found.get("agent", agent.name) != agent.name:
        raise AgentError(f"{where}: expected the {agent.name} agent's, got {found['agent']!r}")


def _side(row: dict[str, Any], name: str, where: str) -> list[Message]:
    messages = _messages(row.get(name), "assistant", f"{where}, {name}")
    if not messages or messages[0]["role"] == "assistant":
        messages = [*_messages(row.get("prompt", []), "user", f"{where}, prompt"), *messages]
    if all(one["role"] == "assistant" for one in messages):
        raise UsageError(f"{where}: expected a prompt, in prompt or before the reply of {name}")
    return messages


def _messages(found: Any, role: str, where: str) -> list[Message]:
    """Return the messages of a column. A text is one of `role`, a blank text none."""
    if isinstance(found, str):
        return [{"role": role, "content": found}] if found.strip() else []
    if not isinstance(found, list) or not all(map(is_message, found)):
        raise UsageError(f"{where}: expected a text or a list of messages, got {shortly(found)}")
    return [*found]


def pairs_asked(agent: Agent, arguments: argparse.Namespace) -> tuple[list[Pair], LeftOut]:
    """Return the pairs that the flags name, checked, and what was left out. Raises UsageError."""
    left_out = LeftOut()
    if arguments.pairs:
        found = pairs_of_file(arguments.pairs, agent)
    else:
        found, left_out = pairs_of_episodes(arguments.episodes, agent, arguments.margin)
    measured = set()
    for split in ("val", "test"):
        measured |= {str(row["id"]) for row in agent.rows(agent.splits[split])}
    kept: dict[str, Pair] = {}
    for pair in found:
        key = repr((pair.chosen, pair.rejected))
        reason = problem_of(pair, measured) or ("there already" if key in kept else None)
        if reason:
            left_out[reason] += 1
        else:
            kept[key] = pair
    if not kept:
        raise UsageError(f"no pair is left to learn from: {counted(left_out) or 'there were none'}")
    pairs = [*kept.values()]
    tasks = len({pair.task for pair in pairs})
    print(
        f"{len(pairs)} pairs of {tasks} tasks; the longer side wins {longer_wins(pairs):.0%}",
        file=sys.stderr,
    )
    if left_out:
        print(f"left out: {counted(left_out)}", file=sys.stderr)
    return pairs, left_out


def problem_of(pair: Pair, measured: set[str]) -> str | None:
    """Return why a pair cannot be learned from, or None. measured: ids of tasks to evaluate on."""
    sides = (pair.chosen, pair.rejected)
    texts = [" ".join(" ".join(replies_of(side)).split()) for side in sides]
    shorter, longer = sorted(texts, key=len)
    if pair.task in measured:
        return "task of the validation or test file"
    if prompt_of(pair.chosen) != prompt_of(pair.rejected):
        return "two different prompts"
    if not shorter:
        return "one side is empty"
    if shorter == longer:
        return "both sides are equal"
    if longer.startswith(shorter):
        return "they differ in length alone"
    return None


def longer_wins(pairs: Sequence[Pair]) -> float:
    """Return the share of pairs whose chosen side is the longer one. Equal ones count half."""
    won = 0.0
    for pair in pairs:
        chosen = sum(map(len, replies_of(pair.chosen)))
        rejected = sum(map(len, replies_of(pair.rejected)))
        if chosen == rejected:
            won += 0.5
        elif chosen > rejected:
            won += 1
    return won / len(pairs)


def counted(left_out: LeftOut) -> str:
    """Return the reasons with their numbers in words, the commonest first."""
    return "; ".join(f"{reason}: {count}" for reason, count in left_out.most_common())
