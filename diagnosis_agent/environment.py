"""What cases need in a process: a simulator, the doctor's prompts, a way to pay."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from common.settings import Settings
from diagnosis_agent.facts import record_of
from diagnosis_agent.judge_words import WORDS
from diagnosis_agent.llm_simulator import simulator_of
from diagnosis_agent.protocol import OWN, Conclusion, Order, load_prompts, read_reply
from diagnosis_agent.record_simulator import Exchange
from diagnosis_agent.rehearsal import commonest_episode, dishonest_episodes, gold_episode, shown
from diagnosis_agent.reward import RUBRIC, results_of, score
from diagnosis_agent.rubrics import Rubrics
from diagnosis_agent.single_turn import play_points
from diagnosis_agent.task import DiagnosisTask
from episodes.agent import Options, Record
from episodes.episode import AgentError, Episode, Policy
from episodes.partner_agent import PartnerEnvironment, rubric_named
from episodes.text_loop import Malformed
from scoring.rubric import Reward


class DiagnosisEnvironment(PartnerEnvironment):
    """Plays and scores. `evaluating`: a simulator that is a model has its temperature for that.

    Raises UsageError: unusable simulator, prompts or reward. Raises SettingsError: REWARD_SCALE.
    """

    def __init__(self, settings: Settings, options: Options, evaluating: bool = False) -> None:
        super().__init__(settings, WORDS)
        self.partner = simulator_of(settings, options, evaluating)
        self.prompts = load_prompts(Path(options.get("prompts") or OWN))
        self.reward = options.get("reward") or "terms"
        self.rubric = rubric_named(self.reward, RUBRIC)
        self.highest = self.rubric.highest
        self.single_turn = bool(options.get("single_turn"))
        rubrics = options.get("rubrics")
        if (self.single_turn or rubrics) and not evaluating:
            raise AgentError("--single-turn and --rubrics are for evaluations; leave them out")
        self.rubrics = Rubrics(Path(rubrics), settings) if rubrics else None

    async def play(self, task: Any, policy: Policy) -> Episode:
        if self.single_turn:
            return await play_points(policy, self.prompts, task)
        return await super().play(task, policy)

    def read(self, task: DiagnosisTask | None, reply: str) -> Order | Conclusion | Malformed:
        return read_reply(reply)

    async def answered(self, task: DiagnosisTask, said: Order, episode: Episode) -> str:
        result = await self.partner.examine(task, said.examination, results_of(episode))
        episode.events.append(Exchange(said, result))
        return shown(result)

    def words_of(self, said: Order) -> str:
        return said.examination

    def other_name(self, task: DiagnosisTask) -> str | None:
        return next(iter(task.aliases), None)

    def rehearsed(self, task: DiagnosisTask, name: str = "") -> Episode:
        turns = max(self.turns(task), len(task.key) + 1)
        return gold_episode(task, self.prompts, turns, name)

    def baselines(self, task: Any, commonest: str) -> Mapping[str, Episode]:
        return {"commonest": commonest_episode(task, self.prompts, self.turns(task), commonest)}

    def dishonest(self, task: Any, random: Random) -> Mapping[str, Episode]:
        return dishonest_episodes(task, self.prompts, self.turns(task), random)

    async def score(self, task: Any, episode: Episode) -> Reward:
        reward = await score(task, episode, self.rubric, self.judge)
        if not self.rubrics or reward.total is None:
            return reward
        verdict = await self.rubrics.verdict(task, episode)
        if verdict is None:
            return reward
        if verdict.score is None:
            return Reward(None, {}, verdict.cause)
        return replace(reward, measures={**reward.measures, "rubric_score": verdict.score})

    def record(self, task: Any, episode: Episode) -> Record:
        return record_of(task, episode)

    def description(self) -> dict[str, Any]:
        return {
            **self.partner.description,
            "single_turn": self.single_turn,
            "rubrics": self.rubrics.digest if self.rubrics else None,
            "reward_scheme": self.reward,
            "prompts": self.prompts.fingerprint,
            "judge": self.judge_name,
        }
