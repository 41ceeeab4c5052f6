"""An answer of statements that each cite a cell of the database, and its verification.

    draft = await client.ask(build_messages(question, rows), Draft)
    evidence = verify(draft, question, rows)      # or Refused("bad_citation", "...")

Citations must be word for word in their cells and in the statement. The rest of a statement must be
short, without numbers of its own.
"""

from __future__ import annotations

import hashlib
from typing import Any

from pydantic import BaseModel

from scoring.text import numbers, words_only
from sql_agent.curation.prompts import CITED, as_json
from sql_agent.curation.queried_rows import QueriedRow
from sql_agent.gold.markup import comparable

MOST_ROWS = 20  # shown to the LLM
LONGEST_CELL = 1_500  # characters
SHORTEST_QUOTE = 2  # characters of words
# Characters a statement may add to its quotes, besides the words of question, name and field
OWN_CHARACTERS = 24


class Refused(Exception):
    """The answer cannot be verified. `reason` is a short name, the message the detail."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Citation(BaseModel, extra="forbid"):
    table: str
    row_id: int
    field: str
    quote: str


class Statement(BaseModel, extra="forbid"):
    text: str
    citations: list[Citation]


class Draft(BaseModel, extra="forbid"):
    can_answer: bool
    statements: list[Statement]


def build_messages(question: str, rows: list[QueriedRow]) -> list[dict[str, str]]:
    """Return the prompt: instructions, then question and rows as JSON between unguessable marks.

    The mark depends on the content, so the cache recognises the same question and rows.
    """
    shown = []
    for row in rows[:MOST_ROWS]:
        cells = {name: text[:LONGEST_CELL] for name, text in row.cells.items()}
        shown.append({"table": row.table, "row_id": row.row_id, **cells})
    text = as_json({"问题": question, "数据库行": shown}, indent=1)
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    user = f"----- 材料开始 {mark} -----\n{text}\n----- 材料结束 {mark} -----"
    return [{"role": "system", "content": CITED}, {"role": "user", "content": user}]


def verify(draft: Draft, question: str, rows: list[QueriedRow]) -> list[dict[str, Any]]:
    """Return the evidence [{table, row_id, field, quote}] if every statement is verified.

    Raises Refused: "declined", "uncited", "bad_citation", "not_quoted", "own_number", "own_words".
    """
    if not draft.can_answer or not draft.statements:
        raise Refused("declined", "the rows do not answer the question, says the LLM")
    by_key = {row.key: row for row in rows}
    evidence: list[dict[str, Any]] = []
    for statement in draft.statements:
        if not statement.citations:
            raise Refused("uncited", f"{statement.text[:60]!r} cites nothing")
        names = []
        for citation in statement.citations:
            row = _cited_row(citation, by_key)
            names.append(row.name)
            place = {"table": row.table, "row_id": row.row_id, "field": citation.field.lower()}
            item = {**place, "quote": citation.quote}
            if item not in evidence:
                evidence.append(item)
        _check_statement(statement, question, names)
    return evidence


def _cited_row(citation: Citation, by_key: dict[tuple[str, int], QueriedRow]) -> QueriedRow:
    place = f"{citation.table}.{citation.field} of row {citation.row_id}"
    row = by_key.get((citation.table.lower(), citation.row_id))
    cell = row.cells.get(citation.field.lower()) if row else None
    if row is None or cell is None:
        raise Refused("bad_citation", f"the agent did not read {place}, or it is empty")
    if len(words_only(citation.quote)) < SHORTEST_QUOTE:
        raise Refused("bad_citation", f"the quote {citation.quote!r} says nothing")
    if comparable(citation.quote) not in comparable(cell):
        raise Refused("bad_citation", f"{citation.quote[:60]!r} is not in {place}")
    return row


def _check_statement(statement: Statement, question: str, names: list[str]) -> None:
    shown = repr(statement.text[:60])
    quotes = [citation.quote for citation in statement.citations]
    said = words_only(statement.text)
    for quote in quotes:
        if words_only(quote) not in said:
            raise Refused("not_quoted", f"{shown} does not hold its quote {quote[:60]!r}")
    strange = numbers(statement.text) - numbers("\n".join([*quotes, question, *names]))
    if strange:
        raise Refused("own_number", f"{shown} says {min(strange):g}, which no quote says")
    for text in sorted([*quotes, *names], key=len, reverse=True):
        said = said.replace(words_only(text), "") if words_only(text) else said
    own = "".join(char for char in said if char not in words_only(question))
    if len(own) > OWN_CHARACTERS:
        raise Refused("own_words", f"{shown} says what no quote says: {own[:40]!r}")
