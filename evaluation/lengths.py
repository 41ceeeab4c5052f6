"""Print how long an agent's gold episodes are, in tokens: what its `Sizes` must hold.

    python -m evaluation.lengths sql                       # by the bundled tokenizer, for the CPU
    python -m evaluation.lengths sql --model Qwen/Qwen3-0.6B --n 200

prompt: all before the first reply. response: all that follows. reply: one reply of the policy. A
policy that is still learning writes more than gold, and `max_turns` replies of `Sizes.reply` must
fit into `Sizes.response`. Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from common.command import UsageError, new_parser, positive, run_command
from common.settings import load_settings
from episodes import registry
from episodes.agent import Agent, Environment
from episodes.episode import Message, Task, ToolSpec
from episodes.turns import with_turns
from evaluation.results import sample_rows
from evaluation.tables import table
from training.setup.model_folder import check_name

Count = Callable[[Sequence[Message]], int]


def parse_arguments(argv: Sequence[str] | None) -> tuple[Agent, argparse.Namespace]:
    """Return the agent and the flags, among them the agent's own."""
    parser = new_parser(__doc__, prog="python -m evaluation.lengths")
    registry.add_agent(parser, argv)
    parser.add_argument("--data", type=Path, help="default: the agent's training file")
    parser.add_argument("--n", type=positive(int), default=200, help="tasks, at most; default: 200")
    parser.add_argument("--model", help="whose tokenizer; default: the agent's bundled model")
    arguments = parser.parse_args(argv)
    return registry.get(arguments.agent), arguments


def counter(model: str, tools: Sequence[ToolSpec]) -> Count:
    """Return what counts the tokens of messages in the model's chat template.

    Raises UsageError: there is no tokenizer.
    """
    from transformers import AutoTokenizer

    check_name(model)
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"{model} has no tokenizer ({first}); give --model FOLDER") from None

    def count(messages: Sequence[Message]) -> int:
        given = {"tools": list(tools) or None, "tokenize": False}
        text = tokenizer.apply_chat_template([*map(_parsed, messages)], **given)
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    return count


def _parsed(message: Message) -> Message:
    """Return the message with its calls' arguments as objects, as vLLM gives them to a template."""
    if not message.get("tool_calls"):
        return message
    calls = [call["function"] for call in message["tool_calls"]]
    read = [call | {"arguments": json.loads(call["arguments"])} for call in calls]
    return message | {"tool_calls": [{"type": "function", "function": call} for call in read]}


def lengths_of(messages: Sequence[Message], count: Count) -> dict[str, list[int]]:
    """Return the tokens of one episode: its prompt, its response and each of its replies."""
    ends = [0, *(count(messages[:end]) for end in range(1, len(messages) + 1))]
    replies = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
    if not replies:
        return {"prompt": [ends[-1]], "response": [], "reply": []}
    prompt = ends[replies[0]]
    spoken = [ends[at + 1] - ends[at] for at in replies]
    return {"prompt": [prompt], "response": [ends[-1] - prompt], "reply": spoken}


async def measure(
    environment: Environment, tasks: Iterable[Task], count: Count
) -> dict[str, list[int]]:
    """Return the lengths of all gold episodes. Raises UsageError: no task has one."""
    found: dict[str, list[int]] = {"prompt": [], "response": [], "reply": []}
    for task in tasks:
        gold = await environment.known.gold(task)
        if gold is not None and gold.messages:
            for name, numbers in lengths_of(gold.messages, count).items():
                found[name] += numbers
    if not found["reply"]:
        raise UsageError(
            "no task has a gold episode with a reply; Environment.known.gold makes them"
        )
    return found


def lengths(agent: Agent, arguments: argparse.Namespace) -> None:
    """Measure, and print the table and what `Sizes` says today."""
    settings = with_turns(agent, load_settings())
    rows = sample_rows(agent.rows(arguments.data or agent.splits["train"]), arguments.n, seed=0)
    tasks = [agent.task(row, settings) for row in rows]
    count = counter(arguments.model or agent.model, agent.tools)
    options = registry.own_options(agent, arguments)
    with closing(agent.open(settings, options, evaluating=True)) as environment:
        found = asyncio.run(measure(environment, tasks, count))
    sizes = agent.sizes("cuda" if arguments.model else "cpu")
    lines: list[tuple[str, ...]] = [("tokens of", "min", "median", "max", "Sizes")]
    for name, numbers in found.items():
        spread = (min(numbers), round(median(numbers)), max(numbers), getattr(sizes, name))
        lines.append((name, *map(str, spread)))
    print("\n".join(table(lines)))


def main(argv: Sequence[str] | None = None) -> int:
    return run_command("lengths", lambda: lengths(*parse_arguments(argv)))


if __name__ == "__main__":
    sys.exit(main())
