"""Draws the diagnosis agent's cases from the tables of conditions; cases.py says what a case is,
and writes them.

rows = draw_diagnosis_cases(load_tables(), {"train": 960, "val": 96}, seed=0)["val"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from data.conditions.asking import posterior
from data.conditions.bayes import Value
from data.conditions.drawing import OPEN, Row, Speech, draw_rows
from data.conditions.records import Patient, Tables
from data.conditions.results import Result, draw_results
from data.conditions.table import FOLDER

PLAUSIBLE = 0.05  # a summary leaves OPEN conditions at least so likely
LIKELIEST = 0.5  # what makes one likelier than that is not told
NOTHING = (False, "none", "unclear", "regular")  # values that are told last
MOST_TOLD = 8  # of a summary, besides bedside findings
SURE = 0.9  # of the diagnosis, by the key results
DIFFICULTY = ("easy", "medium", "hard")  # by how many reasons, see _difficulty
# Recorded of everybody, besides what any condition with the complaint would show.
ROUTINE = (
    "vitals",
    "cbc",
    "electrolytes",
    "renal_function",
    "liver_panel",
    "fasting_glucose",
    "urinalysis",
)
KINDS = ("physical", "lab", "imaging", "procedure")  # in the order in which they are recorded
INSTRUCTION = "You are a physician. Order one examination at a time; when you know enough, give the diagnosis."


@dataclass(frozen=True)
class Case:
    """A drawn patient: `told` is what the summary says of symptoms, facets and bedside findings,
    `results` are all.
    """

    name: str
    complaint: str
    patient: Patient
    told: Mapping[str, Value]
    results: Mapping[str, Result]
    difficulty: str


def draw_diagnosis_cases(
    tables: Tables, rows: Mapping[str, int], seed: int
) -> dict[str, list[Row]]:
    """Rows by split, each condition as often as every other; no two records of all splits are
    alike.

    Raises UsageError: the tables leave too few conditions open, or key examinations that do not
    settle one.
    """
    drawn = draw_rows(tables, rows, seed, case_of, _row)
    for split, told in drawn.items():
        for row in told:
            row["extra_info"] = {"split": split, **row["extra_info"]}
    return drawn


def case_of(
    tables: Tables, name: str, complaint: str, patient: Patient, random: Random
) -> Case | None:
    """A patient of whom a summary leaves much open and the key results do not."""
    results = draw_results(
        tables, recorded(tables, complaint, patient), patient, random, tables.conditions[name]
    )
    told = _told(tables, complaint, name, patient, results, random)
    difficulty = told and _difficulty(tables, complaint, name, told, results)
    return Case(name, complaint, patient, told, results, difficulty) if difficulty else None


def recorded(tables: Tables, complaint: str, patient: Patient) -> list[str]:
    """The examinations that are made of a patient: what any condition with the complaint would
    show, and routine.
    """
    group = tables.group(complaint).values()
    wanted = {*ROUTINE, *(name for condition in group for name in condition.examinations)}
    fit = [name for name in tables.examinations if name in wanted]
    fit = [name for name in fit if tables.examinations[name].only in ("any", patient["sex"])]
    return sorted(fit, key=lambda name: KINDS.index(tables.examinations[name].kind))


def plausible(chances: Mapping[str, float]) -> list[str]:
    """The conditions that remain."""
    return [name for name, chance in chances.items() if chance >= PLAUSIBLE]


def _told(
    tables: Tables,
    complaint: str,
    name: str,
    patient: Patient,
    results: Mapping[str, Result],
    random: Random,
) -> dict[str, Value]:
    """What a summary tells, as far as it leaves the diagnosis open; empty where age and sex say too
    much already.

    No key examination of any condition with the complaint is told: neither its result nor its
    absence tells anything.
    """
    group = tables.group(complaint)
    told: dict[str, Value] = {item: patient[item] for item in ("age", "sex")}
    likeliest = max(
        LIKELIEST, *posterior(tables, group, told).values()
    )  # some are likely by age and sex alone

    def leaves_open(known: Mapping[str, Value]) -> bool:
        chances = posterior(tables, group, known)
        left = plausible(chances)
        return len(left) >= OPEN and name in left and max(chances.values()) <= likeliest

    keys = {key for condition in group.values() for key in condition.key}
    bedside = [
        one for one in results if tables.examinations[one].kind == "physical" and one not in keys
    ]
    history = sorted(
        random.sample(list(patient), len(patient)), key=lambda item: patient[item] in NOTHING
    )
    for item in [*bedside, *history]:
        more = {**told, item: results[item] if item in results else patient[item]}
        told = more if leaves_open(more) else told
        if len(told.keys() - results.keys()) == MOST_TOLD:
            break
    return told if leaves_open(told) else {}


def _difficulty(
    tables: Tables,
    complaint: str,
    name: str,
    told: Mapping[str, Value],
    results: Mapping[str, Result],
) -> str:
    """By whether the summary points elsewhere, and whether some key result alone does not settle
    the case; "" where all of them do not.
    """
    group, key = tables.group(complaint), {one: results[one] for one in tables.conditions[name].key}
    before = posterior(tables, group, told)
    alone = [posterior(tables, group, {**told, one: result})[name] for one, result in key.items()]
    if posterior(tables, group, {**told, **key})[name] < SURE:
        return ""
    return DIFFICULTY[(before[name] < max(before.values())) + (min(alone) < SURE)]


def _row(tables: Tables, case: Case, index: int, speech: Speech, wording: str) -> Row:
    condition, patient = tables.conditions[case.name], case.patient
    examinations = [
        {"name": result.examination.en, "results": result.text, "reference_range": result.reference}
        for result in case.results.values()
    ]
    summary = _summary(tables, case, case.told, speech, wording)
    whole = {item: value for item, value in patient.items() if value is not False}
    return {
        "data_source": "diagnose_dataset",
        "prompt": [{"role": "system", "content": INSTRUCTION}, {"role": "user", "content": summary}],
        "ability": "diagnosis",
        "reward_model": {"style": "LLM", "ground_truth": condition.en},
        "extra_info": {
            "index": index, "answer": condition.en, "question": summary,
            "text": _summary(tables, case, whole, speech, wording),
            "key_exam_names": [tables.examinations[name].en for name in condition.key],
            "id": f"case-{index:04}", "condition": case.name, "group": case.complaint, "difficulty": case.difficulty,
            "wording": wording, "aliases": list(condition.aliases_en), "age": patient["age"], "sex": patient["sex"],
            "examinations": examinations,
        },
    }  # fmt: skip


@cache
def _wordings() -> dict[str, list[str]]:
    return tomllib.loads((FOLDER / "summaries.toml").read_text(encoding="utf-8"))


def _summary(
    tables: Tables, case: Case, told: Mapping[str, Value], speech: Speech, wording: str
) -> str:
    """Sections of the wordings' table, those left out that have nothing to say."""
    said = tables.complaints[case.complaint]
    person = {
        "age": case.patient["age"],
        "sex": "woman" if case.patient["sex"] == "female" else "man",
    }
    words = speech.choose(said.en, said.lay_en, wording)
    sections: dict[str, dict[str, Any]] = {
        "opening": {**person, "complaint": said.en, "words": words}
    }
    symptoms = [item for item in told if item in tables.symptoms]
    lists = {
        "has": [tables.symptoms[item].en for item in symptoms if told[item]],
        "lacks": [tables.symptoms[item].en for item in symptoms if not told[item]],
        "sides": [
            f"{tables.facets[item].en}: {tables.facets[item].values[str(told[item])].en}"
            for item in told if item in tables.facets
        ],
    }  # fmt: skip
    sections |= {
        name: {"things": _listed(name, things)} for name, things in lists.items() if things
    }
    found = [value.text.rstrip(".") for value in told.values() if isinstance(value, Result)]
    sections |= {"findings": {"findings": "; ".join(found)}} if found else {}
    texts = (
        speech.choose(name, _wordings()[name], wording).format(**fields)
        for name, fields in sections.items()
    )
    return " ".join(text[0].upper() + text[1:] for text in texts)


def _listed(section: str, things: Sequence[str]) -> str:
    if section == "sides":
        return "; ".join(things)
    return f" {'or' if section == 'lacks' else 'and'} ".join(
        filter(None, (", ".join(things[:-1]), things[-1]))
    )
