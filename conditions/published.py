"""Readers of public test sets, each recognised by the keys of its rows.

AgentClinic (MIT, https://github.com/SamuelSchmidgall/AgentClinic): OSCE examinations made from
MedQA, and image challenges, which are read without their image. symptomcheck-bench (MIT,
https://github.com/medaks/symptomcheck-bench): histories with a diagnosis, and no examinations.
mediQ (CC BY 4.0, https://github.com/stellalisy/mediQ): a question with options, and the atomic
facts that a patient answers from.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.command import UsageError

AGE = re.compile(
    r"(?<!\d)(?<!\d[./])(\d{1,3})(?:[.½]\d*|[ -]1/2)?[ -]?(year|month|week|day)s?[ -]?old",
    re.IGNORECASE,
)
IN_A_YEAR = {"year": 1, "month": 12, "week": 52, "day": 365}
SEX = re.compile(
    r"\b(?:(?P<female>female|woman|girl|lady)|(?P<male>male|man|boy|gentleman))\b", re.IGNORECASE
)

HISTORY = (
    "History", "Symptoms", "Past_Medical_History", "Social_History", "Family_History",
    "Review_of_Systems", "Current_Medications", "Medications", "Drug_History", "Allergies",
)  # fmt: skip
# Names that say nothing without the name above them.
PARTS = re.compile(
    r"(findings?|results?|impression|interpretation|levels?|value|appearance|inspection|palpation"
    r"|auscultation|percussion|description|comments?|other|histopathology|microscopy|analysis"
    r"|units?|(reference|normal)? ?range|flag)",
    re.IGNORECASE,
)
# Kinds of images and samples: the names below them say of what
KINDS = re.compile(
    r"(ct|mri?|pet|x-?ray|ultrasound|radiograph|biopsy|culture)s?(?: scans?)?", re.IGNORECASE
)
# Names of the column of names in a table
NAMES = re.compile(
    r"(?:(?:lab|test|exam|item|analyte)[ _]?)?(?:test|exam(?:ination)?|item|analyte|name|label|study"
    r"|parameter|panel|investigation)|(?:检[验查]|项目)?(?:项目|名称|指标)",
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

Record = Mapping[str, Any]


class UnusableCase(ValueError):
    """A row that cannot be played. Its text is the reason, the same for all rows alike."""


@dataclass(frozen=True)
class PublishedCase:
    """A patient with one gold diagnosis.

    complaint: what the patient says first. summary: what is known before anything is examined.
    findings: results by examination. about: the text that states age and sex. kind: the part of the
    set that scores are for. question, options, right: what is asked, answers by letter, the right
    letter or letters ("A, C").
    """

    id: str
    complaint: str
    summary: str
    diagnosis: str
    about: str
    findings: Mapping[str, str] = field(default_factory=dict)
    kind: str = "all"
    question: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    right: str = ""

    @property
    def age(self) -> int | None:
        """The age in years that is stated first, 0 for an infant, None where none is stated."""
        found = AGE.search(self.about)
        return int(found[1]) // IN_A_YEAR[found[2].lower()] if found else None

    @property
    def sex(self) -> str | None:
        """The sex that is stated first, "female" or "male"."""
        found = SEX.search(self.about)
        return found and found.lastgroup


def sex_in(row: Record) -> str | None:
    """Return what a row calls the sex. Raises ValueError: neither "female" nor "male"."""
    sex = row.get("sex") or None
    if sex not in (None, "female", "male"):
        raise ValueError(f"sex: expected female or male, got {sex!r}")
    return sex


@dataclass(frozen=True)
class Reader:
    """How one set is read: the keys every row has, and a row's case (raises UnusableCase)."""

    name: str
    keys: frozenset[str]
    read: Callable[[Record, int], PublishedCase]


def case_rows(
    rows: list[dict[str, Any]],
    path: str,
    readers: Sequence[Reader],
    row_of: Callable[[PublishedCase, str], dict[str, Any]],
    names: Sequence[str],
    kind: str,
) -> list[dict[str, Any]]:
    """Return the rows of a file of cases, each with `id` and `task_type`.

    names: columns of `extra_info` that may name a row. kind: the column of its task type. Raises
    UsageError: rows of several public sets, or of one and none is usable.
    """
    reader = next((reader for reader in readers if reader.keys <= rows[0].keys()), None)
    if reader:
        return [row_of(case, reader.name) for case in _cases(rows, path, reader)]
    given = []
    for number, row in enumerate(rows):
        extra = row.get("extra_info")
        known = extra if isinstance(extra, Mapping) else {}
        row.setdefault("task_type", known.get(kind) or "unknown")
        own = (str(known[name]) for name in names if known.get(name) is not None)
        given.append(next(own, str(number)))
    often = Counter(given)
    for number, (name, row) in enumerate(zip(given, rows, strict=True)):
        row.setdefault("id", name if often[name] == 1 else f"{name}/{number}")
    return rows


def _cases(rows: Sequence[Record], path: str, reader: Reader) -> list[PublishedCase]:
    cases: list[PublishedCase] = []
    unusable: Counter[str] = Counter()
    for number, row in enumerate(rows, 1):
        missing = ", ".join(sorted(reader.keys - row.keys()))
        if missing:
            seen = f"{path}, row {number} lacks {missing}; the rows before it are of {reader.name}"
            raise UsageError(f"{seen}, and a file holds one set")
        try:
            cases.append(reader.read(row, number))
        except UnusableCase as error:
            unusable[str(error)] += 1
    found = f"recognised as {reader.name}: {len(cases)} rows are usable"
    if unusable:
        reasons = ", ".join(f"{count} {reason}" for reason, count in unusable.most_common())
        found += f"; {unusable.total()} are not: {reasons}"
    if not cases:
        raise UsageError(f"{path} has no usable row; {found}")
    print(f"{path}: {found}", file=sys.stderr)
    return cases


def right_letters(given: Any, options: Mapping[str, str]) -> str:
    """Return the letters of the right options in order: "A, C" for "CA", "A,C" and ["A", "C"].
    Raises ValueError: there are none, or one is no option's.
    """
    found = {*re.findall(r"\w", given if isinstance(given, str) else ",".join(given))}
    if not found or not found <= {*options}:
        raise ValueError(f"expected letters of the options {', '.join(options)}, got {given!r}")
    return ", ".join(sorted(found))


def text_of(value: Any) -> str:
    """Return nested findings as text: a line for each name, "; " between items of a list."""
    if isinstance(value, Mapping):
        parts = zip(value, map(text_of, value.values()), strict=True)
        return "\n".join(f"{words(name)}: {text}" for name, text in parts if text)
    if isinstance(value, list):
        return "; ".join(filter(None, map(text_of, value)))
    return "" if value is None else str(value).strip()


def words(name: str) -> str:
    """Return a key as a reader writes it: "Chest_X-ray" is "Chest X-ray"."""
    return " ".join(name.replace("_", " ").split())


def osce_case(row: Record, number: int) -> PublishedCase:
    """Return an OSCE case: the patient's part is the summary, the rest are findings."""
    osce = row["OSCE_Examination"]
    osce = osce if isinstance(osce, Mapping) else {}
    patient = osce.get("Patient_Actor")
    diagnosis = osce.get("Correct_Diagnosis")
    if not isinstance(diagnosis, str) or not diagnosis.strip():
        raise UnusableCase("have no diagnosis")
    if not isinstance(patient, Mapping):
        raise UnusableCase("have no patient")
    who = text_of(patient.get("Demographics") or "")
    recorded = [f"{words(name)}: {text_of(patient[name])}" for name in HISTORY if patient.get(name)]
    found = list[tuple[str, str, str]]()
    for part in ("Physical_Examination_Findings", "Test_Results"):
        findings = table_of(osce.get(part)) or osce.get(part) or {}
        if isinstance(findings, str):
            findings = {part: findings}
        if not isinstance(findings, Mapping):
            raise UnusableCase(f"have {words(part)} without names")
        found += findings_of(findings)
    often = Counter(name for _, name, _ in found)
    named = dict[str, str]()
    for group, own, text in found:
        name = f"{group} {own}".strip() if often[own] > 1 else own
        named[name] = f"{named[name]}; {text}" if name in named else text
    symptoms = patient.get("Symptoms")
    complaint = symptoms.get("Primary_Symptom") if isinstance(symptoms, Mapping) else symptoms
    return PublishedCase(
        id=str(number),
        complaint=text_of(complaint or "") or text_of(patient.get("History") or ""),
        summary="\n".join([who, *recorded]),
        diagnosis=diagnosis.strip(),
        about=who,
        findings=named,
        kind="osce",
    )


def findings_of(found: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield every examination, a group with results of its own and each named result: the name of
    the group that it stands in, its own, and its text.
    """
    for key, given in found.items():
        value = table_of(given) or given
        nameless = bool(above and PARTS.fullmatch(words(key)))
        kind = KINDS.fullmatch(above)
        further = nameless or (kind and kind[1].lower() not in key.lower())
        name = f"{above} {words(key)}" if further else words(key)
        if isinstance(value, Mapping):
            if any(map(STANDING.fullmatch, value)):
                name = f"Orthostatic {name}"
            if any(not isinstance(part, Mapping) for part in value.values()):
                yield above, name, text_of(value)
            yield from findings_of(value, name)
        elif text_of(value) and not nameless:
            yield above, name, text_of(value)


def table_of(rows: Any) -> dict[str, list[str]]:
    """Return a list of objects, the rows of a table, by their names, or {} if one lacks it or more."""
    found = dict[str, list[str]]()
    for row in rows if isinstance(rows, list) else ():
        names = [key for key in row if NAMES.fullmatch(key)] if isinstance(row, Mapping) else []
        name = row[names[0]] if names else None
        if not isinstance(name, str) or not name.strip() or len(row) == 1:
            return {}
        rest = [text_of({key: value}) for key, value in row.items() if key != names[0]]
        found.setdefault(name.strip(), []).append(text_of(rest))
    return found


def image_case(row: Record, number: int) -> PublishedCase:
    """Return the case of an image challenge that asks for a diagnosis."""
    question = str(row["question"])
    asked = LAST_QUESTION.search(question)
    if not asked or not ASKS_DIAGNOSIS.search(asked[0]):
        raise UnusableCase("ask for something other than a diagnosis")
    named = [answer for answer in _items_of(row["answers"]) if isinstance(answer, Mapping)]
    right = [text_of(answer.get("text")) for answer in named if answer.get("correct") is True]
    if len(right) != 1 or not right[0]:
        raise UnusableCase("have no single right answer")
    summary = question[: asked.start()].strip()
    found = ITEM.findall(text_of(row["physical_exams"]))
    findings = {name.strip(): text.strip(" -") for name, text in found if text.strip(" -")}
    return PublishedCase(
        id=str(number),
        complaint=summary.split(". ")[0],
        summary=summary,
        diagnosis=right[0],
        about=summary,
        findings=findings,
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
        about=who,
    )


def _items_of(value: Any) -> list[Any]:
    if isinstance(value, str):
        return value.splitlines()
    return value if isinstance(value, list) else []


def choice(row: Record, number: int) -> PublishedCase:
    """Return the case of a question. The doctor knows the first item of the context at the start."""
    options = row["options"]
    try:
        right = right_letters(row["answer_idx"], options)
    except (ValueError, TypeError):
        right = ""
    if not right or not isinstance(options, dict) or len(options) < 2:
        raise UnusableCase("have no right option")
    answer = row["answer"]
    told = {str(one).strip() for one in (answer if isinstance(answer, list) else [answer])}
    texts = {str(options[letter]).strip() for letter in right.split(", ")}
    if told != texts and not (len(texts) > 1 and all(text in str(answer) for text in texts)):
        raise UnusableCase("have an answer that is not the text of their option")
    context = _items_of(row["context"])
    facts = [NUMBER.sub("", one).strip() for one in _items_of(row["facts"]) if isinstance(one, str)]
    known = "\n".join(filter(None, facts))
    if not context or not known:
        raise UnusableCase("have no facts")
    return PublishedCase(
        id=str(row.get("id", number)),
        complaint=" ".join(str(context[0]).split()),
        summary=known,
        diagnosis="; ".join(sorted(told)),
        about=known,
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
