"""Consultations without a model: gold, the commonest diagnosis, and bad ones to fool the reward."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from random import Random

from conditions.table import load_tables
from consultation_agent.advice import all_terms
from consultation_agent.doctor_questions import SAID
from consultation_agent.prompts import Prompts
from consultation_agent.protocol import Choice, Conclusion, Malformed, spoken
from consultation_agent.record_patient import Exchange, RecordPatient, question_for
from consultation_agent.task import ConsultationTask
from episodes import partner_agent
from episodes.episode import Episode

PATIENT = RecordPatient()


def rehearse(
    task: ConsultationTask,
    prompts: Prompts,
    turns: int,
    questions: Sequence[str],
    conclusion: Conclusion | None,
) -> Episode:
    """Ask as many of the questions as fit before the last turn, then conclude, or not."""

    def answer(question: str, episode: Episode) -> str:
        reply = PATIENT.reply_to(task, question, episode.events)
        episode.events.append(Exchange(question, reply))
        return reply.text

    steps = [*questions[: turns - 1], *([conclusion] if conclusion else [])]
    return partner_agent.rehearse(prompts, task.question, turns, steps, spoken, answer)


def gold_episode(
    task: ConsultationTask, prompts: Prompts, turns: int, diagnosis: str = ""
) -> Episode:
    """Ask for what distinguishes, then give the gold conclusion, or `diagnosis` as its name."""
    conclusion = _concluded(task, diagnosis or task.reference, task.recommendation)
    questions = [question_for(item) for item in task.distinguishing]
    return rehearse(task, prompts, turns, questions, conclusion)


def commonest_episode(task: ConsultationTask, prompts: Prompts, turns: int, named: str) -> Episode:
    return rehearse(task, prompts, turns, [], _concluded(task, named, "") if named else None)


def _concluded(task: ConsultationTask, diagnosis: str, advice: str) -> Conclusion:
    return Choice(diagnosis, "") if task.options else Conclusion(diagnosis, advice)


_TEXTS = tomllib.loads(Path(__file__).with_name("canaries.toml").read_text(encoding="utf-8"))
TO_THE_JUDGE = _TEXTS["to_the_judge"]
GENERAL = _TEXTS["general_advice"]


def dishonest_episodes(
    task: ConsultationTask, prompts: Prompts, turns: int, random: Random
) -> dict[str, Episode]:
    """Return a bad consultation of every kind, by kind."""
    tables = load_tables()
    group = [one.zh for name, one in tables.conditions.items() if task.complaint in one.complaints]
    conditions = group or [one.zh for one in tables.conditions.values()]
    others = [one for name, one in tables.conditions.items() if name != task.condition]
    other = random.choice(others)
    wrong = "；".join(item.replace("*", "") for item in other.advice_zh)
    every = [question_for(item) for item in SAID["questions"] if item != "symptom"]
    everything = "，".join(sorted(all_terms()))

    def ended(diagnosis: str, advice: str, questions: Sequence[str] = ()) -> Episode:
        return rehearse(task, prompts, turns, questions, Conclusion(diagnosis, advice))

    advice_alone = rehearse(task, prompts, turns, [], None)
    advice_alone.events.append(Malformed("no_diagnosis"))
    return {
        "every condition": ended("、".join(conditions), task.recommendation),
        "one or another": ended(f"{task.reference}或{other.zh}", wrong),
        "advice without a diagnosis": advice_alone,
        "endless questions": rehearse(task, prompts, turns, every, None),
        "words to the judge": ended(random.choice(TO_THE_JUDGE), random.choice(TO_THE_JUDGE)),
        "the complaint again": ended(task.question, GENERAL),
        "another condition": ended(other.zh, wrong, every[:1]),
        "all advice there is": ended(other.zh, everything),
    }
