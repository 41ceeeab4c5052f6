"""Print how long an agent's gold episodes are, in tokens: what its `Sizes` must hold.

    .venv/bin/python -m evaluation.lengths sql                       # by the bundled tokenizer, for the CPU
    .venv/bin/python -m evaluation.lengths sql --model Qwen/Qwen3-0.6B --n 200

prompt: all before the first reply. response: all that follows. reply: one reply of the policy. A
policy that is still learning writes more than gold, and `max_turns` replies of `Sizes.reply` must
fit into `Sizes.response`. Exit codes: 0 done, 1 failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

from common.command import UsageError, new_parser, positive, run_command
from common.settings import load_settings
from episodes import registry
from episodes.agent import Agent, Environment, bundled_model
from episodes.episode import Message, Task, ToolSpec
from episodes.turns import with_turns
from evaluation.results import sample_rows
from evaluation.tables import table
from training.setup.model_folder import check_name

Count = Callable[[Sequence[Message]], int]


def parse_arguments(argv: Sequence[str] | None) -> tuple[Agent, argparse.Namespace]:
    """Return the agent and the flags, among them the agent's own."""
    parser = new_parser(__doc__)
    registry.add_agent(parser, argv)
    parser.add_argument("--data", type=Path, help="default: the agent's training file")
    parser.add_argument("--n", type=positive(int), default=200, help="tasks, at most; default: 200")
    parser.add_argument("--model", help="whose tokenizer; default: the agent's bundled model")
    arguments = parser.parse_args(argv)
    return registry.get(arguments.agent), arguments


def counter(model: str, tools: Sequence[ToolSpec]) -> Count:
    """Return what counts the tokens of messages in the model's chat template.
    Raises UsageError: the tokenizer is missing.
    """
    from transformers import AutoTokenizer

    check_name(model)
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"{model} has no tokenizer ({first}); give --model FOLDER") from None

    def count(messages: Sequence[Message]) -> int:
        read = []
        for message in messages:
            calls = []
            for call in message.get("tool_calls") or ():
                # A template gets arguments as objects, as vLLM gives them
                arguments = json.loads(call["function"]["arguments"])
                calls.append({**call, "function": call["function"] | {"arguments": arguments}})
            read.append(message | {"tool_calls": calls} if calls else message)
        text = tokenizer.apply_chat_template(read, tools=list(tools) or None, tokenize=False)
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    return count


async def measure(
    environment: Environment, tasks: Sequence[Task], count: Count
) -> dict[str, list[int]]:
    """Return the tokens of all gold episodes: prompts, responses and replies.
    Raises UsageError: no task has a gold episode with a reply.
    """
    found: dict[str, list[int]] = {"prompt": [], "response": [], "reply": []}
    for task in tasks:
        gold = await environment.known.gold(task)
        messages = gold.messages if gold else []
        prompt = 0
        before = 0
        for end, message in enumerate(messages, start=1):
            now = count(messages[:end])
            if message["role"] == "assistant":
                prompt = prompt or before
                found["reply"].append(now - before)
            before = now
        if prompt:
            found["prompt"].append(prompt)
            found["response"].append(before - prompt)
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
    count = counter(arguments.model or bundled_model(agent), agent.tools)
    options = registry.own_options(agent, arguments)
    with closing(agent.open(settings, options, evaluating=True)) as environment:
        found = asyncio.run(measure(environment, tasks, count))
    sizes = agent.sizes("cuda" if arguments.model else "cpu")
    lines = [["tokens of", "min", "median", "max", "Sizes"]]
    for name, numbers in found.items():
        spread = [min(numbers), round(median(numbers)), max(numbers), getattr(sizes, name)]
        lines.append([name, *map(str, spread)])
    print("\n".join(table(lines)))


def main(argv: Sequence[str] | None = None) -> int:
    return run_command("lengths", lambda: lengths(*parse_arguments(argv)))


if __name__ == "__main__":
    sys.exit(main())
