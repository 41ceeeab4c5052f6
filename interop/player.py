"""Play an agent's episodes for a program outside, which answers for the policy (interop/lines.py).

    .venv/bin/python -m interop.player diagnosis --data FILE

A result has `"reward"`, which is null where the episode could not be scored.
`interop/medical_agents` is the other side, in an environment of its own.
"""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common.command import new_parser, run_command
from common.llm.errors import LLMError
from common.settings import Settings, load_settings
from episodes import registry
from episodes.agent import Environment
from episodes.episode import Scored, Task
from episodes.play_and_score import play, tasks_of
from episodes.policy import ChatPolicy, Endpoint
from episodes.turns import turns_of, with_turns
from interop.lines import Outside


class Model:
    """The policy of one episode, in the place of an endpoint's model."""

    def __init__(self, outside: Outside, episode: int) -> None:
        self.outside = outside
        self.episode = episode

    async def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a chat completion. Raises LLMError: the call failed outside."""
        answer = await self.outside.asked(self.episode, body)
        if "error" in answer:
            raise LLMError(str(answer["error"]), "status")
        return dict(answer["completion"])


def result_of(environment: Environment, scored: Scored) -> dict[str, Any]:
    """Return an episode's result as JSON values. `score` is the answer's, in [0, 1]."""
    reward = scored.reward
    facts = {}
    if reward.unscored is None:
        facts = environment.record(scored.task, scored.episode).get("facts", {})
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


async def serve(
    environment: Environment, tasks: Sequence[Task], settings: Settings, outside: Outside
) -> None:
    """Play episodes of these tasks until standard input ends."""
    known = {task.id: task for task in tasks}
    told = ("id", "question", "reference", "task_type", "difficulty")

    async def play_one(number: int, identity: str) -> dict[str, Any]:
        task = known[identity]
        model: Any = Model(outside, number)
        endpoint = Endpoint("", "policy", temperature=None, top_p=None, chat_model=model)
        policy = ChatPolicy(endpoint, turns_of(task, settings))
        episode = environment.play(task, policy)
        scored = await play(environment, task, episode, policy, settings.episode_timeout)
        return result_of(environment, scored)

    await environment.check()
    await outside.serve([{name: getattr(task, name) for name in told} for task in tasks], play_one)


def play_all(argv: Sequence[str] | None) -> None:
    """Open the agent and serve its tasks."""
    parser = new_parser(__doc__)
    registry.add_agent(parser, argv)
    parser.add_argument("--data", type=Path, metavar="FILE", help="default: the agent's test file")
    arguments = parser.parse_args(argv)
    outside = Outside()
    agent = registry.completed(arguments, "test")
    settings = with_turns(agent, load_settings())
    options = registry.own_options(agent, arguments)
    rows = agent.rows(arguments.data)
    for note in agent.check({"data": rows}, settings, options):
        print(note, file=sys.stderr)
    tasks = tasks_of(agent, rows, settings)
    with contextlib.closing(agent.open(settings, options, evaluating=True)) as environment:
        asyncio.run(serve(environment, tasks, settings, outside))


def main(argv: Sequence[str] | None = None) -> int:
    return run_command("player", lambda: play_all(argv))


if __name__ == "__main__":
    sys.exit(main())
