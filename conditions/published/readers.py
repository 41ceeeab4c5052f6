"""Readers of public test sets, each recognised by the keys of its rows.

AgentClinic (MIT, https://github.com/SamuelSchmidgall/AgentClinic): OSCE examinations made from
MedQA, and image challenges, which are read without their image. symptomcheck-bench (MIT,
https://github.com/medaks/symptomcheck-bench): histories with a diagnosis, and no examinations.
mediQ (CC BY 4.0, https://github.com/stellalisy/mediQ): a question with options, and the atomic
facts that a patient answers from.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from conditions.published.cases import (
    PublishedCase,
    Reader,
    Record,
    UnusableCase,
    age_of,
    right_letters,
    sex_of,
    text_of,
    words,
)

HISTORY = (
    "History", "Symptoms", "Past_Medical_History", "Social_History", "Family_History",
    "Review_of_Systems", "Current_Medications", "Medications", "Drug_History", "Allergies",
)  # fmt: skip
# Names that say nothing without the name above them.
PARTS = re.compile(
    r"(findings?|results?|impression|interpretation|levels?|value|appearance|inspection|palpation"
    r"|auscultation|percussion|description|comments?|other|histopathology|microscopy|analysis)",
    re.IGNORECASE,
)
STANDING = re.compile(r"standing|upright", re.IGNORECASE)  # beside lying or sitting
ASKS_DIAGNOSIS = re.compile(r"\bdiagnos[ie]s\b", re.IGNORECASE)
LAST_QUESTION = re.compile(r"[^.?!]*\?\s*$")
ITEM = re.compile(
    r"(?:^|\s-\s|(?<=[.;])\s)([A-Z][^:]{2,80}):\s*([^:]+?)(?=\s-\s|\s[A-Z][^:.;]{2,80}:|$)"
)
TOLD = {  # of a vignette, and how it is called in the summary
    "chief_complaints": "Chief complaint",
    "presentation": "Presentation",
    "absent_findings": "Absent findings",
    "physical_history": "Past medical history",
    "family_history": "Family history",
    "social_history": "Social history",
}
NUMBER = re.compile(r"^\s*\d+\s*[.)]\s*")  # before a fact


def osce_case(row: Record, number: int) -> PublishedCase:
    """Return an OSCE case: the patient's part is the summary, the rest are findings."""
    osce = row["OSCE_Examination"]
    patient = osce.get("Patient_Actor") if isinstance(osce, Mapping) else None
    diagnosis = osce.get("Correct_Diagnosis") if isinstance(osce, Mapping) else None
    if not isinstance(diagnosis, str) or not diagnosis.strip():
        raise UnusableCase("have no diagnosis")
    if not isinstance(patient, Mapping):
        raise UnusableCase("have no patient")
    who = text_of(patient.get("Demographics") or "")
    recorded = [f"{words(name)}: {text_of(patient[name])}" for name in HISTORY if patient.get(name)]
    found = list[Finding]()
    for part in ("Physical_Examination_Findings", "Test_Results"):
        found += findings_of(osce.get(part) or {})
    often = Counter(one.name for one in found)
    named = dict[str, str]()
    for one in found:
        name = f"{one.group} {one.name}".strip() if often[one.name] > 1 else one.name
        named[name] = f"{named[name]}; {one.text}" if name in named else one.text
    symptoms = patient.get("Symptoms")
    complaint = symptoms.get("Primary_Symptom") if isinstance(symptoms, Mapping) else symptoms
    return PublishedCase(
        id=str(number),
        complaint=text_of(complaint or "") or text_of(patient.get("History") or ""),
        summary="\n".join([who, *recorded]),
        diagnosis=diagnosis.strip(),
        findings=named,
        age=age_of(who),
        sex=sex_of(who),
        kind="osce",
    )


class Finding(NamedTuple):
    """A result, with the name of the group that it stands in."""

    group: str
    name: str
    text: str


def findings_of(found: Mapping[str, Any], above: str = "") -> Iterator[Finding]:
    """Yield every examination: a group with results of its own, and each named result."""
    for key, value in found.items():
        nameless = bool(above and PARTS.fullmatch(words(key)))
        name = f"{above} {words(key)}" if nameless else words(key)
        if isinstance(value, Mapping):
            if any(map(STANDING.fullmatch, value)):
                name = f"Orthostatic {name}"
            if any(not isinstance(part, Mapping) for part in value.values()):
                yield Finding(above, name, text_of(value))
            yield from findings_of(value, name)
        elif text_of(value) and not nameless:
            yield Finding(above, name, text_of(value))


def image_case(row: Record, number: int) -> PublishedCase:
    """Return the case of an image challenge that asks for a diagnosis."""
    question = str(row["question"])
    asked = LAST_QUESTION.search(question)
    if not asked or not ASKS_DIAGNOSIS.search(asked[0]):
        raise UnusableCase("ask for something other than a diagnosis")
    answers = row["answers"] if isinstance(row["answers"], list) else []
    right = [answer["text"] for answer in answers if answer.get("correct") is True]
    if len(right) != 1:
        raise UnusableCase("have no single right answer")
    summary = question[: asked.start()].strip()
    found = ITEM.findall(text_of(row["physical_exams"]))
    findings = {name.strip(): text.strip(" -") for name, text in found if text.strip(" -")}
    return PublishedCase(
        id=str(number),
        complaint=summary.split(". ")[0],
        summary=summary,
        diagnosis=right[0],
        findings=findings,
        age=age_of(summary),
        sex=sex_of(summary),
        kind="without the image",
    )


def vignette(row: Record, number: int) -> PublishedCase:
    """Return the case of a vignette."""
    diagnosis = text_of(row["correct_diagnosis"])
    who = text_of(row["demographics"])
    if not diagnosis:
        raise UnusableCase("have no diagnosis")
    parts = [f"{label}: {text_of(row[key])}" for key, label in TOLD.items() if row.get(key)]
    return PublishedCase(
        id=str(number),
        complaint=text_of(row["chief_complaints"]),
        summary="\n".join([who, *parts]),
        diagnosis=diagnosis,
        age=age_of(who),
        sex=sex_of(who),
    )


def choice(row: Record, number: int) -> PublishedCase:
    """Return the case of a question. The doctor knows the first item of the context at the start."""
    options = row["options"]
    if not isinstance(options, dict) or len(options) < 2:
        raise UnusableCase("have no right option")
    try:
        right = right_letters(row["answer_idx"], options)
    except (ValueError, TypeError):
        raise UnusableCase("have no right option") from None
    answer = row["answer"]
    told = {str(one).strip() for one in (answer if isinstance(answer, list) else [answer])}
    texts = {str(options[letter]).strip() for letter in right.split(", ")}
    if told != texts and not (len(texts) > 1 and all(text in str(answer) for text in texts)):
        raise UnusableCase("have an answer that is not the text of their option")
    facts = [NUMBER.sub("", fact).strip() for fact in row["facts"] or [] if isinstance(fact, str)]
    if not row["context"] or not any(facts):
        raise UnusableCase("have no facts")
    start = " ".join(str(row["context"][0]).split())
    known = "\n".join(filter(None, facts))
    return PublishedCase(
        id=str(row.get("id", number)),
        complaint=start,
        summary=known,
        diagnosis="; ".join(sorted(told)),
        age=age_of(known),
        sex=sex_of(known),
        kind="options",
        question=str(row["question"]).strip(),
        options={str(name): str(text) for name, text in options.items()},
        right=right,
    )


AGENTCLINIC = (
    Reader("AgentClinic (OSCE)", frozenset({"OSCE_Examination"}), osce_case),
    Reader(
        "AgentClinic (NEJM image challenges)",
        frozenset({"question", "patient_info", "physical_exams", "answers"}),
        image_case,
    ),
)
SYMPTOMCHECK = Reader(
    "symptomcheck-bench", frozenset({"correct_diagnosis", "demographics", *TOLD}), vignette
)
MEDIQ = Reader(
    "mediQ",
    frozenset({"question", "options", "answer", "answer_idx", "context", "facts"}),
    choice,
)
