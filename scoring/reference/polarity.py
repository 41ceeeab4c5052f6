"""Whether a clause of an answer says the same as a clause of gold, or its opposite: prohibitions, negations, antonyms.

agreement("孕妇禁用", "孕妇可用")                      # 0.0
agreement("孕妇禁用", "有孕妇的话不能用")               # 1.0
agreement("25度以下阴凉处保存", "25度以上阴凉处保存")   # 0.2

Word lists, not grammar: a denial phrased without these words, irony and double negation are not seen.
"""

from __future__ import annotations

import re
from functools import lru_cache

# What says no without denying anything.
HARMLESS = re.compile(
    r"不良反应|不良|不适|不舒服|不全|不足|不明|不仅|不但|不同|不少|不详|不等|不耐受|不稳|不规则|不宁|不振|不孕|不育|不动"
    r"|非常|除非|非甾体|无菌|无论|无力|无症状|未成年|未见异常|没关系|够不到|不缓解|不止|不退|不消|不愈|不建议自行|不确定"
)
NEEDLESS = re.compile(r"(?:无需|不需要?|不必|不用)(?!于)")
ALLOW = re.compile(r"(?<!不)(?:可用|可以|可服|能用|可使用)|放心|均可|没有禁忌|无禁忌")
BAN = re.compile(
    r"禁用|禁止|禁忌|禁服|严禁|不能|不可(?!缺)|不得|不应|不宜|不要|不适合|不建议|忌|勿|避免|防止|别(?!人|的|是)|不(?:一起|同服)"
)
FORBIDDEN = re.compile(r"禁用|禁止|禁服|严禁|忌(?!口)")
CAUTION = re.compile(r"慎用|谨慎|慎服|慎")
DENY = re.compile(r"没有|没|无|未|不|并非|非")
INEFFECTIVE = re.compile(r"(?:不能|不可以?|不)(?:治|用于|引起|导致|会)|不能缓解")

EXCLUDES = re.compile(r"不能|不要|不宜|不可|不得|不建议|除.*(?:以外|之外|外)")

FLIPPED, DOUBTFUL = 0.0, 0.2
SOFTER = 0.4

# Either word instead of the other turns a statement around.
ANTONYMS = (
    ("以上", "以下"), ("升高", "降低"), ("偏高", "偏低"), ("增加", "减少"), ("增强", "减弱"), ("增多", "减少"),
    ("加重", "减轻"), ("延长", "缩短"), ("饭前", "饭后"), ("餐前", "餐后"), ("睡前", "睡后"), ("轻度", "重度"),
    ("中度", "重度"), ("轻度", "中度"), ("急性", "慢性"), ("常见", "罕见"), ("高盐", "低盐"), ("过多", "不足"),
    ("空腹", "随餐"), ("阳性", "阴性"), ("加快", "减慢"), ("有关", "无关"), ("上升", "下降"), ("左侧", "右侧"),
    ("突然", "缓慢"), ("高脂", "低脂"), ("高糖", "低糖"), ("收缩", "舒张"),
)  # fmt: skip


def agreement(gold: str, answer: str) -> float:
    """How far the answer's clause keeps the sense of gold's, in [0, 1]; both canonical, both about the same thing."""
    return min(_stance(_marks(gold), _marks(answer)), _antonyms(gold, answer))


def denies(clause: str) -> bool:
    """Whether the clause says that something is not so."""
    marks = _marks(clause)
    return marks["deny"] or marks["ineffective"] or EXCLUDES.search(clause) is not None


@lru_cache(maxsize=4096)
def _marks(clause: str) -> dict[str, bool]:
    """Which kinds of words the clause has, each counted as the strongest kind it belongs to."""
    rest = HARMLESS.sub("", clause)
    marks = {"ineffective": INEFFECTIVE.search(rest) is not None, "forbidden": FORBIDDEN.search(rest) is not None}
    for name, pattern in (("needless", NEEDLESS), ("allow", ALLOW), ("ban", BAN), ("caution", CAUTION), ("deny", DENY)):
        marks[name] = pattern.search(rest) is not None
        rest = pattern.sub("", rest)
    return marks


def _stance(gold: dict[str, bool], answer: dict[str, bool]) -> float:
    """Gold prohibits, cautions, denies, or states; whether the answer does the same."""
    freed = (answer["allow"] or answer["needless"]) and not answer["ban"]
    if gold["ban"] or gold["caution"]:
        if freed and not (gold["allow"] or gold["needless"]):
            return FLIPPED
        if gold["ban"]:
            return 1.0 if answer["ban"] or answer["deny"] else _unspoken(gold, answer)
        return SOFTER if answer["forbidden"] else 1.0
    if gold["deny"]:
        return 1.0 if answer["deny"] or answer["ban"] else SOFTER
    return FLIPPED if answer["deny"] or answer["needless"] or answer["ineffective"] else 1.0


def _unspoken(gold: dict[str, bool], answer: dict[str, bool]) -> float:
    """Gold's prohibition is not repeated: fine where the question asked for it, not for "avoid this"."""
    if answer["caution"]:
        return DOUBTFUL
    return 1.0 if gold["forbidden"] else SOFTER


def _antonyms(gold: str, answer: str) -> float:
    for pair in ANTONYMS:
        for word, opposite in (pair, pair[::-1]):
            if word in gold and word not in answer and opposite in answer and opposite not in gold:
                return DOUBTFUL
    return 1.0
