"""HTML in tables and answers: the text a reader sees, and a form for comparison.

plain("<p>目赤<a class='x'>头痛</a></p>")          # "目赤头痛"
comparable("ＧＯＴ 增高 <br/>") == comparable("GOT增高")
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from data.records import compact
from scoring.text import normalise
from sql_agent.intake.cells import CellError, to_text
from sql_agent.intake.question_files import Row, nested

# A text cut out of a page may begin or end inside a tag: ` data-id = '39'>胃癌` and `头痛<a class =
# 'x`.
CUT_START = re.compile(r"^[^<>]{0,300}['\"]/?>")
# Chinese outside an attribute is text: `ALT<ULN 3倍者慎用` ends in no tag.
CUT_END = re.compile(r"""<[/a-zA-Z](?:[^<>'"\u0080-\U0010ffff]|'[^'<>]*'?|"[^"<>]*"?){0,300}+$""")
MAX_TAGS = 1_000  # the parser's time grows with the square of tags left open: 0.1 s for this many
ATTRIBUTE = re.compile(r"[\w-]+\s*=\s*['\"]|^['\"]")


def plain(text: str) -> str:
    """Return the text without tags, entities, control characters and cut tags at its ends.

    `<` before a letter starts a tag. Text without HTML, or with more than MAX_TAGS tags, is
    unchanged.
    """
    start = CUT_START.match(text)
    if start and ATTRIBUTE.search(start[0]):
        text = text[start.end() :]
    return without_tags(text if text.count("<") > MAX_TAGS else CUT_END.sub("", text))


def without_tags(text: str) -> str:
    """Return the text without whole tags, entities and control characters, and never cut more."""
    if not any(mark in text for mark in "<>&") or text.count("<") > MAX_TAGS:
        return text
    try:
        return to_text(text, strip_html=True) or ""
    except CellError:
        return text


def plain_rows(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Return the rows with `plain` texts."""
    found = []
    for row in rows:
        found.append([plain(cell) if isinstance(cell, str) else cell for cell in row])
    return found


def comparable(text: str) -> str:
    """Return the text without HTML, white space, case and width, for comparison."""
    # The tool shows "<" as a full-width bracket where a tag begins. NFKC gives it back.
    return normalise(plain(unicodedata.normalize("NFKC", text)))


def without_markup(row: Row) -> Row:
    """Return the row without HTML in what people and judges read. SQL and names stay."""
    texts = {}
    for column in ("question", "answer"):
        texts[column] = without_tags(row[column]) or row[column]
    if row["evidence"]:
        items = [item | {"quote": plain(item["quote"])} for item in nested(row, "evidence")]
        texts["evidence"] = compact(items)
    if row["structured_gt"]:
        gold = nested(row, "structured_gt")
        texts["structured_gt"] = compact(gold | {"rows": plain_rows(gold["rows"])})
    return row | texts
