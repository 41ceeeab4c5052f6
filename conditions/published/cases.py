"""A case of a public test set in one form, and the rows of a file whose set is recognised."""

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.command import UsageError

AGE = re.compile(r"(\d{1,3})[ -]?(year|month|week|day)s?[ -]?old", re.IGNORECASE)
SEXES = {
    "female": re.compile(r"\b(?:female|woman|girl|lady)\b", re.IGNORECASE),
    "male": re.compile(r"\b(?:male|man|boy|gentleman)\b", re.IGNORECASE),
}

Record = Mapping[str, Any]


class UnusableCase(ValueError):
    """A row that cannot be played. Its text is the reason, the same for all rows alike."""


@dataclass(frozen=True)
class PublishedCase:
    """A patient with one gold diagnosis.

    complaint: what the patient says first. summary: what is known before anything is examined.
    findings: results by examination. age: in years. sex: "female" or "male". None: not stated.
    kind: the part of the set that scores are for. question, options, right: what is asked, answers
    by letter, the right letter or letters ("A, C").
    """

    id: str
    complaint: str
    summary: str
    diagnosis: str
    findings: Mapping[str, str] = field(default_factory=dict)
    age: int | None = None
    sex: str | None = None
    kind: str = "all"
    question: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    right: str = ""


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
        own = [str(known[name]) for name in names if known.get(name) is not None]
        given.append(own[0] if own else str(number))
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
        found = f"{found}; {unusable.total()} are not: {reasons}"
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
        return "\n".join(f"{words(name)}: {text_of(part)}" for name, part in value.items() if part)
    if isinstance(value, list):
        return "; ".join(text_of(part) for part in value if part)
    return "" if value is None else str(value).strip()


def words(name: str) -> str:
    """Return a key as a reader writes it: "Chest_X-ray" is "Chest X-ray"."""
    return " ".join(name.replace("_", " ").split())


def age_of(text: str) -> int | None:
    """Return the age in years that a text states first, or 0 for an infant, or None where it does not."""
    found = AGE.search(text)
    if not found:
        return None
    return int(found[1]) if found[2].lower() == "year" else 0


def sex_of(text: str) -> str | None:
    """Return the sex that a text states first."""
    found = [
        (match.start(), sex) for sex, pattern in SEXES.items() if (match := pattern.search(text))
    ]
    return min(found)[1] if found else None
