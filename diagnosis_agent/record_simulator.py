"""The simulator that needs no model: the case's own results, and normal ones for what it has nothing of; always alike.

    RecordSimulator().result_of(task, "CBC", [])      # Result("complete blood count", "...", "recorded")

What exists and is not recorded is drawn as normal for age and sex, by case and examination.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from types import MappingProxyType

from data.conditions.records import Patient
from data.conditions.results import draw_results
from data.conditions.table import load_tables
from diagnosis_agent.examinations import named, table_key
from diagnosis_agent.simulator import Result, Simulator
from diagnosis_agent.task import DiagnosisTask

UNAVAILABLE = "This examination is not available. Order one at a time, by its usual name."
NOTHING_SEEN = "No abnormality."  # of an examination that only the case knows
AGE, SEX = 40, "female"  # of a patient of whom these are not known


class RecordSimulator(Simulator):
    """Answers from the record alone."""

    description: Mapping[str, str] = MappingProxyType({"simulator": "record"})

    async def examine(self, task: DiagnosisTask, name: str, past: Sequence[Result]) -> Result:
        return self.result_of(task, name, past)

    def result_of(self, task: DiagnosisTask, name: str, past: Sequence[Result]) -> Result:
        """What comes back for an order, after those of the past."""
        found = ordered(task, name)
        if found is None:
            return Result(" ".join(name.split())[:80], UNAVAILABLE, "unavailable")
        earlier = repeated(found, past)
        if earlier:
            return earlier
        text = {own_name(other): text for other, text in task.results.items()}.get(found)
        return (
            Result(found, text, "recorded")
            if text
            else Result(found, _normal(task, found), "normal")
        )


def ordered(task: DiagnosisTask, name: str) -> str | None:
    """The examination that an order means for this patient; None: none, or only for the other sex."""
    found = named(name, (*task.results, *task.key))
    if found is None:
        return None
    found = own_name(found)
    key = table_key(found)
    only = load_tables().examinations[key].only if key else "any"
    return found if only in ("any", task.sex) or task.sex is None else None


def own_name(name: str) -> str:
    """What an examination of the case goes by: its name in the tables, where they know it."""
    return named(name) or name


def repeated(found: str, past: Sequence[Result]) -> Result | None:
    """The result again that an earlier order of the same examination had."""
    earlier = next((one for one in past if one.name == found and one.kind != "unavailable"), None)
    return earlier and Result(found, earlier.text, "repeated")


def _normal(task: DiagnosisTask, name: str) -> str:
    key = table_key(name)
    if key is None:
        return NOTHING_SEEN
    patient: Patient = {"age": AGE if task.age is None else task.age, "sex": task.sex or SEX}
    drawn = draw_results(load_tables(), [key], patient, Random(f"{task.id}/{key}"))[key]
    return f"{drawn.text} (reference range: {drawn.reference})" if drawn.reference else drawn.text
