"""Draw the consultation agent's cases from the tables of conditions: invented patients, no two alike.

Of a patient the doctor reads one sentence, which leaves at least three conditions open. Hidden are a value of every
facet and whether each symptom of the complaint's conditions is there, in the patient's own words. `distinguishing` is
what a doctor who knows the tables would ask for, one after the other, until one condition is left (data/conditions/
bayes.py); a patient whom that doctor would get wrong is not drawn. Some wordings of every phrase are kept for test rows
marked "unseen". The columns are those of DoctorAgent-RL's files. The same seed gives the same bytes.

    python -m data.conditions.cases --out data/consultation --force
    python -m data.conditions.cases --out my_cases --rows train=5000,val=500,test=1000 --seed 1
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from common.command import UsageError, new_parser, run_command
from common.files import refuse_existing, replacing
from data.conditions.asking import most_telling, posterior
from data.conditions.bayes import Patient, draw_patient
from data.conditions.records import Phrase, Tables
from data.conditions.table import load_tables

ROWS = {"train": 960, "val": 96, "test": 320}
UNSEEN = 0.25  # of the test rows
KEPT_BACK = 0.3  # of the wordings of a phrase, at least one
OPEN = 3  # conditions that a complaint leaves, at least
SURE, MOST_ASKED = 0.99, 4  # a doctor who is so sure asks no more, nor after so many questions
FORGOTTEN = 0.05  # of the facets that nobody needs
DIFFICULTY = {0: "easy", 1: "easy", 2: "medium"}  # by how much must be asked; "hard" above
ATTEMPTS = 200  # patients drawn for a row before the tables are blamed

Row = dict[str, Any]


class Wordings:
    """Which of a phrase's wordings a row may use: "seen" ones, or those kept back for "unseen" rows."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def of(self, phrase: Phrase, wording: str) -> list[str]:
        shuffled = sorted(phrase.lay)
        Random(f"{self.seed}/{phrase.zh}/{phrase.lay[0]}").shuffle(shuffled)
        kept = max(1, int(KEPT_BACK * len(shuffled))) if len(shuffled) > 1 else 0
        return shuffled[:kept] or shuffled if wording == "unseen" else shuffled[kept:]


def draw_cases(tables: Tables, rows: Mapping[str, int], seed: int) -> dict[str, list[Row]]:
    """Rows by split, each condition as often as every other; no two records of all splits are alike.

    Raises UsageError: the tables do not tell a condition from its neighbours, or leave fewer than three open.
    """
    small = [name for name in tables.complaints if len(tables.group(name)) < OPEN]
    if small:
        raise UsageError(f"{', '.join(small)}: fewer than {OPEN} conditions begin with it; add some to conditions.toml")
    random, wordings, index, seen = Random(seed), Wordings(seed), count(), set[str]()
    drawn: dict[str, list[Row]] = {}
    for split, wanted in rows.items():
        names = [name for name, _ in zip(_in_turn(tables, random), range(wanted), strict=False)]
        marks = _marks(wanted, random) if split == "test" else ["seen"] * wanted
        drawn[split] = [
            _new_row(tables, name, next(index), (wordings, mark), random, seen)
            for name, mark in zip(names, marks, strict=True)
        ]
    return drawn


def _in_turn(tables: Tables, random: Random) -> Iterator[str]:
    while True:
        yield from random.sample(list(tables.conditions), len(tables.conditions))


def _marks(wanted: int, random: Random) -> list[str]:
    unseen = int(UNSEEN * wanted)
    return random.sample(["unseen"] * unseen + ["seen"] * (wanted - unseen), wanted)


def _new_row(tables: Tables, name: str, index: int, words: tuple[Wordings, str], random: Random, seen: set[str]) -> Row:
    """A row whose record no row has yet."""
    for _ in range(ATTEMPTS):
        condition = tables.conditions[name]
        complaint = random.choice(condition.complaints)
        patient = draw_patient(tables, condition, random)
        asked = questions_for(tables, complaint, name, patient)
        record = json.dumps([complaint, patient], sort_keys=True)
        if asked is not None and record not in seen:
            seen.add(record)
            return _row(tables, name, complaint, patient, asked, index, words, random)
    raise UsageError(f"conditions.toml, {name}: its patients cannot be told from others with the same complaint")


def questions_for(tables: Tables, complaint: str, name: str, patient: Patient) -> list[str] | None:
    """What a doctor asks for who knows the tables; None where that leads to another condition, or to none."""
    group, asked = tables.group(complaint), list[str]()
    known: dict[str, Any] = {}
    while max((chances := posterior(tables, group, known)).values()) < SURE:
        if len(asked) == MOST_ASKED:
            return None
        asked.append(most_telling(tables, group, chances, known))
        known[asked[-1]] = patient[asked[-1]]
    return asked if chances[name] >= SURE else None


def _row(
    tables: Tables, name: str, complaint: str, patient: Patient, asked: Sequence[str], index: int,
    words: tuple[Wordings, str], random: Random,
) -> Row:  # fmt: skip
    wordings, wording = words
    condition, group = tables.conditions[name], tables.group(complaint)

    def told(phrase: Phrase) -> str:
        """A wording that does not name the condition, another of the phrase where the row's own all do."""
        names = (condition.zh, *condition.aliases_zh)
        fit = [text for text in phrase.lay if not any(name in text for name in names)]
        fit = [text for text in wordings.of(phrase, wording) if text in fit] or fit
        if not fit:
            raise UsageError(f"phrases.toml: every wording of {phrase.zh} names {condition.zh}; add another")
        return random.choice(fit)

    symptoms = {one: bool(patient[one]) for one in dict.fromkeys(one for c in group.values() for one in c.symptoms)}
    symptoms = dict(random.sample(sorted(symptoms.items()), len(symptoms)))  # what is told first says nothing
    facets = {
        facet: told(tables.facets[facet].values[str(patient[facet])])
        for facet in tables.facets
        if facet in asked or random.random() >= FORGOTTEN
    }
    facets |= {one: told(tables.symptoms[one]) for one, there in symptoms.items() if there}
    opening = told(tables.complaints[complaint])
    advice = "；".join(item.replace("*", "") for item in condition.advice_zh)
    return {
        "data_source": "medical_consultation",
        "prompt": [{"role": "user", "content": opening}],
        "reward_model": {
            "ground_truth": {"diagnosis": condition.zh, "recommendation": advice},
            "patient_information": [],
            "enhanced_description": _prose(tables, opening, patient, facets, symptoms),
        },
        "extra_info": {
            "index": index, "condition": name, "department": condition.department,
            "difficulty": DIFFICULTY.get(len(asked), "hard"), "complaint": complaint, "age": patient["age"],
            "sex": patient["sex"], "facets": _json(facets), "symptoms": _json(symptoms),
            "distinguishing": list(asked), "wording": wording,
        },
    }  # fmt: skip


def _prose(
    tables: Tables, opening: str, patient: Patient, facets: Mapping[str, str], symptoms: Mapping[str, bool]
) -> str:
    """The record as a text, without the diagnosis."""
    sex = "女" if patient["sex"] == "female" else "男"
    sides = "；".join(f"{tables.facets[name].zh}：{words}" for name, words in facets.items() if name in tables.facets)
    have = "；".join(facets[name] for name, there in symptoms.items() if there)
    lack = "、".join(tables.symptoms[name].zh for name, there in symptoms.items() if not there)
    return f"{sex}，{patient['age']}岁，说：“{opening}”{sides}。还有：{have or '无'}。没有：{lack or '无'}。"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_cases(rows: Sequence[Row], path: Path) -> None:
    """One parquet file with the reference's columns; complete or not at all."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    text, message = arrow.string(), arrow.struct({"role": arrow.string(), "content": arrow.string()})
    exchange = arrow.struct({"doctor_question": arrow.list_(text), "patient_response": arrow.list_(text)})
    truth = arrow.struct({"diagnosis": text, "recommendation": text})
    hidden = {
        "ground_truth": truth, "patient_information": arrow.list_(exchange), "enhanced_description": text,
    }  # fmt: skip
    extra = dict.fromkeys(rows[0]["extra_info"], text) | {
        "index": arrow.int64(), "age": arrow.int64(), "distinguishing": arrow.list_(text),
    }  # fmt: skip
    schema = arrow.schema(
        {
            "data_source": text,
            "prompt": arrow.list_(message),
            "reward_model": arrow.struct(hidden),
            "extra_info": arrow.struct(extra),
        }
    )
    with replacing(path) as draft:
        parquet.write_table(arrow.Table.from_pylist(list(rows), schema=schema), draft, compression="zstd")


def _rows(text: str) -> dict[str, int]:
    try:
        wanted = {name.strip(): int(number) for name, number in (part.split("=") for part in text.split(","))}
    except ValueError:
        wanted = {}
    if not wanted or wanted.keys() - ROWS.keys() or min(wanted.values()) < 1:
        raise argparse.ArgumentTypeError(f"expected train=N,val=N,test=N, got {text!r}")
    return wanted


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = new_parser(__doc__, prog="python -m data.conditions.cases")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for a file of each split")
    parser.add_argument("--rows", type=_rows, default=ROWS, help="train=N,val=N,test=N (default: 960, 96, 320)")
    parser.add_argument("--seed", type=int, default=0, help="same seed, same bytes (default: 0)")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    options = parser.parse_args(arguments)

    def body() -> None:
        options.out.mkdir(parents=True, exist_ok=True)
        files = {split: options.out / f"{split}.parquet" for split in options.rows}
        for file in files.values():
            refuse_existing(file, options.force)
        for split, rows in draw_cases(load_tables(), options.rows, options.seed).items():
            write_cases(rows, files[split])
            print(f"{files[split]}: {len(rows)} cases")

    return run_command("cases", body, afterwards="files not named here are as they were")


if __name__ == "__main__":
    sys.exit(main())
