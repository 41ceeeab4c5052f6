"""How far two judges agree on yes-or-no and other named choices: counts, share, Cohen's kappa.

agreement = Agreement(("is_medical", "task_type"))
agreement.add({"is_medical": True, "task_type": "other"}, {"is_medical": True, "task_type": "drug_field"})
print(agreement.markdown())
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

NO_KAPPA = "n/a"
CONSTANT = (
    "kappa n/a: one of the two gave every row the same value, so agreement beyond chance is not defined "
    "(give the dropped rows as a further input to measure it).\n"
)

Pairs = Counter[tuple[Any, Any]]


class Agreement:
    """How often each pair of values was given, by field; memory grows with the number of different pairs."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self.pairs: dict[str, Pairs] = {name: Counter() for name in fields}

    def add(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
        """Count a row judged by both; returns the fields in which they differ."""
        for name, pairs in self.pairs.items():
            pairs[first[name], second[name]] += 1
        return [name for name in self.pairs if first[name] != second[name]]

    def markdown(self) -> str:
        """Rows, agreement and kappa of each field, and the disagreements, the most frequent first."""
        parts = [_table([("field", "rows", "agree", "share", "kappa"), *(_line(*item) for item in self.pairs.items())])]
        if any(kappa(pairs) is None for pairs in self.pairs.values()):
            parts.append(CONSTANT)
        differing = [
            (name, str(first), str(second), count)
            for name, pairs in self.pairs.items()
            for (first, second), count in pairs.items()
            if first != second
        ]
        if differing:
            differing.sort(key=lambda line: (-line[3], line[:3]))
            parts.append(_table([("field", "first", "second", "rows"), *differing]))
        return "\n".join(parts)


def kappa(pairs: Pairs) -> float | None:
    """Cohen's kappa (1960): (p_o - p_e) / (1 - p_e); None where a judge gave one value only."""
    first: Counter[Any] = Counter()
    second: Counter[Any] = Counter()
    for (one, other), count in pairs.items():
        first[one] += count
        second[other] += count
    if len(first) < 2 or len(second) < 2:
        return None
    rows = pairs.total()
    expected = sum(first[value] * second[value] for value in first) / rows**2
    return (_agreed(pairs) / rows - expected) / (1 - expected)


def _agreed(pairs: Pairs) -> int:
    return sum(count for (first, second), count in pairs.items() if first == second)


def _line(name: str, pairs: Pairs) -> tuple[str, ...]:
    rows, agreed, value = pairs.total(), _agreed(pairs), kappa(pairs)
    share = f"{agreed / rows:.1%}" if rows else NO_KAPPA
    return (name, f"{rows:,}", f"{agreed:,}", share, NO_KAPPA if value is None else f"{value:.3f}")


def _table(rows: list[tuple[Any, ...]]) -> str:
    """Markdown; the first row has the headings."""
    rows.insert(1, ("---",) * len(rows[0]))
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)
