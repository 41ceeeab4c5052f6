"""One question of each type with its gold: answer, SQL, the rows that SQL must return, and where each is quoted from.

Nothing here looks at a database: a `Draft` says what ought to come back, and `data/questions/confirm.py` runs the SQL
and keeps only what does. Nine types: drug_field, disease_field, multi_field, compare_drugs, compare_diseases,
drug_search_by_kw, disease_to_drug, count_filter, unanswerable.

    draft = about_field(entity, "storage", "{name}怎么保存？")
    row = row_of(draft, result, "train")
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from data.database.schema import NAME_COLUMN
from data.questions.entities import Entity
from data.questions.keywords import SearchWord
from data.questions.templates import ANSWERS, LABELS

FIELD_TYPES = {"drugs_info": "drug_field", "disease": "disease_field"}
COMPARE_TYPES = {"drugs_info": "compare_drugs", "disease": "compare_diseases"}
TASK_TYPES = (
    "drug_field", "disease_field", "multi_field", "compare_drugs", "compare_diseases", "drug_search_by_kw",
    "disease_to_drug", "count_filter", "unanswerable",
)  # fmt: skip
COLUMNS = (
    "id", "question", "answer", "task_type", "difficulty", "sql", "structured_gt", "evidence", "entities", "split",
)  # fmt: skip

Row = dict[str, str]


@dataclass(frozen=True)
class Draft:
    """A question before its SQL was run.

    columns, rows: what the SQL must return, in any order. evidence: table, row id, field, quote. entities: every name,
    search word and filter value the question and its answer hold.
    """

    task_type: str
    difficulty: str
    question: str
    answer: str
    sql: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | None, ...], ...]
    evidence: tuple[tuple[str, int, str, str], ...]
    entities: tuple[str, ...]


@dataclass(frozen=True)
class Called:
    """What an entity is called in a question when not by its name, and the part that finds it in `column`."""

    text: str
    part: str
    column: str


def quoted(text: str) -> str:
    """The text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def difficulty_of(question: str, columns: Sequence[str], called: Called | None = None) -> str:
    """ "hard" when the name is misspelt or shortened, "easy" when one field is named in its own words, else "mid"."""
    if called:
        return "hard"
    return "easy" if len(columns) == 1 and LABELS[columns[0]] in question else "mid"


def about_field(entity: Entity, column: str, template: str, called: Called | None = None) -> Draft:
    """One field of one entity. Called by another name, the SQL searches for it, and returns the name that was meant."""
    question = template.format(name=called.text if called else entity.name)
    text, name_column = entity.fields[column], NAME_COLUMN[entity.table]
    columns: tuple[str, ...] = (name_column, column) if called else (column,)
    row: tuple[str, ...] = (entity.name, text) if called else (text,)
    where = f"{called.column} LIKE {quoted(f'%{called.part}%')}" if called else f"{name_column} = {quoted(entity.name)}"
    return Draft(
        FIELD_TYPES[entity.table],
        difficulty_of(question, [column], called),
        question,
        _field_answer(entity, [column]),
        f"SELECT {', '.join(columns)} FROM {entity.table} WHERE {where}",
        columns,
        (row,),
        (_quote(entity, column),),
        (entity.name, called.text) if called else (entity.name,),
    )


def about_fields(entity: Entity, columns: Sequence[str], words: Sequence[str], template: str) -> Draft:
    """Two or three fields of one entity, called by `words`."""
    fields = "、".join(words[:-1]) + "和" + words[-1]
    return Draft(
        "multi_field",
        "mid",
        template.format(name=entity.name, fields=fields),
        _field_answer(entity, columns),
        f"SELECT {', '.join(columns)} FROM {entity.table} WHERE {NAME_COLUMN[entity.table]} = {quoted(entity.name)}",
        tuple(columns),
        (tuple(entity.fields[column] for column in columns),),
        tuple(_quote(entity, column) for column in columns),
        (entity.name,),
    )


def comparing(pair: Sequence[Entity], column: str, word: str, template: str) -> Draft:
    """One field, called by `word`, of two entities of one table."""
    first, second = pair
    name_column = NAME_COLUMN[first.table]
    names = f"({quoted(first.name)}, {quoted(second.name)})"
    return Draft(
        COMPARE_TYPES[first.table],
        "mid",
        template.format(first=first.name, second=second.name, field=word),
        "；".join(_field_answer(entity, [column]) for entity in pair),
        f"SELECT {name_column}, {column} FROM {first.table} WHERE {name_column} IN {names}",
        (name_column, column),
        tuple((entity.name, entity.fields[column]) for entity in pair),
        tuple(_quote(entity, column) for entity in pair),
        (first.name, second.name),
    )


def searching(task_type: str, word: SearchWord, names: Sequence[str], template: str) -> Draft:
    """The names of the rows whose column holds a word."""
    name_column = NAME_COLUMN[word.table]
    return Draft(
        task_type,
        "mid",
        template.format(word=word.text),
        ANSWERS["search"].format(word=word.text, names="、".join(names)),
        f"SELECT {name_column} FROM {word.table} WHERE {_condition(word)}",
        (name_column,),
        tuple((name,) for name in names),
        _word_evidence(word),
        (word.text, *names),
    )


def counting(word: SearchWord, template: str) -> Draft:
    """How many rows hold a word, or have a value."""
    return Draft(
        "count_filter",
        "mid",
        template.format(word=word.text),
        ANSWERS["count"].format(count=len(word.hits)),
        f"SELECT COUNT(*) AS count FROM {word.table} WHERE {_condition(word)}",
        ("count",),
        ((len(word.hits),),),
        _word_evidence(word),
        (word.text,),
    )


def without_answer(table: str, name: str, column: str, template: str, rows: tuple[tuple[str | None], ...]) -> Draft:
    """A question the database does not answer: `rows` is empty for an unknown name, else its one empty cell."""
    question = template.format(name=name)
    return Draft(
        "unanswerable",
        difficulty_of(question, [column]),
        question,
        ANSWERS["unanswerable"].format(name=name, label=LABELS[column]),
        f"SELECT {column} FROM {table} WHERE {NAME_COLUMN[table]} = {quoted(name)}",
        (column,),
        rows,
        (),
        (name,),
    )


def _field_answer(entity: Entity, columns: Sequence[str]) -> str:
    first, *others = columns
    text = ANSWERS["field"].format(name=entity.name, label=LABELS[first], text=entity.fields[first])
    return "；".join([text, *(f"{LABELS[column]}：{entity.fields[column]}" for column in others)])


def _quote(entity: Entity, column: str) -> tuple[str, int, str, str]:
    return entity.table, entity.row_id, column, entity.fields[column]


def _condition(word: SearchWord) -> str:
    return f"{word.column} = {quoted(word.text)}" if word.whole else f"{word.column} LIKE {quoted(f'%{word.text}%')}"


def _word_evidence(word: SearchWord) -> tuple[tuple[str, int, str, str], ...]:
    return tuple((word.table, key, word.column, word.text) for key, _ in word.hits)


def row_of(draft: Draft, rows: Sequence[Sequence[Any]], split: str) -> Row:
    """The draft as a row of the question files; `rows` is what its SQL returned. Nested values are JSON texts."""
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


def compact(value: Any) -> str:
    """JSON text without spaces."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
