"""What is known of common conditions: the four tables beside this file, read once and checked.

`phrases.toml` is what a patient may say, `complaints.toml` what is said first, `examinations.toml` what may be ordered
and `conditions.toml` the conditions; the head of each explains its columns. Invented patients are drawn from them.

    from data.conditions.table import load_tables
    python -m data.conditions.table     # counts, and how well the conditions of each complaint can be told apart
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import cache
from pathlib import Path
from typing import Any

from common.command import run_command
from data.conditions.check import TableError, check_tables
from data.conditions.records import Condition, Examination, Facet, Part, Phrase, Range, Spread, Tables

FOLDER = Path(__file__).parent
# Which file a table is in, and whether it is all of the file.
_FILES = {
    "general": "phrases", "symptoms": "phrases", "facets": "phrases", "complaints": "complaints",
    "examinations": "examinations", "departments": "conditions", "conditions": "conditions",
}  # fmt: skip
_WHOLE = ("complaints", "examinations")

Reader = Callable[[str, Any], Any]  # of where a value stands and the value as TOML has it


@cache
def load_tables(folder: Path = FOLDER) -> Tables:
    """The tables of a folder.

    Raises:
        TableError: a file missing or no TOML, a key unknown, missing, empty or of the wrong type, or what
            `check_tables` finds; the message names file and key.
    """
    files = {name: _toml(folder / f"{name}.toml") for name in dict.fromkeys(_FILES.values())}
    _join_words(files["phrases"])
    _name_single_parts(files["conditions"], files["examinations"])
    for file, content in files.items():
        known = [name for name, home in _FILES.items() if home == file]
        strange = [] if file in _WHOLE else [name for name in content if name not in known]
        _expect(f"{file}.toml", strange, not strange, f"only the tables {', '.join(known)}")
    read = {
        name: _READERS[Tables.__annotations__[name]](
            f"{file}.toml, {name}", files[file] if name in _WHOLE else files[file].get(name)
        )
        for name, file in _FILES.items()
    }
    check_tables(tables := Tables(**read))
    return tables


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TableError(f"{path} cannot be read: {error}") from None


def _join_words(phrases: dict[str, Any]) -> None:
    """Put the ask-words, a table of their own that keeps lines short, to the symptoms."""
    symptoms = _dict(phrases.get("symptoms"))
    for name, words in _dict(phrases.pop("asked", None)).items():
        _expect("phrases.toml, asked", name, name in symptoms, "a symptom")
        symptoms[name] = {**_dict(symptoms[name]), **_dict(words)}


def _name_single_parts(conditions: dict[str, Any], examinations: dict[str, Any]) -> None:
    """A finding that is one mean and sd is that of the examination's only part."""
    for condition in _dict(conditions.get("conditions")).values():
        findings = _dict(_dict(condition).get("examinations"))
        for name, finding in findings.items():
            parts = list(_dict(_dict(examinations.get(name)).get("parts")))
            if "mean" in _dict(finding) and len(parts) == 1:
                findings[name] = {parts[0]: finding}


def _dict(value: Any) -> dict[str, Any]:
    """A table, or none where the file has something else, which its reader refuses."""
    return value if isinstance(value, dict) else {}


def _record(kind: type) -> Reader:
    """A reader of one type of record: each field by the reader of its type."""
    known = {one.name: one for one in fields(kind)}
    needed = [one.name for one in known.values() if one.default is MISSING and one.default_factory is MISSING]

    def read(where: str, value: Any) -> Any:
        _expect(where, value, isinstance(value, dict), "a table")
        strange, missing = [name for name in value if name not in known], [name for name in needed if name not in value]
        _expect(where, strange, not strange, f"only the keys {', '.join(known)}")
        _expect(where, list(value), not missing, f"the key {' and '.join(missing)}")
        return kind(**{name: _READERS[str(known[name].type)](f"{where}.{name}", part) for name, part in value.items()})

    return read


def _each(read: Reader) -> Reader:
    def read_all(where: str, value: Any) -> dict[str, Any]:
        _expect(where, value, isinstance(value, dict) and bool(value), "a table with at least one key")
        return {name: read(f"{where}.{name}", part) for name, part in value.items()}

    return read_all


def _list(read: Reader) -> Reader:
    def read_all(where: str, value: Any) -> tuple[Any, ...]:
        _expect(where, value, isinstance(value, list) and bool(value), "a list with at least one value")
        return tuple(read(f"{where}[{index}]", part) for index, part in enumerate(value))

    return read_all


def _text(where: str, value: Any) -> str:
    _expect(where, value, isinstance(value, str) and (bool(value.strip()) or where.endswith(".unit")), "text")
    return value


def _number(where: str, value: Any) -> float:
    _expect(where, value, type(value) in (int, float), "a number")
    return value


def _share(where: str, value: Any) -> float:
    _expect(where, value, type(value) in (int, float) and 0 <= value <= 1, "a weight in [0, 1]")
    return value


def _ages(where: str, value: Any) -> tuple[int, int]:
    whole = isinstance(value, list) and len(value) == 2 and all(type(age) is int for age in value)
    _expect(where, value, whole and 0 <= value[0] < value[1], "[youngest, oldest] in years")
    return value[0], value[1]


def _spread_or_share(where: str, value: Any) -> Spread | float:
    return _READERS["Spread"](where, value) if isinstance(value, dict) else _share(where, value)


def _expect(where: str, seen: Any, holds: bool, expected: str) -> None:
    if not holds:
        raise TableError(f"{where}: expected {expected}, got {str(seen)[:80]!r}")


_READERS: dict[str, Reader] = {
    "str": _text, "float": _number, "int": _number, "Share": _share, "tuple[int, int]": _ages, "Texts": _list(_text),
    "Weights": _each(_share), "Mapping[str, Texts]": _each(_list(_text)), "Mapping[str, Weights]": _each(_each(_share)),
    "Mapping[str, Mapping[str, Spread | float]]": _each(_each(_spread_or_share)),
}  # fmt: skip
for _kind in (Spread, Phrase, Facet, Range, Part, Examination, Condition):
    _READERS[_kind.__name__] = _record(_kind)
    _READERS[f"Mapping[str, {_kind.__name__}]"] = _each(_READERS[_kind.__name__])
    _READERS[f"tuple[{_kind.__name__}, ...]"] = _list(_READERS[_kind.__name__])


def summarise() -> None:
    """Print the counts, and how often naive Bayes names the condition that patients of a complaint have: knowing the
    complaint alone, with age and sex, with the best question, with the best three, with everything."""
    from data.conditions.bayes import separability

    tables = load_tables()
    departments = {one.department for one in tables.conditions.values()}
    print(
        f"{len(tables.conditions)} conditions in {len(departments)} departments, {len(tables.complaints)} complaints, "
        f"{len(tables.symptoms)} symptoms, {len(tables.examinations)} examinations"
    )
    print("complaint       conditions  alone  age, sex  1 best  3 best    all  the best questions")
    for complaint in tables.complaints:
        found = separability(tables, complaint)
        shares = f"{found.alone:7.2f}{found.age_and_sex:10.2f}{found.one_best:8.2f}{found.three_best:8.2f}"
        print(
            f"{complaint:15}{len(tables.group(complaint)):11}{shares}{found.everything:7.3f}  {', '.join(found.best)}"
        )


if __name__ == "__main__":
    sys.exit(run_command("conditions", summarise))
