"""The sandbox, task sets, prompts and debugger of the code agent's episodes in one process."""

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from code_agent import prompts
from code_agent.actions import EpisodeContext
from code_agent.debugger import Debugger
from code_agent.game import Game
from code_agent.graders import Gold
from code_agent.judging import why_untelling
from code_agent.rehearsal import Rehearsed, dishonest_episodes, gold_steps, rehearse, submit
from code_agent.reward import RUBRIC, record_of, score
from code_agent.task import CodeTask
from code_agent.tasks import get_task_class
from code_agent.tasks.base import EhrDemo, TaskSet
from common.settings import Settings, load_settings
from episodes.agent import Answer, Environment, Options, Record
from episodes.episode import AgentError, Episode, Policy, ServiceError
from episodes.outcomes import EpisodeError
from episodes.text_loop import play_with_words
from episodes.turns import turns_of
from scoring.rubric import Reward
from tools.sandbox import Sandbox, SandboxError, probe
from tools.sandbox.settings import SandboxSettings

SANDBOXES = 8  # without an episode, kept for the next one. Each holds some 100 MB
OUTPUT = 600  # characters of what comes back that a policy in training reads


class CodeEnvironment(Environment):
    """Plays and scores episodes. `task_sets` replaces sets by name. Raises AgentError."""

    highest = RUBRIC.highest

    def __init__(
        self,
        settings: Settings,
        options: Options,
        task_sets: Mapping[str, TaskSet] | None = None,
        debugger: Debugger | None = None,
        longest: int = OUTPUT,
    ) -> None:
        self.settings = settings
        self.longest = longest
        self.ending = options.get("ending") or "submit"
        self.sets = dict(task_sets or {})
        self.hospital = options.get("hospital")
        self.debugged_by = options.get("debugger")
        self.debugger = debugger or Debugger(self.debugged_by)
        self.sandboxes: dict[tuple[Path, ...], Sandbox] = {}
        self._numbers = itertools.count()

    def set_of(self, name: str) -> TaskSet:
        if name not in self.sets:
            self.sets[name] = get_task_class(name)(self.hospital)
        return self.sets[name]

    def context_of(self, task: CodeTask) -> EpisodeContext:
        """Return the context of one isolated episode. Raises EpisodeError: no sandbox."""
        tasks = self.set_of(task.task_set)
        try:
            files = tuple(filter(Path.is_file, tasks.files(task)))
            if files not in self.sandboxes:
                self.sandboxes[files] = Sandbox(data=files)
        except (SandboxError, OSError) as error:
            raise EpisodeError("sandbox_failed", str(error)) from None
        name = f"{task.id}/{next(self._numbers)}"
        sandbox = self.sandboxes[files]
        return EpisodeContext(sandbox, name, tasks.look_up, self.debugger, task.context)

    async def play(self, task: Any, policy: Policy) -> Episode:
        tasks = self.set_of(task.task_set)
        if why := tasks.unusable(task):
            raise EpisodeError("task_unusable", why)
        context = self.context_of(task)
        game = Game(tasks, task, context, self.ending, self.longest)
        steps = policy.max_turns

        async def respond(reply: str, episode: Episode) -> str | None:
            observation = await game.answer(reply)
            episode.events[:] = game.events
            if game.handed:
                episode.answer = game.handed.answer
                episode.stop_reason = "answered"
                return None
            said = observation["env_message"]
            return prompts.said(said, policy.turns + 1, steps, self.ending == "submit")

        opening = prompts.opening(task, tasks.overview, game.permitted, steps)
        try:
            return await play_with_words(policy, opening, respond)
        finally:
            await self.leave(context)

    async def leave(self, context: EpisodeContext) -> None:
        """End an episode, and what sandboxes of other files are kept beyond SANDBOXES."""
        await context.sandbox.end(context.episode)
        idle = [sandbox for sandbox in self.sandboxes.values() if sandbox.idle]
        for sandbox in idle[:-SANDBOXES]:
            await sandbox.close()

    async def why_unusable(self, task: CodeTask) -> str:
        """Return why a task cannot be played here, or "". May run the gold program to find out."""
        tasks = self.set_of(task.task_set)
        why = tasks.unusable(task)
        if why or tasks.answered or not task.program:
            return why
        try:
            context = self.context_of(task)
            why = await why_untelling(task, context)
            await self.leave(context)
        except EpisodeError as error:  # the machine failed
            why = str(error)
        return why

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        """Play a question about the tables. Raises AgentError: the ending needs the answer."""
        if self.ending != "submit":
            raise AgentError(
                f"--ending {self.ending}: the right answer to "
                "your own question is unknown; name a case"
            )
        unknown = Gold("text", "unknown")  # placeholder: the grade of an own question is not used
        task = CodeTask(id="asked", question=question, task_set=EhrDemo.name, gold=unknown)
        return await self.play(task, policy)

    async def score(self, task: Any, episode: Episode) -> Reward:
        return score(episode)

    def rehearsed(self, task: Any, steps: Sequence[Rehearsed]) -> Episode:
        """Return the episode of these steps without running anything."""
        return rehearse(self.set_of(task.task_set), task, turns_of(task, self.settings), steps)

    async def gold(self, task: Any) -> Episode:
        return self.rehearsed(task, gold_steps(task))

    def baselines(self, task: Any, commonest: str) -> Mapping[str, Episode]:
        """Return episodes without a program, which hand in the commonest answer, or 0 (or "no")."""
        return {
            "at_once": self.rehearsed(task, [Rehearsed(submit("0"))]),
            "commonest": self.rehearsed(task, [Rehearsed(submit(commonest))]),
        }

    def dishonest(self, task: Any, random: Random) -> Mapping[str, Episode]:
        turns = turns_of(task, self.settings)
        return dishonest_episodes(task, turns, partial(self.rehearsed, task), random)

    def record(self, task: Any, episode: Episode) -> Record:
        return record_of(task, episode)

    def description(self) -> dict[str, Any]:
        limits = load_settings().of(SandboxSettings)
        described = {
            "ending": self.ending,
            "prompts": prompts.fingerprint(),
            "debugger": self.debugged_by or "offline",
            "sandbox": limits.sandbox,
            "sandbox_seconds": limits.sandbox_seconds,
            "sandbox_memory": limits.sandbox_memory,
        }
        if self.hospital:
            described["hospital"] = str(self.hospital)
        return described

    async def check(self) -> None:
        try:
            await probe()
        except SandboxError as error:
            raise ServiceError(str(error)) from None

    def close(self) -> None:
        for sandbox in self.sandboxes.values():
            asyncio.run(sandbox.close())
