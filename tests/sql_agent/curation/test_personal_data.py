"""Masking of personal data: every kind, what must stay, and no phone or ID number survives."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.settings import ROOT
from sql_agent.curation.personal_data import has_check_digit, mask
from tests.corpora import cases_of
from tests.sql_agent.curation.survivors import survivors


def spread(digits, places, separator):
    """The digits with the separator at some places."""
    return "".join(
        digit + (separator if place in places else "") for place, digit in enumerate(digits)
    )


def with_check_digit(first):
    return next(first + last for last in "0123456789X" if has_check_digit(first + last))


FULL_WIDTH = str.maketrans("0123456789", "０１２３４５６７８９")
SCRIPTS = st.sampled_from([lambda text: text, lambda text: text.translate(FULL_WIDTH)])
MOBILES = st.from_regex(r"1[3-9][0-9]{9}", fullmatch=True)
BIRTHDAYS = (
    st.dates().filter(lambda day: 1900 <= day.year < 2100).map(lambda day: day.strftime("%Y%m%d"))
)
ID_NUMBERS = st.builds(
    lambda region, day, order: with_check_digit(region + day + order),
    st.from_regex(r"[1-6][0-9]{5}", fullmatch=True),
    BIRTHDAYS,
    st.from_regex(r"[0-9]{3}", fullmatch=True),
)
LANDLINES = st.from_regex(r"0(10|2[0-9]|[3-9][0-9]{2})[- ]?[2-9][0-9]{7}", fullmatch=True)
NUMBERS = st.builds(
    lambda digits, places, separator, script: script(
        spread(digits, places - {len(digits) - 1}, separator)
    ),
    MOBILES | ID_NUMBERS,
    st.sets(st.integers(0, 16), max_size=5),
    st.sampled_from([" ", "-", ".", "·", "—", "\u200b", ""]),
    SCRIPTS,
)
WORDS = st.text(max_size=12) | st.sampled_from(
    ["电话", "我的手机是", "身份证号：", "微信", "qq", "，", " ", "5", "+86", "86"]
)


@given(st.lists(WORDS | NUMBERS | LANDLINES, max_size=6).map("".join))
@settings(max_examples=100, deadline=None)
@example("微信a12345678901234567890123456789")
@example("1 3 13800138000")
@example("QQ13800138000123456")
@example("1\u0336381\u03363800138000")
def test_no_phone_and_no_id_number_survives(text):
    masked, kinds = mask(text)
    assert survivors(masked) == []
    assert mask(masked) == (masked, []) or kinds == mask(text)[1]


@pytest.mark.parametrize("case", cases_of(__file__, "masking"), ids=lambda case: case["text"])
def test_personal_data_is_masked_and_other_text_stays(case):
    assert mask(case["text"]) == (case["masked"], case["kinds"])


BESIDE_LABELS = (
    "患者：{}，男",
    "患者{}，女，3岁",
    "{}男，30岁",
    "孩子{}怎么办",
    "名字：{}，",
    "我是{}，",
)


def database_names() -> list[str]:
    with closing(sqlite3.connect(ROOT / "data" / "medical.db")) as connection:
        found = connection.execute(
            "SELECT med_name FROM drugs_info UNION SELECT disease_name FROM disease"
        )
        return [name for (name,) in found]


@pytest.mark.parametrize("text", BESIDE_LABELS)
def test_no_drug_and_no_disease_of_the_database_is_a_name(text):
    names = database_names()
    assert len(names) > 900
    assert [name for name in names if name not in mask(text.format(name))[0]] == []


CASES = cases_of(__file__, "names")
BY_FORM = {"contact_field", "birth_date", "plate", "passport", "phone_id", "other_id"}
BY_LABEL = {"kinship_before_name", "role_before_name", "title_after_name", "name_sex_age"}


def leaks(kinds: set[str] | None = None) -> tuple[int, int]:
    """How many secrets of these kinds stay, of how many."""
    secrets = stayed = 0
    for case in CASES:
        if kinds is None or case["kind"] in kinds:
            masked = mask(case["text"])[0]
            secrets += len(case.get("secrets", ()))
            stayed += sum(secret in masked for secret in case.get("secrets", ()))
    return stayed, secrets


def test_of_messages_that_others_wrote_no_more_stays_than_published():
    """Lines of {text, kind, and secrets or keep}; docs/your-data.md has the same figures."""
    assert leaks(BY_FORM) == (0, 85)
    assert leaks(BY_LABEL) == (0, 56)
    assert leaks() == (67, 260)


def test_nothing_medical_is_masked_in_messages_that_others_wrote():
    kept = [(word, mask(case["text"])[0]) for case in CASES for word in case.get("keep", ())]
    assert len(kept) == 208
    assert [word for word, masked in kept if word not in masked] == []


@pytest.mark.system
def test_hostile_text_is_masked_in_time():
    for text in (
        "1 " * 5_000,
        "0" * 10_000,
        "a@" * 5_000,
        "张" * 10_000,
        "省市区路" * 2_500,
        "1381" * 2_500,
    ):
        mask(text)
