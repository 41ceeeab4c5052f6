"""Draw the consultation agent's cases, which cases.py explains, from the tables of conditions."""

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import exp, log
from random import Random
from typing import Any, TypeVar

from common.command import UsageError
from common.terminal import watched
from conditions.condition_types import Condition, Tables
from data.records import compact
from recipes.doctors.bayes import log_likelihood, posterior, share_of, weights_of
from recipes.doctors.results import Patient
from recipes.doctors.speech import Speech
from recipes.doctors.talk import Talk

ROWS = {"train": 960, "val": 96, "test": 320}
UNSEEN = 0.25  # of the test rows
OPEN = 3  # conditions that a complaint leaves open, at least
# A doctor stops asking when so sure, or after so many questions
SURE = 0.99
MOST_ASKED = 4
FORGOTTEN = 0.05  # share of the unneeded facets that a patient forgot
# Facets in whose words the record patient looks for one thing, such as smoking
BARE = ("history", "medication", "habits", "allergies")
DIFFICULTY = {1: "easy", 2: "medium"}  # by how much must be asked, "hard" above
ATTEMPTS = 200  # patients drawn for a row before the tables count as wrong

Row = dict[str, Any]
AnyCase = TypeVar("AnyCase")  # the case type of the agent that rows are drawn for
# Returns the case of a condition, a complaint and a patient with both, or None.
CaseOf = Callable[[Tables, str, str, Patient, Random], AnyCase | None]


@dataclass(frozen=True)
class ConsultationCase:
    """A drawn patient: condition, complaint, what is recorded, and what a doctor would ask for."""

    name: str
    complaint: str
    patient: Patient
    asked: Sequence[str]


def draw_cases(tables: Tables, rows: Mapping[str, int], seed: int) -> dict[str, list[Row]]:
    """Return rows by split, each condition as often as every other, no two records alike.

    Raises UsageError: the tables do not separate a condition from its neighbours.
    """
    return draw_rows(tables, rows, seed, case_of, _row)


def draw_rows(
    tables: Tables,
    rows: Mapping[str, int],
    seed: int,
    case_of: CaseOf[AnyCase],
    to_row: Callable[[Tables, AnyCase, int, Speech, str], Row],
) -> dict[str, list[Row]]:
    """Return rows by split, each condition as often as every other.

    `case_of` makes a case of a patient, or None. `to_row` words it as "seen" or "unseen".
    """
    random = Random(seed)
    index = count()
    seen = set[str]()
    speech = Speech(seed, random)
    drawn = dict[str, list[Row]]()
    for split, wanted in rows.items():
        unseen = int(UNSEEN * wanted) if split == "test" else 0
        marks = random.sample(["unseen"] * unseen + ["seen"] * (wanted - unseen), wanted)
        names = watched(zip(_in_turn(tables, random), marks, strict=False), split, "cases", wanted)
        cases = [new_case(tables, name, random, seen, case_of) for name, _ in names]
        drawn[split] = [
            to_row(tables, case, next(index), speech, mark)
            for case, mark in zip(cases, marks, strict=True)
        ]
    return drawn


def _in_turn(tables: Tables, random: Random) -> Iterator[str]:
    while True:
        yield from random.sample(list(tables.conditions), len(tables.conditions))


def new_case(
    tables: Tables, name: str, random: Random, seen: set[str], case_of: CaseOf[AnyCase]
) -> AnyCase:
    """Return a case of a patient with the condition whose record was not drawn before.

    The record has those symptoms that belong to the complaint's conditions. Raises UsageError: no
    patient makes a case.
    """
    for _ in range(ATTEMPTS):
        complaint = random.choice(tables.conditions[name].complaints)
        items = items_of(tables, tables.group(complaint))
        drawn = draw_patient(tables, tables.conditions[name], random)
        patient = {item: drawn[item] for item in ("age", "sex", *items)}
        case = case_of(tables, name, complaint, patient, random)
        record = json.dumps([complaint, patient])
        if case and record not in seen:
            seen.add(record)
            return case
    raise UsageError(
        f"conditions.toml, {name}: none of {ATTEMPTS} patients can be distinguished by the tables"
    )


def draw_patient(tables: Tables, condition: Condition, rng: Random) -> Patient:
    patient: Patient = {
        "age": rng.randint(*condition.ages), "sex": "female" if rng.random() < condition.female else "male",
    }  # fmt: skip
    for facet in tables.facets:
        weights = weights_of(tables, condition, facet)
        (patient[facet],) = rng.choices(list(weights), list(weights.values()))
    patient |= {name: rng.random() < share_of(tables, condition, name) for name in tables.symptoms}
    _reconcile(patient)
    return patient


def _reconcile(patient: Patient) -> None:
    """Change what one person cannot have together, such as rigors without a fever."""
    patient["nausea"] = patient["nausea"] or patient["vomiting"]
    patient["urgency"] = patient["urgency"] or patient["urge_leak"]
    patient["chills"] = patient["chills"] and patient["fever"]
    patient["weight_loss"] = patient["weight_loss"] and not patient["weight_gain"]
    if patient["sex"] == "female":
        patient["urethral_discharge"] = False
    if patient["medication"] == "blood_pressure_pills":
        patient["history"] = "hypertension"


def case_of(
    tables: Tables, name: str, complaint: str, patient: Patient, random: Random
) -> ConsultationCase | None:
    """Return a case, or None if questions do not distinguish this patient from others."""
    asked = questions_for(tables, complaint, name, patient)
    return ConsultationCase(name, complaint, patient, asked) if asked else None


def questions_for(tables: Tables, complaint: str, name: str, patient: Patient) -> list[str] | None:
    """Return what a doctor who knows the tables asks for, or None if that ends elsewhere."""
    group = tables.group(complaint)
    known = dict[str, Any]()
    while max((chances := posterior(tables, group, known)).values()) < SURE:
        if len(known) == MOST_ASKED:
            return None
        item = most_telling(tables, group, chances, known)
        known[item] = patient[item]
    return list(known) if chances[name] >= SURE else None


def items_of(tables: Tables, group: Mapping[str, Condition]) -> list[str]:
    """Return the symptoms that any of the conditions names, and every facet."""
    symptoms = dict[str, float]()
    for condition in group.values():
        symptoms |= condition.symptoms
    return [*symptoms, *tables.facets]


def most_telling(
    tables: Tables,
    group: Mapping[str, Condition],
    chances: Mapping[str, float],
    known: Container[str],
) -> str:
    """Return the unknown symptom or facet that, on average, leaves the least doubt between the
    conditions.
    """

    def doubt_after(item: str) -> float:
        values = (True, False) if item in tables.symptoms else tables.facets[item].values
        doubt = 0.0
        for value in values:
            joint = [
                chances[name] * exp(log_likelihood(tables, one, item, value))
                for name, one in group.items()
            ]
            doubt -= sum(share * log(share / sum(joint)) for share in joint if share)
        return doubt

    unknown = [item for item in items_of(tables, group) if item not in known]
    return min(unknown, key=doubt_after)


def _row(tables: Tables, case: ConsultationCase, index: int, speech: Speech, wording: str) -> Row:
    condition = tables.conditions[case.name]
    patient = case.patient
    symptoms = {item: bool(patient[item]) for item in patient if item in tables.symptoms}
    denied = list[str]()
    for name, there in symptoms.items():
        if not there:
            denied += [word for word in tables.symptoms[name].ask if len(word) > 1]
    talk = Talk(tables, speech, wording, (condition.zh, *condition.aliases_zh), denied)
    # Shuffled, so that the order carries no information
    symptoms = dict(speech.random.sample(list(symptoms.items()), len(symptoms)))
    known = [
        name for name in tables.facets if name in case.asked or speech.random.random() >= FORGOTTEN
    ]
    words = _words(tables, case, talk, symptoms, known)
    values = {name: str(patient[name]) for name in known}
    opening = talk.opening(case.complaint, int(patient["age"]))
    truth = {
        "diagnosis": condition.zh,
        "recommendation": "；".join(condition.advice_for(values.get("habits"))).replace("*", ""),
    }
    prose = _prose(tables, f"{_person(patient)}，说：“{opening}”", words, symptoms)
    return {
        "data_source": "medical_consultation",
        "prompt": [{"role": "user", "content": opening}],
        "reward_model": {"ground_truth": truth, "patient_information": [], "enhanced_description": prose},
        "extra_info": {
            "index": index, "condition": case.name, "department": condition.department,
            "difficulty": DIFFICULTY.get(len(case.asked), "hard"), "complaint": case.complaint,
            "age": patient["age"], "sex": patient["sex"], "facets": compact(words), "symptoms": compact(symptoms),
            "values": compact(values),
            "distinguishing": list(case.asked), "wording": wording,
        },
    }  # fmt: skip


def _words(
    tables: Tables,
    case: ConsultationCase,
    talk: Talk,
    symptoms: Mapping[str, bool],
    known: Sequence[str],
) -> dict[str, str]:
    """Return what the patient says of the facets it knows and of the symptoms it has.

    A fact that a doctor would ask for never stands beside another one.
    """
    has = [name for name, there in symptoms.items() if there]
    words = dict[str, str]()
    for name in known:
        phrase = tables.facets[name].values[str(case.patient[name])]
        beside = [tables.symptoms[other] for other in has if other not in case.asked]
        words[name] = talk.fact(phrase, beside, bare=name in BARE)
    for name in has:
        beside = [
            tables.symptoms[other] for other in has if other not in case.asked and other != name
        ]
        words[name] = talk.fact(tables.symptoms[name], beside)
    return words


def _person(patient: Patient) -> str:
    return f"{'女' if patient['sex'] == 'female' else '男'}，{patient['age']}岁"


def _prose(
    tables: Tables, opening: str, words: Mapping[str, str], symptoms: Mapping[str, bool]
) -> str:
    sides = "；".join(
        f"{tables.facets[name].zh}：{said}" for name, said in words.items() if name in tables.facets
    )
    have = "；".join(words[name] for name, there in symptoms.items() if there)
    lack = "、".join(tables.symptoms[name].zh for name, there in symptoms.items() if not there)
    return f"{opening}{sides}。还有：{have or '无'}。没有：{lack or '无'}。"
