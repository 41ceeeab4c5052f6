"""to_text: what becomes of one foreign value, and that no value at all breaks it."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql_agent.intake.cells import REFUSED, CellError, to_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("", None),
        (" \u3000\n", None),
        ("\ufeff阿莫西林 ", "阿莫西林"),
        ("a\r\nb\rc", "a\nb\nc"),
        (6901234567890.0, "6901234567890"),
        (0.5, "0.5"),
        (float("nan"), None),
        (0.1 + 0.2, "0.3"),
        (1e-7, "0.0000001"),
        (Decimal("2.50"), "2.50"),
        (Decimal("1E+20"), "100000000000000000000"),
        ("\u200b阿莫\u200b西\u00ad林\u200b", "阿莫西林"),
        ('="06901234567890"', "06901234567890"),
        ("'06901234567890", "06901234567890"),
        ("'甲片'", "'甲片'"),
        ("'5-氟尿嘧啶'", "'5-氟尿嘧啶'"),
        ("'3'-脱氧腺苷", "'3'-脱氧腺苷"),
        ("'-羟基", "-羟基"),
        ("(null)", None),
        ("[NULL]", None),
        ("NA", None),
        ("Na", "Na"),
        ("———", None),
        (":---:", None),
        ("+", "+"),
        ("?", None),
        ("café naïve", "café naïve"),
        ("+++", "+++"),
        ("1.2E+07 IU/mL", "1.2E+07 IU/mL"),
        ("5E-3", "5E-3"),
        ("NULL", None),
        ("\\N", None),
        ("-", None),
        (True, "true"),
        (date(2025, 1, 2), "2025-01-02"),
        ("2024年3月1日", "2024-03-01"),
        ("2024/3/1 0:00", "2024-03-01"),
        ("2024/3/1 13:05", "2024-03-01 13:05:00"),
        ("2024/13/1", "2024/13/1"),
        (datetime(2025, 1, 2, 3, 4, 5), "2025-01-02 03:04:05"),
        ("发热".encode(), "发热"),
        (["发热", "咳嗽", "", None], "发热、咳嗽"),
        (Decimal("sNaN"), None),
        ("血压<140且>90", "血压<140且>90"),
    ],
)
def test_values_become_text(value, text):
    assert to_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("<p>发热<br/>咳嗽</p><p>乏力&nbsp;&amp;&#x4E00;</p>", "发热\n咳嗽\n乏力 &一"),
        ("<script>alert(1)</script><b>甲</b><!-- 乙 --><style>p{}</style>", "甲"),
        ("血压<140且>90", "血压<140且>90"),
        ("<div><br></div>", None),
        ('<p title="a>b">甲</p><P>乙', "甲\n乙"),
        ("剂量<a且无尽头", "剂量<a且无尽头"),
        ("甲\x00乙", "甲乙"),
    ],
)
def test_html_is_stripped_on_request(value, text):
    assert to_text(value, strip_html=True) == text


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("甲\x00乙", "U\\+0000"),
        ("甲\ud800", "U\\+D800"),
        (b"\xff\xfe\xfd", "U\\+DCFF"),
        (CellError("#N/A"), "#N/A"),
        ({"a": 1}, "dict value"),
        (float("inf"), "infinite"),
        (81234567890123456789.0, "last digits"),
        ("6.90123E+12", "last digits"),
        ("#DIV/0!", "#DIV/0!"),
        ("########", "formula"),
        ("头\ufffd", "characters"),
        ("????", "characters"),
        ("同上", "同上"),
        ("阿莫西林".encode().decode("latin-1"), "UTF-8"),
        ("头痛".encode().decode("cp1252"), "UTF-8"),
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
