"""Totals, section titles and signatures between or below the rows of people's tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# A cell that is nothing but such a word, beside numbers and empty cells
TOTAL = re.compile(
    r"(?:合|总|小|共|累)\s*计|总\s*数|本页\s*[合小]计|平均值?|均值"
    r"|(?:grand\s+)?totals?|sub-?\s?totals?|sum|average|mean",
    re.IGNORECASE,
)
# A cell that begins so, alone in its row or beside others of its kind
SIGNED = re.compile(
    r"(?:制表|填表|审核|复核|校对|经办|负责|统计|打印|填报|核对)(?:人|者|单位|日期|时间)?\s*[:：]"
    r"|(?:日期|签名|签字|盖章|备注|说明|数据来源|资料来源|注)\s*[:：]"
    r"|第\s*\d+\s*页|共\s*\d+\s*[页条行]"
    r"|(?:prepared|printed|approved|checked|signed|reviewed)\s+(?:by|on|at)\b|page\s+\d+|source\s*:|notes?\s*:"
    r"|[（(]?[一二三四五六七八九十]{1,3}[）)、.．]|第[一二三四五六七八九十]{1,3}[章节类部]",
    re.IGNORECASE,
)
NUMBER = re.compile(r"[-+]?[\d,]+(?:\.\d+)?\s*(?:%|元|盒|瓶|种|条|个)?")


def is_footer(values: Mapping[str, Any], merged: bool = False) -> bool:
    """Return whether a row is a total beside numbers, or a lone signature, note or title.

    merged: the row is one cell over several columns.
    """
    texts = [str(value).strip() for value in values.values() if value is not None]
    texts = [text for text in texts if text]
    words = [text for text in texts if not NUMBER.fullmatch(text)]
    if len(words) == 1 and TOTAL.fullmatch(words[0].rstrip(":： ")):
        return True
    if not words or len(words) < len(texts):
        return False
    return merged or all(map(SIGNED.match, words))
