"""Numbers and quantities in other forms are the same, and near ones are not.

A line of number_forms.jsonl is an answer with a number, a short gold or a frame; its author had not
read the judge and said whether it is right.

Keeps of docs/offline-judge.md: number forms and equal units cost nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean

import pytest

from scoring.judge import ReferenceJudge
from scoring.text import canonical

BY_OTHERS = Path(__file__).with_name("number_forms.jsonl")
# The share of the answers of a kind that the judge must pay, or must not pay, as their author says
AT_LEAST = {
    "number_form": 0.98, "unit": 1.0, "short_gold": 0.94, "frame": 0.95, "number_wrong": 1.0, "short_wrong": 1.0,
}  # fmt: skip

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
    ("twice daily", "2 times daily", "bid", "b.i.d.", "2 times a day", "1日2次", "2次/天", "每天两次"),
    ("qd", "once a day", "每日一次", "1次/日"),
    ("q8h", "every eight hours", "once every 8 hours", "每八小时一次", "8小时一次", "每隔8小时一次"),
    ("qod", "every other day", "隔天一次", "隔日1次"),
    ("3克/天", "3 g per day", "3000mg daily", "每日3克", "3 g/d", "3g a day"),
    ("20mg/kg", "每公斤20毫克", "20 mg per kg", "0.02克/千克"),
    ("72次/分", "每分钟72次", "72 bpm", "72 beats per minute"),
    ("130g/L", "13g/dL", "130毫克/毫升"),
    ("4.2mmol/L", "4200μmol/L", "4.2毫摩尔/升", "四点二毫摩/升"),
    ("22kg/m²", "22千克/平方米", "22公斤/m2"),
    ("1.68米", "168cm", "一米六八", "1.68 m"),
    ("72公斤", "144斤", "72 kg"),
    ("38.2℃", "三十八度二", "38.2 degrees Celsius", "摄氏38.2度"),
    ("500IU", "500国际单位"),
    ("30U", "30单位", "30 units"),
    ("3.4×10^9/L", "3.4×10⁹/L", "3.4*10^9/L", "34亿/L"),
    ("forty-two", "forty two", "42", "四十二"),
    ("seven point two five percent", "7.25%", "7.25 per cent", "百分之七点二五"),
    ("one hundred and five", "105", "一百零五"),
    ("two million", "2000000", "2 million", "两百万"),
    ("half a tablet", "0.5 tablet", "1/2 tablet"),
    ("one and a half tablets", "1.5 tablets", "1½ tablets", "1 1/2 tablets"),
    ("2 to 3 tablets", "2-3 tablets", "two to three tablets"),
    ("Ⅱ级", "II级", "2级", "二级"),
    ("grade Ⅲ", "grade III", "grade three"),
    ("≥18岁", "18周岁及以上", "不小于18岁", ">= 18岁"),
    ("≤4片", "不超过四片", "小于或等于4片", "至多4片", "最多四片", "不得超过4片", "≦4片"),
    ("≥5年", "至少五年", "起码5年", "不得少于5年", "at least 5 years", "no fewer than 5 years"),
    ("<3岁", "未满3岁", "不满三岁", "under 3岁"),
    ("约5天", "大约五天", "5天左右", "约5天左右"),
    ("24小时内", "二十四小时以内", "一昼夜之内"),
    ("10~20mg/L", "10-20 μg/mL", "10毫克/升至20毫克/升"),
    ("每3个月1次", "每季度一次", "每季1次"),
    ("隔周一次", "每两周一次"),
    ("tiw", "每周3次", "一周三次"),
    ("qn", "每晚一次"),
    ("5000单位", "5 000单位", "5千单位"),
    ("3百万单位", "三百万单位", "3000000单位"),
    ("占四分之三", "占75%", "占3/4"),
    ("1/4的患者", "四分之一的患者", "25%的患者"),
    ("85%", "八成五", "85％"),
    ("五成患者", "50%患者", "1/2患者"),
    ("0.001%", "十万分之一", "10万分之1", "1/100000"),
    ("0.3%", "千分之三", "3/1000"),
    ("0.0001%", "百万分之一", "1/1000000"),
    ("1/2 of patients", "one half of patients", "half of patients"),
    ("a third of patients", "one third of patients", "1/3 of patients"),
    ("two-thirds of patients", "2/3 of patients"),
    ("1 in 8 patients", "one in eight patients", "1 out of 8 patients"),
    ("12.5元", "12元5角", "12.50元", "人民币12.5元"),
    ("10mg/kg/d", "10mg/(kg·d)", "10 mg·kg-1·d-1", "10毫克/千克体重/日"),
    ("5-10 mg", "from 5 to 10 mg", "从5到10毫克"),
    ("5±1天", "5+/-1天"),
    (
        "2019-03-09", "2019/3/9", "2019.03.09", "2019年3月9日", "二〇一九年三月九号", "March 9, 2019", "9 March 2019",
        "9th of Mar 2019", "2019-03-09 00:00:00",
    ),
    ("2019年3月", "2019-03", "March 2019"),
    ("25/3/2019", "3/25/2019", "2019-03-25"),
    (
        "2019-03-09 07:05", "2019年3月9日 7:05", "2019-03-09T07:05:00", "2019年3月9日上午7点05分",
        "March 9, 2019 at 7:05 am",
    ),
    ("21:30", "晚上九点半", "9:30 pm", "21点30分", "下午9:30"),
]  # fmt: skip
OTHER = [
    ("正负2度", "-2度"),
    ("140/90mmHg", "140mmHg"),
    ("3/2片", "2/3片"),
    ("一天半片", "一天半"),
    ("每12小时1次", "12小时"),
    ("12小时1小时", "1小时12小时"),
    ("一小时三分", "1.3小时"),
    ("每日4克", "每次4克"),
    ("4克/天", "4克/小时"),
    ("130g/L", "130mg/L"),
    ("65斤", "65公斤"),
    ("500IU", "500单位"),
    ("10⁹", "109"),
    ("Ⅱ级", "Ⅲ级"),
    ("bid", "qid"),
    ("每8小时1次", "每日8次"),
    ("≥18岁", ">18岁"),
    ("超过4片", "不超过4片"),
    ("thirteen", "thirty"),
    ("2019-03-09", "2019-09-03"),
    ("3/9/2019", "9/3/2019"),
    ("2019年", "2019年3月"),
    ("2019年", "2019 years"),
    ("4月7日", "4个月7天"),
    ("7:05", "下午7:05"),
    ("1:10", "10:1"),
    ("最多4次", "至少4次"),
    ("10-20 μg/mL", "10-20 μg/L"),
    ("0.5g~1mg", "0.5mg~1mg"),
    ("每季度1次", "每月1次"),
    ("120/1000", "12%"),
    ("十万分之一", "万分之一"),
    ("未满3岁", "3岁"),
    ("1/3患者", "33%患者"),
    ("大约5天", "5天"),
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
        "一二三四" * 100,
        "31/31/2019 25:61",
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


def test_a_quantity_without_the_unit_below_its_stroke_is_another_one():
    score = ReferenceJudge().score(
        question="新生儿用量？", answer="每次3毫克", rows=[{"用量": "每次3毫克/公斤"}]
    )
    assert score < 0.1


def test_what_the_reference_quotes_of_a_row_is_what_is_asked_for():
    rows = [{"药品": "肝素钠注射液", "规格": "每支2毫升"}]
    asked = {"question": "肝素钠的规格？", "reference": "肝素钠规格为每支2毫升。", "rows": rows}
    assert ReferenceJudge().score(answer="每支2毫升", **asked) == 1
    assert ReferenceJudge().score(answer="肝素钠注射液", **asked) < 0.5


@pytest.mark.parametrize(
    ("answer", "worth"),
    [
        ("李某有青霉素过敏史。", 1),
        ("有", 1),
        ("李某没有青霉素过敏史。", 0),
        ("无", 0),
    ],
)
def test_a_yes_may_stand_before_its_field(answer, worth):
    asked = {"question": "李某有无青霉素过敏史？", "rows": [{"青霉素过敏史": "有"}]}
    assert ReferenceJudge().score(answer=answer, **asked) == worth


def test_a_yes_may_be_said_as_a_sentence_but_not_denied():
    asked = {"question": "Is measles contagious?", "rows": [{"contagious": "Yes"}]}
    assert ReferenceJudge().score(answer="Yes, measles is contagious.", **asked) == 1
    assert ReferenceJudge().score(answer="Yes, measles is not contagious.", **asked) == 0
