"""The sandbox, task sets, prompts and debugger of the code agent's episodes in one process."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from code_agent.actions import EpisodeContext, doing_nothing, placed
from code_agent.canaries import dishonest_episodes
from code_agent.debugger import Debugger
from code_agent.facts import record_of
from code_agent.game import Game, permitted
from code_agent.graders import Gold
from code_agent.judging import ByOutput
from code_agent.prompts import load_prompts
from code_agent.rehearsal import Rehearsed, gold_steps, rehearse, submit
from code_agent.reward import RUBRIC, score
from code_agent.task import CodeTask
from code_agent.tasks import get_task_class
from code_agent.tasks.base import TaskSet
from code_agent.tasks.bundled import EhrDemo
from common.settings import Settings
from episodes.agent import Answer, Environment, Options, Record
from episodes.episode import AgentError, Episode, Policy, ServiceError, Task
from episodes.outcomes import EpisodeError
from episodes.text_loop import play_with_words
from episodes.turns import turns_of
from scoring.rubric import Reward
from tools.sandbox import Sandbox, SandboxError, probe

OUTPUT = 600  # characters of what comes back that a policy in training reads


class CodeEnvironment(Environment):
    """Plays and scores episodes. `task_sets` replaces sets by name, for data in another place.

    Raises AgentError if a set's rows cannot be read.
    """

    highest = RUBRIC.highest

    def __init__(
        self,
        settings: Settings,
        options: Options,
        evaluating: bool = False,
        task_sets: Mapping[str, TaskSet] | None = None,
        debugger: Debugger | None = None,
        longest: int = OUTPUT,
    ) -> None:
        self.settings = settings
        self.longest = longest
        self.ending = options.get("ending") or "submit"
        self.prompts = load_prompts()
        self.sets = dict(task_sets or {})
        self.hospital = options.get("hospital")
        model = options.get("debugger")
        self.debugger = debugger or Debugger(model)
        self.debugged_by = model or "offline"
        self.sandboxes: dict[tuple[Path, ...], Sandbox] = {}
        self._numbers = itertools.count()

    def sandbox_of(self, tasks: TaskSet, task: CodeTask) -> Sandbox:
        """Return the sandbox for these tasks, in which programs see only their own task's data."""
        try:
            files = tuple(tasks.visible(task))
            if files not in self.sandboxes:
                self.sandboxes[files] = Sandbox(data=files)
        except (SandboxError, OSError) as error:
            raise EpisodeError("sandbox_failed", str(error)) from None
        return self.sandboxes[files]

    def set_of(self, task: Task) -> TaskSet:
        return self.set_of_name(own(task).task_set)

    def set_of_name(self, name: str) -> TaskSet:
        if name not in self.sets:
            self.sets[name] = get_task_class(name)(self.hospital)
        return self.sets[name]

    def context_of(self, task: Task) -> EpisodeContext:
        """Return the context of one episode, isolated from all others."""
        tasks = self.set_of(task)
        name = f"{task.id}/{next(self._numbers)}"
        return EpisodeContext(
            self.sandbox_of(tasks, own(task)), name, tasks.look_up, self.debugger, own(task).context
        )

    async def play(self, task: Task, policy: Policy) -> Episode:
        tasks = self.set_of(task)
        if why := tasks.unusable(own(task)):
            raise EpisodeError("task_unusable", why)
        context = self.context_of(task)
        game = Game(tasks, own(task), context, self.ending, self.longest)
        submits = self.ending == "submit"
        steps = policy.max_turns

        async def respond(reply: str, episode: Episode) -> str | None:
            step = await game.answer(reply)
            episode.events[:] = game.events
            if step.done:
                episode.answer = game.handed.answer if game.handed else None
                episode.stop_reason = "answered"
                return None
            return self.prompts.said(
                step.observation["env_message"], policy.turns + 1, steps, submits
            )

        opening = self.prompts.opening(
            own(task), tasks.overview, permitted(tasks, self.ending), steps
        )
        try:
            return await play_with_words(policy, opening, respond)
        finally:
            await context.sandbox.end(context.episode)

    async def why_unusable(self, task: Task) -> str:
        """Return why a task cannot be played here, or "". May run the gold program to find out."""
        code_task = own(task)
        tasks = self.set_of(task)
        if why := tasks.unusable(code_task):
            return why
        check = None if code_task.gold is not None else tasks.check(code_task)
        if not isinstance(check, ByOutput):
            return ""
        stub = doing_nothing(code_task.reference)
        program = placed(code_task.context, stub) if stub else ""
        return await check.problem(program, self.context_of(task))

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        """Play a question about the hospital's tables.

        Raises AgentError if the ending needs to know the right answer.
        """
        if self.ending != "submit":
            raise AgentError(
                f"--ending {self.ending}: the right answer to "
                "your own question is unknown; name a case"
            )
        unknown = Gold("text", "unknown")  # placeholder: the grade of an own question is not used
        return await self.play(
            CodeTask(id="asked", question=question, task_set=EhrDemo.name, gold=unknown), policy
        )

    async def score(self, task: Task, episode: Episode) -> Reward:
        return score(self.set_of(task), own(task), episode)

    def rehearsed(self, task: CodeTask, steps: Sequence[Rehearsed]) -> Episode:
        """Return the episode of these steps without running anything."""
        return rehearse(self.set_of(task), task, self.prompts, self.turns(task), steps)

    def turns(self, task: Task) -> int:
        """Return the number of turns that a task has."""
        return turns_of(task, self.settings)

    async def gold(self, task: Task) -> Episode:
        return self.rehearsed(own(task), gold_steps(own(task)))

    def baselines(self, task: Task, commonest: str) -> Mapping[str, Episode]:
        """Return episodes that hand in an answer without a program: 0, which also stands for "no",
        or the commonest.
        """
        answers = {"at_once": "0", "commonest": commonest}
        return {
            name: self.rehearsed(own(task), [Rehearsed(submit(answer))])
            for name, answer in answers.items()
        }

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        turns = self.turns(task)
        return dishonest_episodes(self.set_of(task), own(task), self.prompts, turns, random)

    def record(self, task: Task, episode: Episode) -> Record:
        return record_of(self.set_of(task), own(task), episode)

    def description(self) -> dict[str, Any]:
        described = {
            "ending": self.ending,
            "prompts": self.prompts.fingerprint,
            "debugger": self.debugged_by,
        }
        return described | ({"hospital": str(self.hospital)} if self.hospital else {})

    async def check(self) -> None:
        try:
            await probe()
        except SandboxError as error:
            raise ServiceError(str(error)) from None

    def close(self) -> None:
        for sandbox in self.sandboxes.values():
            asyncio.run(sandbox.close())


def own(task: Task) -> CodeTask:
    assert isinstance(task, CodeTask)
    return task
