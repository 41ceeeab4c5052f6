"""The real drugs and diseases: there are enough of them, and nothing belongs to a maker."""

from __future__ import annotations

from recipes.build_database import textbook_rows

MAKERS_COLUMNS = ("med_barcode", "med_approval", "company_name", "pack", "period", "approve_code")


def test_real_drugs_carry_nothing_of_a_maker():
    for row in textbook_rows("drugs_info", 1):
        assert not any(row[column] for column in MAKERS_COLUMNS)
