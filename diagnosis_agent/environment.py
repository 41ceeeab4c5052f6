"""What cases need in a process: a simulator, the doctor's prompts, a way to pay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from common.settings import Settings
from diagnosis_agent.canaries import dishonest_episodes
from diagnosis_agent.facts import facts_of, record_of
from diagnosis_agent.judge_words import WORDS
from diagnosis_agent.llm_simulator import simulator_of
from diagnosis_agent.prompts import OWN, load_prompts
from diagnosis_agent.protocol import Conclusion, Order, read_reply
from diagnosis_agent.rehearsal import baseline_episode, gold_episode, shown
from diagnosis_agent.reward import Scheme, results_of
from diagnosis_agent.rubrics import Rubrics
from diagnosis_agent.simulator import Exchange
from diagnosis_agent.single_turn import play_points
from diagnosis_agent.task import DiagnosisTask
from episodes.agent import Options, Record
from episodes.episode import AgentError, Episode, Policy, Task
from episodes.partner_agent import PartnerEnvironment, RehearsedEpisodes
from episodes.prompts import Prompts
from episodes.text_loop import Malformed
from scoring.rubric import Reward


class DiagnosisEnvironment(PartnerEnvironment):
    """Plays and scores. `evaluating`: a simulator that is a model has its temperature for that.

    Raises AgentError: unusable simulator or prompts. Raises SettingsError: REWARD_SCALE.
    """

    def __init__(self, settings: Settings, options: Options, evaluating: bool = False) -> None:
        super().__init__(settings, WORDS)
        self.partner = simulator_of(settings, options, evaluating)
        self.prompts = load_prompts(Path(options.get("prompts") or OWN))
        self.scheme = Scheme(
            options.get("reward") or "terms", self.judge, options.get("turn_penalty") or (0.0, 0)
        )
        self.highest = self.scheme.rubric.highest
        self.known = RehearsedEpisodes(
            self,
            gold=_gold_episode,
            baseline=baseline_episode,
            dishonest=dishonest_episodes,
            other_name=_other_name,
        )
        self.single_turn = bool(options.get("single_turn"))
        rubrics = options.get("rubrics")
        if (self.single_turn or rubrics) and not evaluating:
            raise AgentError("--single-turn and --rubrics are for evaluations; leave them out")
        self.rubrics = Rubrics(Path(rubrics), settings) if rubrics else None

    async def play(self, task: Task, policy: Policy) -> Episode:
        if self.single_turn:
            return await play_points(policy, self.prompts, _own(task))
        return await super().play(task, policy)

    def read(self, task: DiagnosisTask | None, reply: str) -> Order | Conclusion | Malformed:
        return read_reply(reply)

    async def answered(self, task: DiagnosisTask, said: Order, episode: Episode) -> str:
        result = await self.partner.examine(task, said.examination, results_of(episode))
        episode.events.append(Exchange(said, result))
        return shown(result)

    def words_of(self, said: Order) -> str:
        return said.examination

    async def score(self, task: Task, episode: Episode) -> Reward:
        reward = await self.scheme.score(_own(task), episode)
        if not self.rubrics or reward.total is None:
            return reward
        verdict = await self.rubrics.verdict(_own(task), episode)
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
            **self.partner.description,
            "single_turn": self.single_turn,
            "rubrics": self.rubrics.digest if self.rubrics else None,
            "reward_scheme": self.scheme.name,
            "turn_penalty": f"{amount:g}@{free}" if amount else None,
            "prompts": self.prompts.fingerprint,
            "judge": self.judge_name,
        }


def _gold_episode(task: DiagnosisTask, prompts: Prompts, turns: int, name: str = "") -> Episode:
    """Return it with as many turns as the recommended examinations take, whatever the budget."""
    return gold_episode(task, prompts, max(turns, len(task.key) + 1), name)


def _other_name(task: DiagnosisTask) -> str | None:
    return next(iter(task.aliases), None)


def _own(task: Task) -> DiagnosisTask:
    assert isinstance(task, DiagnosisTask)
    return task
