"""The simulator that needs no model: the case's own results, always alike.

What an invented case does not record is normal for age and sex, but for the examinations that settle
it. Of a case from outside, what is not recorded is "not recorded".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import ClassVar

from conditions.examination_results import draw_result
from conditions.orders import (
    FLUID,
    are_two_numbers,
    covered_by,
    mentioned,
    named,
    names_examination,
    panels,
    side_of,
    table_key,
    words_of,
)
from conditions.table import load_tables
from diagnosis_agent.protocol import Order
from diagnosis_agent.task import DiagnosisTask

UNAVAILABLE = "This examination is not available. Order one at a time, by its usual name."
NOT_RECORDED = "Not recorded: the case has no result of this examination."
OF_BLOOD = re.compile(r"\b(?:serum|plasma|blood)\b|血", re.IGNORECASE)
URINE = re.compile("urin.*", re.IGNORECASE)
# 14 mg/dL says nothing of magnesium, nor does when it was measured
UNIT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d?:[\d:.]+)?|\d\s*(?:[a-zµμ]|\w+/)[\w/]*")
LETTER = re.compile(r"[^\W\d_]")
LONGEST_BLOCK = 1_000  # characters of a text that is searched for names
AGE = 40  # of a patient of whom it is not known
SEX = "female"


@dataclass(frozen=True)
class Result:
    """The result of one order.

    name: the examination's own name, or the policy's words where it is unavailable. text: what the
    policy reads of it, alike every time. kind: one of docs/diagnosis.md. group: what it is a part of, where its
    name alone would mean another one, such as the glucose of a cerebrospinal fluid.
    """

    name: str
    text: str
    kind: str
    group: str = ""

    @property
    def shown(self) -> str:
        """The text that the policy reads."""
        if self.kind == "unavailable":
            return self.text
        name = f"{self.name} ({self.group})" if self.group else self.name
        return f"{name}: {self.text}"


@dataclass(frozen=True)
class Exchange:
    """An order and its result."""

    order: Order
    result: Result


class RecordSimulator:
    """Answers from the record alone."""

    description: ClassVar = {"simulator": "record"}

    async def check(self) -> None:
        """Need no service."""

    async def answer(self, task: DiagnosisTask, name: str, past: Sequence[Result]) -> Result:
        return self.reply_to(task, name, past)

    def reply_to(self, task: DiagnosisTask, name: str, past: Sequence[Result]) -> Result:
        """Return the result of an order, after earlier results."""
        found = ordered(task, name)
        if found is None:
            return Result(" ".join(name.split())[:80], UNAVAILABLE, "unavailable")
        if _is_of_others(task, found, name):
            result = Result(" ".join(name.split()), NOT_RECORDED, "not_recorded")
        else:
            result = repeated(found, past) or _recorded(task, found, name)
        if task.condition is None and result.kind == "not_recorded":
            meant = own_name(found)
            texts = _in_a_group(task, meant, name) or _in_a_block(task, meant, name)
            if texts:
                answer = Result(meant, " | ".join(texts), "recorded")
                return repeated(meant, past) or answer
        return result


def _is_of_others(task: DiagnosisTask, found: str, asked: str) -> bool:
    """Return whether the record has only other numbers of a panel, or one of another specimen."""
    meant = own_name(found)
    by_name = found in task.results and found != meant
    names = [found] if by_name else _names_of(task, meant)
    others = [_of_another(task, name, meant) for name in names]
    is_own = _plain(asked) in map(_plain, names)
    if others and not is_own and OF_BLOOD.search(asked) and all(map(FLUID.search, others)):
        return True
    if by_name or not names or words_of(asked) == words_of(meant):
        return False
    inside = [name.removeprefix(_group_of(task, name)) for name in names]
    return all(are_two_numbers(name, asked) and _plain(name) != meant for name in inside)


def _in_a_group(task: DiagnosisTask, found: str, asked: str) -> list[str]:
    """Return the results that name an examination with their group: a sputum's culture.
    A sodium is no chloride, although both are electrolytes.
    """
    texts = list[str]()
    for group, text in task.results.items():
        specimen = FLUID.search(group)
        of = URINE.sub("urine", specimen[0]) if specimen else group
        for line in text.splitlines():
            name, _, result = line.partition(": ")
            # A time is no name, and to find out what a text names takes milliseconds
            is_it = result and LETTER.search(name) and named(f"{of} {name}") == found
            if is_it and not are_two_numbers(name, asked):
                texts.append(f"{group}: {line}")
    return texts


def _in_a_block(task: DiagnosisTask, found: str, asked: str) -> list[str]:
    """Return the texts with several results of which one is asked: "WBC 12.3, Hb 98 g/L"."""
    texts = list[str]()
    for group, text in task.results.items():
        own = named(group)
        key = table_key(own) if own else None
        is_lab = key is not None and load_tables().examinations[key].kind == "lab"
        if FLUID.search(group) or (own and own not in panels() and not is_lab):
            continue  # of another specimen, or what an image shows
        there = mentioned(UNIT.sub(" ", text[:LONGEST_BLOCK]))
        meant = [name for name, one in there.items() if one in covered_by(found)]
        if len(there) > 1 and not all(are_two_numbers(name, asked) for name in meant):
            texts.append(f"{group}: {text}")
    return texts


def _recorded(task: DiagnosisTask, found: str, asked: str = "") -> Result:
    meant = own_name(found)
    if found in task.results and found != meant:
        group = _of_another(task, found, meant)
        return Result(found, task.results[found], "recorded", group)
    names = _names_of(task, meant)
    own = [name for name in names if _plain(name) in (_plain(found), _plain(asked))]
    names = [name for name in names if name in own or not _of_another(task, name, meant)]
    if meant in panels():
        return _panel(task, meant, names)
    if names:
        group = _of_another(task, names[0], meant) if len(names) == 1 else ""
        return Result(found, _joined(task, names, meant), "recorded", group)
    key = table_key(found)
    settles = found in {own_name(other) for other in task.key}
    if task.condition is None or key is None or settles:
        return Result(found, NOT_RECORDED, "not_recorded")
    random = Random(f"{task.id}/{key}")
    age = AGE if task.age is None else task.age
    examination = load_tables().examinations[key]
    drawn = draw_result(key, examination, task.sex or SEX, age, random, random.random())
    usual = f" (reference range: {drawn.reference})" if drawn.reference else ""
    return Result(found, f"{drawn.text}{usual}", "normal")


def _names_of(task: DiagnosisTask, meant: str) -> list[str]:
    """Return the recorded names of an examination, without their group's name where it has one."""
    names = list[str]()
    key = table_key(meant)
    is_lab = key is None or load_tables().examinations[key].kind == "lab"
    for name in task.results:
        group = _group_of(task, name)
        is_inside = is_lab and group and not FLUID.search(group)
        if meant in _meanings(name) or (is_inside and meant == named(name.removeprefix(group))):
            names.append(name)
    return names


def _group_of(task: DiagnosisTask, name: str) -> str:
    beginnings = (name[: space.start()] for space in re.finditer(" ", name))
    return next((group for group in beginnings if group in task.results), "")


def _meanings(name: str) -> set[str | None]:
    """Return what a recorded name may mean: itself, without "analysis", or the first of two in one,
    such as the brain in "MRI Brain and Spinal Cord".
    """
    known = named(name)
    first = name.partition(" and ")[0].removesuffix(" Analysis")
    return {own_name(name), known or (named(first) if len(words_of(first)) > 1 else None)}


def _of_another(task: DiagnosisTask, name: str, meant: str) -> str:
    """Return the other result that a result is part of: a urinalysis's WBC are no blood count."""
    for group, text in task.results.items():
        other = own_name(group)
        if _stands_in(name, task.results[name], text) and meant not in covered_by(other):
            of_fluid = FLUID.search(f"{group} {other}") and not FLUID.search(meant)
            if of_fluid or (named(group) and not names_examination(name, meant)):
                return group
    return ""


def _stands_in(name: str, text: str, group: str) -> bool:
    """Return whether a result is in lines of a group's text, by its name or the end of it."""
    words = name.split()
    lines = [f"\n{' '.join(words[at:])}: {text}\n" for at in range(len(words))]
    return any(line in f"\n{group}\n" for line in lines)


def _joined(task: DiagnosisTask, names: Sequence[str], meant: str) -> str:
    """Return results with their names, and a single one without where it has the examination's: a
    troponin T is no troponin I. One that stands in another's text is not repeated.
    """
    kept = list[str]()
    for name in names:
        others = [task.results[other] for other in names if other != name]
        if not any(_stands_in(name, task.results[name], other) for other in others):
            kept.append(name)
    text = task.results[kept[0]]
    if len(kept) == 1 and (words_of(kept[0]) == words_of(meant) or "\n" in text):
        return text
    return " | ".join(f"{name}: {task.results[name]}" for name in kept)


def _panel(task: DiagnosisTask, panel: str, own: Sequence[str]) -> Result:
    parts = [_recorded(task, name) for name in sorted(panels()[panel])]
    there = [one for one in parts if one.kind != "not_recorded"]
    if not there and not own:
        return Result(panel, NOT_RECORDED, "not_recorded")
    kind = "recorded" if own or any(one.kind == "recorded" for one in there) else "normal"
    texts = [_joined(task, own, panel)] if own else []
    texts += [f"{one.name}: {one.text}" for one in there]
    return Result(panel, " | ".join(texts), kind)


def ordered(task: DiagnosisTask, name: str) -> str | None:
    """Return the examination that an order means, the record's names first, or None."""
    own = (*task.results, *task.key)
    as_written = [other for other in task.results if _plain(other) == _plain(name)]
    found = as_written[0] if as_written else named(name, own)
    if found is None:
        return None
    alike = [other for other in task.results if words_of(other) == words_of(found)]
    if found in alike and found.casefold() != (named(found) or found).casefold():
        if len(alike) == 1 and _plain(name) != str(named(found)).casefold():
            return found  # its iron, where iron studies are not ordered
        if not side_of(name):
            return named(found) or found
    found = own_name(found)
    side = side_of(name)
    if side and any(named(other) == found and side_of(other) for other in own):
        return f"{side} {found}"  # where the case names sides, the other one is another examination
    key = table_key(found)
    only = load_tables().examinations[key].only if key else "any"
    return found if only in ("any", task.sex) or task.sex is None else None


def _plain(name: str) -> str:
    return " ".join(name.casefold().strip(" .。").split())


@cache
def own_name(name: str) -> str:
    """Return the name of an examination of the case: the one in the tables if they know it, with
    the side that the case names, because the other side is another examination.
    """
    known = named(name)
    side = side_of(name)
    return f"{side} {known}" if known and side else known or name


def repeated(found: str, past: Sequence[Result]) -> Result | None:
    """Return the result of an earlier order of the same examination, or None if there was none."""
    earlier = next((one for one in past if one.name == found and one.kind != "unavailable"), None)
    return earlier and Result(found, earlier.text, "repeated", earlier.group)
