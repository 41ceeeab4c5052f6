"""What consultations need in a process: a patient, the doctor's prompts, a way to pay."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from common.settings import Settings
from consultation_agent.canaries import dishonest_episodes
from consultation_agent.facts import facts_of, record_of
from consultation_agent.judge_words import WORDS
from consultation_agent.llm_patient import patient_of
from consultation_agent.patient import Exchange
from consultation_agent.prompts import CHOOSING, ENGLISH, OWN, load_prompts
from consultation_agent.protocol import Conclusion, Question, choice_reader, read_reply
from consultation_agent.rehearsal import baseline_episode, gold_episode
from consultation_agent.reward import Scheme
from consultation_agent.task import ConsultationTask
from episodes.agent import Options, Record
from episodes.episode import Episode, Task
from episodes.partner_agent import PartnerEnvironment, RehearsedEpisodes
from episodes.prompts import Prompts
from episodes.text_loop import Malformed
from scoring.rubric import Reward


class ConsultationEnvironment(PartnerEnvironment):
    """Plays and scores.
    Raises AgentError: unusable patient or prompts. Raises SettingsError: REWARD_SCALE.
    """

    def __init__(self, settings: Settings, options: Options, evaluating: bool = False) -> None:
        super().__init__(settings, WORDS)
        self.partner = patient_of(settings, options)
        self.prompts = load_prompts(Path(options.get("prompts") or OWN))
        self.english = load_prompts(Path(options.get("prompts") or ENGLISH))
        self.choosing = load_prompts(CHOOSING)
        self.scheme = Scheme(options.get("reward") or "terms", self.judge)
        self.highest = self.scheme.highest(settings.max_turns)
        self.known = RehearsedEpisodes(
            self,
            gold=gold_episode,
            baseline=baseline_episode,
            dishonest=dishonest_episodes,
            other_name=_other_name,
        )

    def words_for(self, task: ConsultationTask) -> Prompts:
        """Return what the doctor reads in a case: options have a form of their own, whatever
        --prompts says.
        """
        if task.options:
            return self.choosing
        return self.english if task.english else self.prompts

    def read(self, task: ConsultationTask | None, reply: str) -> Question | Conclusion | Malformed:
        if task and task.options:
            return choice_reader(task.options, several=", " in task.reference)(reply)
        return read_reply(reply)

    async def answered(self, task: ConsultationTask, said: Question, episode: Episode) -> str:
        asked = [event for event in episode.events if isinstance(event, Exchange)]
        reply = await self.partner.answer(task, said.text, asked)
        episode.events.append(Exchange(said.text, reply))
        return str(reply.text)

    def words_of(self, said: Question) -> str:
        return said.text

    async def score(self, task: Task, episode: Episode) -> Reward:
        return await self.scheme.score(_own(task), episode)

    def facts(self, task: Task, episode: Episode) -> Mapping[str, float | None]:
        return facts_of(_own(task), episode)

    def record(self, task: Task, episode: Episode) -> Record:
        return record_of(_own(task), episode)

    def description(self) -> dict[str, Any]:
        return {
            **self.partner.description,
            "reward_scheme": self.scheme.name,
            "prompts": self.prompts.fingerprint,
            "prompts_english": self.english.fingerprint,
            "prompts_options": self.choosing.fingerprint,
            "judge": self.judge_name,
        }


def _other_name(task: ConsultationTask) -> str | None:
    if task.options:
        return None
    return next((name for name in task.names if name != task.reference), None)


def _own(task: Task) -> ConsultationTask:
    assert isinstance(task, ConsultationTask)
    return task
