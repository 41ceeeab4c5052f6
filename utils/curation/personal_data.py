"""Personal data in a question, replaced by its kind in brackets: 我叫张三，电话13800138000 -> 我叫[姓名]，电话[电话].

    masked, kinds = mask("我叫张三，电话13800138000")       # kinds: ["name", "phone"], one a replacement

Shared by the curation scripts. Kinds: email, id_number, phone, number, wechat, qq, address, name. Digits are understood
in every script (full-width, Chinese, circled) and with spaces, hyphens, dots, commas or brackets between them. Whatever
else is found, no run of eleven digits or more stays. Names are found by pattern (我叫..., 患者..., ...医生), so a name
without any sign beside it is not found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from utils.curation.chinese_names import name_patterns, other_word

LABELS = {
    "email": "[邮箱]",
    "id_number": "[证件号]",
    "phone": "[电话]",
    "number": "[号码]",
    "wechat": "[微信号]",
    "qq": "[QQ号]",
    "address": "[地址]",
    "name": "[姓名]",
}
CHINESE_DIGITS = dict(zip("〇零一二三四五六七八九幺壹贰叁肆伍陆柒捌玖", "001234567891123456789", strict=True))
# Characters that nobody sees or that only mark another one: control, format, half, private, unassigned, combining.
UNSEEN_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Cn", "Mn", "Me"}

GAP = r"[\s\-‐‑‒–—―_.·•,、/()~]{0,3}"  # what may stand between two digits of one number
START, END = r"(?<![0-9])", r"(?![0-9])"
MOBILE = re.compile(rf"(?:(?:\+|00|\+00)?{GAP}86{GAP})?{START}1{GAP}[3-9](?:{GAP}[0-9]){{9}}{END}")
MOBILE_ABROAD = re.compile(rf"{START}(?:00)?861[3-9][0-9]{{9}}{END}")
MOBILE_STARRED = re.compile(rf"{START}1[3-9][0-9][*x#]{{3,5}}[0-9]{{3,4}}{END}")
AREA = r"0(?:10|2[0-9]|[3-9][0-9]{2})"
LANDLINE = re.compile(rf"{START}{AREA}{GAP}[2-9][0-9]{{2,3}}{GAP}[0-9]{{4}}{END}(?:{GAP}(?:转|分机){GAP}[0-9]{{1,5}})?")
SERVICE = re.compile(rf"{START}[48]00(?:-[0-9]{{3,4}}-?[0-9]{{3,4}}|[0-9]{{7}}){END}")
LOCAL_NUMBER = re.compile(rf"(?:电话|座机|固话|手机|联系方式|tel)(?:号码|号)?[是为:\s]{{0,3}}([2-9][0-9]{{6,7}}){END}")
LONG_NUMBER = re.compile(r"[0-9]{11,}x?")
RECORD_NUMBER = re.compile(
    r"(?:住院|门诊|病历|病案|就诊卡|社保卡?|医保卡?|身份证|护照|银行卡|卡|检查|登记)(?:号码|号|编号)[是为:\s]{0,3}"
    r"([a-z]{0,3}[0-9][a-z0-9]{4,})"
)
EMAIL = re.compile(r"[a-z0-9][a-z0-9._%+\-]*\s?@\s?[a-z0-9\-]+(?:\.[a-z0-9\-]+)+")
WECHAT = re.compile(
    r"(?:(?:微|薇|威|徽)(?:信|芯)|(?<![a-z])(?:wechat|weixin|vx|wx)|(?<![a-z])v信)(?:号码|账号|号|id)?[是为加:\s]{0,3}"
    r"([a-z][a-z0-9_\-]{4,19}|[0-9]{5,})"
)
QQ = re.compile(r"(?:(?<![a-z])qq|扣扣|企鹅)(?:号码|号|群)?[是为加:\s]{0,3}([1-9][0-9]{4,11})")
HAN = r"[\u4e00-\u9fa5]"
ROAD_AND_HOUSE = (
    rf"{HAN}{{1,8}}(?:路|街|大道|巷|弄|胡同|村|小区|花园|家园|新村|苑|镇|屯)(?:[0-9]{{1,5}}(?:号楼|号|弄|栋|幢|座|组|单元|室|楼|层)){{1,5}}"
    r"(?:[0-9]{1,5})?"
)
ADDRESS = re.compile(
    rf"(?:{HAN}{{2,8}}?(?:省|自治区|市))?(?:{HAN}{{1,8}}?(?:市|区|县|旗|州))?(?:{HAN}{{1,8}}?(?:镇|乡|街道))?{ROAD_AND_HOUSE}"
)
BEFORE_ADDRESS = re.compile(r".*(?:家?住[在址]?|地址[是为]?|位于|来自|搬到|寄到|[在到])")

ID_18 = re.compile(rf"{START}(?=([1-9](?:{GAP}[0-9]){{16}}{GAP}[0-9x]){END})")
ID_15 = re.compile(rf"{START}(?=([1-9](?:{GAP}[0-9]){{14}}){END})")
WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)  # GB 11643-1999
CHECK_DIGITS = "10x98765432"
BIRTHDAY = re.compile(
    r"[1-9][0-9]{5}(?:(?:18|19|20)[0-9]{2}|[0-9]{2}(?=[0-9]{7}$))(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
)

Span = tuple[int, int]


def visible(text: str) -> str:
    """The text without characters that nobody sees, each run of white space as one space."""
    kept = "".join(
        char
        for char in unicodedata.normalize("NFC", text)
        if char.isspace() or unicodedata.category(char) not in UNSEEN_CATEGORIES
    )
    return " ".join(kept.split())


def mask(text: str) -> tuple[str, list[str]]:
    """The visible text with every piece of personal data replaced, and the kind of each replacement."""
    text, kinds = visible(text), []
    for kind, find in FINDERS:
        spans = list(_apart(find(text)))
        for start, end in reversed(spans):
            text = text[:start] + LABELS[kind] + text[end:]
        kinds += [kind] * len(spans)
    return text, kinds


def _apart(spans: Iterator[Span]) -> Iterator[Span]:
    """The spans in order, those that overlap joined, empty ones left out."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif end > start:
            joined.append((start, end))
    return iter(joined)


def plain(text: str) -> str:
    """The text of the same length in lower case, with digits and punctuation of every script in ASCII."""
    return "".join(map(_plain_character, text))


def _plain_character(char: str) -> str:
    digit = unicodedata.digit(char, None)
    if digit is not None:
        return str(digit)
    simple = unicodedata.normalize("NFKC", char).lower()
    return simple if len(simple) == 1 else char


def _numerals(text: str) -> str:
    """As `plain`, Chinese numerals too."""
    return plain("".join(CHINESE_DIGITS.get(char, char) for char in text))


def _id_numbers(text: str) -> Iterator[Span]:
    text = _numerals(text)
    for pattern in (ID_18, ID_15):
        for match in pattern.finditer(text):
            if _is_id_number(re.sub(r"[^0-9x]", "", match[1])):
                yield match.span(1)


def _is_id_number(digits: str) -> bool:
    """Whether it has a birthday where an ID number has it, or 18 characters with the right check digit."""
    return bool(BIRTHDAY.match(digits)) or (len(digits) == 18 and has_check_digit(digits))


def has_check_digit(number: str) -> bool:
    """Whether the last of 18 characters is the check digit of GB 11643-1999."""
    total = sum(weight * int(digit) for weight, digit in zip(WEIGHTS, number, strict=False))
    return CHECK_DIGITS[total % 11] == number[17].lower()


def _addresses(text: str) -> Iterator[Span]:
    for start, end in _all(_numerals(text), ADDRESS):
        before = BEFORE_ADDRESS.match(text, start, start + 12)
        yield (before.end() if before else start), end


def _names(text: str) -> Iterator[Span]:
    for pattern in name_patterns():
        place = 0
        while match := pattern.search(text, place):
            start, end = match.span("name")
            word = other_word(match["name"])
            if not word:
                yield start, end
            place = start + len(word) if word else end


def _all(text: str, *patterns: re.Pattern[str]) -> Iterator[Span]:
    """Where the patterns match: their first group where they have one."""
    for pattern in patterns:
        for match in pattern.finditer(text):
            yield match.span(1 if pattern.groups else 0)


def _finder(form: Callable[[str], str], *patterns: re.Pattern[str]) -> Callable[[str], Iterator[Span]]:
    return lambda text: _all(form(text), *patterns)


# In this order: an e-mail address may hold a phone number, a WeChat id may be one.
FINDERS = (
    ("email", _finder(plain, EMAIL)),
    ("id_number", _id_numbers),
    ("wechat", _finder(plain, WECHAT)),
    ("qq", _finder(plain, QQ)),
    ("phone", _finder(_numerals, MOBILE, MOBILE_ABROAD, MOBILE_STARRED, LANDLINE, SERVICE, LOCAL_NUMBER)),
    ("number", _finder(_numerals, LONG_NUMBER, RECORD_NUMBER)),
    ("address", _addresses),
    ("name", _names),
)
