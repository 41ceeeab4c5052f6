"""Consultations whose worth is known: bad ones, to see whether the reward can be fooled.

dishonest_episodes(task, prompts, turns=6, random=Random(1))     # {"every condition": episode, ...}
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from random import Random

from conditions.table import load_tables
from consultation_agent.advice import all_terms
from consultation_agent.doctor_questions import SAID
from consultation_agent.prompts import Prompts
from consultation_agent.protocol import Conclusion, Malformed
from consultation_agent.record_patient import question_for
from consultation_agent.rehearsal import rehearse
from consultation_agent.task import ConsultationTask
from episodes.episode import Episode

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
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
        return rehearse(task, prompts, turns, questions, lambda _: Conclusion(diagnosis, advice))

    advice_alone = rehearse(task, prompts, turns, [], lambda _: None)
    advice_alone.events.append(Malformed("no_diagnosis"))
    return {
        "every condition": ended("、".join(conditions), task.recommendation),
        "one or another": ended(f"{task.reference}或{other.zh}", wrong),
        "advice without a diagnosis": advice_alone,
        "endless questions": rehearse(task, prompts, turns, every, lambda _: None),
        "words to the judge": ended(random.choice(TO_THE_JUDGE), random.choice(TO_THE_JUDGE)),
        "the complaint again": ended(task.question, GENERAL),
        "another condition": ended(other.zh, wrong, every[:1]),
        "all advice there is": ended(other.zh, everything),
    }
