"""Whether the answer to a search names what it found: a question for drugs is not answered by what they are good for.

unnamed(row, results)           # None, or a Missing with the reason

Where the database has the rows, a name of theirs must be in the answer. Where nobody knows their names (evidence quotes
other columns), the answer must at least put forward a name: text that stands where names stand and is in neither the
question nor the quotes. Whether that name is right cannot be told then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from data.database.schema import NAME_COLUMN
from data.load import Row, nested
from data.questions.cited import Missing
from scoring.reference.names import mentions
from scoring.reference.text import RE, canonical, closeness, words_only
from tools.sql.query import QueryResult

SEARCHES = ("drug_search_by_kw", "disease_to_drug")
KNOWN = 0.6  # closeness from which a text counts as said before
# Where names stand: in bold, at the head of a list item, behind a colon.
PLACES = re.compile(
    r"\*\*([^*\n]{2,40})\*\*|^\s*(?:\d+[.、)]|[-*•])\s*([^*(（:：，。\n]{2,40})|(?:有|是|为|包括)[:：]([^。\n]{2,300})",
    re.MULTILINE,
)
NO_NAME = re.compile("药品|药物|资料|参考|适应症|名称|信息")
STAND_IN = "（名称未知"  # in a database made of quotes


def unnamed(row: Row, results: Sequence[QueryResult]) -> Missing | None:
    """Why the answer names nothing that was found; None if it does, or where nothing was to be found."""
    if row["task_type"] not in SEARCHES or not row["answer"]:
        return None
    evidence, gold = nested(row, "evidence"), nested(row, "structured_gt")
    tables = [(result.columns, result.rows) for result in results] + ([(gold["columns"], gold["rows"])] if gold else [])
    names = [name for columns, lines in tables for name in _names(columns, lines)]
    if names:
        said = canonical(row["answer"])
        found = any(mentions(name, names, said) for name in names)
        return None if found else Missing(f"names none of the {len(names)} found, such as {names[0]!r}", wrong=True)
    if not evidence:
        return None
    known = words_only("\n".join([row["question"], *(item["quote"] for item in evidence)]))
    if any(closeness(words_only(name), known) < KNOWN for name in _put_forward(row["answer"])):
        return Missing("the evidence holds no names to compare with the answer's", wrong=False)
    return Missing("names nothing that was found: it repeats the question and the quotes", wrong=True)


def _names(columns: Sequence[str], lines: Sequence[Sequence[Any]]) -> list[str]:
    """The names in a result, without the stand-ins of a database made of quotes."""
    places = [at for at, column in enumerate(columns) if column.lower() in NAME_COLUMN.values()]
    cells = [str(line[at]) for line in lines for at in places if line[at]]
    return [cell for cell in cells if not cell.startswith(STAND_IN)]


def _put_forward(answer: str) -> list[str]:
    texts = [part for groups in PLACES.findall(answer) for text in groups for part in text.split("、")]
    texts += RE.drug.findall(canonical(answer))
    return [text for text in texts if words_only(text) and not NO_NAME.search(text)]
