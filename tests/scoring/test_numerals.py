"""Numbers and quantities in other forms are the same, and near ones are not.

Keeps of docs/rewards.md: number forms and equal units cost nothing.
"""

from __future__ import annotations

import pytest

from scoring.text import canonical

SAME = [
    ("每次半片", "每次½片", "每次0.5片", "每次.5片", "每次1/2片", "每次二分之一片", "每次零点五片"),
    ("1.5片", "一片半", "1½片", "1又1/2片"),
    ("1000单位", "1,000单位", "一千单位", "１０００单位", "1000.0单位"),
    ("100万单位", "一百万单位", "1000000单位"),
    ("1.2亿", "一点二亿", "120000000"),
    ("0.5%", "百分之零点五", "千分之五", "5‰"),
    ("三分之二", "2/3", "2／3"),
    ("-14℃", "零下14℃", "负十四度", "−14°C", "零下十四摄氏度"),
    ("2～8℃", "2至8℃", "2℃-8℃", "2—8摄氏度", "2 ~ 8 ℃"),
    ("2至3丸", "两三丸", "2丸～3丸", "二到三丸"),
    ("每周2次", "一周两次", "每星期2次"),
    ("每月1次", "一个月一次", "每个月1次"),
    ("30分钟", "半小时", "半个钟头", "30 min"),
    ("1小时30分", "90分钟", "一个半小时", "1.5小时"),
    ("18个月", "一年半", "1.5年"),
    ("1克", "1000毫克", "1 g", "1000 mg"),
    ("10厘米", "100毫米", "10公分"),
    ("120mg/kg", "120毫克/千克", "120毫克/公斤"),
    ("1:1000", "1∶1000"),
    ("2 weeks", "14 days", "two weeks"),
    ("0.5 g", "500 milligrams"),
    ("twice daily", "2 times daily"),
]
OTHER = [
    ("正负2度", "-2度"),
    ("140/90mmHg", "140mmHg"),
    ("3/2片", "2/3片"),
    ("一天半片", "一天半"),
    ("每12小时1次", "12小时"),
    ("12小时1小时", "1小时12小时"),
    ("一小时三分", "1.3小时"),
]


@pytest.mark.parametrize("forms", SAME, ids=lambda forms: forms[0])
def test_forms_of_a_number_are_one(forms):
    assert len({canonical(form) for form in forms}) == 1, [canonical(form) for form in forms]


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_other_numbers_stay_other(one, other):
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize("forms", SAME, ids=lambda forms: forms[0])
def test_a_form_stays_what_it_is(forms):
    assert canonical(canonical(forms[0])) == canonical(forms[0])


@pytest.mark.parametrize(
    "text",
    [
        "十百",
        "万",
        "二十零",
        "一亿一",
        "两百万零十",
        "二甲双胍",
        "三七",
        "半身不遂",
        "2日夜",
        "千克",
    ],
)
def test_what_is_no_number_is_read_without_fail(text):
    assert canonical(text)
