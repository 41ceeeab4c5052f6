"""Make the question files from the database: train, validation and test, with no entity in two of them.

Each question asks for one field of one invented drug or disease (task types drug_field, disease_field). Its gold
answer, the SQL that finds it and the quoted field come from the row itself, and every row is checked against the
database before anything is written (data/check.py).

    python -m data.build_dataset            # data/{train,val,test}.parquet and data/qa_dataset.jsonl
    python -m data.build_dataset --force    # replaces them
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from data.build_database import DEFAULT_PATH, HERE
from data.check import check_rows
from data.fictional import SEED
from data.schema import ASKABLE, FICTIONAL, NAME_COLUMN, metadata
from data.templates import LABELS, QUESTIONS

# Rows of each file, and its share of the drugs and of the diseases.
SPLITS = {"train": (480, 0.6), "val": (64, 0.1), "test": (240, 0.3)}
TASK_TYPES = {"drugs_info": "drug_field", "disease": "disease_field"}
COLUMNS = (
    "id", "question", "answer", "task_type", "difficulty", "sql", "structured_gt", "evidence", "entities", "split",
)  # fmt: skip

Row = dict[str, str]


@dataclass(frozen=True)
class Entity:
    """One row of the database: its table, key, name and the texts of the columns that may be asked for."""

    table: str
    row_id: int
    name: str
    fields: dict[str, str]


def read_entities(database: Path) -> list[Entity]:
    """Every invented drug and disease of the SQLite file, ordered by table and key; nothing is asked of real ones."""
    from sqlalchemy import create_engine, select

    tables = metadata().tables
    engine = create_engine(f"sqlite:///{database}")
    entities = []
    with engine.connect() as connection:
        for name, columns in ASKABLE.items():
            columns_of = tables[name].c
            chosen = select(tables[name]).where(columns_of.source == FICTIONAL).order_by(columns_of.id)
            for row in connection.execute(chosen).mappings():
                fields = {column: row[column] for column in columns}
                entities.append(Entity(name, row["id"], row[NAME_COLUMN[name]], fields))
    engine.dispose()
    return entities


def split_entities(entities: list[Entity], rng: random.Random) -> dict[str, list[Entity]]:
    """Deal the entities out by the shares of SPLITS, table by table; each goes to exactly one split."""
    dealt: dict[str, list[Entity]] = {split: [] for split in SPLITS}
    for table in ASKABLE:
        members = [entity for entity in entities if entity.table == table]
        rng.shuffle(members)
        start = 0
        for split, (_, share) in SPLITS.items():
            end = start + round(len(members) * share)
            dealt[split] += members[start:end]
            start = end
    return dealt


def make_row(entity: Entity, column: str, template: str, split: str) -> Row:
    """One question with its gold answer, SQL, result and evidence; nested values are JSON texts."""
    question = template.format(name=entity.name)
    text = entity.fields[column]
    task_type = TASK_TYPES[entity.table]
    evidence = [{"table": entity.table, "row_id": entity.row_id, "field": column, "quote": text}]
    return {
        "id": f"{task_type}-{hashlib.sha256(question.encode()).hexdigest()[:10]}",
        "question": question,
        "answer": f"{entity.name}的{LABELS[column]}：{text}",
        "task_type": task_type,
        # Naming the field in its own words is the easy case; everyday words have to be understood first.
        "difficulty": "easy" if LABELS[column] in question else "mid",
        "sql": f"SELECT {column} FROM {entity.table} WHERE {NAME_COLUMN[entity.table]} = '{entity.name}'",
        "structured_gt": _compact({"columns": [column], "rows": [[text]]}),
        "evidence": _compact(evidence),
        "entities": _compact([entity.name]),
        "split": split,
    }


def make_split(split: str, entities: list[Entity], count: int, rng: random.Random) -> list[Row]:
    """`count` questions about the given entities: fields and phrasings in equal shares, no entity's field twice."""
    fields = [(table, column) for table, columns in ASKABLE.items() for column in columns]
    queues = {}
    for table, column in fields:
        members = [entity for entity in entities if entity.table == table]
        rng.shuffle(members)
        phrasings = list(QUESTIONS[column])
        rng.shuffle(phrasings)
        queues[column] = zip(members, cycle(phrasings))
    rows = []
    for (_, column), _ in zip(cycle(fields), range(count)):
        entity, template = next(queues[column])
        rows.append(make_row(entity, column, template, split))
    rng.shuffle(rows)
    return rows


def make_dataset(database: Path, seed: int = SEED) -> dict[str, list[Row]]:
    """All rows by split; the same database and seed give the same rows."""
    rng = random.Random(seed)
    dealt = split_entities(read_entities(database), rng)
    return {split: make_split(split, dealt[split], count, rng) for split, (count, _) in SPLITS.items()}


def write_dataset(folder: Path, splits: dict[str, list[Row]]) -> None:
    """Write one Parquet file a split and qa_dataset.jsonl with all rows; each file appears complete or not at all."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    schema = arrow.schema([(column, arrow.string()) for column in COLUMNS])
    for split, rows in splits.items():
        target = folder / f"{split}.parquet"
        parquet.write_table(arrow.Table.from_pylist(rows, schema=schema), _temporary(target))
        os.replace(_temporary(target), target)
    target = folder / "qa_dataset.jsonl"
    lines = [_compact(row) + "\n" for rows in splits.values() for row in rows]
    _temporary(target).write_text("".join(lines), encoding="utf-8")
    os.replace(_temporary(target), target)


def _temporary(target: Path) -> Path:
    return target.with_name(f"{target.name}.{os.getpid()}.tmp")


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def main(arguments: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Make train, validation and test questions from the database.")
    parser.add_argument("--database", type=Path, default=DEFAULT_PATH, help="SQLite file (default: data/medical.db)")
    parser.add_argument("--output", type=Path, default=HERE, help="folder to write to (default: data/)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"same seed, same rows (default: {SEED})")
    parser.add_argument("--force", action="store_true", help="replace existing files")
    options = parser.parse_args(arguments)
    names = [f"{split}.parquet" for split in SPLITS] + ["qa_dataset.jsonl"]
    present = [name for name in names if (options.output / name).exists()]
    if present and not options.force:
        print(f"{options.output} already has {', '.join(present)}; give --force to replace them", file=sys.stderr)
        return 2
    if not options.database.is_file():
        print(f"no database at {options.database}: run python -m data.build_database first", file=sys.stderr)
        return 2
    splits = make_dataset(options.database, options.seed)
    problems = check_rows([row for rows in splits.values() for row in rows], f"sqlite:///{options.database.resolve()}")
    if problems:
        print("nothing written; rows the database does not confirm:", *problems[:10], sep="\n  ", file=sys.stderr)
        return 1
    try:
        write_dataset(options.output, splits)
    except OSError as error:
        print(f"cannot write to {options.output}: {error}", file=sys.stderr)
        return 1
    for split, rows in splits.items():
        kinds = Counter(row["task_type"] for row in rows)
        print(f"{split}: {len(rows)} rows, " + ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
