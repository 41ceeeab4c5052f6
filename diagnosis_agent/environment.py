"""What the diagnosis agent's episodes need in a process: a simulator, the doctor's prompts, a way
to pay.

environment = DiagnosisEnvironment(load_settings(), {"simulator": "record", "reward": "terms"})
episode = await environment.play(task, policy)
episode.events                                   # of each reply: Exchange, Malformed, or the Conclusion
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from common.settings import Settings
from diagnosis_agent.canaries import dishonest_episodes
from diagnosis_agent.facts import facts_of, record_of
from diagnosis_agent.judge_words import WORDS
from diagnosis_agent.llm_simulator import simulator_model
from diagnosis_agent.prompts import OWN, load_prompts
from diagnosis_agent.protocol import Order, read_reply
from diagnosis_agent.record_simulator import RecordSimulator
from diagnosis_agent.rehearsal import baseline_episode, gold_episode, shown
from diagnosis_agent.reward import Scheme, results_of
from diagnosis_agent.rubrics import Rubrics
from diagnosis_agent.simulator import Exchange, Simulator
from diagnosis_agent.single_turn import play_points
from diagnosis_agent.task import DiagnosisTask
from episodes.agent import Answer, KnownEpisodes, Options, Record
from episodes.episode import AgentError, Episode, Policy, Task
from episodes.partners import RECORD, partner_kind
from episodes.rules import RuledEnvironment
from episodes.text_loop import play_by_protocol
from scoring.rubric import Reward


class DiagnosisEnvironment(RuledEnvironment):
    """Plays and scores. `evaluating`: a simulator that is a model has its temperature for that.

    Raises AgentError: the simulator or the prompts cannot be used; SettingsError: REWARD_SCALE
    cannot.
    """

    converses = True

    def __init__(self, settings: Settings, options: Options, evaluating: bool = False) -> None:
        super().__init__(settings, WORDS)
        self.simulator = simulator_of(settings, options, evaluating)
        self.prompts = load_prompts(Path(options.get("prompts") or OWN))
        self.scheme = Scheme(
            options.get("reward") or "terms", self.judge, options.get("turn_penalty") or (0.0, 0)
        )
        self.judging = replace(self.judging, highest=self.scheme.rubric.highest)
        self.known = KnownVisits(self)
        self.single_turn, rubrics = bool(options.get("single_turn")), options.get("rubrics")
        if (self.single_turn or rubrics) and not evaluating:
            raise AgentError("--single-turn and --rubrics are for evaluations; leave them out")
        self.rubrics = Rubrics(Path(rubrics), settings) if rubrics else None

    async def play(self, task: Task, policy: Policy) -> Episode:
        own = _own(task)
        if self.single_turn:
            return await play_points(policy, self.prompts, own)

        async def partner(said: Order, episode: Episode) -> str:
            result = await self.simulator.examine(own, said.examination, results_of(episode))
            episode.events.append(Exchange(said, result))
            return shown(result)

        return await play_by_protocol(policy, self.prompts, own.question, read_reply, partner)

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        async def partner(said: Order, episode: Episode) -> str:
            return await answer(said.examination)

        return await play_by_protocol(policy, self.prompts, question, read_reply, partner)

    async def score(self, task: Task, episode: Episode) -> Reward:
        reward = await self.scheme.score(_own(task), episode)
        verdict = (
            await self.rubrics.verdict(_own(task), episode)
            if self.rubrics and reward.total is not None
            else None
        )
        if verdict is None:
            return reward
        if verdict.score is None:
            return Reward(None, {}, verdict.cause)
        return replace(reward, measures={**reward.measures, "rubric_score": verdict.score})

    def facts(self, task: Task, episode: Episode) -> Mapping[str, float | None]:
        return facts_of(_own(task), episode)

    def record(self, task: Task, episode: Episode) -> Record:
        return record_of(_own(task), episode)

    def description(self) -> dict[str, Any]:
        amount, free = self.scheme.penalty
        return {
            **self.simulator.description,
            "single_turn": self.single_turn,
            "rubrics": self.rubrics.digest if self.rubrics else None,
            "reward_scheme": self.scheme.name,
            "turn_penalty": f"{amount:g}@{free}" if amount else None,
            "prompts": self.prompts.fingerprint,
            "judge": self.judge_name,
        }

    async def check(self) -> None:
        await self.simulator.check()
        await super().check()


class KnownVisits(KnownEpisodes):
    """Visits whose worth is known, with the prompts and budgets of an environment."""

    def __init__(self, environment: DiagnosisEnvironment) -> None:
        self.environment = environment

    async def gold(self, task: Task) -> Episode:
        return self._gold(_own(task))

    def _gold(self, task: DiagnosisTask, diagnosis: str = "") -> Episode:
        """Return it with as many turns as the recommended examinations take, also where the budget
        has fewer.
        """
        turns = max(self.environment.turns(task), len(task.key) + 1)
        return gold_episode(task, self.environment.prompts, turns, diagnosis)

    async def baseline(self, name: str, task: Task, commonest: str) -> Episode:
        turns = self.environment.turns(task)
        return baseline_episode(name, _own(task), self.environment.prompts, turns, commonest)

    async def honest(self, task: Task) -> Mapping[str, Episode]:
        own = _own(task)
        by_alias = {"alias": self._gold(own, own.aliases[0])} if own.aliases else {}
        return {"gold": self._gold(own)} | by_alias

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        turns = self.environment.turns(task)
        return dishonest_episodes(_own(task), self.environment.prompts, turns, random)


def simulator_of(settings: Settings, options: Options, evaluating: bool) -> Simulator:
    """Return the simulator that the flag --simulator names.

    Raises AgentError: its model is missing, or named without use.
    """
    if partner_kind("simulator", options) == RECORD:
        return RecordSimulator()
    return simulator_model(settings, options, evaluating)


def _own(task: Task) -> DiagnosisTask:
    assert isinstance(task, DiagnosisTask)
    return task
