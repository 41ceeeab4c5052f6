"""One question of each type with its gold: answer, SQL, the rows that SQL must return, and where each is quoted from.

Nothing here looks at a database: a `Draft` says what ought to come back, and `data/questions/generate.py` runs the SQL
and keeps only what does.

    draft = about_field(entity, "storage", "{name}怎么保存？")
    row = row_of(draft, result, "train")
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from data.database.schema import NAME_COLUMN
from data.questions.entities import Entity
from data.questions.keywords import SearchWord
from data.questions.row import Row, compact
from data.questions.templates import ANSWERS, LABELS

FIELD_TYPES = {"drugs_info": "drug_field", "disease": "disease_field"}
COMPARE_TYPES = {"drugs_info": "compare_drugs", "disease": "compare_diseases"}

Quote = tuple[str, int, str, str]  # table, row id, field, text


@dataclass(frozen=True)
class Draft:
    """A question before its SQL was run.

    difficulty: "hard" when called by another name, "easy" when one field is asked for in its own words, else "mid".
    columns, rows: what the SQL must return, in any order. entities: every name, search word and filter value the
    question and its answer hold.
    """

    task_type: str
    difficulty: str
    question: str
    answer: str
    sql: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | None, ...], ...]
    evidence: tuple[Quote, ...]
    entities: tuple[str, ...]


@dataclass(frozen=True)
class Called:
    """What an entity is called in a question when not by its name, and the part that finds it in `column`."""

    text: str
    part: str
    column: str


def about_field(entity: Entity, column: str, template: str, called: Called | None = None) -> Draft:
    """One field of one entity. Called by another name, the SQL searches for it, and returns the name that was meant."""
    question = template.format(name=called.text if called else entity.name)
    where = _holds(called.column, called.part) if called else _is_named(entity.table, entity.name)
    return _about(FIELD_TYPES[entity.table], question, [entity], [column], where, called)


def about_fields(entity: Entity, columns: Sequence[str], words: Sequence[str], template: str) -> Draft:
    """Two or three fields of one entity, called by `words`."""
    question = template.format(name=entity.name, fields="、".join(words[:-1]) + "和" + words[-1])
    return _about("multi_field", question, [entity], columns, _is_named(entity.table, entity.name), None)


def comparing(pair: Sequence[Entity], column: str, word: str, template: str) -> Draft:
    """One field, called by `word`, of two entities of one table."""
    first, second = pair
    question = template.format(first=first.name, second=second.name, field=word)
    where = f"{NAME_COLUMN[first.table]} IN ({_quoted(first.name)}, {_quoted(second.name)})"
    return _about(COMPARE_TYPES[first.table], question, pair, [column], where, None)


def _about(
    kind: str,
    question: str,
    entities: Sequence[Entity],
    fields: Sequence[str],
    where: str,
    called: Called | None = None,
) -> Draft:
    """Fields of entities; their names are selected too where the question alone does not say whose a row is."""
    table, named = entities[0].table, bool(called) or len(entities) > 1
    columns = (NAME_COLUMN[table], *fields) if named else tuple(fields)
    texts = {entity.name: tuple(entity.fields[field] for field in fields) for entity in entities}
    easy = len(entities) == len(fields) == 1 and LABELS[fields[0]] in question
    return Draft(
        kind,
        "hard" if called else "easy" if easy else "mid",
        question,
        "；".join(_field_answer(entity, fields) for entity in entities),
        _select(columns, table, where),
        columns,
        tuple((name, *line) if named else line for name, line in texts.items()),
        tuple((table, entity.row_id, field, entity.fields[field]) for entity in entities for field in fields),
        (*texts, called.text) if called else tuple(texts),
    )


def searching(kind: str, word: SearchWord, names: Sequence[str], template: str) -> Draft:
    """The names of the rows whose column holds a word."""
    answer = ANSWERS["search"].format(word=word.text, names="、".join(names))
    return _about_word(kind, word, template, answer, NAME_COLUMN[word.table], names)


def counting(word: SearchWord, template: str) -> Draft:
    """How many rows hold a word, or have a value."""
    answer = ANSWERS["count"].format(count=len(word.keys))
    return _about_word("count_filter", word, template, answer, "count", None)


def _about_word(
    kind: str, word: SearchWord, template: str, answer: str, column: str, names: Sequence[str] | None
) -> Draft:
    """The names that a search finds; None: how many it finds."""
    where = f"{word.column} = {_quoted(word.text)}" if word.whole else _holds(word.column, word.text)
    return Draft(
        kind,
        "mid",
        template.format(word=word.text),
        answer,
        _select(["COUNT(*) AS count" if names is None else column], word.table, where),
        (column,),
        ((len(word.keys),),) if names is None else tuple((name,) for name in names),
        tuple((word.table, key, word.column, word.text) for key in word.keys),
        (word.text, *(names or ())),
    )


def without_answer(table: str, name: str, column: str, template: str, rows: tuple[tuple[str | None], ...]) -> Draft:
    """A question the database does not answer: `rows` is empty for an unknown name, else its one empty cell."""
    question = template.format(name=name)
    return Draft(
        "unanswerable",
        "easy" if LABELS[column] in question else "mid",
        question,
        ANSWERS["unanswerable"].format(name=name, label=LABELS[column]),
        _select([column], table, _is_named(table, name)),
        (column,),
        rows,
        (),
        (name,),
    )


def _field_answer(entity: Entity, columns: Sequence[str]) -> str:
    first, *others = columns
    text = ANSWERS["field"].format(name=entity.name, label=LABELS[first], text=entity.fields[first])
    return "；".join([text, *(f"{LABELS[column]}：{entity.fields[column]}" for column in others)])


def _quoted(text: str) -> str:
    """The text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def _is_named(table: str, name: str) -> str:
    return f"{NAME_COLUMN[table]} = {_quoted(name)}"


def _holds(column: str, part: str) -> str:
    return f"{column} LIKE {_quoted(f'%{part}%')}"


def _select(columns: Sequence[str], table: str, where: str) -> str:
    return f"SELECT {', '.join(columns)} FROM {table} WHERE {where}"


def row_of(draft: Draft, rows: Sequence[Sequence[Any]], split: str) -> Row:
    """The draft as a row of the question files; `rows` is what its SQL returned."""
    evidence = [dict(zip(("table", "row_id", "field", "quote"), item, strict=True)) for item in draft.evidence]
    return {
        "id": f"{draft.task_type}-{hashlib.sha256(draft.question.encode()).hexdigest()[:12]}",
        "question": draft.question,
        "answer": draft.answer,
        "task_type": draft.task_type,
        "difficulty": draft.difficulty,
        "sql": draft.sql,
        "structured_gt": compact({"columns": draft.columns, "rows": rows}),
        "evidence": compact(evidence),
        "entities": compact(draft.entities),
        "split": split,
    }
