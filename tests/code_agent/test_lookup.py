"""`request_info` tells columns, values and similar spellings of CSV and SQLite files alone."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from code_agent import lookup
from code_agent.lookup import LookupRefused
from tests.corpora import cases_of


def look_up(folder: Path, *asked: str) -> str:
    return lookup.look_up(sorted(folder.glob("*.*")), *asked)


@pytest.mark.parametrize(("asked", "said", "refused"), cases_of(__file__, "corpus/lookups"))
def test_columns_values_and_terms(tables, asked, said, refused):
    """Of every form of a table; what is not there is refused with what is."""
    if refused:
        with pytest.raises(LookupRefused, match=refused):
            look_up(tables, *asked)
    else:
        found = look_up(tables, *asked)
        assert found == said if "column" in asked[1] else said in found


def test_names_of_files_are_read_in_any_case(tmp_path, tables):
    for name in ("patients.csv", "hospital.db"):
        shutil.copy(tables / name, tmp_path / name.upper())
    assert look_up(tmp_path, "patients.csv", "column_names") == "subject_id, gender, city"
    assert look_up(tmp_path, "hospital.db", "column_names").startswith("patients: subject_id")


def test_names_with_signs_of_a_uri_and_byte_order_marks_are_read(tmp_path, tables):
    shutil.copy(tables / "hospital.db", tmp_path / "ward #1? 50%25.db")
    (tmp_path / "marked.csv").write_text("\ufeffsubject_id\n1\n", encoding="utf-8")
    told = look_up(tmp_path, "ward #1? 50%25.db", "column_names")
    assert told == "patients: subject_id, gender, city"
    assert look_up(tmp_path, "marked.csv", "column_values", "subject_id") == "1"
    assert len([*tmp_path.iterdir()]) == 2, "no empty file is made"


def test_late_values_are_told_and_a_count_that_was_cut_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(lookup, "MOST_VALUES", 20)
    rows = [f"{'CCU' if n < 30 else 'MICU'},{n}" for n in range(40)]
    (tmp_path / "stays.csv").write_text("\n".join(["unit,n", *rows]), encoding="utf-8")
    assert look_up(tmp_path, "stays.csv", "column_values", "unit") == "CCU, MICU"
    assert "(more than 20 different values)" in look_up(tmp_path, "stays.csv", "column_values", "n")


def test_a_misspelt_term_gets_the_nearest_alone(tables):
    assert "Bern" not in look_up(tables, "patients.csv", "term", "bazel")


@pytest.mark.parametrize(
    "name", ["../secret.csv", "/etc/passwd", "..", "", "tasks.jsonl", "secret.csv"]
)
def test_no_other_file_is_read(tmp_path, name):
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "secret.csv").write_text("gold\n42\n", encoding="utf-8")
    (data / "patients.csv").write_text("subject_id\n1\n", encoding="utf-8")
    with pytest.raises(LookupRefused, match="there is no table"):
        look_up(data, name, "column_names")


def test_a_database_that_is_gone_is_not_made_anew(tmp_path):
    """An empty one in its place would answer later questions, without a table."""
    gone = tmp_path / "hospital.db"
    with pytest.raises(sqlite3.OperationalError):
        lookup.look_up([gone], "hospital.db", "column_names")
    assert not gone.exists()
