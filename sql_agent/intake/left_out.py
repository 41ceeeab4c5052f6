"""Rows of people's tables that are none of their rows: totals, section titles and signatures, and
names of columns that stand once more (on each page, in a second language, as numbers).
"""

import re
import unicodedata
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from data.records import Record, SourceError
from sql_agent.intake.cells import CellError, to_text
from sql_agent.intake.headers import claims, is_word
from sql_agent.tables import NAME_COLUMN

# 3种, 3 个品种, 1,280.50元, 三种药品
COUNT = r"[-+¥￥$]?(?:[\d,，]++(?:\.\d++)?|[一二三四五六七八九十百千万]++|[零壹贰叁肆伍陆柒捌玖拾佰仟万亿圆元角分整]++)\s*+"
ROWS = r"[个种类项条例份]?(?:品种|品规|种类|药品|疾病|病种|记录)|items?|rows?|entries|drugs?|diseases?|records?"
COUNTED = rf"{COUNT}(?:{ROWS})"
AMOUNT = rf"{COUNT}(?:%|万?元整?|{ROWS}|[个种类项条行例份盒瓶支袋箱片粒])?"
# A cell that is nothing but such a word, or the word with an amount, beside numbers and empty cells
TOTAL = re.compile(
    r"(?:(?:药品|疾病|品种|品规|数量|金额|本页|以上)?(?:[合总小共累]\s*计|总\s*[数额量])|品种数|总金额|平均值?|均值"
    r"|(?:grand\s+)?totals?|sub-?\s?totals?|sum|average|mean)"
    r"(?:金额|数量|品种数?|人民币|[（(][^（()）]{1,4}[)）])*+"
    rf"\s*[:：=为]?\s*(?:共\s*)?(?:{AMOUNT}(?:\s*[,，、;；]?\s*{AMOUNT})?)?\s*[。.]?"
    rf"|[（(]?\s*共?\s*(?:{COUNTED})\s*[)）]?\s*[。.]?",
    re.IGNORECASE,
)
LONGEST_TOTAL = 60  # characters
# Those who sign, by their post or by what they did: 药剂科主任, 采购员
POST = (
    r"(?:主任|院长|科长|处长|部长|所长|站长|店长|组长|护士长|经理|主管|药师|医师|医生|护士|会计|出纳"
    r"|(?:保管|库管|仓管|采购|验收|调配|发药|配药|领药|录入|编制|编写|起草|批准|审批|审定|签发|审查"
    r"|联系|盘点|移交|接收|交接|管理|制单|制表|填表|审核|复核|校对|经办|负责|统计|填报|核对)[人员者]员?)"
)
# 王, 张三丰, 买买提·阿卜杜拉, ____, 王芳（签字）, 王芳 2024年5月1日; no longer ones, which may be drugs
PERSON = r"[一-鿿]{0,4}(?:·[一-鿿]{1,8})*(?=$|[\s\d（(_＿/、,，;；])"
DONE = r"(?:制表|填表|审核|复核|校对|经办|负责|统计|打印|填报|核对)"
DONE_BY = r"(?:prepared|printed|approved|checked|signed|reviewed)\s+(?:by|on|at)\b"
# A cell that begins so, alone in its row or beside others of its kind
SIGNED = re.compile(
    rf"{DONE}(?:人|者|单位|日期|时间)?\s*[:：]"
    r"|(?:日期|签名|签字|盖章|备注|说明|数据来源|资料来源|注)\s*[\d一二三四五六七八九十]{0,2}\s*[:：]"
    rf"|[一-鿿]{{0,10}}{POST}(?:签[字名章]|[（(]签[字名章][)）])?\s*[:：]\s*{PERSON}"
    r"|(?:\w+ ){0,3}(?:director|pharmacist|manager|supervisor|physician|accountant)\s*:|signature\s*:|date\s*:"
    rf"|第\s*\d+\s*页|共\s*\d+\s*[页条行]|{DONE_BY}|page\s+\d+|source\s*:|notes?\s*:",
    re.IGNORECASE,
)
TITLE = re.compile(
    # ※ begins a note here, and the name of a drug elsewhere: ※注射用头孢曲松
    r"※\s*(?:注(?!射)|说明|备注|以上|表示|代表|带[星※]|标[有注记]|为国)"
    r"|[\W_]*以下(?:空白|无正文|无内容|无记录)[\W_]*$|以[上下](?:为|是|共|均|数据|价格|信息|内容)"
    r"|[\W_]*end(?:\s+of\b.*)?[\W_]*$"
    r"|[（(]?[一二三四五六七八九十]{1,3}[）)、.．]|第[一二三四五六七八九十]{1,3}[章节类部]",
    re.IGNORECASE,
)
# A cell that only says what the next cell holds: 制表人, 审核：, 数据来源, Prepared by:
LABEL = re.compile(
    rf"(?:{DONE}(?:[人者]|单位|日期|时间)|签名|签字|盖章|数据来源|资料来源|{DONE_BY})\s*[:：]?"
    rf"|(?:{DONE}|[一-鿿]{{0,10}}{POST}|日期|signature|date|source)\s*[:：]",
    re.IGNORECASE,
)
LONGEST_VALUE = 20  # characters in the cell after a label
# 2026-11-28 08:00, 2026年11月, 28/11/2026, Nov 28, 2026, 电话：010-12345678, 13912345678
DATE_OR_TELEPHONE = re.compile(
    r"(?:\d{4}\s*[-/.年]\s*\d{1,2}(?:\s*[-/.月]\s*\d{1,2})?\s*[日月]?|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
    r"|[a-z]{3,9}\.?\s\d{1,2},?\s\d{4}|\d{1,2}\s[a-z]{3,9}\.?,?\s\d{4})(?:[\sT]+\d{1,2}:\d{2}(?::\d{2})?)?"
    r"|(?:(?:联系)?(?:电话|手机|方式)|tel(?:ephone)?|phone|mobile)?\s*[:：.]?\s*[+（(]?\d[\d\s()（）-]{6,18}",
    re.IGNORECASE,
)
NUMBER = re.compile(AMOUNT, re.IGNORECASE)
NUMBERINGS = ("甲乙丙丁戊己庚辛壬癸", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
LEAST_NUMBERED = 3  # columns
LONGEST_NUMBER = 4  # characters, such as (12)


def is_footer(values: Mapping[str, Any], merged: bool = False) -> bool:
    """Return whether a row is a total beside numbers, or a lone signature, note or title.

    merged: the row is one cell over several columns.
    """
    texts = [str(value).strip() for value in values.values() if value is not None]
    texts = [text for text in texts if text]
    words = [text for text in texts if not NUMBER.fullmatch(text)]
    totals = [word for word in words if len(word) <= LONGEST_TOTAL and TOTAL.fullmatch(word)]
    if totals and all(word in totals or _is_said(word) for word in words):
        return True
    if words and len(words) == len(texts) and (merged or all(map(_is_said, words))):
        return True
    return _is_signature(texts)


def _is_said(text: str) -> bool:
    return bool(SIGNED.match(text) or TITLE.match(text))


def _is_signature(texts: list[str]) -> bool:
    """Return whether those who sign stand first, and beside them only others, dates, telephones
    and what a label asks for.
    """
    if not texts or not (SIGNED.match(texts[0]) or LABEL.fullmatch(texts[0])):
        return False
    return all(
        SIGNED.match(text)
        or LABEL.fullmatch(text)
        or DATE_OR_TELEPHONE.fullmatch(text)
        or (LABEL.fullmatch(before) and len(text) <= LONGEST_VALUE)
        for before, text in pairwise(texts)
    )


def is_heading(record: Record, mapping: Mapping[str, str], table: str) -> bool:
    """Return whether the cells of a row are names of columns, or their numbers.

    Raises SourceError: they name other columns than the header, so another table begins here.
    """
    named = next(source for source, column in mapping.items() if column == NAME_COLUMN[table])
    first = readable(record.values.get(named))
    is_name = _names_a_column(named, first)
    if not (is_name or 0 < len(first) <= LONGEST_NUMBER):
        return False
    cells = {source: readable(value) for source, value in record.values.items()}
    filled = {source: cell for source, cell in cells.items() if cell}
    if _are_numbers(list(filled.values())):
        return True
    names = [source for source, cell in filled.items() if _names_a_column(source, cell)]
    if not is_name or 2 * len(names) <= len(filled) or (len(filled) == 1 and first != named):
        return False
    for source in names:
        meant = claims(filled[source], table) if filled[source] != source else {}
        if meant and source in mapping and mapping[source] not in meant:
            raise SourceError(
                f"row {record.number}: {filled[source]!r} stands below {source!r}, so a table with "
                "other columns begins there; give each table a sheet or file of its own"
            )
    return True


def readable(value: Any) -> str:
    """Return a cell as text, "" for one that cannot be stored."""
    try:
        return to_text(value) or ""
    except CellError:
        return ""


def _names_a_column(source: str, cell: str) -> bool:
    return bool(cell) and (cell == source or is_word(cell))


def _are_numbers(cells: list[str]) -> bool:
    """Return whether cells are such as 1, 2, 3 or (1), (2), (3) or ①, ②, ③ or 甲, 乙, 丙."""
    if len(cells) < LEAST_NUMBERED or any(len(cell) > LONGEST_NUMBER for cell in cells):
        return False
    plain = [unicodedata.normalize("NFKC", cell).strip("()[]【】 ").upper() for cell in cells]
    numbers = [str(number) for number in range(1, len(cells) + 1)]
    return plain == numbers or "".join(plain) in {text[: len(cells)] for text in NUMBERINGS}
