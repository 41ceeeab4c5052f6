"""Plays the episodes of a configuration, several at once, and keeps each in a file; used by
`main.py` and `rollout.py`.

    exit_code = played(load_config(arguments))

A finished file is not played again. An episode that the machine failed is written as "unscored",
named, and tried again by the same command; the policy's failures are results.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from code_agent.debugger import debugger_of
from code_agent.environment import CodeEnvironment
from code_agent.medagentgym import histories
from code_agent.medagentgym.compute_score import scores_of, table
from code_agent.medagentgym.config import RunConfig, chosen_indices
from code_agent.medagentgym.histories import History
from code_agent.medagentgym.model_policy import policy_endpoint
from code_agent.medagentgym.serving import served
from code_agent.tasks import get_task_class
from code_agent.tasks.base import TaskSet
from common.command import Failure, UsageError
from common.settings import load_settings
from common.terminal import gathered
from episodes.episode import Scored
from episodes.play_and_score import play
from episodes.policy import ChatPolicy, Endpoint

LONGEST = 8000  # characters of an observation that the policy reads
EPISODE_SECONDS = 3600.0
FAILURES = 5  # machine failures one after the other: the endpoint is at fault, not the tasks
MODES = {"valid": "val"}


@dataclass
class Run:
    """A configuration with what it needs. failed: machine failures since the last
    scored episode.
    """

    config: RunConfig
    tasks: TaskSet
    environment: CodeEnvironment
    policy: Endpoint
    failed: list[str] = field(default_factory=list)

    @cached_property
    def episodes(self) -> list[tuple[int, int | None]]:
        """The tasks' indices, each with the number of the rollout if there are several."""
        config = self.config
        indices = chosen_indices(config, len(self.tasks))
        numbers: list[int | None] = list(range(config.rollouts)) if config.rollouts else [None]
        return [(index, number) for index in indices for number in numbers]

    async def check_tasks(self) -> None:
        """Say which tasks cannot be played here, before a model is called.

        Raises UsageError: none of them can be, or the set lacks what it needs.
        """
        if why := self.tasks.missing():
            raise UsageError(f"{self.config.task} cannot be played here: {why}")
        indices = sorted({index for index, _ in self.episodes})
        reasons: dict[str, list[int]] = {}
        for index in indices:
            if why := await self.environment.why_unusable(self.tasks.task(index)):
                reasons.setdefault(why, []).append(index)
        said = [f"{len(found)} of {len(indices)} tasks: {why}" for why, found in reasons.items()]
        if indices and sum(map(len, reasons.values())) == len(indices):
            raise UsageError(f"{self.config.task} cannot be played here: {'; '.join(said)}")
        print("".join(f"unusable, {line}\n" for line in said), end="", file=sys.stderr)

    async def play_all(self) -> list[History]:
        """Return the finished episodes, including those of earlier runs.

        Raises Failure if the endpoint fails again and again.
        """
        slots = asyncio.Semaphore(self.config.jobs)

        async def one(index: int, number: int | None) -> History | None:
            async with slots:
                return await self.episode(index, number)

        found = await gathered([one(*which) for which in self.episodes], "episodes", "episodes")
        return [history for history in found if history]

    async def episode(self, index: int, number: int | None) -> History | None:
        """Return one episode, from its file or played; None if it is not scored."""
        path = histories.path_of(self.config.folder, index, number)
        kept = histories.read(path)
        if kept:
            return kept
        task = self.tasks.task(index)
        known = {
            "task": self.config.task,
            "task_type": task.task_type,
            "difficulty": task.difficulty,
        }
        known |= {"ending": self.config.ending}
        policy = ChatPolicy(self.policy, self.config.num_steps)
        scored = await play(
            self.environment, task, self.environment.play(task, policy), policy, EPISODE_SECONDS
        )
        above = self.tasks.success_above(task) if scored.reward.score else 0.0
        histories.write(path, scored.episode.messages, known | _result(scored, above))
        self._count(scored)
        return histories.read(path)

    def _count(self, scored: Scored) -> None:
        if scored.reward.unscored == "task_unusable":
            return
        self.failed = [*self.failed, scored.detail] if scored.reward.score is None else []
        if len(self.failed) >= FAILURES:
            raise Failure(
                f"{FAILURES} episodes failed one after the other; the last: {self.failed[-1]}"
            )


def _result(scored: Scored, above: float) -> dict[str, Any]:
    """Return the last element of a history; a score above `above` is a success."""
    episode = scored.episode
    score = scored.reward.score
    spent = {
        "steps": episode.turns,
        "prompt_tokens": episode.prompt_tokens,
        "seconds": round(scored.seconds, 2),
    }
    more = {"answer": episode.answer, "stop_reason": episode.stop_reason, **spent}
    if score is None:
        return {"result": "unscored", "reason": scored.detail or scored.reward.unscored, **more}
    return {"result": "success" if score > above else "failure", "score": score, **more}


@contextlib.contextmanager
def prepared(config: RunConfig) -> Iterator[Run]:
    """Yield what a run needs, a model's server included.

    Raises UsageError if rows or folder cannot be used, Failure if there is no sandbox or the server
    does not start.
    """
    tasks = get_task_class(config.task)(config.data_path, MODES.get(config.mode, config.mode))
    if config.start >= len(tasks):
        raise UsageError(
            f"start_idx {config.start}: {config.task} has {len(tasks)} tasks in mode {config.mode}"
        )
    try:
        config.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"work_dir {config.work_dir}: {config.folder} cannot be made ({error.strerror})"
        ) from None
    settings = load_settings().under({"max_turns": config.num_steps})
    options = {"ending": config.ending}
    with contextlib.closing(
        CodeEnvironment(
            settings, options, True, {config.task: tasks}, debugger_of(config.debugger), LONGEST
        )
    ) as environment:
        asyncio.run(environment.check())
        with served(config.llm, config.folder / "vllm.log") as section:
            policy = policy_endpoint(section, config.n_retry, config.retry_delay, config.replies)
            yield Run(config, tasks, environment, policy)


def played(config: RunConfig) -> int:
    """Play, add a line to `running_records.jsonl`, print the outcome, and return the exit code.

    Raises UsageError, Failure.
    """
    with prepared(config) as run:
        asyncio.run(run.check_tasks())
        found = asyncio.run(run.play_all())
        wanted = len(run.episodes)
    rate = sum(history.succeeded for history in found) / len(found) if found else None
    line = {
        "task": config.task,
        "tag": config.tag,
        "mode": config.mode,
        "episodes": len(found),
        "success_rate": rate,
    }
    with open(config.work_dir / "running_records.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    if rate is None:
        raise Failure(
            f"none of {wanted} episodes was scored; the "
            f"reasons stand in {config.folder}/history_*.json"
        )
    print(table(scores_of(found)))
    print(f"Success Rate: {rate}\n{config.folder}")
    if len(found) < wanted:
        print(
            f"{wanted - len(found)} episodes are not scored; the same command tries them again",
            file=sys.stderr,
        )
    return int(len(found) < wanted)
