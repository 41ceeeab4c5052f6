"""The published formulas against worked values, and the notes that are made of them."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT
from recipes.calculators import build
from recipes.calculators.formula_questions import ROWS, answered_by, formula_of

# What a source or a textbook works out. Scores are tried at both of their ends, as their papers
# give them.
WORKED: list[tuple[str, tuple[Any, ...], Any]] = [
    ("body_mass_index", (68, 165), 24.98),  # the example of the Centers for Disease Control
    ("body_surface_mosteller", (80, 180), 2.0),
    ("body_surface_dubois", (70, 170), 1.81),  # as on Du Bois' nomogram
    ("ideal_body_weight", (152.4, True), 45.5),
    ("ideal_body_weight", (177.8, False), 73.0),  # ten inches above them
    ("mean_arterial_pressure", (120, 80), 93.33),
    ("shock_index", (70, 140), 0.5),
    ("qtc_bazett", (360, 100), 464.76),
    ("qtc_fridericia", (360, 100), 426.83),
    # At 72 kg and 1 mg/dL it is 140 less the age.
    ("creatinine_clearance", (60, 72, 1.0, False), 80),
    ("creatinine_clearance", (60, 72, 1.0, True), 68),
    ("gfr_mdrd", (1.0, 50, False), 79.09),
    ("gfr_mdrd", (1.0, 50, True), 58.69),
    ("gfr_ckd_epi", (0.9, 50, False), 104.05),
    ("gfr_ckd_epi", (1.1, 50, False), 81.78),  # 82 where results are whole numbers
    ("gfr_ckd_epi", (0.7, 50, True), 105.30),
    ("sodium_excretion", (20, 140, 100, 1.0), 0.14),
    ("anion_gap", (140, 104, 24), 12),
    ("corrected_anion_gap", (140, 104, 24, 2.4), 17),  # 2.5 for each g/dL
    ("corrected_calcium", (8.0, 2.0), 9.6),
    ("corrected_sodium", (130, 600), 138),  # 1.6 for each 100 mg/dL
    ("osmolality", (140, 90, 14), 290),
    ("water_deficit", (70, 160), 6.0),
    ("expected_pco2", (10,), 23.76),
    # Egan's workbook: an alveolar pressure of 99.73 on room air.
    ("alveolar_gradient", (21, 40, 90), 9.73),
    ("ldl_friedewald", (200, 50, 150), 120),
    ("homa_ir", (5, 4.5), 1.0),  # the model's healthy young adult
    ("apri", (80, 40, 100), 2.0),
    ("fib4", (50, 100, 100, 250), 2.0),
    ("meld", (1.0, 1.0, 1.0), 6),
    ("meld", (3.8, 2.26, 1.77), 26),
    ("meld", (3.59, 1.99, 1.3), 21),
    ("meld", (2.0, 1.5, 9.0), meld_at_four := 27),
    ("meld", (2.0, 1.5, 4.0), meld_at_four),
    ("meld_sodium", (20, 140), 20),  # a normal sodium adds nothing
    ("meld_sodium", (20, 125), 27.5),
    ("child_pugh", (1.0, 4.0, 1.0, 1, 1), 5),
    ("child_pugh", (2.5, 3.0, 2.0, 2, 2), 10),
    ("child_pugh", (4.0, 2.0, 3.0, 3, 3), 15),
    ("glasgow_coma", (1, 1, 1), 3),
    ("glasgow_coma", (4, 5, 6), 15),
    ("curb65", (False, 7.0, 29, 90, 61, 64), 0),
    ("curb65", (True, 7.1, 30, 89, 61, 65), 5),
    ("cha2ds2_vasc", (64, False, False, False, False, False, False), 0),
    ("cha2ds2_vasc", (65, False, False, False, False, False, False), 1),
    ("cha2ds2_vasc", (75, True, True, True, True, True, True), 9),
    ("wells_embolism", (False, False, 100, False, False, False, False), 0),
    ("wells_embolism", (True, True, 101, True, True, True, True), 12.5),
    ("centor", (False, False, False, True), 0),
    ("centor", (True, True, True, False), 4),
    ("qsofa", (21, 101, False), 0),
    ("qsofa", (22, 100, True), 3),
    ("daily_fluid", (15,), 1250),
    ("daily_fluid", (25,), 1600),
    ("burn_fluid", (70, 40), 11_200),
    ("due_date", (date(2020, 5, 8),), date(2021, 2, 12)),
]


@pytest.mark.parametrize(
    ("name", "inputs", "value"), WORKED, ids=[f"{name}{inputs}" for name, inputs, _ in WORKED]
)
def test_worked_values(name: str, inputs: tuple[Any, ...], value: Any) -> None:
    found = formula_of(name)(*inputs)
    assert found == (value if isinstance(value, date) else pytest.approx(value, abs=0.005))


def test_the_same_seed_gives_the_committed_bytes(tmp_path: Path) -> None:
    assert build.main(["--out", str(tmp_path)]) == 0
    for split in ROWS:
        name = f"{split}.parquet"
        assert (tmp_path / name).read_bytes() == (ROOT / "data" / "calculators" / name).read_bytes()


def test_splits_differ_and_some_calculators_are_only_tested() -> None:
    from pyarrow import parquet

    rows = {
        split: parquet.read_table(ROOT / f"data/calculators/{split}.parquet").to_pylist()
        for split in ROWS
    }
    notes = [row["note"] + row["question"] for each in rows.values() for row in each]
    assert len(set(notes)) == len(notes)
    templates = {split: {row["template"] for row in each} for split, each in rows.items()}
    assert len(templates["test"] - templates["train"]) == 4
    for row in (row for each in rows.values() for row in each):
        gold = json.loads(row["gold"])
        assert not answered_by(gold, f"{row['note']} {row['question']}")
        assert gold["kind"] != "number" or gold["lower"] < gold["value"] < gold["upper"]
