"""`request_info` tells columns, values and what is spelled alike, of CSV and SQLite, and
of no other file.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from code_agent import lookup
from code_agent.lookup import LookupRefused


def look_up(folder: Path, *asked: str) -> str:
    return lookup.look_up(sorted(folder.glob("*.*")), *asked)


EVERY_FORM = ["patients.csv", "/data/patients.csv", "hospital.db/patients"]


@pytest.mark.parametrize("name", EVERY_FORM)
def test_columns_values_and_terms(tables, name):
    assert look_up(tables, name, "column_names") == "subject_id, gender, city"
    assert look_up(tables, name, "column_values", "Gender") == "f, m"
    assert "city: Basel" in look_up(tables, name, "term", "basel")


def test_a_database_tells_its_tables(tables):
    assert look_up(tables, "hospital.db", "column_names") == "patients: subject_id, gender, city"
    with pytest.raises(LookupRefused, match=r"hospital\.db/TABLE"):
        look_up(tables, "hospital.db", "term", "basel")


def test_a_misspelt_term_gets_the_nearest_first(tables):
    said = look_up(tables, "patients.csv", "term", "bazel")
    assert "Basel (city)" in said
    assert "Bern" not in said
    with pytest.raises(LookupRefused, match="nothing"):
        look_up(tables, "patients.csv", "term", "xylophone")


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


def test_what_is_not_there_is_said_with_what_is(tables):
    for arguments, said in (
        (("patients.csv", "rows"), "column_names, column_values, term"),
        (("patients.csv", "column_values", "town"), "subject_id, gender, city"),
        (("visits.csv", "column_names"), "patients.csv"),
        (("patients.csv", "term"), "keyterm"),
    ):
        with pytest.raises(LookupRefused, match=said):
            look_up(tables, *arguments)
