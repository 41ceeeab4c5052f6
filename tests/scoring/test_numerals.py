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
    ("≤4片", "不超过四片", "小于或等于4片"),
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
    ("4月7日", "4个月7天"),
    ("7:05", "下午7:05"),
    ("1:10", "10:1"),
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
