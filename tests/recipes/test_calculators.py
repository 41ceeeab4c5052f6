"""The published formulas against worked values, and the notes that are made of them."""

import json
import re
from datetime import date
from typing import Any

import pytest
from pyarrow import parquet

from common.settings import ROOT
from recipes.calculators import build
from recipes.calculators.formula_questions import ROWS, answered_by, formula_of
from tests.corpora import cases_of


def dated(value: Any) -> Any:
    return date.fromisoformat(value) if isinstance(value, str) else value


@pytest.mark.parametrize("case", cases_of(__file__, "worked_values"), ids=lambda case: case["name"])
def test_worked_values(case):
    """What a source or a textbook works out; scores are tried at both of their ends."""
    found = formula_of(case["name"])(*map(dated, case["inputs"]))
    wanted = dated(case["value"])
    assert found == (wanted if isinstance(wanted, date) else pytest.approx(wanted, abs=0.005))


def test_the_same_seed_gives_the_committed_bytes(tmp_path):
    assert build.main(["--out", str(tmp_path)]) == 0
    for split in ROWS:
        name = f"{split}.parquet"
        assert (tmp_path / name).read_bytes() == (ROOT / "data" / "calculators" / name).read_bytes()


def test_splits_differ_and_some_calculators_are_only_tested():
    folder = ROOT / "data" / "calculators"
    rows = {split: parquet.read_table(folder / f"{split}.parquet").to_pylist() for split in ROWS}
    templates = {split: {row["template"] for row in each} for split, each in rows.items()}
    assert len(templates["test"] - templates["train"]) == 4
    every = [row for each in rows.values() for row in each]
    assert len({row["note"] + row["question"] for row in every}) == len(every)
    for row in every:
        gold = json.loads(row["gold"])
        assert not answered_by(gold, f"{row['note']} {row['question']}")
        assert "A child" not in row["note"] or not re.search("years old|Height", row["note"])
        assert "anion gap" not in row["question"] or gold["value"] >= 2
        assert "metabolic acidosis" not in row["question"] or gold["value"] < 42.2
        assert gold["kind"] != "number" or gold["lower"] < gold["value"] < gold["upper"]
