"""Consultations without a model: gold, the baselines, and what known-bad ones are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from conditions.bayes import Value, posterior
from conditions.table import load_tables
from consultation_agent.patient import Exchange, told
from consultation_agent.prompts import Prompts
from consultation_agent.protocol import Choice, Conclusion, spoken
from consultation_agent.record_patient import RecordPatient, question_for
from consultation_agent.task import ConsultationTask
from episodes import partner_agent
from episodes.episode import Episode

CHECKLIST = (
    *("aggravating", "onset", "place", "character", "course", "history", "relieving"),
    *("accompanying", "habits", "severity", "medication", "allergies"),
)
PATIENT = RecordPatient()

Conclude = Callable[[Sequence[Exchange]], Conclusion | None]


def rehearse(
    task: ConsultationTask,
    prompts: Prompts,
    turns: int,
    questions: Sequence[str],
    conclude: Conclude,
) -> Episode:
    """Ask as many of the questions as the budget allows before the last turn, then conclude, or
    not.
    """
    questions = questions[: turns - 1]

    def answer(number: int, episode: Episode) -> str:
        reply = PATIENT.reply_to(task, questions[number], episode.events)
        episode.events.append(Exchange(questions[number], reply))
        return prompts.said(reply.text, number + 2, turns)

    def concluded(episode: Episode) -> tuple[Conclusion, str] | None:
        conclusion = conclude(episode.events)
        return (conclusion, spoken(conclusion)) if conclusion else None

    opening = prompts.opening(task.question, turns)
    return partner_agent.rehearse(opening, [*map(spoken, questions)], answer, concluded)


def gold_episode(
    task: ConsultationTask, prompts: Prompts, turns: int, diagnosis: str = ""
) -> Episode:
    """Ask for what distinguishes, then give the gold conclusion, or `diagnosis` as its name."""
    conclusion = _concluded(task, diagnosis or task.reference, task.recommendation)
    questions = [question_for(item) for item in task.distinguishing]
    return rehearse(task, prompts, turns, questions, lambda _: conclusion)


def baseline_episode(
    name: str, task: ConsultationTask, prompts: Prompts, turns: int, commonest: str = ""
) -> Episode:
    """Return the episode of a baseline.

    "at_once" asks nothing. "checklist" asks the same of everybody. Both name what the tables then
    hold likeliest, the table's first of equals. "commonest" names `commonest`. Of options, the
    first is chosen.
    """
    if name == "commonest":
        at_once = _concluded(task, commonest, "") if commonest else None
        return rehearse(task, prompts, turns, [], lambda _: at_once)
    questions = [question_for(item) for item in CHECKLIST] if name == "checklist" else []
    if task.options:
        first = Choice(next(iter(task.options)), "")
        return rehearse(task, prompts, turns, questions, lambda _: first)
    return rehearse(task, prompts, turns, questions, lambda asked: best_match(task, told(asked)))


def _concluded(task: ConsultationTask, diagnosis: str, advice: str) -> Conclusion:
    return Choice(diagnosis, "") if task.options else Conclusion(diagnosis, advice)


def best_match(task: ConsultationTask, mentioned: Iterable[str]) -> Conclusion | None:
    """Return the condition of the complaint that fits best to what the patient mentioned, or None if
    the complaint is not in the tables.
    """
    tables = load_tables()
    group = tables.group(task.complaint)
    if not group:
        return None
    known = {item: value for item in mentioned if (value := _value(task, item)) is not None}
    chances = posterior(tables, group, known)
    likeliest = group[max(chances, key=lambda name: chances[name])]
    advice = "；".join(likeliest.advice_for(task.values.get("habits")))
    return Conclusion(likeliest.zh, advice.replace("*", ""))


def _value(task: ConsultationTask, item: str) -> Value | None:
    tables = load_tables()
    if item in tables.symptoms:
        return task.symptoms.get(item, False)
    if item in task.values:
        return task.values[item] if item in task.words else None
    if item in tables.facets:
        for name, phrase in tables.facets[item].values.items():
            if task.words.get(item) in phrase.lay:
                return name
        return None
    return {"age": task.age, "sex": task.sex or None}.get(item)
