"""The real drugs and diseases: there are enough of them, and nothing belongs to a maker."""

from __future__ import annotations

import pytest

from recipes.build_database import textbook_rows
from sql_agent.tables import NAME_COLUMN, TEXTBOOK

MAKERS_COLUMNS = ("med_barcode", "med_approval", "company_name", "pack", "period", "approve_code")


@pytest.mark.parametrize(("table", "least"), [("drugs_info", 60), ("disease", 50)])
def test_there_are_enough_different_entities(table, least):
    rows = list(textbook_rows(table, 7))
    names = [row[NAME_COLUMN[table]] for row in rows]
    assert len(set(names)) == len(names) >= least
    assert [row["id"] for row in rows] == list(range(7, 7 + len(rows)))
    assert {row["source"] for row in rows} == {TEXTBOOK}


def test_real_drugs_carry_nothing_of_a_maker():
    for row in textbook_rows("drugs_info", 1):
        assert not any(row[column] for column in MAKERS_COLUMNS)
