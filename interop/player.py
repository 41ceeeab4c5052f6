"""Play an agent's episodes for a program outside, which answers for the policy: JSON lines in and out.

    .venv/bin/python -m interop.player diagnosis --data FILE

The first line out lists the tasks. A line in asks for an episode, `{"episode": 1, "task": "ID"}`.
Each call of the policy is a line out, `{"episode": 1, "call": 2, "body": {...}}` with the body of a
chat completion, and its reply a line in, `{"call": 2, "completion": {...}}`, or `"error"` with what
failed. The end is a line out with `"reward"`, null where the episode could not be scored, or with
`"error"`. Whatever else prints goes to standard error.
`interop/medical_agents` is the other side, in an environment of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

from common.command import UsageError, new_parser, run_command
from common.llm.errors import LLMError
from common.settings import load_settings
from episodes import registry
from episodes.agent import Environment
from episodes.episode import Scored, Task
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, Endpoint
from episodes.turns import turns_of, with_turns

LINE_BYTES = 64 * 2**20  # of one line in: a completion


class Outside:
    """The program outside: asked for replies, and told results."""

    def __init__(self, lines: TextIO) -> None:
        self._lines = lines
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def complete(self, episode: int, body: dict[str, Any]) -> dict[str, Any]:
        """Return the completion of a call's body. Raises LLMError: it failed there."""
        number = next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.tell({"episode": episode, "call": number, "body": body})
        answer = await future
        if "error" in answer:
            raise LLMError(str(answer["error"]), "status")
        completion: dict[str, Any] = answer["completion"]
        return completion

    def answered(self, line: dict[str, Any]) -> None:
        """Hand a reply to the call that waits for it."""
        future = self._waiting.pop(line["call"], None)
        if future and not future.done():  # its episode may have run out of time
            future.set_result(line)

    def tell(self, line: dict[str, Any]) -> None:
        """Write a line."""
        print(json.dumps(line), file=self._lines, flush=True)


class Policy:
    """The policy of one episode, in the place of a model's endpoint (`episodes.policy.Endpoint`)."""

    def __init__(self, outside: Outside, episode: int) -> None:
        self.outside = outside
        self.episode = episode

    async def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a chat completion."""
        return await self.outside.complete(self.episode, body)


def result_of(environment: Environment, scored: Scored) -> dict[str, Any]:
    """Return an episode's result as JSON values. `score` is the answer's, in [0, 1]."""
    reward = scored.reward
    facts = environment.facts(scored.task, scored.episode) if reward.unscored is None else {}
    return {
        "task": scored.task.id,
        "reward": reward.total,
        "score": reward.score,
        "terms": reward.terms,
        "unscored": reward.unscored,
        "detail": scored.detail,
        "stop_reason": scored.episode.stop_reason,
        "answer": scored.episode.answer,
        "facts": dict(facts),
        "messages": scored.episode.messages,
    }


def listed(task: Task) -> dict[str, str]:
    """Return what the program outside is told of a task; the rest stays here."""
    return {
        "id": task.id,
        "question": task.question,
        "reference": task.reference,
        "task_type": task.task_type,
        "difficulty": task.difficulty,
    }


async def serve(
    environment: Environment, tasks: dict[str, Task], settings: Any, lines: TextIO
) -> None:
    """List the tasks, and play what is asked for until standard input ends.

    Raises UsageError: a line is not of the protocol.
    """
    outside = Outside(lines)
    await environment.check()
    outside.tell({"tasks": [listed(task) for task in tasks.values()]})

    async def play_one(number: int, identity: str) -> None:
        try:
            task = tasks[identity]
            model: Any = Policy(outside, number)
            endpoint = Endpoint("", "policy", temperature=None, top_p=None, chat_model=model)
            policy = ChatPolicy(endpoint, turns_of(task, settings))
            episode = environment.play(task, policy)
            scored = await play(environment, task, episode, policy, settings.episode_timeout)
            outside.tell({"episode": number, **result_of(environment, scored)})
        except KeyError:
            outside.tell({"episode": number, "error": f"there is no task {identity!r}"})
        except Exception as error:
            traceback.print_exc()
            outside.tell({"episode": number, "error": f"{type(error).__name__}: {error}"})

    reader = await standard_input()
    running: set[asyncio.Task[None]] = set()
    while text := await reader.readline():
        try:
            line = json.loads(text)
            if "call" in line:
                outside.answered(line)
                continue
            work = asyncio.create_task(play_one(int(line["episode"]), str(line["task"])))
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"a line is not of the protocol ({error!r}): {text[:200]!r}") from None
        running.add(work)
        work.add_done_callback(running.discard)


async def standard_input() -> asyncio.StreamReader:
    """Return a reader of standard input, which has to be a pipe."""
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    return reader


@contextlib.contextmanager
def lines_alone() -> Iterator[TextIO]:
    """Yield what standard output was; meanwhile all that is printed goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as lines:
        sys.stdout.flush()
        os.dup2(2, 1)
        try:
            yield lines
        finally:
            sys.stdout.flush()
            os.dup2(lines.fileno(), 1)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = new_parser(__doc__)
    registry.add_agent(parser, argv)
    parser.add_argument("--data", type=Path, metavar="FILE", help="default: the agent's test file")
    return parser.parse_args(argv)


def play_all(arguments: argparse.Namespace, lines: TextIO) -> None:
    """Open the agent and serve its tasks."""
    agent = registry.get(arguments.agent)
    settings = with_turns(agent, load_settings())
    arguments.data = arguments.data or agent.splits["test"]
    agent.flags.complete(arguments)
    options = registry.own_options(agent, arguments)
    tasks = [agent.task(row, settings) for row in agent.rows(arguments.data)]
    for note in agent.flags.check(tasks, options):
        print(note, file=sys.stderr)
    with contextlib.closing(agent.open(settings, options, evaluating=True)) as environment:
        asyncio.run(serve(environment, {task.id: task for task in tasks}, settings, lines))


def main(argv: Sequence[str] | None = None) -> int:
    def body() -> int:
        arguments = parse_arguments(argv)
        with lines_alone() as lines:
            play_all(arguments, lines)
        return 0

    return run_command("player", body)


if __name__ == "__main__":
    sys.exit(main())
