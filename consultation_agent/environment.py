"""What the consultation agent's episodes need in a process: a patient, the doctor's prompts, a way
to pay.

environment = ConsultationEnvironment(load_settings(), {"patient": "record", "reward": "terms"})
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
from consultation_agent.canaries import dishonest_episodes
from consultation_agent.facts import facts_of, overlap_of, record_of
from consultation_agent.judge_words import WORDS
from consultation_agent.llm_patient import patient_of
from consultation_agent.patient import Exchange
from consultation_agent.prompts import CHOOSING, ENGLISH, OWN, load_prompts
from consultation_agent.protocol import Question, choice_reader, read_reply
from consultation_agent.rehearsal import baseline_episode, gold_episode
from consultation_agent.reward import Scheme
from consultation_agent.task import ConsultationTask
from episodes.agent import Answer, KnownEpisodes, Options, Record
from episodes.episode import Episode, Policy, Task
from episodes.prompts import Prompts
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
        self.english = load_prompts(Path(options.get("prompts") or ENGLISH))
        self.choosing = load_prompts(CHOOSING)
        self.scheme = Scheme(options.get("reward") or "terms", self.judge)
        self.judging = replace(self.judging, highest=self.scheme.highest(settings.max_turns))
        self.known = KnownConsultations(self)

    async def play(self, task: Task, policy: Policy) -> Episode:
        own = _own(task)

        async def partner(said: Question, episode: Episode) -> str:
            asked = [event for event in episode.events if isinstance(event, Exchange)]
            answer = await self.patient.answer(own, said.text, asked)
            episode.events.append(Exchange(said.text, answer))
            return answer.text

        read = choice_reader(own.options) if own.options else read_reply
        return await play_by_protocol(policy, self.words_for(own), own.question, read, partner)

    def words_for(self, task: ConsultationTask) -> Prompts:
        """Return what the doctor reads in a case: options have a form of their own, whatever
        --prompts says.
        """
        if task.options:
            return self.choosing
        return self.english if task.english else self.prompts

    async def asked(self, question: str, answer: Answer, policy: Policy) -> Episode:
        async def partner(said: Question, episode: Episode) -> str:
            return await answer(said.text)

        return await play_by_protocol(policy, self.prompts, question, read_reply, partner)

    async def score(self, task: Task, episode: Episode) -> Reward:
        return await self.scheme.score(_own(task), episode)

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
            "prompts_english": self.english.fingerprint,
            "prompts_options": self.choosing.fingerprint,
            "judge": self.judge_name,
        }

    async def check(self) -> None:
        await self.patient.check()
        await super().check()


class KnownConsultations(KnownEpisodes):
    """Consultations whose worth is known, with the prompts and budgets of an environment."""

    def __init__(self, environment: ConsultationEnvironment) -> None:
        self.environment = environment

    async def gold(self, task: Task) -> Episode:
        return gold_episode(*self._given(task))

    async def baseline(self, name: str, task: Task, commonest: str) -> Episode:
        return baseline_episode(name, *self._given(task), commonest)

    async def honest(self, task: Task) -> Mapping[str, Episode]:
        own = _own(task)
        alias = next((name for name in own.names if name != own.reference), None)
        if not alias or own.options:  # a letter has no other name
            return {"gold": await self.gold(task)}
        return {
            "gold": await self.gold(task),
            "alias": gold_episode(*self._given(task), alias),
        }

    def dishonest(self, task: Task, random: Random) -> Mapping[str, Episode]:
        return dishonest_episodes(*self._given(task), random)

    def _given(self, task: Task) -> tuple[ConsultationTask, Prompts, int]:
        own = _own(task)
        return own, self.environment.words_for(own), self.environment.turns(task)


def _own(task: Task) -> ConsultationTask:
    assert isinstance(task, ConsultationTask)
    return task
