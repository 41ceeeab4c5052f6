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


@pytest.mark.parametrize("forms", cases_of(__file__, "same_numbers"), ids=lambda forms: forms[0])
def test_numbers_of_one_value_and_unit_are_one(forms):
    assert len({fold(form) for form in forms}) == 1, [fold(form) for form in forms]


@pytest.mark.parametrize(("one", "other"), cases_of(__file__, "other_numbers"))
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
