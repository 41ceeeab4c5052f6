"""Draws a small database for EHRSQL's questions, because its own rows need a licence.

    draw_database(path, tables, statements, now="2105-12-31 23:59:00")

Each statement's witness (`witness.py`) is written two to six times with the same named patients and
varying events. The same input gives the same database.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Container, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from sqlglot import exp

from common.files import replacing
from sql_agent.ehrsql.schema import Table, Tables, entities, key_columns
from sql_agent.ehrsql.witness import Cell, Condition, Row, Witness, constant_of, witness_of

Record = dict[str, Any]  # a row that is written, by column
Values = dict[Cell, Any]  # by root

FEWEST_COPIES = 2  # of a witness
MOST_COPIES = 6
TRIES = 6  # of a copy whose conditions were not met
DAYS = 2300  # before now from which times are drawn. The questions go back for about six years
RECENT_DAYS = 3  # questions ask about today and yesterday
TIMES_OF_A_DAY = 8
FIRST_KEY = 500_000  # of keys that no statement names
OLD_PARENT = 0.6  # share of events without a patient of their own that go to a written one
FILLED = 0.9  # share of cells that are not NULL where they may be


def draw_database(path: Path, tables: Tables, statements: Sequence[str], now: str) -> None:
    """Write the database for statements as the benchmark runs them, at its current time."""
    witnesses = [witness for sql in statements if (witness := witness_of(sql, tables))]
    drawing = _Drawing(tables, now, witnesses)
    for witness in witnesses:
        drawing.add(Witness(witness.rows, drawing.askable(witness.conditions)))
    drawing.write(path)


class _Drawing:
    """The rows drawn so far. SQLite decides conditions, by its rules for dates and texts."""

    def __init__(self, tables: Tables, now: str, witnesses: Sequence[Witness]) -> None:
        self.tables = tables
        self.random = Random(0)
        self.entities = entities(tables)
        self.keys = key_columns(tables)
        self.rows: dict[str, list[Record]] = {name: [] for name in tables}
        # A time of each day, and several of the last days
        last = datetime.fromisoformat(now)
        midnight = last.replace(hour=0, minute=0, second=0)
        last_minute = last.hour * 60 + last.minute
        self.times: list[str] = []
        for day in [*range(DAYS), *list(range(RECENT_DAYS)) * TIMES_OF_A_DAY]:
            minute = timedelta(minutes=self.random.randrange(last_minute))
            self.times.append((midnight - timedelta(days=day) + minute).isoformat(" "))
        self.constants = _constants(witnesses)
        self._by_key: dict[tuple[str, str, Any], Record] = {}
        self._next_key: Counter[str] = Counter()
        self._fitting: dict[tuple[str, ...], list[Any]] = {}
        self._sqlite = sqlite3.connect(":memory:")
        self._sqlite.execute("CREATE TABLE candidates (value)")

    def askable(self, conditions: Sequence[Condition]) -> list[Condition]:
        """Return the conditions that SQLite can decide. It always raises for the others."""
        found = []
        for condition in conditions:
            nothing = dict.fromkeys((cell.root for cell in condition.cells), None)
            with suppress(sqlite3.OperationalError):
                self._sqlite.execute(f"SELECT {_with_values(condition, nothing)}")
                found.append(condition)
        return found

    def add(self, witness: Witness) -> None:
        """Write the rows of a witness several times."""
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
        """Write the SQLite file, completely or not at all."""
        with replacing(path) as draft, sqlite3.connect(draft) as database:
            for name, table in self.tables.items():
                columns = [f"{column} {kind.sql_type}" for column, kind in table.columns.items()]
                database.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
                places = ", ".join("?" * len(columns))
                cells = [tuple(row.values()) for row in self.rows[name]]
                database.executemany(f"INSERT INTO {name} VALUES ({places})", cells)
                for column in sorted(self.keys & table.columns.keys()):
                    database.execute(f"CREATE INDEX {name}_{column} ON {name} ({column})")
        database.close()

    def _fill(self, witness: Witness, values: Values) -> bool:
        """Find a value for every cell. Return whether all conditions are met."""
        for row in witness.rows:
            for cell in row.cells.values():
                if cell.root.constants:
                    values.setdefault(cell.root, cell.root.constants[0])
        met = True
        rows = sorted(witness.rows, key=lambda row: len(row.table.parents))
        for row in sorted(rows, key=lambda row: row.table.name not in self.entities):
            fitting = self._written_entities(row, witness, values)
            if fitting:
                written = self.random.choice(fitting)
                for column, cell in row.cells.items():
                    values.setdefault(cell.root, written[column])
                continue
            self._take_from_parents(row, witness, values)
            for column, cell in row.cells.items():
                if cell.root not in values:
                    found, fits = self._value(row.table, column, cell.root, witness, values)
                    values[cell.root] = found
                    met = met and fits
        return met

    def _written_entities(self, row: Row, witness: Witness, values: Values) -> list[Record]:
        """Return the existing patients, admissions or dictionary entries that fit."""
        known = _known(row, values)
        if row.table.name not in self.entities or not known:
            return []
        fitting = []
        for record in self._written(row.table.name, known):
            own = {cell.root: record[column] for column, cell in row.cells.items()}
            texts = _texts(witness, values | own, own)
            asked = f"SELECT {' AND '.join(texts)}"
            if not texts or self._sqlite.execute(asked).fetchone()[0]:
                fitting.append(record)
        return fitting

    def _written(self, table: str, known: Record) -> list[Record]:
        return [record for record in self.rows[table] if known.items() <= record.items()]

    def _take_from_parents(self, row: Row, witness: Witness, values: Values) -> None:
        """Choose the referenced rows and copy shared keys: an event has its admission's patient."""
        parents = row.table.parents
        for column in sorted(parents, key=lambda column: row.cells[column].root not in values):
            parent, key = parents[column]
            cell = row.cells[column].root
            there = None
            for other in witness.rows:
                if there is None and other.table.name == parent and other.cells[key].root is cell:
                    there = other
            if there is not None:
                above = _known(there, values)
            else:
                if cell not in values:
                    values[cell] = self._parent(parent, row, values)[key]
                above = self._by_key.get((parent, key, values[cell]), {})
            for name in row.table.columns:
                if name in above and name in self.keys and name != row.table.key:
                    values.setdefault(row.cells[name].root, above[name])

    def _parent(self, name: str, child: Row, values: Values) -> Record:
        """Return an existing or new row to refer to, with the child's keys."""
        table = self.tables[name]
        known = {}
        for column, value in _known(child, values).items():
            is_shared = column in table.columns and column in self.keys
            if is_shared and column not in (table.key, child.table.key):
                known[column] = value
        fitting = self._written(name, known)
        if fitting and (known or self.random.random() < OLD_PARENT):
            return self.random.choice(fitting)
        row = Row.of(table)
        own: Values = {row.cells[column].root: value for column, value in known.items()}
        self._fill(Witness([row], []), own)
        self._keep(Witness([row], []), own)
        return self.rows[name][-1]

    def _value(
        self, table: Table, name: str, cell: Cell, witness: Witness, values: Values
    ) -> tuple[Any, bool]:
        """Return a value for a cell, and whether it meets the known conditions."""
        if table.columns[name].unique or (name in self.keys and name not in table.parents):
            counted = f"{table.name}.{name}" if name == table.key else name
            self._next_key[counted] += 1
            return FIRST_KEY + self._next_key[counted], True
        texts = sorted(_texts(witness, values, (cell,), cell))
        asked = (table.name, name, *texts)
        if asked not in self._fitting:
            fitting = self._candidates(table, name)
            if texts:
                self._sqlite.execute("DELETE FROM candidates")
                rows = [(value,) for value in fitting]
                self._sqlite.executemany("INSERT INTO candidates VALUES (?)", rows)
                met = f"SELECT value FROM candidates WHERE {' AND '.join(texts)}"
                fitting = [value for (value,) in self._sqlite.execute(met)]
            self._fitting[asked] = fitting
        fitting = self._fitting[asked]
        found = fitting or self._candidates(table, name)
        value = self.random.choice(found)
        if value is None and self.random.random() < FILLED:
            value = self.random.choice(found)
        return value, bool(fitting)

    def _candidates(self, table: Table, name: str) -> list[Any]:
        """Return the values that statements name for the column, or else values of its kind."""
        column = table.columns[name]
        named = sorted(self.constants[table.name, name], key=str)
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
        """Return what all copies share: the values of named entities and what belongs to them."""
        fixed: Values = {}
        rows = [row for row in witness.rows if row.table.name in self.entities]
        found = [row for row in rows if any(cell.root.constants for cell in row.cells.values())]
        while found:
            for row in found:
                fixed |= {cell.root: values[cell.root] for cell in row.cells.values()}
            rows = [row for row in rows if row not in found]
            found = []
            for row in rows:
                if any(row.cells[column].root in fixed for column in row.table.parents):
                    found.append(row)
        return fixed

    def _keep(self, witness: Witness, values: Values) -> None:
        """Enter the rows, except those whose unique value is taken: they exist already."""
        for row in witness.rows:
            name = row.table.name
            record = _known(row, values)
            unique = [column for column, kind in row.table.columns.items() if kind.unique]
            if any((name, column, record[column]) in self._by_key for column in unique):
                continue
            self.rows[name].append(record)
            for column in self.keys & record.keys():
                self._by_key.setdefault((name, column, record[column]), record)


def _known(row: Row, values: Values) -> Record:
    known = {}
    for column, cell in row.cells.items():
        if cell.root in values:
            known[column] = values[cell.root]
    return known


def _constants(witnesses: Sequence[Witness]) -> defaultdict[tuple[str, str], set[Any]]:
    """Return the constants compared with each column. A pattern counts as its text."""
    found: defaultdict[tuple[str, str], set[Any]] = defaultdict(set)
    for witness in witnesses:
        places: defaultdict[Cell, list[tuple[str, str]]] = defaultdict(list)
        for row in witness.rows:
            for column, cell in row.cells.items():
                places[cell.root].append((row.table.name, column))
                found[row.table.name, column] |= set(cell.root.constants)
        for condition in witness.conditions:
            if condition.comparison.find(exp.Func):
                continue  # of a part of the value, such as its year
            for literal in condition.comparison.find_all(exp.Literal):
                constant = constant_of(literal)
                text = constant.strip("%") if isinstance(constant, str) else constant
                for place in places[condition.cells[0].root]:
                    found[place].add(text)
    return found


def _texts(
    witness: Witness, values: Values, about: Container[Cell], asked: Cell | None = None
) -> list[str]:
    """Return conditions about these cells as SQL, as far as all their values are known."""
    texts = []
    for condition in witness.conditions:
        roots = [cell.root for cell in condition.cells]
        is_about = any(root in about for root in roots)
        if is_about and all(root is asked or root in values for root in roots):
            texts.append(_with_values(condition, values, asked))
    return texts


def _with_values(condition: Condition, values: Values, asked: Cell | None = None) -> str:
    """Return a comparison as SQL with values for columns, and `value` for the asked cell."""
    whole = exp.Paren(this=condition.comparison.copy())
    for column, cell in zip(list(whole.find_all(exp.Column)), condition.cells, strict=True):
        known = exp.column("value") if cell.root is asked else exp.convert(values[cell.root])
        column.replace(known)
    return whole.sql("sqlite")
