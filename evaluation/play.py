"""Play an agent's tasks yourself: you are the policy, and read what it earned.

    .venv/bin/python -m evaluation.play sql                                    # a task drawn from the test file
    .venv/bin/python -m evaluation.play consultation --task 12
    .venv/bin/python -m evaluation.play code --n 5 < replies.txt

What you read is what a model reads (docs/evaluate-and-serve.md). Exit codes: 0 done, 1 the input
ended, something failed or has no score, 2 wrong usage, 130 interrupted.
"""

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from rich.console import Console
from rich.text import Text

from common.command import Failure, UsageError, new_parser, positive, run_command
from common.language import said
from common.settings import WORK, Settings, load_settings
from common.terminal import printable
from episodes import registry
from episodes.agent import Agent, Environment
from episodes.episode import Message, Policy, Scored, Task, ToolSpec
from episodes.outcomes import PolicyStop
from episodes.play_and_score import play, tasks_of
from episodes.script import numbered, tool_call
from episodes.turns import turns, turns_of, with_turns
from evaluation.players import opened_environment

LOGS = WORK / "outputs" / "play"
A_DAY = 86_400.0  # a person may think; what the machine does has limits of its own

FENCE = '"""'
HOW = 'A line is your reply; """ on a line of its own begins and ends one of several lines.'
HELP = "/help"
HOW_TO_BE_HELPED = "/help shows this again; it costs no reply."
HOW_TO_CALL = "/NAME and its arguments call a tool; the beginning of a name will do."
HOW_TO_SAY = "Reply in the form that the first message asks for; any other costs a reply."
STYLES = {
    "system": "magenta",
    "user": "cyan",
    "tool": "yellow",
    "assistant": "green",
    "end": "bold",
}


def show(heading: str, text: str) -> None:
    """Print a part of the episode, with its control characters made visible."""
    console = Console(soft_wrap=True, highlight=False)
    console.print(Text(f"--- {heading}", STYLES.get(heading.split(" ")[0], "bold")))
    console.print(Text(printable(text)))


def ask(prompt: str) -> str:
    """Return what the person types. Raises Failure: the input ended. Raises UsageError: no text."""
    try:
        typed = input(prompt).removeprefix("\ufeff")  # a file may begin with a mark of byte order
        if typed.strip() == FENCE:
            lines = []
            while (line := input()).strip() != FENCE:
                lines.append(line)
            typed = "\n".join(lines)
    except EOFError:
        print()
        raise Failure("the input ended before the episode did") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"the input is no text: {error}; expected UTF-8") from None
    if not sys.stdin.isatty():
        print(printable(typed))
    return typed


class KeyboardPolicy(Policy):
    """A policy that is typed."""

    def __init__(self, max_turns: int) -> None:
        super().__init__(max_turns)
        self._shown = 0

    async def reply(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Message:
        """Return the person's reply. Anything else costs no turn. Raises PolicyStop."""
        if self.turns >= self.max_turns:
            raise PolicyStop("max_turns")
        self.show_rest(messages)
        if not self.turns:
            self._explain(tools)
        left = self.max_turns - self.turns
        message = None
        while message is None:
            prompt = "[{left} replies left] > " if left > 1 else "[{left} reply left] > "
            typed = ask(said(prompt, left=left))
            if typed.strip() == HELP:
                self._explain(tools)
            elif not typed.strip():
                print(said("Type a reply; /help says how."))
            else:
                try:
                    message = message_of(typed, tools if left > 1 else ())
                except UsageError as error:
                    print(error)
        self.finish_reason = "stop"
        self.turns += 1
        self._shown = len(messages) + 1
        return numbered(message, self.turns)

    def show_rest(self, messages: Sequence[Message]) -> None:
        for message in messages[self._shown :]:
            show(str(message["role"]), words_of(message))
        self._shown = len(messages)

    def _explain(self, tools: Sequence[ToolSpec]) -> None:
        how = [said(HOW), said(HOW_TO_BE_HELPED)]
        if tools:
            show(said("tools"), "\n".join(map(described, tools)))
            how.append(said(HOW_TO_CALL))
        else:
            how.append(said(HOW_TO_SAY))
        show(said("how to play"), "\n".join(how))


def words_of(message: Message) -> str:
    """Return a message as a person reads it: its text, then its calls."""
    lines = [str(message["content"])] if message.get("content") is not None else []
    for call in message.get("tool_calls") or []:
        lines.append(f"/{call['function']['name']} {call['function']['arguments']}")
    return "\n".join(lines)


def described(tool: ToolSpec) -> str:
    """Return one line about a tool and its parameters."""
    function = tool["function"]
    words = []
    for name, of in function.get("parameters", {}).get("properties", {}).items():
        words.append(f"{name}: {of.get('description') or of.get('type', 'any')}")
    arguments = "; ".join(words) or "no arguments"
    return f"/{function['name']}  {function.get('description', '')}  ({arguments})"


def message_of(typed: str, tools: Sequence[ToolSpec]) -> Message:
    """Return the message for typed words or a tool's call. Raises UsageError: not a call."""
    if not (tools and typed.startswith("/")):
        return {"role": "assistant", "content": typed}
    name, _, rest = typed[1:].partition(" ")
    functions = {tool["function"]["name"]: tool["function"] for tool in tools}
    found = [known for known in functions if known.startswith(name)]
    if name in functions:
        found = [name]
    if len(found) != 1:
        raise UsageError(f"/{name} does not name one of the tools {', '.join(functions)}")
    return tool_call(found[0], arguments_of(functions[found[0]], rest.strip()))


def arguments_of(function: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the JSON object that was typed. A single text parameter takes the text as it is.
    Raises UsageError: not such an object, or a required argument is missing.
    """
    parameters = function.get("parameters", {})
    properties = parameters.get("properties", {})
    types = [of.get("type") for of in properties.values()]
    if types == ["string"] and text and not text.startswith("{"):
        return {next(iter(properties)): text}
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and {*parameters.get("required", ())} <= found.keys():
        return found
    raise UsageError(f"{function['name']} takes JSON with {[*properties]}, got {text[:80]!r}")


def parse_arguments(argv: Sequence[str] | None) -> tuple[Agent, argparse.Namespace]:
    parser = new_parser(__doc__)
    registry.add_agent(parser, argv)
    add = parser.add_mutually_exclusive_group().add_argument
    add("--task", metavar="ID", help="this one; default: drawn by --seed")
    add("--n", type=positive(int), default=1, help="tasks to draw; default: 1")
    add = parser.add_argument
    add("--seed", type=int, help="of the draw; default: another one each time")
    add("--data", type=Path, help="default: the agent's test file")
    add("--max-turns", type=turns, metavar="N|A-B", help="default: MAX_TURNS, else the agent's own")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="of a model served here")
    arguments = parser.parse_args(argv)
    return registry.completed(arguments, "test"), arguments


def choose_tasks(agent: Agent, arguments: argparse.Namespace, settings: Settings) -> list[Task]:
    """Return the tasks to play. Raises UsageError: no such --task, or tasks of another database."""
    file = arguments.data
    rows = agent.rows(file)
    own = registry.own_options(agent, arguments)
    for note in agent.check({file.name: rows}, settings, own):
        print(note)
    tasks = tasks_of(agent, rows, settings)
    if arguments.task is None:
        return Random(arguments.seed).sample(tasks, min(arguments.n, len(tasks)))
    found = [task for task in tasks if task.id == arguments.task]
    if not found:
        some = ", ".join(task.id for task in tasks[:3])
        raise UsageError(
            f"{file} has no task {arguments.task!r}; expected "
            f"one of its {len(tasks)} ids, such as {some}"
        )
    return found[:1]


async def play_all(
    agent: Agent, tasks: Sequence[Task], environment: Environment, settings: Settings
) -> int:
    """Play one after the other. Return how many have no score."""
    unscored = 0
    for task in tasks:
        budget = turns_of(task, settings)
        policy = KeyboardPolicy(budget)
        known = task.difficulty != "unknown"
        show(f"task {task.id}", f"{agent.name}, {task.difficulty}" if known else agent.name)
        scored = await play(environment, task, environment.play(task, policy), policy, A_DAY)
        policy.show_rest(scored.episode.messages)
        show("end", "\n".join(outcome(scored, environment.highest)))
        unscored += scored.reward.total is None
    return unscored


def outcome(scored: Scored, highest: float) -> list[str]:
    """Return lines that say how the episode ended and what it earned."""
    reward = scored.reward
    ended = said("stop reason: {reason}", reason=scored.episode.stop_reason)
    lines = [ended, said("type: {kind}", kind=scored.task.task_type)]
    if scored.task.reference:
        lines.append(said("gold: {answer}", answer=scored.task.reference))
    if reward.total is None:
        none = "reward: none, {cause}: {detail}"
        return [*lines, said(none, cause=reward.unscored, detail=scored.detail)]
    numbers = {**reward.terms, **{f"({name})": value for name, value in reward.measures.items()}}
    lines += [f"  {name:<24}{value:>z8.3f}" for name, value in numbers.items()]
    total = "reward: {reward:z.3f} of {highest:.3f}"
    return [*lines, said(total, reward=reward.total, highest=highest)]


def main(argv: Sequence[str] | None = None) -> int:
    # Ctrl-C must end the waiting for a key: asyncio replaces Python's own handler, and leaves
    # others alone.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, partial(signal.default_int_handler))
    if sys.stdin.isatty():
        import readline  # noqa: F401 (input() takes its line editing)

    def body() -> None:
        settings = load_settings()
        agent, arguments = parse_arguments(argv)
        settings = with_turns(agent, settings, arguments.max_turns)
        tasks = choose_tasks(agent, arguments, settings)
        own = registry.own_options(agent, arguments)
        with opened_environment(agent, own, LOGS, settings, arguments.device) as environment:
            unscored = asyncio.run(play_all(agent, tasks, environment, settings))
        if unscored:
            raise Failure(f"{unscored} of {len(tasks)} episodes have no score")

    return run_command("play", body)


if __name__ == "__main__":
    sys.exit(main())
