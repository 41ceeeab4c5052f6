"""Numbers with the same value and unit are the same, and near ones are not.

A line of number_forms.jsonl is an answer with a number, a short gold or a frame; its author had not
read the judge and said whether it is right.
"""

from statistics import fmean

import pytest

from sql_agent.judge.fold import fold
from sql_agent.judge.reference import ReferenceJudge
from tests.corpora import cases_of

# The share of the answers of a kind that the judge must pay, or must not pay, as their author says.
# Many right ones are in forms that it does not know: rates, dates, fractions, comparisons, English.
AT_LEAST = {
    "number_form": 0.37, "unit": 0.64, "short_gold": 0.87, "frame": 0.83, "number_wrong": 1.0, "short_wrong": 1.0,
}  # fmt: skip

SAME = [
    ("1.5%", "1.50%", "百分之一点五"),
    ("-14℃", "零下14℃", "负十四度", "−14°C", "零下十四摄氏度"),
    ("1克", "1000毫克", "1 g", "1000 mg", "１０００ＭＧ", "1,000毫克"),
    ("130g/L", "130克/升"),
    ("2周", "14天", "336小时"),
    ("10-20毫克", "10mg～20mg", "10至20毫克"),
    ("十二片", "12片"),
]
OTHER = [
    ("正负2度", "-2度"),
    ("130g/L", "130mg/L"),
    ("3mg", "3mg/kg"),
    ("500IU", "500单位"),
    ("10-20μg", "10mg-20μg"),
    ("10⁹", "109"),
    ("1½片", "11/2片"),
    ("2023年", "2023个月"),
    ("12:30", "0:30"),
]


@pytest.mark.parametrize("forms", SAME, ids=lambda forms: forms[0])
def test_numbers_of_one_value_and_unit_are_one(forms):
    assert len({fold(form) for form in forms}) == 1, [fold(form) for form in forms]


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_numbers_stay_other(one, other):
    assert fold(one) != fold(other)


@pytest.mark.parametrize("kind", AT_LEAST)
def test_answers_of_people_who_had_not_read_the_judge_are_paid_as_they_said(kind):
    agreed = []
    for row in cases_of(__file__, "number_forms"):
        if row["kind"] == kind:
            asked = {name: row[name] for name in ("question", "answer", "reference", "rows")}
            score = ReferenceJudge().score(**asked)
            agreed.append(score >= 0.95 if row["want"] == "right" else score < 0.5)
    assert fmean(agreed) >= AT_LEAST[kind]
