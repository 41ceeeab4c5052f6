"""The table of medical synonyms keeps its promises: it parses, says nothing twice and never equates opposites.

A wrong group pays a dangerous answer as if it were right (慎用 for 禁用), so the pairs below were written by
hand, not drawn from the table.

    pytest tests/scoring/test_synonyms.py
"""

import re
import unicodedata
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

TABLE = Path(__file__).parents[2] / "scoring" / "reference" / "synonyms.tsv"
GROUPS = [
    line.split("\t")
    for line in TABLE.read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
EXPRESSIONS = [expression for group in GROUPS for expression in group]
CANONICAL = {expression: group[0] for group in GROUPS for expression in group}

# clinical term, another way of saying it
SAME = """
孕妇 怀孕的人|孕妇 准妈妈|老年人 年纪大的人|肝功能不全 肝不好|肾功能不全 肾功能差|过敏体质 容易过敏的人
禁用 不能使用|禁用 忌用|慎用 谨慎使用|遵医嘱 听医生的|停药 停用|口服 内服|饭前 餐前|饭后 餐后|睡前 临睡前
静脉滴注 打点滴|外用 涂抹|避光 遮光|腹泻 拉肚子|便秘 大便不通|发热 发烧|恶心 想吐|头痛 头疼|水肿 浮肿|瘙痒 发痒
失眠 睡不着|高血压 血压高|心肌梗死 心梗|脑卒中 中风|冠心病 CHD|结膜炎 红眼病|足癣 脚气|甲癣 灰指甲|脑出血 脑溢血
对乙酰氨基酚 扑热息痛|对乙酰氨基酚 paracetamol|阿司匹林 乙酰水杨酸|氯苯那敏 扑尔敏|诺氟沙星 氟哌酸|小檗碱 黄连素
血常规 CBC|磁共振成像 核磁|活组织检查 活检|白细胞减少 白细胞低|病因 发病原因|临床表现 症状|气血两虚 气血不足
巩膜黄染 眼睛发黄|尿液发红 小便发红|坐骨神经痛 sciatica|抑制胃酸分泌 减少胃酸|体弱者 体质差的人|睡眠监测 PSG
"""
# two things that must never earn each other's pay
APART = """
禁用 慎用|禁服 慎服|不宜使用 禁用|饭前 饭后|空腹 饭前|高血压 低血压|腹泻 便秘|高血糖 低血糖|糖尿病 高血糖|高热 低热
甲亢 甲减|白细胞减少 白细胞增多|血管扩张 血管收缩|心动过速 心动过缓|多尿 少尿|血钾高 血钾低|消瘦 体重增加|近视 远视
阴虚 阳虚|风寒感冒 风热感冒|静脉注射 静脉滴注|皮下注射 肌内注射|泻药 止泻药|增强疗效 降低疗效|良性 恶性|早期 晚期
先天性 后天性|1型糖尿病 2型糖尿病|甲型肝炎 乙型肝炎|感冒 流感|孕妇 产妇|咯血 呕血|脚气 脚气病|泼尼松 泼尼松龙
肾上腺素 去甲肾上腺素|氧氟沙星 左氧氟沙星|避光 冷藏|退热药 镇痛药|高热量 高热|花粉 粉刺
子宫缩小 子宫收缩|大便失禁 尿失禁|脓涕 清水样鼻涕|嗅觉减退 嗅觉丧失|妊娠早期 妊娠晚期|杀菌 抑菌|禁止驾车 避免驾车
"""
OPPOSITES = (
    "左右 上下 前后 高低 多少 快慢 早晚 禁慎 甲乙 阴阳 寒热 冷热 增减 升降 内外 远近 轻重 男女 扩缩"
)


def pairs(text: str) -> list[tuple[str, str]]:
    return [tuple(pair.split()) for pair in re.split(r"[|\n]", text.strip())]


def test_every_line_is_a_group_of_two_to_eight() -> None:
    assert len(GROUPS) >= 600
    assert [group for group in GROUPS if not 2 <= len(group) <= 8] == []


def test_no_expression_stands_twice() -> None:
    assert [
        each for each, times in Counter(map(str.casefold, EXPRESSIONS)).items() if times > 1
    ] == []


def test_every_expression_is_normal_and_longer_than_a_character() -> None:
    assert [
        each
        for each in EXPRESSIONS
        if unicodedata.normalize("NFKC", each).strip() != each or len(each) < 2
    ] == []


def test_the_canonical_term_is_chinese() -> None:
    assert [group[0] for group in GROUPS if not re.search("[一-鿿]", group[0])] == []


@pytest.mark.parametrize(("clinical", "other"), pairs(SAME))
def test_the_clinical_term_leads_its_synonym(clinical: str, other: str) -> None:
    assert CANONICAL[other] == clinical


@pytest.mark.parametrize(("one", "another"), pairs(APART))
def test_different_things_are_in_different_groups(one: str, another: str) -> None:
    assert CANONICAL[one] != CANONICAL[another]


def test_no_group_holds_an_expression_and_its_opposite() -> None:
    """血压高 and 血压低, 左侧 and 右侧: the same but for one opposite character."""
    swaps = [str.maketrans(pair, pair[::-1]) for pair in OPPOSITES.split()]
    opposite = [
        (one, another)
        for group in GROUPS
        for one, another in combinations(group, 2)
        if any(one.translate(swap) == another for swap in swaps)
    ]
    assert opposite == []


def test_no_group_holds_an_expression_and_its_negation() -> None:
    negated = [
        (one, another)
        for group in GROUPS
        for one in group
        for another in group
        if one in {mark + another for mark in "不无未非勿忌禁止抗"}
    ]
    assert negated == []
