"""Draw questions about the invented hospital, each with gold program, gold SQL and the typed
answer.

A patient, drug, diagnosis, procedure or laboratory test that one split asks about occurs in no
question of another. Two templates are in the test file alone, and half of its other questions have
wordings that training lacks. An answer that many questions of a template would share is skipped, so
that a guess earns little.
"""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from string import Template
from typing import Any

from common.files import read_only_uri
from common.terminal import watched
from common.toml import table_beside

TEMPLATES: dict[str, dict[str, Any]] = table_beside(__file__, "hospital_templates.toml")
PREAMBLE = "import pandas as pd"  # before each template's program
ROWS = {"train": 960, "val": 96, "test": 320}
SHARES = {"train": 0.62, "val": 0.14, "test": 0.24}  # of the names that a slot may have
# The slots whose names belong to one split only, and the tables that list them.
NAMES = {
    "patient": "SELECT subject_id FROM patients",
    "drug": "SELECT DISTINCT drug FROM prescriptions",
    "lab": "SELECT label FROM d_labitems",
    "diagnosis": "SELECT short_title FROM d_icd_diagnoses",
    "procedure": "SELECT short_title FROM d_icd_procedures",
}
ALONE = 32  # rows of each template that only the test file has
MOST_ALIKE = {"boolean": 0.5}  # share of a template's rows with one answer,
MOST_ALIKE_ELSE = 0.25  # and of all other kinds
DIGITS = 4  # of a rounded gold number. In these all versions of SQLite add up alike
Row = dict[str, Any]


def draw_questions(
    database: Path, rows: Mapping[str, int] = ROWS, seed: int = 0
) -> dict[str, list[Row]]:
    """Return the rows of each split. The same arguments give the same rows.

    Raises ValueError: a template has too few values.
    """
    drawn: dict[str, list[Row]] = {split: [] for split in rows}
    with closing(sqlite3.connect(read_only_uri(database), uri=True)) as tables:
        split_of = {
            slot: divided(sorted(selected(tables, sql)), slot, seed) for slot, sql in NAMES.items()
        }
        for name, template in watched(TEMPLATES.items(), "drawing", "templates"):
            candidates = sorted(slots_of(tables, template["draw"]), key=str)
            for split, wanted in counts(name, rows).items():
                mine = [
                    each
                    for each in candidates
                    if {split_of[s][each[s]] for s in each.keys() & NAMES} == {split}
                ]
                Random(f"{seed}/{name}/{split}").shuffle(mine)
                drawn[split] += questions(tables, name, split, mine, wanted)
    return drawn


def selected(tables: sqlite3.Connection, sql: str) -> list[Any]:
    return [row[0] for row in tables.execute(sql)]


def slots_of(tables: sqlite3.Connection, sql: str) -> list[Row]:
    """Return all values that a template may be asked with, by slot."""
    cursor = tables.execute(sql)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def divided(names: Sequence[Any], slot: str, seed: int) -> dict[Any, str]:
    """Return the split of each name, in fixed shares."""
    mixed = Random(f"{seed}/{slot}").sample(names, len(names))
    end = 0.0
    split_of: dict[Any, str] = {}
    for split, share in SHARES.items():
        start = end
        end += share * len(names)
        split_of |= dict.fromkeys(mixed[round(start) : round(end)], split)
    return split_of


def counts(name: str, rows: Mapping[str, int]) -> dict[str, int]:
    """Return how many rows of a template each split has. The first templates get a remainder."""
    common = [each for each, template in TEMPLATES.items() if "only" not in template]
    if name not in common:
        return {split: ALONE for split in rows if split == TEMPLATES[name]["only"]}
    alone = sum(ALONE for template in TEMPLATES.values() if "only" in template)
    shared = {split: count - alone * (split == "test") for split, count in rows.items()}
    return {
        split: count // len(common) + (common.index(name) < count % len(common))
        for split, count in shared.items()
    }


def questions(
    tables: sqlite3.Connection, name: str, split: str, candidates: Sequence[Row], wanted: int
) -> Iterator[Row]:
    template = TEMPLATES[name]
    given = Counter[str]()
    most = max(2, int(wanted * MOST_ALIKE.get(template["kind"], MOST_ALIKE_ELSE)))
    for slots in candidates:
        number = given.total()
        if number == wanted:
            return
        row = question(tables, name, split, slots, number)
        gold = json.loads(row["gold"])
        if given[row["gold"]] < most and fit(gold["value"], row["question"], template):
            given[row["gold"]] += 1
            yield row
    if given.total() < wanted:
        raise ValueError(f"{name} has {given.total()} questions for {split}, {wanted} are wanted")


def fit(value: Any, question: str, template: Row) -> bool:
    """Return whether the answer has enough items, and no number of the question among them."""
    items = value if isinstance(value, list) else [value]
    own = set(re.findall(r"\d+", question))
    return template.get("least", 1) <= len(items) <= template.get("most", 1) and not own & set(
        map(str, items)
    )


def question(tables: sqlite3.Connection, name: str, split: str, slots: Row, number: int) -> Row:
    template = TEMPLATES[name]
    unseen = split == "test" and (number % 2 == 1 or not template["seen"])
    wordings = template["unseen" if unseen else "seen"]
    program, sql = (Template(template[key].strip()).substitute(slots) for key in ("program", "sql"))
    return {
        "id": f"ehr_demo/{split}/{name}/{number}",
        "task_set": "ehr_demo",
        "template": name,
        "difficulty": template["difficulty"],
        "wording": "unseen" if unseen else "seen",
        "note": "",
        "question": Template(wordings[number // 2 % len(wordings)]).substitute(slots),
        "files": re.findall(r'"/data/(\w+\.csv)"', program),
        "gold": json.dumps(gold_of(template, tables.execute(sql).fetchall())),
        "program": f"{PREAMBLE}\n{program}",
        "sql": sql,
    }


def gold_of(template: Mapping[str, Any], rows: Sequence[Sequence[Any]]) -> Row:
    shown = {
        key: template[key] for key in ("kind", "items", "tolerance", "ordered") if key in template
    }
    if template["kind"] == "table":
        return shown | {"value": [list(map(_rounded, row)) for row in rows]}
    if template["kind"] in ("set", "list"):
        return shown | {"value": [_rounded(row[0]) for row in rows]}
    [[value]] = rows
    return shown | {"value": bool(value) if template["kind"] == "boolean" else _rounded(value)}


def _rounded(value: Any) -> Any:
    return round(value, DIGITS) if isinstance(value, float) else value
