"""Whether the answer to a search names what it found. A question for drugs is not answered by their
uses.

unnamed(row, results)           # None, or a Missing with the reason

If the names are unknown (evidence quotes other columns), the answer must at least give a name: a
text in the position of a name that occurs in neither the question nor the quotes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from scoring.text import words_only
from sql_agent.gold.cited import Missing
from sql_agent.intake.question_files import Row, nested
from sql_agent.judge.closeness import closeness
from sql_agent.judge.fold import fold
from sql_agent.tables import NAME_COLUMN
from tools.sql.query import QueryResult

SEARCHES = ("drug_search_by_kw", "disease_to_drug")
KNOWN = 0.6  # similarity from which a text counts as a repetition
# Positions of names: in bold, at the head of a list item, behind a colon
PLACES = re.compile(
    r"\*\*([^*\n]{2,40})\*\*|^\s*(?:\d+[.、)]|[-*•])\s*([^*(（:：，。\n]{2,40})|(?:有|是|为|包括)[:：]([^。\n]{2,300})",
    re.M,
)
FORM = (
    "(?:肠溶|缓释|控释|分散|咀嚼|泡腾|含|滴)?(?:片|胶囊|丸)剂?|颗粒剂?|口服液|散剂?|注射[剂液]|糖浆剂?|软膏剂?|乳膏剂?"
    "|滴眼液|喷雾剂|冲剂|混悬液|(?:吸入)?气雾剂|口服溶液"
)
DRUG = re.compile(f"[一-鿿]{{2,14}}?(?:{FORM})(?![状型步服])")
SALT = re.compile("^(?:注射用|盐酸|苯磺酸|硫酸|马来酸|枸橼酸|酒石酸|富马酸|磷酸|氢溴酸|甲磺酸)")
NO_NAME = re.compile("药品|药物|资料|参考|适应症|名称|信息")
STAND_IN = "（名称未知"  # stands for a name in a database made of quotes


def unnamed(row: Row, results: Sequence[QueryResult]) -> Missing | None:
    """Return why the answer names nothing that was found; None if it does, or there was nothing to
    find.
    """
    evidence = nested(row, "evidence")
    said = fold(row["answer"])
    names = _returned_names(row, results) or found_names(row)
    if row["task_type"] not in SEARCHES or not said or not (names or evidence):
        return None
    if names:
        texts = [fold(name) for name in names]
        found = any(_mentioned(text, texts, said) for text in texts)
        return (
            None
            if found
            else Missing(f"names none of the {len(names)} found, such as {names[0]!r}", wrong=True)
        )
    known = words_only("\n".join([row["question"], *(item["quote"] for item in evidence)]))
    texts = [
        part
        for groups in PLACES.findall(row["answer"])
        for text in groups
        for part in text.split("、")
    ]
    named = [
        text
        for text in [*texts, *DRUG.findall(said)]
        if words_only(text) and not NO_NAME.search(text)
    ]
    if any(closeness(words_only(name), known) < KNOWN for name in named):
        return Missing("the evidence holds no names to compare with the answer's", wrong=False)
    return Missing(
        "names nothing that was found: it repeats the question and the quotes", wrong=True
    )


def _mentioned(name: str, others: Sequence[str], text: str) -> bool:
    """Return whether the text has the name, or the name without salt and dosage form if no other
    name shares that.
    """
    short = SALT.sub("", re.sub(f"(?:{FORM})$", "", name))
    alone = len(short) > 2 and not any(short in other for other in others if other != name)
    return name in text or (alone and short in text)


def found_names(row: Row) -> list[str]:
    """Return the names the row is about, except those that its question gives."""
    return [name for name in nested(row, "entities") if name not in row["question"]]


def _returned_names(row: Row, results: Sequence[QueryResult]) -> list[str]:
    gold = nested(row, "structured_gt") or {"columns": [], "rows": []}
    tables = [
        (gold["columns"], gold["rows"]),
        *((result.columns, result.rows) for result in results),
    ]
    pairs = [
        pair
        for columns, lines in tables
        for line in lines
        for pair in zip(columns, line, strict=True)
    ]
    cells = [str(cell) for column, cell in pairs if column.lower() in NAME_COLUMN.values() and cell]
    return [cell for cell in cells if not cell.startswith(STAND_IN)]
