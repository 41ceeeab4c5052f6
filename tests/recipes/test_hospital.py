"""The invented hospital and its questions: what is committed is what the seed gives."""

import sqlite3
from collections import Counter
from contextlib import closing

import pytest
from pyarrow import parquet

from common.settings import ROOT
from recipes.hospital import build, questions
from recipes.hospital.hospital import COLUMNS, DATABASE
from recipes.hospital.hospital_questions import NAMES, ROWS, TEMPLATES, divided, selected
from tests.corpora import cases_of

TABLES = ROOT / "data" / "ehr" / "tables"
CODE = ROOT / "data" / "code"


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ehr") / "tables"
    assert build.main(["--out", str(folder)]) == 0
    return folder


@pytest.fixture
def hospital():
    with closing(sqlite3.connect(f"file:{TABLES / DATABASE}?mode=ro", uri=True)) as database:
        yield database


# The largest single dose, its unit and the ways it is given, as a formulary has them.
FORMULARY = cases_of(__file__, "formulary")


def test_a_pharmacist_would_dispense_every_prescription(hospital):
    given = hospital.execute(
        "SELECT DISTINCT drug, dose_val_rx, dose_unit_rx, route FROM prescriptions"
    ).fetchall()
    listed = {(drug, unit, route): most for drug, unit, route, most in FORMULARY}
    known = {drug for drug, *_ in listed}
    assert {drug for drug, *_ in given} >= known
    for drug, dose, unit, route in given:
        most = listed.get((drug, unit, route), 0 if drug in known else float("inf"))
        assert 0 < float(dose) <= most, (drug, dose, unit, route)


@pytest.mark.parametrize("impossible", cases_of(__file__, "impossible_rows"))
def test_no_row_is_impossible(hospital, impossible):
    assert hospital.execute(impossible).fetchall() == []


def rows_of(split: str) -> list[dict]:
    return parquet.read_table(CODE / f"{split}.parquet").to_pylist()


@pytest.mark.system
def test_the_same_seed_gives_the_committed_bytes(rebuilt):
    assert {path.name for path in rebuilt.iterdir()} == {path.name for path in TABLES.iterdir()}
    for name in [f"{table}.csv" for table in COLUMNS]:
        assert (rebuilt / name).read_bytes() == (TABLES / name).read_bytes(), name
    versions = [(folder / DATABASE).read_bytes()[96:100] for folder in (rebuilt, TABLES)]
    if versions[0] == versions[1]:  # of the SQLite that wrote it
        assert (rebuilt / DATABASE).read_bytes() == (TABLES / DATABASE).read_bytes()


@pytest.mark.nightly
def test_the_same_seed_gives_the_committed_questions(tmp_path):
    assert questions.main(["--out", str(tmp_path)]) == 0
    for name in [f"{split}.parquet" for split in ROWS]:
        assert (tmp_path / name).read_bytes() == (CODE / name).read_bytes()


def test_a_hospital_that_is_too_small_is_named(tmp_path, capsys):
    small, out = str(tmp_path / "small"), tmp_path / "out"
    assert build.main(["--out", small, "--patients", "30"]) == 0
    assert questions.main(["--out", str(out), "--tables", small]) == 1
    assert "too small a hospital" in capsys.readouterr().err
    assert questions.main(["--out", str(out), "--tables", str(out)]) == 1
    assert "needs a hospital.db" in capsys.readouterr().err
    assert not list(out.iterdir())


def test_splits_share_no_name_and_two_templates_are_only_tested(hospital):
    rows = {split: rows_of(split) for split in ROWS}
    templates = {split: {row["template"] for row in each} for split, each in rows.items()}
    assert templates["train"] == templates["val"]
    assert len(templates["test"] - templates["train"]) == 2
    for slot, sql in NAMES.items():
        split_of = divided(sorted(selected(hospital, sql)), slot, 0)
        for split, each in rows.items():
            text = "\n".join(row["program"] for row in each)
            asked = set()
            for name in split_of:
                if f'"{name}"' in text or f"subject_id == {name})" in text:
                    asked.add(name)
            assert asked, (slot, split)
            assert {split_of[name] for name in asked} == {split}, slot


def test_half_of_the_test_is_worded_as_nothing_in_training():
    train, test = rows_of("train"), rows_of("test")
    assert {row["wording"] for row in train + rows_of("val")} == {"seen"}
    known = {row["template"] for row in train}
    often = Counter(row["wording"] for row in test if row["template"] in known)
    assert often["seen"] == often["unseen"]


def test_no_answer_is_worth_guessing():
    for split in ROWS:
        often: dict[str, Counter[str]] = {}
        for row in rows_of(split):
            often.setdefault(row["template"], Counter())[row["gold"]] += 1
        for template, answers in often.items():
            most = 0.5 if TEMPLATES[template]["kind"] == "boolean" else 0.34
            assert max(answers.values()) <= most * answers.total(), (split, template)
