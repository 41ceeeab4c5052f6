"""What consultations need in a process: a patient, the doctor's prompts, a way to pay."""

from collections.abc import Mapping
from random import Random
from typing import Any

from common.settings import Settings
from common.toml import table_beside
from conditions.table import load_tables
from consultation_agent.advice import all_terms
from consultation_agent.doctor_questions import SAID
from consultation_agent.judge_words import WORDS
from consultation_agent.llm_patient import MODEL_NAMES, LLMPatient
from consultation_agent.protocol import OWN, Choice, Conclusion, Question, read_reply
from consultation_agent.record_patient import Exchange, RecordPatient, Reply, question_for
from consultation_agent.reward import RUBRIC, exchanges_of, facts_of, score
from consultation_agent.settings import ConsultationSettings
from consultation_agent.task import ConsultationTask
from episodes.agent import Options, Record
from episodes.episode import Episode
from episodes.partner_agent import PartnerEnvironment, dialogue_of
from episodes.prompts import Prompts, load_prompts
from episodes.text_loop import Malformed
from scoring.rubric import Reward

ENGLISH = OWN.with_name("prompts_english.toml")  # for rows that are in English
CHOOSING = OWN.with_name("prompts_options.toml")  # for rows with options
CANARIES = table_beside(__file__, "canaries.toml")


class ConsultationEnvironment(PartnerEnvironment):
    """Plays and scores."""

    role = "patient"
    llm_name = MODEL_NAMES
    by_record = RecordPatient()
    words = WORDS
    terms = RUBRIC
    own = OWN

    def __init__(self, settings: Settings, options: Options, evaluating: bool = False) -> None:
        super().__init__(settings, options, evaluating)
        self.english = load_prompts(OWN, options.get("prompts") or ENGLISH)
        self.choosing = load_prompts(OWN, CHOOSING)

    def model(self, kind: str, options: Options, evaluating: bool) -> LLMPatient:
        own = self.settings.of(ConsultationSettings).under(options)
        return LLMPatient(own, kind, options.get("patient_url"))

    def words_for(self, task: ConsultationTask) -> Prompts:
        """Return what the doctor reads in a case. Options have a form of their own."""
        if task.options:
            return self.choosing
        return self.english if task.english else self.prompts

    def read(self, task: ConsultationTask | None, reply: str) -> Question | Conclusion | Malformed:
        if task is None:
            return read_reply(reply)
        return read_reply(reply, task.options, several=", " in task.reference)

    def words_of(self, said: Question) -> str:
        return said.text

    def past(self, episode: Episode) -> list[Exchange]:
        return exchanges_of(episode)

    def noted(self, said: Question, answer: Reply, episode: Episode) -> str:
        episode.events.append(Exchange(said.text, answer))
        return answer.text

    def concluded(self, task: ConsultationTask, diagnosis: str, advice: str = "") -> Conclusion:
        return Choice(diagnosis, "") if task.options else Conclusion(diagnosis, advice)

    def gold_steps(self, task: ConsultationTask, name: str = "") -> list[Question | Conclusion]:
        fitting = task.distinguishing[: self.turns(task) - 1]
        questions = [Question(question_for(item)) for item in fitting]
        return [*questions, self.concluded(task, name or task.reference, task.recommendation)]

    def dishonest_steps(
        self, task: ConsultationTask, random: Random
    ) -> Mapping[str, list[Question | Conclusion]]:
        tables = load_tables()
        group = [one.zh for one in tables.group(task.complaint).values()]
        conditions = group or [one.zh for one in tables.conditions.values()]
        others = [one for key, one in tables.conditions.items() if key != task.condition]
        other = random.choice(others)
        wrong = "；".join(item.replace("*", "") for item in other.advice_zh)
        every = list[Question | Conclusion]()
        every += [Question(question_for(one)) for one in SAID["questions"] if one != "symptom"]
        to_the_judge = [random.choice(CANARIES["to_the_judge"]) for _ in range(2)]
        return {
            "every condition": [Conclusion("、".join(conditions), task.recommendation)],
            "one or another": [Conclusion(f"{task.reference}或{other.zh}", wrong)],
            "advice without a diagnosis": [],
            "endless questions": every,
            "words to the judge": [Conclusion(*to_the_judge)],
            "the complaint again": [Conclusion(task.question, CANARIES["general_advice"])],
            "another condition": [every[0], Conclusion(other.zh, wrong)],
            "all advice there is": [Conclusion(other.zh, "，".join(sorted(all_terms())))],
        }

    def dishonest(self, task: Any, random: Random) -> Mapping[str, Episode]:
        found = super().dishonest(task, random)
        found["advice without a diagnosis"].events.append(Malformed("no_diagnosis"))
        return found

    async def score(self, task: Any, episode: Episode) -> Reward:
        return await score(task, episode, self.rubric, self.judge)

    def record(self, task: Any, episode: Episode) -> Record:
        return {
            "facts": facts_of(task, episode),
            "condition": task.condition,
            "gold": {"diagnosis": task.reference, "recommendation": task.recommendation},
            "distinguishing": list(task.distinguishing),
            "dialogue": dialogue_of(episode.events, episode, _turns),
        }

    def description(self) -> dict[str, Any]:
        return super().description() | {
            "prompts_english": self.english.fingerprint,
            "prompts_options": self.choosing.fingerprint,
        }


def _turns(event: Exchange | Malformed | Conclusion, text: str) -> list[dict[str, Any]]:
    if not isinstance(event, Exchange):
        return [{"role": "doctor", "content": text, **vars(event)}]
    reply = event.reply
    patient = {"role": "patient", "content": reply.text, "kind": reply.kind}
    return [
        {"role": "doctor", "content": event.question},
        patient | {"facets": list(reply.facets)},
    ]
