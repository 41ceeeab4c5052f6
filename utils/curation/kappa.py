"""How far two judges agree on yes-or-no and other named choices: counts, share, Cohen's kappa.

agreement = Agreement(("is_medical", "task_type"))
agreement.add({"is_medical": True, "task_type": "other"}, {"is_medical": True, "task_type": "drug_field"})
print(agreement.markdown())
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HEADINGS = ("field", "rows", "agree", "share", "kappa")
NO_KAPPA = "n/a"
CONSTANT = (
    "kappa n/a: one of the two gave every row the same value, so agreement beyond chance is not defined "
    "(give the dropped rows as a further input to measure it)"
)


@dataclass
class FieldAgreement:
    """How often each pair of values was given to a row; memory grows with the number of different pairs."""

    pairs: Counter[tuple[Any, Any]] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        return self.pairs.total()

    @property
    def agreed(self) -> int:
        return sum(count for (first, second), count in self.pairs.items() if first == second)

    def kappa(self) -> float | None:
        """Cohen's kappa (1960): (p_o - p_e) / (1 - p_e); None where a judge gave one value only."""
        rows = self.rows
        first: Counter[Any] = Counter()
        second: Counter[Any] = Counter()
        for (one, other), count in self.pairs.items():
            first[one] += count
            second[other] += count
        if len(first) < 2 or len(second) < 2:
            return None
        expected = sum(first[value] * second[value] for value in first) / rows**2
        return (self.agreed / rows - expected) / (1 - expected)


class Agreement:
    """Agreement by field."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.fields = {name: FieldAgreement() for name in fields}

    def add(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
        """Count a row judged by both; returns the fields in which they differ."""
        for name, counted in self.fields.items():
            counted.pairs[first[name], second[name]] += 1
        return [name for name in self.fields if first[name] != second[name]]

    def table(self) -> list[tuple[str, ...]]:
        """A line of text cells for each field, under HEADINGS."""
        return [_line(name, counted) for name, counted in self.fields.items()]

    def disagreements(self) -> list[tuple[str, str, str, int]]:
        """Field, first value, second value, rows: the most frequent first."""
        found = [
            (name, str(first), str(second), count)
            for name, counted in self.fields.items()
            for (first, second), count in counted.pairs.items()
            if first != second
        ]
        return sorted(found, key=lambda line: (-line[3], line[:3]))

    @property
    def has_constant(self) -> bool:
        """Whether a kappa is missing."""
        return any(counted.kappa() is None for counted in self.fields.values())

    def markdown(self) -> str:
        """Both tables, as a Markdown text."""
        parts = [_markdown(HEADINGS, self.table())]
        if self.has_constant:
            parts.append(f"{CONSTANT}.\n")
        if self.disagreements():
            parts.append(_markdown(("field", "first", "second", "rows"), self.disagreements()))
        return "\n".join(parts)


def _line(name: str, counted: FieldAgreement) -> tuple[str, ...]:
    kappa = counted.kappa()
    share = f"{counted.agreed / counted.rows:.1%}" if counted.rows else NO_KAPPA
    return (name, f"{counted.rows:,}", f"{counted.agreed:,}", share, NO_KAPPA if kappa is None else f"{kappa:.3f}")


def _markdown(headings: tuple[str, ...], lines: list[Any]) -> str:
    rows = [headings, ("---",) * len(headings), *lines]
    return "".join("| " + " | ".join(str(cell) for cell in row) + " |\n" for row in rows)
