"""Cases drawn from the tables: as many as asked for, no two alike, told in words, and solvable by
asking alone.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from common.settings import ROOT
from conditions.table import load_tables
from recipes.doctors.cases import main
from recipes.doctors.consultation_cases import ROWS

TABLES = load_tables()
FOLDER = ROOT / "data" / "consultation"


@pytest.fixture(scope="module")
def bundled():
    from pyarrow import parquet

    return {split: parquet.read_table(FOLDER / f"{split}.parquet").to_pylist() for split in ROWS}


def said(row: dict[str, Any]) -> set[str]:
    """Everything the patient may say, as it is worded."""
    return {row["prompt"][0]["content"], *json.loads(row["extra_info"]["facets"]).values()}


@pytest.mark.system
def test_the_bundled_files_are_what_the_command_makes(tmp_path):
    assert main(["consultation", "--out", str(tmp_path)]) == 0
    for split in ROWS:
        assert (tmp_path / f"{split}.parquet").read_bytes() == (
            FOLDER / f"{split}.parquet"
        ).read_bytes()


def test_unseen_rows_say_nothing_that_training_says(bundled):
    """But for wordings that fit a condition alone because all others name it."""
    known = set().union(*(said(row) for row in bundled["train"]))
    unseen = [row for row in bundled["test"] if row["extra_info"]["wording"] == "unseen"]
    assert len(unseen) == len(bundled["test"]) // 4
    shares = [len(said(row) & known) / len(said(row)) for row in unseen]
    assert sum(share == 0 for share in shares) >= 0.9 * len(unseen)
    assert all(row["prompt"][0]["content"] not in known for row in unseen)


def test_nothing_of_a_row_names_its_diagnosis(bundled):
    for row in (row for rows in bundled.values() for row in rows):
        condition = TABLES.conditions[row["extra_info"]["condition"]]
        told = [*said(row), row["reward_model"]["enhanced_description"]]
        assert not any(
            name in text for name in (condition.zh, *condition.aliases_zh) for text in told
        )


@pytest.mark.parametrize("rows", ["train=0", "other=3"])
def test_rows_that_cannot_be_made_are_a_wrong_usage(tmp_path, rows):
    with pytest.raises(SystemExit, match="2"):
        main(["consultation", "--out", str(tmp_path), "--rows", rows])


def test_files_are_not_replaced_unasked(tmp_path, capsys):
    (tmp_path / "val.parquet").touch()
    assert main(["consultation", "--out", str(tmp_path), "--rows", "val=2"]) == 2
    assert "--force" in capsys.readouterr().err
    assert main(["consultation", "--out", str(tmp_path), "--rows", "val=2", "--force"]) == 0
    assert main(["consultation", "--out", str(tmp_path), "--rows", "test=2"]) == 0, (
        "which replaces nothing"
    )
