"""What the consultation agent's episodes need in a process: a patient, the doctor's prompts, a way
to pay.

environment = ConsultationEnvironment(load_settings(), {"patient": "record", "reward": "terms"})
episode = await environment.play(task, policy)
episode.events                                   # of each reply: Exchange, Malformed, or the Conclusion
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from common.settings import Settings
from consultation_agent.canaries import dishonest_episodes
from consultation_agent.facts import facts_of, overlap_of, record_of
from consultation_agent.judge_words import WORDS
from consultation_agent.llm_patient import patient_of
from consultation_agent.patient import Exchange
from consultation_agent.prompts import OWN, load_prompts
from consultation_agent.protocol import Question, read_reply
from consultation_agent.rehearsal import baseline_episode, gold_episode
from consultation_agent.reward import Scheme
from consultation_agent.task import ConsultationTask
from episodes.agent import Answer, Options, Record
from episodes.episode import Episode, Policy, Task
from episodes.rules import RuledEnvironment
from episodes.text_loop import play_by_protocol
from scoring.rubric import Reward


class ConsultationEnvironment(RuledEnvironment):
    """Plays and scores. `evaluating`: texts are compared as well.

    Raises AgentError: the patient or the prompts cannot be used; SettingsError: REWARD_SCALE
    cannot.
    """

    converses = True

    def __init__(self, settings: Settings, options: Options, evaluating: bool = False) -> None:
        super().__init__(settings, WORDS)
        self.evaluating = evaluating
        self.patient = patient_of(settings, options)
        self.prompts = load_prompts(Path(options.get("prompts") or OWN))
        self.scheme = Scheme(options.get("reward") or "terms", self.judge)
        self.highest = self.scheme.highest(settings.max_turns)

    async def play(self, task: Task, policy: Policy) -> Episode:
        own = _own(task)

        async def partner(said: Question, episode: Episode) -> str:
            asked = [event for event in episode.events if isinstance(event, Exchange)]
            answer = await self.patient.answer(own, said.text, asked)
            episode.events.append(Exchange(said.text, answer))
            return answer.text

        return await play_by_protocol(policy, self.prompts, own.question, read_reply, partner)

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        async def partner(said: Question, episode: Episode) -> str:
            return await answer(said.text)

        return await play_by_protocol(policy, self.prompts, question, read_reply, partner)

    async def score(self, task: Task, episode: Episode) -> Reward:
        return await self.scheme.score(_own(task), episode)

    async def gold(self, task: Task) -> Episode:
        return gold_episode(_own(task), self.prompts, self.turns(task))

    async def baseline(self, name: str, task: Task, commonest: str) -> Episode:
        return baseline_episode(name, _own(task), self.prompts, self.turns(task), commonest)

    async def honest(self, task: Task) -> Mapping[str, Episode]:
        own = _own(task)
        alias = next((name for name in own.names if name != own.reference), None)
        by_alias = (
            {"alias": gold_episode(own, self.prompts, self.turns(task), alias)} if alias else {}
        )
        return {"gold": await self.gold(task)} | by_alias

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        return dishonest_episodes(_own(task), self.prompts, self.turns(task), random)

    def facts(self, task: Task, episode: Episode) -> Mapping[str, float | None]:
        facts = facts_of(_own(task), episode)
        return facts | overlap_of(_own(task), episode) if self.evaluating else facts

    def record(self, task: Task, episode: Episode) -> Record:
        return record_of(_own(task), episode)

    def description(self) -> dict[str, Any]:
        return {
            **self.patient.description,
            "reward_scheme": self.scheme.name,
            "prompts": self.prompts.fingerprint,
            "judge": self.judge_name,
        }

    async def check(self) -> None:
        await self.patient.check()
        await super().check()


def _own(task: Task) -> ConsultationTask:
    assert isinstance(task, ConsultationTask)
    return task
