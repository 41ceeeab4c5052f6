"""Draws a small database for EHRSQL's questions, because its own rows need a licence.

    draw_database(path, schema, statements, now="2105-12-31 23:59:00")

Each statement's witness (`witness.py`) is written two to six times with the same named patients and
varying events. The same input gives the same database.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from sqlglot import exp

from sql_agent.ehrsql.schema import Schema, Table
from sql_agent.ehrsql.witness import Cell, Condition, Row, Witness, witness_of

Known = dict[str, Any]  # values of a row, by column
Values = dict[Cell, Any]

FEWEST_COPIES = 2  # of a witness
MOST_COPIES = 6
TRIES = 6  # of a copy whose conditions were not met
DAYS = 2300  # before now from which times are drawn. The questions go back for about six years
RECENT_DAYS = 3  # questions ask about today and yesterday
TIMES_OF_A_DAY = 8
FIRST_KEY = 500_000  # of keys that no statement names
OLD_PARENT = 0.6  # share of events without a patient of their own that go to a written one
NUMBERS = ("DOUBLE", "NUMERIC", "DECIMAL", "REAL", "FLOAT")  # types of fractions
FILLED = 0.9  # share of cells that are not NULL where they may be


def draw_database(path: Path, schema: Schema, statements: Sequence[str], now: str) -> None:
    """Write the database for statements as the benchmark runs them, at its current time."""
    witnesses = [witness for sql in statements if (witness := witness_of(sql, schema))]
    drawing = _Drawing(schema, now, witnesses)
    for witness in witnesses:
        drawing.add(witness)
    drawing.write(path)


class _Drawing:
    """The rows drawn so far. SQLite decides conditions, by its rules for dates and texts."""

    def __init__(self, schema: Schema, now: str, witnesses: Sequence[Witness]) -> None:
        self.schema = schema
        self.random = Random(0)
        # A time of each day, and several of the last days
        last = datetime.fromisoformat(now)
        midnight = last.replace(hour=0, minute=0, second=0)
        last_minute = last.hour * 60 + last.minute
        self.times: list[str] = []
        for day in [*range(DAYS), *list(range(RECENT_DAYS)) * TIMES_OF_A_DAY]:
            minute = timedelta(minutes=self.random.randrange(last_minute))
            self.times.append((midnight - timedelta(days=day) + minute).isoformat(" "))
        self.constants: defaultdict[tuple[str, str], set[Any]] = defaultdict(set)
        for witness in witnesses:
            for row in witness.rows:
                for column, cell in row.cells.items():
                    self.constants[row.table.name, column].update(cell.constants, cell.compared)
        self._next_key: Counter[str] = Counter()
        self._fitting: dict[tuple[str, ...], list[Any]] = {}
        self._rows = sqlite3.connect(":memory:", isolation_level=None)
        self._rows.row_factory = sqlite3.Row
        for table in schema.tables.values():
            columns = []
            for column, kind in table.columns.items():
                columns.append(f"{column} UNIQUE" if kind.unique else column)
            self._create(self._rows, table, columns)

    def add(self, witness: Witness) -> None:
        witness = Witness(witness.rows, list(filter(self._can_ask, witness.conditions)))
        fixed: Values = {}
        for _ in range(self.random.randint(FEWEST_COPIES, MOST_COPIES)):
            for _ in range(TRIES):
                values = dict(fixed)
                if self._fill(witness, values):
                    break
            self._keep(witness, values)
            fixed = fixed or self._named(witness, values)

    def write(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            for name, table in self.schema.tables.items():
                columns = [f"{column} {kind.declared}" for column, kind in table.columns.items()]
                self._create(database, table, columns)
                places = ", ".join("?" * len(columns))
                rows = self._rows.execute(f"SELECT * FROM {name} ORDER BY rowid")
                database.executemany(f"INSERT INTO {name} VALUES ({places})", rows)

    def _create(self, database: sqlite3.Connection, table: Table, columns: Sequence[str]) -> None:
        database.execute(f"CREATE TABLE {table.name} ({', '.join(columns)})")
        for column in sorted(self.schema.keys & table.columns.keys()):
            name = f"{table.name}_{column}"
            database.execute(f"CREATE INDEX {name} ON {table.name} ({column})")

    def _can_ask(self, condition: Condition) -> bool:
        """Return whether SQLite can decide a condition. It lacks some functions, for example."""
        try:
            self._met([None], _texts([condition], {}, dict.fromkeys(condition.cells, "value")))
        except sqlite3.Error:
            return False
        return True

    def _met(self, candidates: Sequence[Any], texts: Sequence[str]) -> list[Any]:
        met = f"SELECT value FROM json_each(?) WHERE {' AND '.join(texts) or 'TRUE'}"
        return [value for (value,) in self._rows.execute(met, [json.dumps(candidates)])]

    def _written(self, table: str, known: Known, texts: Sequence[str] = ()) -> list[int]:
        """Return the rowids of rows with these values that meet conditions on their columns."""
        met = [*(f"{column} IS :{column}" for column in known), *texts]
        sql = f"SELECT rowid FROM {table} WHERE {' AND '.join(met) or 'TRUE'} ORDER BY rowid"
        return [place for (place,) in self._rows.execute(sql, known)]

    def _at(self, table: str, place: int) -> Known:
        sql = f"SELECT * FROM {table} WHERE rowid = ?"
        return dict(self._rows.execute(sql, [place]).fetchone())

    def _fill(self, witness: Witness, values: Values) -> bool:
        """Find a value for every cell. Return whether all conditions are met."""
        for row in witness.rows:
            for cell in row.cells.values():
                if cell.constants:
                    values.setdefault(cell, cell.constants[0])
        met = True
        entities = self.schema.entities
        rows = sorted(witness.rows, key=lambda row: len(row.table.parents))
        for row in sorted(rows, key=lambda row: row.table.name not in entities):
            known = row.known(values)
            fitting: list[int] = []
            if known and row.table.name in entities:
                names = {cell: column for column, cell in row.cells.items()}
                texts = _texts(witness.conditions, values, names)
                fitting = self._written(row.table.name, known, texts)
            if fitting:
                written = self._at(row.table.name, self.random.choice(fitting))
                for column, cell in row.cells.items():
                    values.setdefault(cell, written[column])
                continue
            self._take_from_parents(row, witness, values)
            for column, cell in row.cells.items():
                if cell not in values:
                    texts = _texts(witness.conditions, values, {cell: "value"})
                    values[cell], fits = self._value(row.table, column, texts)
                    met = met and fits
        return met

    def _take_from_parents(self, row: Row, witness: Witness, values: Values) -> None:
        """Choose the referenced rows and copy shared keys: an event has its admission's patient."""
        parents = row.table.parents
        for column in sorted(parents, key=lambda column: row.cells[column] not in values):
            parent, key = parents[column]
            cell = row.cells[column]
            beside = []
            for other in witness.rows:
                if other.table.name == parent and other.cells[key] is cell:
                    beside.append(other.known(values))
            if not beside and cell not in values:
                values[cell] = self._parent(parent, row, values)[key]
            if not beside:
                found = self._written(parent, {key: values[cell]})
                beside = [self._at(parent, place) for place in found[:1]]
            above = beside[0] if beside else {}
            for name, own in row.cells.items():
                if name in above and name in self.schema.keys and name != row.table.key:
                    values.setdefault(own, above[name])

    def _parent(self, name: str, child: Row, values: Values) -> Known:
        """Return an existing or new row to refer to, with the child's keys."""
        table = self.schema.tables[name]
        shared = self.schema.keys & table.columns.keys() - {table.key, child.table.key}
        known = child.known(values)
        known = {column: value for column, value in known.items() if column in shared}
        fitting = self._written(name, known)
        if fitting and (known or self.random.random() < OLD_PARENT):
            return self._at(name, self.random.choice(fitting))
        row = Row(table)
        own = {row.cells[column]: value for column, value in known.items()}
        alone = Witness([row], [])
        self._fill(alone, own)
        self._keep(alone, own)
        return row.known(own)

    def _value(self, table: Table, name: str, texts: Sequence[str]) -> tuple[Any, bool]:
        """Return a value of a column, and whether it meets the conditions."""
        if table.columns[name].unique or (name in self.schema.keys and name not in table.parents):
            counted = f"{table.name}.{name}" if name == table.key else name
            self._next_key[counted] += 1
            return FIRST_KEY + self._next_key[counted], True
        asked = (table.name, name, *texts)
        if asked not in self._fitting:
            self._fitting[asked] = self._met(self._candidates(table, name), texts)
        fitting = self._fitting[asked]
        found = fitting or self._candidates(table, name)
        value = self.random.choice(found)
        if value is None and self.random.random() < FILLED:
            value = self.random.choice(found)
        return value, bool(fitting)

    def _candidates(self, table: Table, name: str) -> list[Any]:
        """Return the values that statements name for the column, or else values of its kind."""
        column = table.columns[name]
        declared = column.declared.upper()
        named = sorted(self.constants[table.name, name], key=str)
        if "TIME" in declared or "DATE" in declared:
            found: list[Any] = [*self.times, *named]
        elif "INT" in declared:
            found = [*named, *range(1, 120)]
        elif any(word in declared for word in NUMBERS):
            found = [*named, *(number / 2 for number in range(1, 400))]
        else:
            found = [str(value) for value in named] or [f"{name} {at}" for at in range(1, 7)]
        return [*found, None] if column.nullable else found

    def _named(self, witness: Witness, values: Values) -> Values:
        """Return what all copies share: the values of named entities and what belongs to them."""
        fixed: Values = {}
        rows = [row for row in witness.rows if row.table.name in self.schema.entities]
        for _ in rows:  # in each round what belongs to those of the round before
            for row in rows:
                is_named = any(cell.constants for cell in row.cells.values())
                belongs = any(row.cells[column] in fixed for column in row.table.parents)
                if is_named or belongs:
                    fixed |= {cell: values[cell] for cell in row.cells.values()}
        return fixed

    def _keep(self, witness: Witness, values: Values) -> None:
        """Enter the rows, except those whose unique value is taken: they exist already."""
        for row in witness.rows:
            cells = [values[cell] for cell in row.cells.values()]
            places = ", ".join("?" * len(cells))
            self._rows.execute(f"INSERT OR IGNORE INTO {row.table.name} VALUES ({places})", cells)


def _texts(
    conditions: Sequence[Condition], values: Mapping[Cell, Any], names: Mapping[Cell, str]
) -> list[str]:
    """Return as SQL what is asked of the cells with these names, where all others are known."""
    texts = []
    for condition in conditions:
        is_about = any(cell in names for cell in condition.cells)
        if is_about and all(cell in names or cell in values for cell in condition.cells):
            whole = exp.Paren(this=condition.comparison.copy())
            columns = list(whole.find_all(exp.Column))
            for column, cell in zip(columns, condition.cells, strict=True):
                is_named = cell in names
                column.replace(exp.column(names[cell]) if is_named else exp.convert(values[cell]))
            texts.append(whole.sql("sqlite", copy=False))
    return texts
