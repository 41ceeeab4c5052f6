"""What consultations need in a process: a patient, the doctor's prompts, a way to pay."""

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from common.settings import Settings
from consultation_agent.facts import record_of
from consultation_agent.judge_words import WORDS
from consultation_agent.llm_patient import patient_of
from consultation_agent.prompts import CHOOSING, ENGLISH, OWN, load_prompts
from consultation_agent.protocol import Conclusion, Question, choice_reader, read_reply
from consultation_agent.record_patient import Exchange
from consultation_agent.rehearsal import commonest_episode, dishonest_episodes, gold_episode
from consultation_agent.reward import RUBRIC, score
from consultation_agent.task import ConsultationTask
from episodes.agent import Options, Record
from episodes.episode import Episode
from episodes.partner_agent import PartnerEnvironment, rubric_named
from episodes.prompts import Prompts
from episodes.text_loop import Malformed
from scoring.rubric import Reward


class ConsultationEnvironment(PartnerEnvironment):
    """Plays and scores.
    Raises UsageError: unusable patient, prompts or reward. Raises SettingsError: REWARD_SCALE.
    """

    def __init__(self, settings: Settings, options: Options, evaluating: bool = False) -> None:
        super().__init__(settings, WORDS)
        self.partner = patient_of(settings, options)
        self.prompts = load_prompts(Path(options.get("prompts") or OWN))
        self.english = load_prompts(Path(options.get("prompts") or ENGLISH))
        self.choosing = load_prompts(CHOOSING)
        self.reward = options.get("reward") or "terms"
        self.rubric = rubric_named(self.reward, RUBRIC)
        self.highest = self.rubric.highest

    def words_for(self, task: ConsultationTask) -> Prompts:
        """Return what the doctor reads in a case. Options have a form of their own."""
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

    def other_name(self, task: ConsultationTask) -> str | None:
        return next((name for name in task.names if name != task.reference), None)

    def rehearsed(self, task: ConsultationTask, name: str = "") -> Episode:
        return gold_episode(task, self.words_for(task), self.turns(task), name)

    def baselines(self, task: Any, commonest: str) -> Mapping[str, Episode]:
        prompts = self.words_for(task)
        return {"commonest": commonest_episode(task, prompts, self.turns(task), commonest)}

    def dishonest(self, task: Any, random: Random) -> Mapping[str, Episode]:
        return dishonest_episodes(task, self.words_for(task), self.turns(task), random)

    async def score(self, task: Any, episode: Episode) -> Reward:
        return await score(task, episode, self.rubric, self.judge)

    def record(self, task: Any, episode: Episode) -> Record:
        return record_of(task, episode)

    def description(self) -> dict[str, Any]:
        return {
            **self.partner.description,
            "reward_scheme": self.reward,
            "prompts": self.prompts.fingerprint,
            "prompts_english": self.english.fingerprint,
            "prompts_options": self.choosing.fingerprint,
            "judge": self.judge_name,
        }
