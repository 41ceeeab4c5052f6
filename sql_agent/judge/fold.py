"""Folds texts into one form, so that what says the same is written the same.

    fold("每次０．５克，頭暈")         # "每次500毫克,头晕"
    pieces("密封，避光。")             # (("密封", ","), ("避光", "。"))

Folded: width (NFKC), case, traditional characters (OpenCC), markup, list marks, white space,
Chinese numerals (cn2an), units of one kind, dates. Rates and fractions stay.
"""

import re
from functools import lru_cache
from importlib import import_module
from itertools import pairwise

from common.toml import table_beside
from scoring.text import UNSEEN, narrow, simplified, words_only
from sql_agent.intake.cells import TAG

TABLE = table_beside(__file__, "words.toml")
# Not the star of 5*10ml, HLA-B*58 and 10*9/L
MARKUP = re.compile(
    rf"{TAG.pattern}|&(?:nbsp|amp);|\*\*|(?<![A-Za-z0-9)克升片粒支瓶袋板盒])\*|\*(?!\d)|#|`",
    TAG.flags,
)
LIST_MARK = re.compile(
    r"(?m)^[ \t>]*(?:\d{1,2}[.、)）](?!\d)(?=\s*\S)|[-•+][ \t])"
    r"|(?<=[。;；:：])[ \t]*\d{1,2}[.、)）](?!\d)(?=\s*\S)"
    r"|(?:^|(?<=[。;；:：,，、]))[ \t]*(?:[（(]\d{1,2}[)）]|[①-⑳])(?![级期度型类])"
)
NUMBERED = re.compile(r"[（(](\d{1,2})[)）]|([①-⑳])(?![级期度型类])")
NEGATIVE = re.compile(r"[（(][ \t]*[-－−–][ \t]*[)）]")  # a result: HBsAg(-)
# Says something without a word: a result may be "+", and "❌" denies
SIGN = re.compile("[+±×≠¬❌✗✘✖🚫👎]")
HAS_WORD = re.compile(rf"[^\W_]|{SIGN.pattern}")
# The stroke of a unit (毫克∕千克). Other strokes stand between the pieces of a text
PER = "∕"
# What stands between pieces. A point, a comma or a stroke inside a number or a word does not, and
# a "~" only at an end. An emoji does.
SEPARATOR = re.compile(
    rf"(?!{SIGN.pattern})[☀-➿⬀-⯿🀀-🫿\ufe0f]|~+(?=\W|$)|\^_*\^"
    r"|[;!?、。·()\[\]{}\"“”‘《》【】「」『』\n|…]|(?<!\d)[.,:]|[.,:](?!\d)"
    r"|(?<![a-z0-9])['’]|['’](?![a-z])|—+|(?<![0-9a-z])/|/(?![0-9a-z])| - "
)

_STROKES = str.maketrans("⁄∕∶≧≦−–", "//:≥≤--")
# NFKC makes 109 of 10⁹, and MARKUP of 10<sup>9</sup>. LaTeX writes 10^{9}
_SUPERSCRIPT = re.compile(
    r"10(?:([⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|(?:<sup>|\^\{)([-−–+]?[0-9]+)(?:</sup>|\}))", re.IGNORECASE
)
_MIXED_NUMBER = re.compile("([0-9０-９]) ?(?=[½⅓⅔¼¾⅕⅛])")  # and 11/2 of 1½
_DIGIT = r"[\d零一二两三四五六七八九十百千万]"
_BETWEEN_NUMBERS = re.compile(rf"(?<={_DIGIT})，(?={_DIGIT})")
_GAPS = re.compile(r"[ \t\u3000]+")
_CHINESE_GAP = re.compile(r"(?<=[一-鿿]) (?=[一-鿿])")
_NEEDLESS_GAP = re.compile(r"(?<=[^\x00-\x7f]) | (?=[^\x00-\x7f])|(?<=\d) (?=[a-z%~])")
_PERCENT = re.compile(r"百分之(\d+(?:\.\d+)?)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DATE = re.compile(r"(?<!\d)(\d{4})[年/-](\d\d?)[月/-](\d\d?)(?!\d)日?(?: 00:00:00(?!\.))?")
_BELOW_ZERO = re.compile("(?:零下(?:摄氏)?|(?<!正)负)(?=[0-9一二两三四五六七八九十])")
_NUMERAL = re.compile(
    "(?!一(?:下|般|共|些|样|起|直|定|切))[零〇一二两三四五六七八九十百千万亿]{1,20}(?:点[零〇一二三四五六七八九]{1,9})?"
)
_EACH_DAY = re.compile(r"(?<![\d.月第])每?1(?=[日天周]\d)")  # 1日3次 is 每日3次
_TIMES = re.compile(r"(?<=[\dgl一-鿿]) ?[x*] ?(?=\d)")  # 0.5g*24片, 5 x 10ml
_SEVERAL = re.compile("[一二两三四五六七八九]{2}|[百千万亿]+")  # 两三 is about two or three
_DECIMAL = re.compile(r"(?<![\d.a-z])\d{1,15}\.\d{1,17}(?![\d.])")
_RANGE_SIGN = re.compile(r"(?<=\d)([a-zμ°%一-鿿]{0,4}?)(?:[至到~-]|—+)(?=\d)")

_UNIT: dict[str, tuple[str, float]] = {}
for _kept, _many in TABLE["units"].items():
    _UNIT |= {spelling: (_kept, factor) for spelling, factor in _many.items()}
_FIRST = {unit: spelling for spelling, unit in reversed(_UNIT.items())}  # spelling of each unit
SPELLINGS = "|".join(sorted(_UNIT, key=len, reverse=True))
_NUMBER = r"\d{1,12}(?:\.\d{1,9})?"
_QUANTITY = re.compile(
    rf"(?<![\d.])(?:({_NUMBER})({SPELLINGS})?~)?({_NUMBER})({SPELLINGS})((?:/(?:{SPELLINGS}))*)"
    "(?![a-z期夜围岁汞水])"
)


@lru_cache(maxsize=8192)
def fold(text: str) -> str:
    """Return the folded text, with its punctuation."""
    text = _MIXED_NUMBER.sub(r"\1又", _SUPERSCRIPT.sub(r"10^\1\2", UNSEEN.sub("", text)))
    text = _BETWEEN_NUMBERS.sub("|", _without_numbering(text))  # "," may be part of one
    text = MARKUP.sub("", _without_marks(NEGATIVE.sub("(阴性)", text)))
    text = simplified(text.replace("&lt;", "<").replace("&gt;", ">"))
    text = narrow(text).lower().translate(_STROKES).replace(">=", "≥").replace("<=", "≤")
    text = _DATE.sub(lambda date: "-".join(part.zfill(2) for part in date.groups()), text)
    text = _CHINESE_GAP.sub(",", _GAPS.sub(" ", text))
    text = _THOUSANDS.sub("", _NEEDLESS_GAP.sub("", text))
    text = _NUMERAL.sub(_in_digits, _BELOW_ZERO.sub("-", text))
    text = _TIMES.sub("×", _EACH_DAY.sub("每", _PERCENT.sub(r"\1%", text)))
    text = _RANGE_SIGN.sub(r"\1~", text.replace("每日", "每天"))
    text = _DECIMAL.sub(lambda number: f"{float(number[0]):.15g}", text)
    return _NEEDLESS_GAP.sub("", _QUANTITY.sub(_in_kept_units, text))


def _without_marks(text: str) -> str:
    """Remove the marks of lists. A number that does not count on, as in 内科：20、张三, stays."""
    counted = {0}

    def cut(mark: re.Match[str]) -> str:
        number = re.search(r"\d+", narrow(mark[0]))
        if number and int(number[0]) - 1 not in counted:
            return mark[0]
        counted.add(int(number[0]) if number else 0)
        return ""

    return LIST_MARK.sub(cut, text)


def _without_numbering(text: str) -> str:
    """Remove the numbers of lists, as ①发热②头痛. A score, as 疼痛(8), stays."""
    found = [int(narrow(one or circled)) for one, circled in NUMBERED.findall(text)]
    for before, number in pairwise([0, *found]):
        if number not in (1, before + 1):
            return text
    return NUMBERED.sub("", text) if len(found) > 1 else text


def _in_digits(match: re.Match[str]) -> str:
    text = match.group()
    if _SEVERAL.fullmatch(text):
        return text
    try:
        return f"{import_module('cn2an').cn2an(text, 'smart'):.15g}"
    except (ValueError, KeyError):  # cn2an's for "十百", and for "二十零"
        return text


def _in_kept_units(match: re.Match[str]) -> str:
    first, first_unit, last, unit, strokes = match.groups()
    per = "".join(f"{PER}{_FIRST[_UNIT[below]]}" for below in strokes.split("/")[1:])
    whole = f"{_converted(last, unit)}{per}"
    return f"{_converted(first, first_unit or unit)}{per}~{whole}" if first else whole


def _converted(number: str, unit: str) -> str:
    kept, factor = _UNIT[unit]
    return f"{float(f'{float(number) * factor:.7g}'):.15g}{kept}"


@lru_cache(maxsize=8192)
def pieces(text: str) -> tuple[tuple[str, str], ...]:
    """Return the folded pieces between punctuation, each with the sign behind it.

    A question mark stays, because what is asked or doubted is not stated.
    """
    plain = fold(text)
    place = 0
    found = []
    for match in SEPARATOR.finditer(plain):
        sign = match.group().strip()
        piece = _undashed(plain[place : match.start()])
        found.append((f"{piece}?" if sign == "?" and piece else piece, sign))
        place = match.end()
    found.append((_undashed(plain[place:]), ""))
    return tuple(one for one in found if HAS_WORD.search(one[0]))


def _undashed(text: str) -> str:
    """Return the text without dashes around it. The minus before a number stays."""
    piece = text.strip(" -")
    minus = piece[:1].isdigit() and text[: text.index(piece)].endswith("-")
    return f"-{piece}" if minus else piece


def fragments(text: str) -> list[str]:
    """Return the parts between punctuation, as words with numbers and units as written."""
    parts = map(words_only, SEPARATOR.split(narrow(text)))
    return [part for part in parts if part]
