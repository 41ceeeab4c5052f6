"""Draft one question of each type with its gold: answer, SQL, the rows that SQL must return, and
the source of each quote. generate.py runs the SQL and keeps the drafts for which it does.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from data.records import compact
from recipes.questions.entities import Entity, SearchWord
from recipes.questions.wordings import ANSWERS, LABELS
from sql_agent.intake.question_files import Row
from sql_agent.tables import NAME_COLUMN


@dataclass(frozen=True)
class Draft:
    """A question before its SQL was run.

    difficulty: "hard" when called by another name, "easy" when one field is asked for in its own
    words, else "mid". columns, rows: what the SQL must return, in any order. entities: every name,
    search word and filter value the question and its answer hold. wording: the question with its
    braces still empty.
    """

    task_type: str
    difficulty: str
    question: str
    answer: str
    sql: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | None, ...], ...]
    evidence: list[dict[str, Any]]
    entities: tuple[str, ...]
    wording: str


@dataclass(frozen=True)
class Called:
    """How a question calls an entity otherwise, and the part of that which finds it in `column`."""

    text: str
    part: str
    column: str


def about_fields(
    kind: str,
    entities: Sequence[Entity],
    fields: Sequence[str],
    template: str,
    word: str,
    called: Called | None = None,
) -> Draft:
    """Return a draft about fields, called `word`, of one entity or of several of one table.

    The names are selected too if the question alone does not say which row is whose: with several
    entities, and with one called by another name, for which the SQL searches.
    """
    table = entities[0].table
    named = bool(called) or len(entities) > 1
    first = called.text if called else entities[0].name
    second = entities[-1].name
    question = template.format(name=first, first=first, second=second, field=word)
    texts = {entity.name: tuple(entity.fields[field] for field in fields) for entity in entities}
    names = ", ".join(map(_quoted, texts))
    where = f"{NAME_COLUMN[table]} " + (f"IN ({names})" if len(entities) > 1 else f"= {names}")
    columns = (NAME_COLUMN[table], *fields) if named else tuple(fields)
    easy = len(entities) == len(fields) == 1 and LABELS[fields[0]] in question
    return Draft(
        kind,
        "hard" if called else "easy" if easy else "mid",
        question,
        "；".join(_field_answer(entity, fields) for entity in entities),
        _select(columns, table, _holds(called.column, called.part) if called else where),
        columns,
        tuple((name, *line) if named else line for name, line in texts.items()),
        [
            _quote(table, entity.row_id, field, entity.fields[field])
            for entity in entities
            for field in fields
        ],
        (*texts, called.text) if called else tuple(texts),
        template,
    )


def about_word(kind: str, word: SearchWord, template: str, names: Sequence[str] | None) -> Draft:
    """Return a draft that asks for the names of the rows whose column holds a word or has a value,
    or for their number if `names` is None.
    """
    where = (
        f"{word.column} = {_quoted(word.text)}" if word.whole else _holds(word.column, word.text)
    )
    counted = names is None
    count = len(word.keys)
    column = "count" if counted else NAME_COLUMN[word.table]
    return Draft(
        kind,
        "mid",
        template.format(word=word.text),
        ANSWERS["count" if counted else "search"].format(
            word=word.text, names="、".join(names or ()), count=count
        ),
        _select(["COUNT(*) AS count" if counted else column], word.table, where),
        (column,),
        ((count,),) if names is None else tuple((name,) for name in names),
        [_quote(word.table, key, word.column, word.text) for key in word.keys],
        (word.text, *(names or ())),
        template,
    )


def without_answer(
    table: str, name: str, column: str, template: str, rows: tuple[tuple[str | None], ...]
) -> Draft:
    """Return a question without an answer. `rows` is empty, or one empty cell of a known name."""
    question = template.format(name=name)
    label = LABELS[column]
    answer = ANSWERS["unanswerable"].format(name=name, label=label)
    sql = _select([column], table, f"{NAME_COLUMN[table]} = {_quoted(name)}")
    difficulty = "easy" if label in question else "mid"
    return Draft(
        "unanswerable", difficulty, question, answer, sql, (column,), rows, [], (name,), template
    )


def _quote(table: str, row_id: int, field: str, text: str) -> dict[str, Any]:
    return {"table": table, "row_id": row_id, "field": field, "quote": text}


def _field_answer(entity: Entity, columns: Sequence[str]) -> str:
    first, *others = columns
    text = ANSWERS["field"].format(name=entity.name, label=LABELS[first], text=entity.fields[first])
    return "；".join([text, *(f"{LABELS[column]}：{entity.fields[column]}" for column in others)])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _holds(column: str, part: str) -> str:
    return f"{column} LIKE {_quoted(f'%{part}%')}"


def _select(columns: Sequence[str], table: str, where: str) -> str:
    return f"SELECT {', '.join(columns)} FROM {table} WHERE {where}"


def row_of(draft: Draft, rows: Sequence[Sequence[Any]], split: str) -> Row:
    """Return a draft and what its SQL returned as a row of the question files."""
    shared = ("question", "answer", "task_type", "difficulty", "sql", "wording")
    copied = {name: getattr(draft, name) for name in shared}
    return copied | {
        "id": f"{draft.task_type}-{hashlib.sha256(draft.question.encode()).hexdigest()[:12]}",
        "structured_gt": compact({"columns": draft.columns, "rows": rows}),
        "evidence": compact(draft.evidence),
        "entities": compact(draft.entities),
        "split": split,
    }
