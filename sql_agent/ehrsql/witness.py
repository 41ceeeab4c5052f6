"""The witness of a statement: the rows it needs to find something.

    witness = witness_of("select t.a from t where t.b in (select u.b from u where u.c = 'x')", tables)
    witness.rows  # a row of t and a row of u, with one cell for `b` and 'x' for u.c

Conditions on several rows (counts, ranks) are left out, so a result is likely but not certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sql_agent.ehrsql.schema import Table, Tables, entities, key_columns


class Cell:
    """A value to be found. Cells that must be equal share one `root`."""

    def __init__(self) -> None:
        self._same_as: Cell | None = None
        self.constants: list[Any] = []

    @property
    def root(self) -> Cell:
        cell = self
        while cell._same_as is not None:
            cell = cell._same_as
        return cell

    def equate(self, other: Cell) -> None:
        mine = self.root
        others = other.root
        if mine is not others:
            others._same_as = mine
            mine.constants += others.constants


@dataclass(eq=False)
class Row:
    """A row of a table, a cell a column."""

    table: Table
    cells: dict[str, Cell] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table) -> Row:
        return cls(table, {column: Cell() for column in table.columns})


@dataclass(frozen=True)
class Condition:
    """A comparison without a subquery, and the cells of its columns in order."""

    comparison: exp.Expr
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Witness:
    rows: list[Row]
    conditions: list[Condition]


Outputs = Mapping[str, Cell | None]  # of a SELECT, by name. None: no cell, such as a count
Scope = Mapping[str, Outputs]  # what FROM brings, by alias


def witness_of(sql: str, tables: Tables) -> Witness | None:
    """Return the witness of a statement, or None if it cannot be read or names another table."""
    try:
        query = sqlglot.parse_one(sql, read="sqlite")
        reader = _Reader(tables)
        reader.select(query, ())
    except (SqlglotError, KeyError, AttributeError):
        return None
    return Witness(_merged(reader.rows, tables), reader.conditions)


class _Reader:
    """Collects rows and conditions of a statement, from the outside in."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.rows: list[Row] = []
        self.conditions: list[Condition] = []
        self._outputs: dict[str, Outputs] = {}  # the same subquery written twice is one

    def select(self, query: Any, outer: Sequence[Scope]) -> Outputs:
        """Collect a query's rows and conditions, and return its outputs."""
        query = query.unnest()
        text = query.sql("sqlite")
        if text not in self._outputs:
            if isinstance(query, exp.SetOperation):
                self._outputs[text] = self.select(query.left, outer)
                self.select(query.right, outer)
            else:
                self._outputs[text] = self._one_select(query, outer)
        return self._outputs[text]

    def _one_select(self, query: exp.Select, outer: Sequence[Scope]) -> Outputs:
        scope: dict[str, Outputs] = {}
        joins = query.args.get("joins") or []
        origin = query.args.get("from_")
        for clause in [*([origin] if origin else []), *joins]:
            source = clause.this
            if isinstance(source, exp.Subquery):
                outputs_of = self.select(source.this, outer)
            else:
                row = Row.of(self.tables[source.name.lower()])
                self.rows.append(row)
                outputs_of = row.cells
            scope[source.alias_or_name.lower()] = outputs_of
        scopes = (scope, *outer)
        conditions = [join.args.get("on") for join in joins]
        for name in ("where", "having"):
            if query.args.get(name):
                conditions.append(query.args[name].this)
        for clause in filter(None, conditions):
            for part in clause.flatten() if isinstance(clause, exp.And) else [clause]:
                self._condition(part.unnest(), scopes)
        outputs: dict[str, Cell | None] = {}
        for number, expression in enumerate(query.expressions):
            name = expression.alias_or_name.lower() or str(number)
            outputs[name] = self._output(expression, scopes)
        return outputs

    def _output(self, expression: Any, scopes: Sequence[Scope]) -> Cell | None:
        inner = expression.unalias()
        while isinstance(inner, (exp.Paren, exp.Min, exp.Max)):
            inner = inner.this
        if isinstance(inner, exp.Column):
            return _cell(inner, scopes)
        for query in _subqueries(expression):
            self.select(query, scopes)
        return None

    def _condition(self, part: Any, scopes: Sequence[Scope]) -> None:
        """Equate cells, or keep a comparison. Exclusions (NOT IN, <> of a subquery) are left out."""
        if isinstance(part, exp.In) and part.args.get("query"):
            self._equal(part.this, part.args["query"], scopes)
        elif isinstance(part, exp.EQ):
            self._equal(part.this, part.expression, scopes, part)
        elif queries := _subqueries(part):
            if not part.find(exp.NEQ, exp.Not):
                for query in queries:
                    self.select(query, scopes)
        else:
            self._keep(part, scopes)

    def _equal(self, left: Any, right: Any, scopes: Sequence[Scope], whole: Any = None) -> None:
        sides = [self._side(side, scopes) for side in (left, right)]
        cells = [side for side in sides if isinstance(side, Cell)]
        constants = [side for side in sides if isinstance(side, exp.Literal)]
        if len(cells) == 2:
            cells[0].equate(cells[1])
        elif cells and constants:
            cells[0].root.constants.append(constant_of(constants[0]))
        elif whole is not None and not _subqueries(whole):
            self._keep(whole, scopes)

    def _side(self, side: Any, scopes: Sequence[Scope]) -> Any:
        if isinstance(side, exp.Column):
            return _cell(side, scopes)
        if isinstance(side, (exp.Subquery, exp.Query)):
            return next(iter(self.select(side, scopes).values()), None)
        return side

    def _keep(self, comparison: exp.Expr, scopes: Sequence[Scope]) -> None:
        if comparison.find(exp.AggFunc, exp.Window):
            return
        cells = [_cell(column, scopes) for column in comparison.find_all(exp.Column)]
        if cells and all(cell is not None for cell in cells):
            self.conditions.append(Condition(comparison, tuple(cell for cell in cells if cell)))


def constant_of(literal: exp.Literal) -> str | int | float:
    """Return the value of a literal."""
    if literal.is_string:
        return str(literal.this)
    return float(literal.this) if "." in literal.this else int(literal.this)


def _cell(column: exp.Column, scopes: Sequence[Scope]) -> Cell | None:
    name = column.name.lower()
    table = column.table.lower()
    for scope in scopes:
        for alias, outputs in scope.items():
            if name in outputs and table in ("", alias):
                return outputs[name]
    return None


def _subqueries(expression: Any) -> list[Any]:
    nodes = expression.walk(prune=lambda node: isinstance(node, exp.Query))
    return [node for node in nodes if isinstance(node, exp.Query)]


def _merged(rows: Sequence[Row], tables: Tables) -> list[Row]:
    """Return the rows, with those of one patient, admission or dictionary entry joined by key."""
    merged: list[Row] = []
    keys = key_columns(tables)
    kept_once = entities(tables)
    for row in rows:
        shared = keys & row.cells.keys() if row.table.name in kept_once else set()
        same = None
        for kept in merged:
            if same is None and kept.table is row.table:
                pairs = [(kept.cells[column], row.cells[column]) for column in shared]
                same = kept if any(one.root is other.root for one, other in pairs) else None
        if same is None:
            merged.append(row)
            continue
        for column, cell in row.cells.items():
            same.cells[column].equate(cell)
    return merged
