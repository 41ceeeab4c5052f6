"""Rows that are no entries: totals, titles, signatures, and names of columns once more."""

import re
import unicodedata
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from common.toml import table_beside
from data.records import Record, SourceError
from sql_agent.intake.cells import Title, readable
from sql_agent.intake.columns import Planned, guess_table
from sql_agent.intake.headers import claims, is_word

_LISTED = table_beside(__file__)


def _any_of(name: str) -> str:
    return f"(?:{'|'.join(_LISTED[name])})"


IN_WORDS = "[一二两三四五六七八九十百千万]++|[零壹贰叁肆伍陆柒捌玖拾佰仟万亿圆元角分整]++"
COUNT = rf"[-+¥￥$]?(?:[\d,，]++(?:\.\d++)?|{IN_WORDS})\s*+"
AMOUNT = rf"{COUNT}(?:{_any_of('rows')}|{_any_of('units')})?"
TOTAL = re.compile(
    rf"{_any_of('totals')}{_any_of('of_what')}*+"
    rf"\s*[:：=为]?\s*(?:共\s*)?(?:{AMOUNT}(?:\s*[,，、;；]?\s*{AMOUNT})?)?\s*[。.]?"
    rf"|[（(]?\s*共?\s*{COUNT}{_any_of('rows')}\s*[)）]?\s*[。.]?",
    re.IGNORECASE,
)
LONGEST_TOTAL = 60  # characters
POST = rf"[一-鿿]{{0,10}}(?:{_any_of('posts')}|{_any_of('signers')}[人员者]员?)"
# 王, 张三丰, 买买提·阿卜杜拉, ____, 王芳（签字）, 王芳 2024年5月1日; no longer ones, which may be drugs
PERSON = r"[一-鿿]{0,4}(?:·[一-鿿]{1,8})*(?=$|[\s\d（(_＿/、,，;；])"
DONE = rf"{_any_of('done')}(?:人|者|单位|日期|时间)"
SIGNED = re.compile(
    rf"(?:{DONE}|{_any_of('done')})\s*[:：]|{_any_of('notes')}|{_any_of('done_by')}"
    rf"|{POST}(?:签[字名章]|[（(]签[字名章][)）])?\s*[:：]\s*{PERSON}",
    re.IGNORECASE,
)
TITLE = re.compile(_any_of("titles"), re.IGNORECASE)
LABEL = re.compile(
    rf"(?:{DONE}|{_any_of('labels')}|{_any_of('done_by')})\s*[:：]?"
    rf"|(?:{_any_of('done')}|{POST}|{_any_of('labels_before_colon')})\s*[:：]",
    re.IGNORECASE,
)
LONGEST_VALUE = 20  # characters in the cell after a label
DATE_OR_TELEPHONE = re.compile(
    rf"{_any_of('dates')}(?:[\sT]+\d{{1,2}}:\d{{2}}(?::\d{{2}})?)?"
    rf"|{_any_of('telephones')}?\s*[:：.]?\s*[+（(]?\d[\d\s()（）-]{{6,18}}",
    re.IGNORECASE,
)
NUMBER = re.compile(AMOUNT, re.IGNORECASE)
BESIDE_TOTAL = re.compile(rf"共\s*{AMOUNT}|{_any_of('units')}", re.IGNORECASE)
NUMBERINGS = ("甲乙丙丁戊己庚辛壬癸", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
LEAST_NUMBERED = 3  # columns
LONGEST_NUMBER = 4  # characters, such as (12)


def is_footer(values: Mapping[str, Any]) -> bool:
    """Return whether a row is a total beside numbers, or a lone signature, note or title."""
    titles = [value for value in values.values() if isinstance(value, Title)]
    if titles and not NUMBER.fullmatch(titles[0].strip()):
        return True
    texts = [str(value).strip() for value in values.values() if value is not None]
    texts = [text for text in texts if text]
    words = [text for text in texts if not NUMBER.fullmatch(text)]
    totals = [word for word in words if len(word) <= LONGEST_TOTAL and TOTAL.fullmatch(word)]
    beside = [word for word in words if word not in totals and not BESIDE_TOTAL.fullmatch(word)]
    if totals and all(map(_is_said, beside)):
        return True
    if words and len(words) == len(texts) and all(map(_is_said, words)):
        return True
    return _is_signature(texts)


def _is_said(text: str) -> bool:
    return bool(SIGNED.match(text) or TITLE.match(text))


def _is_signature(texts: list[str]) -> bool:
    if not texts or not (SIGNED.match(texts[0]) or LABEL.fullmatch(texts[0])):
        return False
    return all(
        SIGNED.match(text)
        or LABEL.fullmatch(text)
        or DATE_OR_TELEPHONE.fullmatch(text)
        or (LABEL.fullmatch(before) and len(text) <= LONGEST_VALUE)
        for before, text in pairwise(texts)
    )


def is_heading(record: Record, item: Planned) -> bool:
    """Return whether the cells of a row are names of columns, or their numbers.

    Raises SourceError: they name other columns than the header, so another table begins here.
    """
    first = readable(record.values.get(item.named))
    is_name = _names_a_column(item.named, first)
    if not (is_name or 0 < len(first) <= LONGEST_NUMBER):
        return False
    cells = {source: readable(value) for source, value in record.values.items()}
    filled = {source: cell for source, cell in cells.items() if cell}
    if _are_numbers(list(filled.values())):
        return True
    names = [source for source, cell in filled.items() if _names_a_column(source, cell)]
    if not is_name or 2 * len(names) <= len(filled) or (len(filled) == 1 and first != item.named):
        return False
    is_other = first != item.named and guess_table([first]) not in (None, item.table)
    others = [item.named] if is_other else []
    for source in names:
        meant = claims(filled[source], item.table) if filled[source] != source else {}
        if meant and source in item.mapping and item.mapping[source] not in meant:
            others.append(source)
    if others:
        raise SourceError(
            f"row {record.number}: {filled[others[0]]!r} stands below {others[0]!r}, so a table with "
            "other columns begins there; give each table a sheet or file of its own"
        )
    return True


def _names_a_column(source: str, cell: str) -> bool:
    return bool(cell) and (cell == source or is_word(cell))


def _are_numbers(cells: list[str]) -> bool:
    if len(cells) < LEAST_NUMBERED or any(len(cell) > LONGEST_NUMBER for cell in cells):
        return False
    plain = [unicodedata.normalize("NFKC", cell).strip("()[]【】 ").upper() for cell in cells]
    numbers = [str(number) for number in range(1, len(cells) + 1)]
    return plain == numbers or "".join(plain) in {text[: len(cells)] for text in NUMBERINGS}
