"""Draw questions about published formulas: an invented note, the gold program and the typed answer.

A note gives a formula's inputs and two facts that it does not need. The gold program is the formula
of calculators.toml and a call of it. Some calculators are in the test file alone.
"""

import inspect
import json
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from functools import cache
from random import Random
from string import Template
from typing import Any

from common.toml import table_beside

_TABLE = table_beside(__file__, "calculators.toml")
SAID: dict[str, dict[str, Any]] = _TABLE["said"]
CALCULATORS: dict[str, dict[str, Any]] = _TABLE["calculators"]
ROWS = {"train": 12, "val": 2, "test": 6}  # rows of each calculator
BESIDE = 2  # sentences of a note that the formula does not need
OF_ADULTS = {"age", "height"}  # whose ranges are an adult's
TOLERANCE = 0.6  # of the last requested decimal, so that a rounded answer is right
Row = dict[str, Any]


def draw_questions(rows: Mapping[str, int] = ROWS, seed: int = 0) -> dict[str, list[Row]]:
    """Return the rows of each split. The same arguments give the same rows."""
    return {
        split: [
            question(name, split, number, Random(f"{seed}/{name}/{split}/{number}"))
            for name, calculator in CALCULATORS.items()
            if calculator.get("only", split) == split
            for number in range(count)
        ]
        for split, count in rows.items()
    }


def question(name: str, split: str, number: int, random: Random) -> Row:
    """Return one row. No number that can be read in it is its answer."""
    calculator = CALCULATORS[name]
    function = formula_of(name)
    while True:
        given = {each: drawn(name, each, random) for each in inspect.signature(function).parameters}
        value = function(**given)
        least, most = calculator.get("possible", (value, value))
        gold = gold_of(value, calculator)
        note = note_of(name, given, random)
        if least <= value <= most and not answered_by(gold, f"{note} {calculator['question']}"):
            break
    return {
        "id": f"calculators/{split}/{name}/{number}",
        "task_set": "calculators",
        "template": name,
        "difficulty": difficulty_of(len(given)),
        "wording": "unseen" if "only" in calculator else "seen",
        "note": note,
        "question": f"{calculator['question']}{asked_for(calculator)}",
        "files": [],
        "gold": json.dumps(gold),
        "program": program_of(name, given),
        "sql": "",
    }


def difficulty_of(inputs: int) -> str:
    if inputs < 3:
        return "easy"
    return "medium" if inputs < 5 else "hard"


def drawn(name: str, each: str, random: Random) -> Any:
    said = SAID[CALCULATORS[name].get("says", {}).get(each, each)]
    if "dates" in said:
        first, last = (date(year, 1, 1) for year in said["dates"])
        return first + timedelta(days=random.randrange((last - first).days))
    if "choices" in said:
        return random.randrange(len(said["choices"])) + 1  # points, from 1
    if "yes" in said:
        return random.random() < 0.5
    low, high = CALCULATORS[name].get("given", {}).get(each, said["range"])
    value = round(random.uniform(low, high), said["decimals"])
    return value if said["decimals"] else int(value)


def note_of(name: str, given: Mapping[str, Any], random: Random) -> str:
    """Return sentences, in any order, about all inputs and some that the formula does not take."""
    called = {
        CALCULATORS[name].get("says", {}).get(each, each): value for each, value in given.items()
    }
    related = {
        *given,
        *called,
        *(each for each in SAID if each.startswith(("urea", "fasting", "child", "meld"))),
    }
    known = sorted(each for each, said in SAID.items() if "range" in said and each not in related)
    beside = random.sample(known, BESIDE)
    while "child_weight" in called and not OF_ADULTS.isdisjoint(beside):
        beside = random.sample(known, BESIDE)
    sentences = [sentence(each, value) for each, value in called.items()]
    sentences += [sentence(each, drawn(name, each, random)) for each in beside]
    return " ".join(random.sample(sentences, len(sentences)))


def sentence(each: str, value: Any) -> str:
    said = SAID[each]
    if "choices" in said:
        return said["choices"][value - 1]
    if "yes" in said:
        return said["yes" if value else "no"]
    return Template(said["text"]).substitute(value=value)


def gold_of(value: Any, calculator: Mapping[str, Any]) -> Row:
    """Return the typed answer. A number gets both its limits."""
    if isinstance(value, date):
        return {"kind": "date", "value": value.isoformat()}
    if "decimals" not in calculator:
        return {"kind": "integer", "value": value}
    away = TOLERANCE * 10 ** -calculator["decimals"]
    value = round(value, 6)
    return {
        "kind": "number",
        "value": value,
        "lower": round(value - away, 6),
        "upper": round(value + away, 6),
    }


def answered_by(gold: Row, text: str) -> bool:
    """Return whether a number of the text is a right answer."""
    if gold["kind"] == "date":
        return False
    lower, upper = (
        float(gold[limit if limit in gold else "value"]) for limit in ("lower", "upper")
    )
    return any(lower <= float(each) <= upper for each in re.findall(r"\d+(?:\.\d+)?", text))


def asked_for(calculator: Mapping[str, Any]) -> str:
    decimals = calculator.get("decimals")
    return "" if decimals is None else f" Give it to {TOLERANCE * 10**-decimals:.{decimals + 1}f}."


@cache
def formula_of(name: str) -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec(CALCULATORS[name]["formula"], names)
    function: Callable[..., Any] = names[name]
    return function


def program_of(name: str, given: Mapping[str, Any]) -> str:
    call = ", ".join(f"{each}={value}" for each, value in map(_written, given.items()))
    return f"{CALCULATORS[name]['formula']}print({name}({call}))"


def _written(argument: tuple[str, Any]) -> tuple[str, Any]:
    name, value = argument
    return name, f'date.fromisoformat("{value}")' if isinstance(value, date) else value
