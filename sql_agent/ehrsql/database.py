"""A small database for the questions of EHRSQL, whose own rows need a licence: drawn from the
schema and from the constants of the file's own statements.

    draw_database(path, tables, statements, now="2105-12-31 23:59:00")

Each statement's witness (`ehrsql_witness.py`) is written two to six times. What its constants name,
such as a patient, is the same each time; events differ in time and value. The same input gives the
same database.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from sqlglot import exp

from common.files import replacing
from sql_agent.ehrsql.schema import Column, Table, Tables, entities, key_columns
from sql_agent.ehrsql.witness import Cell, Condition, Row, Witness, constant_of, witness_of

Record = dict[str, Any]  # a row that is written, by column
Values = dict[Cell, Any]  # by root

FEWEST_COPIES, MOST_COPIES = 2, 6  # of a witness
TRIES = 6  # of a copy whose conditions were not met
DAYS = 2300  # before now from which times are drawn; the questions go back for about six years
RECENT_DAYS, TIMES_OF_A_DAY = 3, 8  # questions ask about today and yesterday
FIRST_KEY = 500_000  # of keys that no statement names
OLD_PARENT = 0.6  # share of events without a patient of their own that go to a written one
FILLED = 0.9  # share of cells that are not NULL where they may be


def draw_database(path: Path, tables: Tables, statements: Sequence[str], now: str) -> None:
    """Write the database. A statement that cannot be read draws no rows.

    statements: as the benchmark runs them. now: its current time.
    """
    witnesses = [witness for sql in statements if (witness := witness_of(sql, tables))]
    drawing = _Drawing(tables, now, witnesses)
    for witness in witnesses:
        drawing.add(Witness(witness.rows, drawing.askable(witness.conditions)))
    drawing.write(path)


class _Drawing:
    """Rows that are drawn so far. Conditions are asked of SQLite itself, so that its own rules for
    dates and comparisons decide.
    """

    def __init__(self, tables: Tables, now: str, witnesses: Sequence[Witness]) -> None:
        self.tables = tables
        self.random = Random(0)
        self.entities, self.keys = entities(tables), key_columns(tables)
        self.rows: dict[str, list[Record]] = {name: [] for name in tables}
        self.times = self._drawn_times(datetime.fromisoformat(now))
        self.constants = _constants(witnesses)
        self._by_key: dict[tuple[str, str, Any], Record] = {}
        self._next_key: Counter[str] = Counter()
        self._fitting: dict[tuple[str, ...], list[Any]] = {}
        self._sqlite = sqlite3.connect(":memory:")
        self._sqlite.execute("CREATE TABLE candidates (value)")

    def askable(self, conditions: Sequence[Condition]) -> list[Condition]:
        """Return the conditions that SQLite can decide; it raises for the others, whatever the
        values.
        """
        found = []
        for condition in conditions:
            nothing = dict.fromkeys((cell.root for cell in condition.cells), None)
            text = _with_values(condition.comparison, condition.cells, nothing)
            with suppress(sqlite3.OperationalError):
                self._sqlite.execute(f"SELECT {text}")
                found.append(condition)
        return found

    def add(self, witness: Witness) -> None:
        """Write the rows of a witness, some times."""
        fixed: Values = {}
        for copy in range(self.random.randint(FEWEST_COPIES, MOST_COPIES)):
            for _ in range(TRIES):
                values = dict(fixed)
                if self._fill(witness, values):
                    break
            self._keep(witness, values)
            if copy == 0:
                fixed = self._named(witness, values)

    def write(self, path: Path) -> None:
        """Write the SQLite file; completely or not at all."""
        with replacing(path) as draft, sqlite3.connect(draft) as database:
            for name, table in self.tables.items():
                columns = [f"{column} {kind.sql_type}" for column, kind in table.columns.items()]
                database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
                places = ", ".join("?" * len(columns))
                cells = [tuple(row.values()) for row in self.rows[name]]
                database.executemany(f"INSERT INTO {name} VALUES ({places})", cells)
                for column in self.keys & table.columns.keys():
                    database.execute(f"CREATE INDEX {name}_{column} ON {name} ({column})")
        database.close()

    def _drawn_times(self, now: datetime) -> list[str]:
        """Return a time of each day, and several of the last days."""
        midnight = now.replace(hour=0, minute=0, second=0)
        days = list(range(DAYS)) + [*range(RECENT_DAYS)] * TIMES_OF_A_DAY
        last_minute = now.hour * 60 + now.minute
        drawn = [
            midnight - timedelta(days=day) + timedelta(minutes=self.random.randrange(last_minute))
            for day in days
        ]
        return [time.isoformat(" ") for time in drawn]

    def _fill(self, witness: Witness, values: Values) -> bool:
        """Find a value for every cell; return whether all conditions are met."""
        for row in witness.rows:
            for cell in row.cells.values():
                if cell.root.constants:
                    values.setdefault(cell.root, cell.root.constants[0])
        in_order = sorted(
            witness.rows,
            key=lambda row: (row.table.name not in self.entities, len(row.table.parents)),
        )
        met = True
        for row in in_order:
            met = self._fill_row(row, witness, values) and met
        return met

    def _fill_row(self, row: Row, witness: Witness, values: Values) -> bool:
        written = self._written_entity(row, witness, values)
        if written is not None:
            for column, cell in row.cells.items():
                values.setdefault(cell.root, written[column])
            return True
        self._take_from_parents(row, witness, values)
        met = True
        for column, cell in row.cells.items():
            if cell.root not in values:
                values[cell.root], fits = self._value(row.table, column, cell.root, witness, values)
                met = met and fits
        return met

    def _written_entity(self, row: Row, witness: Witness, values: Values) -> Record | None:
        """Return a patient, admission or dictionary entry that is there already and fits."""
        known = {
            column: values[cell.root] for column, cell in row.cells.items() if cell.root in values
        }
        if row.table.name not in self.entities or not known:
            return None
        fitting = [
            record
            for record in self.rows[row.table.name]
            if all(record[column] == value for column, value in known.items())
            and self._holds(row, record, witness, values)
        ]
        return self.random.choice(fitting) if fitting else None

    def _holds(self, row: Row, record: Record, witness: Witness, values: Values) -> bool:
        """Return whether a written row meets the conditions that can be looked at."""
        own = {cell.root: record[column] for column, cell in row.cells.items()}
        known = values | own
        texts = [
            _with_values(condition.comparison, condition.cells, known)
            for condition in witness.conditions
            if any(cell.root in own for cell in condition.cells)
            and all(cell.root in known for cell in condition.cells)
        ]
        return not texts or bool(self._sqlite.execute(f"SELECT {_all_of(texts)}").fetchone()[0])

    def _take_from_parents(self, row: Row, witness: Witness, values: Values) -> None:
        """Choose the rows that this one refers to, and copy the keys that both have: an event has
        the patient of its admission.
        """
        known_first = sorted(
            row.table.parents.items(), key=lambda item: row.cells[item[0]].root not in values
        )
        for column, (parent, key) in known_first:
            cell = row.cells[column].root
            there = next(
                (
                    other
                    for other in witness.rows
                    if other.table.name == parent and other.cells[key].root is cell
                ),
                None,
            )
            if cell not in values and there is None:
                values[cell] = self._parent(parent, self._known_keys(row, parent, values))[key]
            above = self._by_key.get((parent, key, values.get(cell))) or {}
            if there is not None:
                above = {
                    name: values[other.root]
                    for name, other in there.cells.items()
                    if other.root in values
                }
            for name in self._shared_keys(row.table, above):
                values.setdefault(row.cells[name].root, above[name])

    def _shared_keys(self, table: Table, above: Record) -> list[str]:
        shared = [name for name in table.columns if name in above and name in self.keys]
        return [name for name in shared if name != table.key]

    def _known_keys(self, row: Row, parent: str, values: Values) -> Record:
        """Return the keys of a row that its parent has as well, as far as they are found."""
        table = self.tables[parent]
        return {
            name: values[cell.root]
            for name, cell in row.cells.items()
            if name in table.columns and cell.root in values and name in self.keys
            if name not in (table.key, row.table.key)
        }

    def _parent(self, name: str, known: Record) -> Record:
        """Return a row to refer to that has the keys `known`: one that is there, or a new one."""
        fitting = [
            record
            for record in self.rows[name]
            if all(record[column] == value for column, value in known.items())
        ]
        if fitting and (known or self.random.random() < OLD_PARENT):
            return self.random.choice(fitting)
        row = Row.of(self.tables[name])
        values: Values = {row.cells[column].root: value for column, value in known.items()}
        self._fill(Witness([row], []), values)
        self._keep(Witness([row], []), values)
        return self.rows[name][-1]

    def _value(
        self, table: Table, name: str, cell: Cell, witness: Witness, values: Values
    ) -> tuple[Any, bool]:
        """Return a value for a cell, and whether it meets the conditions that can be looked at."""
        column = table.columns[name]
        if column.unique or (name in self.keys and name not in table.parents):
            return self._new_key(table, name), True
        texts = [
            _with_values(condition.comparison, condition.cells, values, cell)
            for condition in witness.conditions
            if any(other.root is cell for other in condition.cells)
            and all(other.root is cell or other.root in values for other in condition.cells)
        ]
        fitting = self._fitting_values(table, name, sorted(texts))
        found = fitting or self._candidates(table.name, name, column)
        value = self.random.choice(found)
        if value is None and self.random.random() < FILLED:
            value = self.random.choice(found)
        return value, bool(fitting)

    def _new_key(self, table: Table, name: str) -> int:
        counted = f"{table.name}.{name}" if name == table.key else name
        self._next_key[counted] += 1
        return FIRST_KEY + self._next_key[counted]

    def _fitting_values(self, table: Table, name: str, texts: Sequence[str]) -> list[Any]:
        question = (table.name, name, *texts)
        if question not in self._fitting:
            values = self._candidates(table.name, name, table.columns[name])
            if texts:
                self._sqlite.execute("DELETE FROM candidates")
                self._sqlite.executemany(
                    "INSERT INTO candidates VALUES (?)", [(value,) for value in values]
                )
                asked = f"SELECT value FROM candidates WHERE {_all_of(texts)}"
                values = [value for (value,) in self._sqlite.execute(asked)]
            self._fitting[question] = values
        return self._fitting[question]

    def _candidates(self, table: str, name: str, column: Column) -> list[Any]:
        """Return values to choose from: those that statements name for the column, else of its
        kind.
        """
        named = sorted(self.constants[table, name], key=str)
        if column.kind == "time":
            found: list[Any] = [*self.times, *named]
        elif column.kind == "integer":
            found = [*named, *range(1, 120)]
        elif column.kind == "real":
            found = [*named, *(number / 2 for number in range(1, 400))]
        else:
            found = [str(value) for value in named] or [f"{name} {at}" for at in range(1, 7)]
        return [*found, None] if column.nullable else found

    def _named(self, witness: Witness, values: Values) -> Values:
        """Return the values that every copy has: of patients, admissions and dictionary entries
        that a constant names, and of those that belong to them.
        """
        rows = [row for row in witness.rows if row.table.name in self.entities]
        fixed: Values = {}
        found = [row for row in rows if any(cell.root.constants for cell in row.cells.values())]
        while found:
            fixed |= {cell.root: values[cell.root] for row in found for cell in row.cells.values()}
            rows = [row for row in rows if row not in found]
            found = [
                row
                for row in rows
                if any(row.cells[column].root in fixed for column in row.table.parents)
            ]
        return fixed

    def _keep(self, witness: Witness, values: Values) -> None:
        """Enter the rows; one whose unique value is taken is there already."""
        for row in witness.rows:
            record = {column: values[cell.root] for column, cell in row.cells.items()}
            name = row.table.name
            unique = [column for column, kind in row.table.columns.items() if kind.unique]
            if any((name, column, record[column]) in self._by_key for column in unique):
                continue
            self.rows[name].append(record)
            for column in self.keys & record.keys():
                self._by_key.setdefault((name, column, record[column]), record)


def _constants(witnesses: Sequence[Witness]) -> defaultdict[tuple[str, str], set[Any]]:
    """Return the constants that statements compare a column with, by table and column; a pattern
    counts as its text.
    """
    found: defaultdict[tuple[str, str], set[Any]] = defaultdict(set)
    for witness in witnesses:
        places: defaultdict[Cell, list[tuple[str, str]]] = defaultdict(list)
        for row in witness.rows:
            for column, cell in row.cells.items():
                places[cell.root].append((row.table.name, column))
        for cell, names in places.items():
            for name in names:
                found[name] |= set(cell.constants)
        for condition in witness.conditions:
            if condition.comparison.find(exp.Func):
                continue  # of a part of the value, such as its year
            for literal in condition.comparison.find_all(exp.Literal):
                constant = constant_of(literal)
                text = constant.strip("%") if isinstance(constant, str) else constant
                for name in places[condition.cells[0].root]:
                    found[name].add(text)
    return found


def _with_values(
    comparison: exp.Expr, cells: Sequence[Cell], values: Values, asked: Cell | None = None
) -> str:
    """Return a comparison as SQL, its columns replaced by values, and those of the cell that is
    asked for by `value`, the column of the candidates.
    """
    whole = exp.Paren(this=comparison.copy())
    for column, cell in zip(list(whole.find_all(exp.Column)), cells, strict=True):
        known = exp.column("value") if cell.root is asked else exp.convert(values[cell.root])
        column.replace(known)
    return whole.sql("sqlite")


def _all_of(texts: Sequence[str]) -> str:
    return " AND ".join(texts)
