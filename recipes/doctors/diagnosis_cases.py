"""Draw the diagnosis agent's cases, which cases.py explains, from the tables of conditions."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from conditions.condition_types import Tables
from conditions.examination_results import Result
from conditions.table import INSTRUCTION
from recipes.doctors.bayes import Value, posterior
from recipes.doctors.consultation_cases import OPEN, Row, draw_rows
from recipes.doctors.results import Patient, draw_results
from recipes.doctors.speech import Speech

PLAUSIBLE = 0.05  # a summary leaves OPEN conditions that are at least so likely
LIKELIEST = 0.5  # a fact that makes a condition likelier than this is not stated
NOTHING = (False, "none", "unclear", "regular")  # values that are stated last
MOST_STATED = 8  # facts of a summary, besides bedside findings
SURE = 0.9  # least chance of the diagnosis, given the key results
DIFFICULTY = ("easy", "medium", "hard")  # by how many reasons, see _difficulty
# Examinations of every patient, besides those in which a condition with the complaint would show.
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
WORDINGS = Path(__file__).with_name("summaries.toml")
AN = re.compile(r"\b([Aa])(?= (?:8|11|18|8\d)-year-old)")


@dataclass(frozen=True)
class DiagnosisCase:
    """A drawn patient.

    stated: what the summary says of symptoms, facets and bedside findings. results: all of them.
    """

    name: str
    complaint: str
    patient: Patient
    stated: Mapping[str, Value]
    results: Mapping[str, Result]
    difficulty: str


def draw_diagnosis_cases(
    tables: Tables, rows: Mapping[str, int], seed: int
) -> dict[str, list[Row]]:
    """Return rows by split, each condition as often as every other, no two records alike.

    Raises UsageError: too few conditions stay open, or key examinations do not settle one.
    """
    drawn = draw_rows(tables, rows, seed, case_of, _row)
    for split, split_rows in drawn.items():
        for row in split_rows:
            row["extra_info"] = {"split": split, **row["extra_info"]}
    return drawn


def case_of(
    tables: Tables, name: str, complaint: str, patient: Patient, random: Random
) -> DiagnosisCase | None:
    """Return a case if its summary leaves much open and its key results settle it, else None."""
    results = draw_results(
        tables, recorded(tables, complaint, patient), patient, random, tables.conditions[name]
    )
    stated = _stated(tables, complaint, name, patient, results, random)
    difficulty = stated and _difficulty(tables, complaint, name, stated, results)
    return (
        DiagnosisCase(name, complaint, patient, stated, results, difficulty) if difficulty else None
    )


def recorded(tables: Tables, complaint: str, patient: Patient) -> list[str]:
    """Return the examinations of a patient: those in which any condition with the complaint would
    show, and routine.
    """
    group = tables.group(complaint).values()
    wanted = {*ROUTINE, *(name for condition in group for name in condition.examinations)}
    fit = [name for name in tables.examinations if name in wanted]
    fit = [name for name in fit if tables.examinations[name].only in ("any", patient["sex"])]
    return sorted(fit, key=lambda name: KINDS.index(tables.examinations[name].kind))


def plausible(chances: Mapping[str, float]) -> list[str]:
    return [name for name, chance in chances.items() if chance >= PLAUSIBLE]


def _stated(
    tables: Tables,
    complaint: str,
    name: str,
    patient: Patient,
    results: Mapping[str, Result],
    random: Random,
) -> dict[str, Value]:
    """Return what a summary states, or {} if age and sex reveal too much already.

    It states no key examination of any condition with the complaint, so that neither a result nor
    its absence gives anything away.
    """
    group = tables.group(complaint)
    stated: dict[str, Value] = {item: patient[item] for item in ("age", "sex")}
    # Some conditions are likely by age and sex alone
    likeliest = max(LIKELIEST, *posterior(tables, group, stated).values())

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
        more = {**stated, item: results[item] if item in results else patient[item]}
        stated = more if leaves_open(more) else stated
        if len(stated.keys() - results.keys()) == MOST_STATED:
            break
    return stated if leaves_open(stated) else {}


def _difficulty(
    tables: Tables,
    complaint: str,
    name: str,
    stated: Mapping[str, Value],
    results: Mapping[str, Result],
) -> str:
    """Return how hard a case is: whether the summary points elsewhere, and whether no key result
    alone settles it. It is "" if all key results together do not.
    """
    group = tables.group(complaint)
    key = {one: results[one] for one in tables.conditions[name].key}
    before = posterior(tables, group, stated)
    alone = [posterior(tables, group, {**stated, one: result})[name] for one, result in key.items()]
    if posterior(tables, group, {**stated, **key})[name] < SURE:
        return ""
    return DIFFICULTY[(before[name] < max(before.values())) + (min(alone) < SURE)]


def _row(tables: Tables, case: DiagnosisCase, index: int, speech: Speech, wording: str) -> Row:
    condition = tables.conditions[case.name]
    patient = case.patient
    examinations = [
        {"name": result.examination.en, "results": result.text, "reference_range": result.reference}
        for result in case.results.values()
    ]
    summary = _summary(tables, case, case.stated, speech, wording)
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
def _wordings() -> dict[str, tuple[list[str], list[str]]]:
    read = tomllib.loads(WORDINGS.read_text(encoding="utf-8"))
    return {name: (read[name], more) for name, more in read["more"].items()}


def _summary(
    tables: Tables, case: DiagnosisCase, stated: Mapping[str, Value], speech: Speech, wording: str
) -> str:
    said = tables.complaints[case.complaint]
    person = {
        "age": case.patient["age"],
        "sex": "woman" if case.patient["sex"] == "female" else "man",
    }
    words = speech.choose(said.en, said.lay_en, wording)
    sections: dict[str, dict[str, Any]] = {
        "opening": {**person, "complaint": said.en, "words": words}
    }
    symptoms = [item for item in stated if item in tables.symptoms]
    lists = {
        "has": [tables.symptoms[item].en for item in symptoms if stated[item]],
        "lacks": [tables.symptoms[item].en for item in symptoms if not stated[item]],
        "sides": [
            f"{tables.facets[item].en}: {tables.facets[item].values[str(stated[item])].en}"
            for item in stated if item in tables.facets
        ],
    }  # fmt: skip
    sections |= {
        name: {"things": _listed(name, things)} for name, things in lists.items() if things
    }
    found = [value.text.rstrip(".") for value in stated.values() if isinstance(value, Result)]
    sections |= {"findings": {"findings": "; ".join(found)}} if found else {}
    texts = (
        speech.choose(name, speech.random.choice(_wordings()[name]), wording).format(**fields)
        for name, fields in sections.items()
    )
    summary = " ".join(text[0].upper() + text[1:] for text in texts)
    return AN.sub(r"\1n", summary)


def _listed(section: str, things: Sequence[str]) -> str:
    if section == "sides":
        return "; ".join(things)
    return f" {'or' if section == 'lacks' else 'and'} ".join(
        filter(None, (", ".join(things[:-1]), things[-1]))
    )
