"""to_text: what becomes of one foreign value, and that no value at all breaks it."""

from datetime import date, datetime
from decimal import Decimal
from ipaddress import IPv4Address
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql_agent.intake.cells import REFUSED, CellError, to_text
from tests.corpora import cases_of


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *cases_of(__file__, "cells"),
        (float("nan"), None),
        (Decimal("2.50"), "2.50"),
        (Decimal("1E+20"), "100000000000000000000"),
        (date(2025, 1, 2), "2025-01-02"),
        (datetime(2025, 1, 2, 3, 4, 5), "2025-01-02 03:04:05"),
        ("发热".encode(), "发热"),
        (Decimal("sNaN"), None),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (IPv4Address("10.0.0.7"), "10.0.0.7"),
        ({"乙", "甲"}, "乙、甲"),
    ],
)
def test_values_become_text(value, text):
    assert to_text(value) == text


@pytest.mark.parametrize(("value", "text"), cases_of(__file__, "html_cells"))
def test_html_is_stripped_on_request(value, text):
    assert to_text(value, strip_html=True) == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *cases_of(__file__, "cells_refused"),
        (b"\xff\xfe\xfd", "U\\+DCFF"),
        (CellError("#N/A"), "#N/A"),
        (float("inf"), "infinite"),
    ],
)
def test_what_can_not_be_stored_is_named(value, message):
    with pytest.raises(CellError, match=message):
        to_text(value)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["<p x='", "<!--", "<script>", "<"])
def test_tags_left_open_take_no_quadratic_time(piece):
    to_text(piece * 200_000, strip_html=True)


HOSTILE = st.text(alphabet=st.characters(codec=None)) | st.from_regex(
    r"(<[/!?]?[a-z]{0,6}|&#?\w{0,5};?|>|\"|')+"
)


@given(
    value=HOSTILE | st.binary() | st.integers() | st.floats() | st.decimals() | st.lists(HOSTILE),
    strip=st.booleans(),
)
def test_any_value_is_clean_text_nothing_or_a_cell_error(value, strip):
    try:
        text = to_text(value, strip)
    except CellError:
        return
    if text is not None:
        assert text == text.strip() != ""
        assert not REFUSED.search(text)
        text.encode("utf-8")
