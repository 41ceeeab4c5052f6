"""What validation found, added up row by row in a few bytes each: counts, repeated ids and questions, shared entities.

    tally = Tally()
    tally.add(mark_of(finding), file=0, row=7)
    tally.finish()

Ids, questions and entities are kept as 64-bit hashes in arrays, 45 bytes or so a row, so memory hardly grows with the
rows. Two different texts with the same hash are expected once in 10^9 files of 100,000 rows.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from data.questions.check import Finding, Note
from scoring.reference.text import words_only

VALID, NOT_CHECKABLE, INVALID = 0, 1, 2


@dataclass(frozen=True)
class Mark:
    """What is kept of a checked row; hashes are None where there is nothing to hash."""

    id: str
    task_type: str
    split: str
    has_answer: bool
    id_hash: int | None
    question_hash: int | None
    entity_hashes: list[int]
    problems: list[Note]
    unchecked: list[Note]


def mark_of(finding: Finding) -> Mark:
    """The mark of a finding; a row that is wrong in itself has only what can be read of it."""
    row, wrong = finding.row, {name for name, _ in finding.problems}
    texts = {name: "" if name in wrong else row.get(name, "") for name in ("id", "question", "task_type", "split")}
    question = words_only(texts["question"])
    return Mark(
        id=texts["id"],
        task_type=texts["task_type"] or "unknown",
        split=texts["split"],
        has_answer=bool(row.get("answer")),
        id_hash=_hash(texts["id"]) if texts["id"] else None,
        question_hash=_hash(question) if question else None,
        entity_hashes=[] if wrong & {"entities", "evidence"} else [_hash(one) for one in _entities(row)],
        problems=finding.problems,
        unchecked=finding.unchecked,
    )


def _entities(row: dict[str, Any]) -> set[str]:
    """The row's entities by name; without names, the rows its evidence cites."""
    names = {words_only(name) for name in json.loads(row.get("entities") or "[]")} - {""}
    cited = json.loads(row.get("evidence") or "[]") if not names else []
    return names or {f"{item.get('table')}\n{item.get('row_id')}" for item in cited}


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


@dataclass
class Tally:
    """The report being made. `problems` are {row, id, field, message}, with `file` when there are several files."""

    files: list[str]
    problems: list[dict[str, Any]] = field(default_factory=list)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._states = bytearray()
        self._places: tuple[array[int], array[int]] = array("H"), array("Q")  # file and row of each state
        self._types, self._type_names = array("H"), dict[str, int]()
        self._splits, self._split_names = array("H"), dict[str, int]()
        self._answered = bytearray()
        self._ids, self._questions = _Hashes(), _Hashes()
        self._entities = _Hashes()

    def add(self, mark: Mark, file: int, row: int) -> None:
        """Count one row. A row without a split belongs to the split of its file."""
        at = len(self._states)
        self._states.append(INVALID if mark.problems else NOT_CHECKABLE if mark.unchecked else VALID)
        self._places[0].append(file)
        self._places[1].append(row)
        self._types.append(_number(self._type_names, mark.task_type))
        split = _number(self._split_names, mark.split or f"\n{file}")
        self._splits.append(split)
        self._answered.append(mark.has_answer)
        for hashes, value in ((self._ids, mark.id_hash), (self._questions, mark.question_hash)):
            if value is not None:
                hashes.add(value, at)
        for value in mark.entity_hashes:
            self._entities.add(value, split)
        self.problems += [self._problem(at, mark.id, name, message) for name, message in mark.problems]
        self.reasons.update((name, _kind(message)) for name, message in mark.unchecked)

    def finish(self) -> dict[str, Any]:
        """The report: rows, valid, not_checkable, entity_overlap, problems, by_task_type."""
        for at, earlier in self._ids.repeated():
            self._repeated(at, "id", f"is already the id of {self._place(earlier)}")
        for at, earlier in self._questions.repeated():
            if self._splits[at] != self._splits[earlier]:
                self._repeated(at, "question", f"{self._place(earlier)}, of another split, asks the same")
        self.problems.sort(key=lambda problem: (problem.get("file", ""), problem["row"]))
        return {
            "rows": len(self._states),
            "valid": self._states.count(VALID),
            "not_checkable": self._states.count(NOT_CHECKABLE),
            "entity_overlap": self._entities.in_several(),
            "problems": self.problems,
            "by_task_type": self._by_task_type(),
        }

    def _repeated(self, at: int, name: str, message: str) -> None:
        self._states[at] = INVALID
        self.problems.append(self._problem(at, "", name, message))

    def _problem(self, at: int, key: str, name: str, message: str) -> dict[str, Any]:
        place: dict[str, Any] = {"file": self.files[self._places[0][at]]} if len(self.files) > 1 else {}
        return place | {"row": self._places[1][at], "id": key, "field": name, "message": message}

    def _place(self, at: int) -> str:
        file = f" of {self.files[self._places[0][at]]}" if len(self.files) > 1 else ""
        return f"row {self._places[1][at]}{file}"

    def _by_task_type(self) -> dict[str, dict[str, int]]:
        counts = Counter(zip(self._types, self._states, self._answered, strict=True))
        report = {}
        for name, number in sorted(self._type_names.items()):
            mine = {key[1:]: count for key, count in counts.items() if key[0] == number}
            by_state = [sum(count for key, count in mine.items() if key[0] == state) for state in range(3)]
            bare = sum(count for key, count in mine.items() if not key[1])
            report[name] = {
                "rows": sum(by_state),
                "valid": by_state[VALID],
                "not_checkable": by_state[NOT_CHECKABLE],
                "invalid": by_state[INVALID],
                "without_answer": bare,
            }
        return report


class _Hashes:
    """64-bit hashes, each with a number: the row or the split it came from."""

    def __init__(self) -> None:
        self.hashes, self.numbers = array("Q"), array("Q")

    def add(self, value: int, number: int) -> None:
        self.hashes.append(value)
        self.numbers.append(number)

    def _sorted(self) -> tuple[Any, Any]:
        import numpy

        hashes, numbers = numpy.frombuffer(self.hashes, "u8"), numpy.frombuffer(self.numbers, "u8")
        order = numpy.lexsort((numbers, hashes))
        return hashes[order], numbers[order]

    def repeated(self) -> list[tuple[int, int]]:
        """(number, number before it) of every hash that came again."""
        if not self.hashes:
            return []
        hashes, numbers = self._sorted()
        again = (hashes[1:] == hashes[:-1]).nonzero()[0]
        return sorted((int(numbers[at + 1]), int(numbers[at])) for at in again)

    def in_several(self) -> int:
        """How many hashes have more than one number."""
        if not self.hashes:
            return 0
        hashes, numbers = self._sorted()
        crossing = (hashes[1:] == hashes[:-1]) & (numbers[1:] != numbers[:-1])
        return len(set(hashes[1:][crossing].tolist()))


def _number(names: dict[str, int], name: str) -> int:
    """The name's number; names beyond what two bytes count share the last one."""
    if name not in names and len(names) < 2**16 - 1:
        names[name] = len(names)
    return names.get(name, 2**16 - 1)


def _kind(message: str) -> str:
    """The message without what differs from row to row, so that reasons can be counted."""
    return (
        message.split(":")[0]
        if ":" in message
        else " ".join("…" if word.isdigit() else word for word in message.split())
    )
