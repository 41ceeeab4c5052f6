"""Numbers and quantities in other forms are the same, and near ones are not.

A line of number_forms.jsonl is an answer with a number, a short gold or a frame; its author had not
read the judge and said whether it is right.

Keeps of docs/rewards.md: number forms and equal units cost nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from sql_agent.judge.canonical import canonical
from sql_agent.judge.reference import ReferenceJudge

BY_OTHERS = Path(__file__).with_name("number_forms.jsonl")
# The share of the answers of a kind that the judge must pay, or must not pay, as their author says
AT_LEAST = {
    "number_form": 0.98, "unit": 1.0, "short_gold": 0.94, "frame": 0.95, "number_wrong": 1.0, "short_wrong": 1.0,
}  # fmt: skip

SAME = [
    ("每次半片", "每次½片", "每次0.5片", "每次.5片", "每次1/2片", "每次二分之一片", "每次零点五片"),
    ("1.5片", "一片半", "1½片", "1又1/2片"),
    ("0.5%", "百分之零点五", "千分之五", "5‰"),
    ("-14℃", "零下14℃", "负十四度", "−14°C", "零下十四摄氏度"),
    ("1克", "1000毫克", "1 g", "1000 mg"),
    ("twice daily", "2 times daily", "bid", "b.i.d.", "2 times a day", "1日2次", "2次/天", "每天两次"),
    ("q8h", "every eight hours", "once every 8 hours", "每八小时一次", "8小时一次", "每隔8小时一次"),
    ("3克/天", "3 g per day", "3000mg daily", "每日3克", "3 g/d", "3g a day"),
    ("130g/L", "13g/dL", "130毫克/毫升"),
    ("38.2℃", "三十八度二", "38.2 degrees Celsius", "摄氏38.2度"),
    ("one and a half tablets", "1.5 tablets", "1½ tablets", "1 1/2 tablets"),
    ("≥18岁", "18周岁及以上", "不小于18岁", ">= 18岁"),
    ("≤4片", "不超过四片", "小于或等于4片", "至多4片", "最多四片", "不得超过4片", "≦4片"),
    ("<3岁", "未满3岁", "不满三岁", "under 3岁"),
    ("a third of patients", "one third of patients", "1/3 of patients"),
    (
        "2019-03-09", "2019/3/9", "2019.03.09", "2019年3月9日", "二〇一九年三月九号", "March 9, 2019", "9 March 2019",
        "9th of Mar 2019", "2019-03-09 00:00:00",
    ),
    ("25/3/2019", "3/25/2019", "2019-03-25"),
    (
        "2019-03-09 07:05", "2019年3月9日 7:05", "2019-03-09T07:05:00", "2019年3月9日上午7点05分",
        "March 9, 2019 at 7:05 am",
    ),
]  # fmt: skip
OTHER = [
    ("正负2度", "-2度"),
    ("130g/L", "130mg/L"),
    ("500IU", "500单位"),
    ("bid", "qid"),
    ("≥18岁", ">18岁"),
    ("2019-03-09", "2019-09-03"),
    ("2019年", "2019 years"),
    ("最多4次", "至少4次"),
    ("1/3患者", "33%患者"),
]


@pytest.mark.parametrize("forms", SAME, ids=lambda forms: forms[0])
def test_forms_of_a_number_are_one(forms):
    assert len({canonical(form) for form in forms}) == 1, [canonical(form) for form in forms]


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_numbers_stay_other(one, other):
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    "text",
    [
        "二甲双胍",
        "一二三四" * 100,
    ],
)
def test_what_is_no_number_is_read_without_fail(text):
    assert canonical(text)


@pytest.mark.parametrize("kind", AT_LEAST)
def test_answers_of_people_who_had_not_read_the_judge_are_paid_as_they_said(kind):
    rows = [json.loads(line) for line in BY_OTHERS.read_text(encoding="utf-8").splitlines()]
    agreed = [_agrees(row) for row in rows if row["kind"] == kind]
    assert fmean(agreed) >= AT_LEAST[kind]


def _agrees(row):
    score = ReferenceJudge().score(
        question=row["question"],
        answer=row["answer"],
        reference=row["reference"],
        rows=row["rows"],
    )
    return score >= 0.95 if row["want"] == "right" else score < 0.5


def test_a_yes_may_be_said_as_a_sentence_but_not_denied():
    asked = {"question": "Is measles contagious?", "rows": [{"contagious": "Yes"}]}
    assert ReferenceJudge().score(answer="Yes, measles is contagious.", **asked) == 1
    assert ReferenceJudge().score(answer="Yes, measles is not contagious.", **asked) == 0
