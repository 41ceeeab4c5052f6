"""Masking of personal data: examples of every kind, what must stay, and that no phone or ID number
survives.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from common.settings import ROOT
from sql_agent.curation.personal_data import has_check_digit, mask
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


@given(WORDS, NUMBERS, WORDS.filter(lambda text: not text[:1].isalnum()))
@settings(max_examples=60, deadline=None)
def test_a_number_is_found_in_every_script_with_every_separator(before, number, after):
    assert mask(before + "：" + number + " " + after)[1]


@pytest.mark.parametrize(
    ("text", "masked", "kind"),
    [
        ("手机13800138000能收到吗", "手机[电话]能收到吗", "phone"),
        ("手机１３８ 0013-8000", "手机[电话]", "phone"),
        ("+86 138-0013-8000", "[电话]", "phone"),
        ("138****8000", "[电话]", "phone"),
        ("010-62345678转123", "[电话]", "phone"),
        ("身份证11010519491231002X", "身份证[证件号]", "id_number"),
        ("住院号：ZY00123456", "住院号：[号码]", "number"),
        ("邮箱 Zhang.San@QQ.com", "邮箱 [邮箱]", "email"),
        ("加微信abc_12345聊", "加微信[微信号]聊", "wechat"),
        ("QQ：123456789", "QQ：[QQ号]", "qq"),
        ("请加我 @zhangsan_88", "请加我 @[账号]", "handle"),
        ("我ins号是 lily_mm", "我ins号是 [账号]", "handle"),
        ("我孙女叫苗苗，发烧", "我孙女叫[姓名]，发烧", "name"),
        ("My son is called Oliver", "My son is called [姓名]", "name"),
        ("my grandson Tim has a fever", "my grandson [姓名] has a fever", "name"),
        ("患者P00912，男", "患者[号码]，男", "number"),
        ("我住在上海市浦东新区张江路100号502室，请问", "我住在[地址]，请问", "address"),
        ("患者李明，男，45岁", "患者[姓名]，男，45岁", "name"),
        ("张医生您好", "[姓名]医生您好", "name"),
        ("帮我妈张桂芳问一下", "帮我妈[姓名]问一下", "name"),
        ("赵国栋，男，56岁", "[姓名]，男，56岁", "name"),
        ("我叫wang xiao ming", "我叫[姓名]", "name"),
        ("出生日期：1968年3月12日", "出生日期：[出生日期]", "birthday"),
        ("车牌粤B·12345", "车牌[车牌]", "plate"),
        ("护照E12345678", "护照[护照号]", "passport"),
        (
            "住院号：a1234519491231VX，",
            "住院号：[号码]，",
            "number",
        ),  # two patterns, one within the other
    ],
)
def test_each_kind_is_masked(text, masked, kind):
    assert mask(text) == (masked, [kind])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My name is Li Wei, I have fever", "Li Wei"),
        ("patient name: zhang san", "zhang san"),
        ("Doctor name: Wang Fang", "Wang Fang"),
        ("Patient: John Smith, 45", "John Smith"),
        ("我是李雷，想咨询", "李雷"),
        ("姓名 王五 性别 男", "王五"),
        ("我叫周和平，头痛", "周和平"),
        ("我叫高原，感冒了", "高原"),
        ("孩子叫石头，拉肚子", "石头"),
        ("主任医师曹操", "曹操"),
        ("我邻居耿老根也是吃这个药", "耿老根"),
        ("请转潘巧云护士长", "潘巧云"),
        ("患者张伟病情加重", "张伟"),
        ("我家外国女婿Thomas对布洛芬过敏", "Thomas"),
    ],
)
def test_a_name_beside_a_label_is_masked_alone(text: str, name: str) -> None:
    assert mask(text) == (text.replace(name, "[姓名]"), ["name"])


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
def test_no_drug_and_no_disease_of_the_database_is_a_name(text: str) -> None:
    names = database_names()
    assert len(names) > 900
    assert [name for name in names if name not in mask(text.format(name))[0]] == []


@pytest.mark.parametrize(
    "text",
    [
        "患者 高血压 男",
        "患者黄疸，男，3岁",
        "孩子高烧，男，3岁",
        "患者 关节炎 男",
        "患者：关节痛，男",
        "高热男，30岁",
        "高龄女，45岁怀孕",
        "孩子康复，女，3岁",
        "患者 石膏 固定后",
        "患者 全麻，术后",
        "名字：白芷，功效？",
        "患者：白芍，女性可用吗",
        "老师安定片怎么吃",
        "孩子小红疹怎么办",
        "肾结石医生说要手术",
        "鼻窦炎，男，30岁",
        "妈妈金霉素的药",
        "患者: Aspirin, 100mg",
        "patient: diabetes mellitus, insulin",
        "Patient: Hodgkin lymphoma",
        "Name: Aspirin tablets",
        "Dr Crohn disease",
        "患者Crohn病",
        "病人Parkinson综合征",
        "my mother Metformin takes",
        "客人Advil",
        "我是copd，求助",
        "孩子高兴，患者安静，3岁",
        "患者高血压，吃什么药？谢谢医生",
        "白内障医生说要手术，任何医生",
        "我妈查甲功，患者严重，孩子小便黄",
        "血压120/80，心率75，体温36.5",
        "国药准字H20013800是什么药",
        "2013-05-06 2014-07-08",
        "孙女发烧两天",
        "我妈叫我去医院",
        "my son Covid positive",
        "@医生 请问",
        "@张医生 我这个报告严重吗？",
        "我打insulin两年了，INSULIN抵抗怎么办？",
        "Is insomnia a sign of renal insufficiency?",
        "TgAb115.3偏高，TG level 2.3，INS: high",
        "维生素B12和辅酶Q10",
        "CA125和P53突变",
        "帕金森病和王氏保赤丸",
        "我妈常年便秘，我爸高血压",
        "白芍、何首乌、夏桑菊颗粒、孟鲁司特钠片",
    ],
)
def test_other_text_stays(text):
    assert mask(text) == (text, [])


CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "names.jsonl").read_text("utf-8").splitlines()
]
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


def test_of_messages_that_others_wrote_no_more_stays_than_published() -> None:
    """Lines of {text, kind, and secrets or keep}; docs/your-data.md has the same figures."""
    assert leaks(BY_FORM) == (0, 85)
    assert leaks(BY_LABEL) == (0, 56)
    assert leaks() == (67, 260)


def test_nothing_medical_is_masked_in_messages_that_others_wrote() -> None:
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
