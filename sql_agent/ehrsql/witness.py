"""The witness of a statement: the rows it needs to find something.

    witness = witness_of("select t.a from t where t.b in (select u.b from u where u.c = 'x')", schema)
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

from sql_agent.ehrsql.schema import Schema, Table


@dataclass(eq=False)
class Cell:
    """A value to be found. Cells that must be equal share one `root`.

    constants: what it must equal. compared: what else it is compared with, a pattern as its text.
    """

    constants: list[Any] = field(default_factory=list)
    compared: list[Any] = field(default_factory=list)
    _same_as: Cell | None = None

    @property
    def root(self) -> Cell:
        return self._same_as.root if self._same_as else self

    def equate(self, other: Cell) -> None:
        mine = self.root
        others = other.root
        if mine is not others:
            others._same_as = mine
            mine.constants += others.constants
            mine.compared += others.compared


class Row:
    """A row of a table, a cell a column."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.cells = {column: Cell() for column in table.columns}

    def known(self, values: Mapping[Cell, Any]) -> dict[str, Any]:
        """Return the columns whose values are known."""
        return {column: values[cell] for column, cell in self.cells.items() if cell in values}


@dataclass
class Condition:
    """A comparison without a subquery, and the cells of its columns in order."""

    comparison: exp.Expr
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Witness:
    """All cells are roots."""

    rows: list[Row]
    conditions: list[Condition]


Outputs = Mapping[str, Cell | None]  # of a SELECT, by name. None: no cell, such as a count
Scope = Mapping[str, Outputs]  # what FROM brings, by alias


def witness_of(sql: str, schema: Schema) -> Witness | None:
    """Return the witness of a statement, or None if it cannot be read or names another table."""
    reader = _Reader(schema)
    try:
        reader.select(sqlglot.parse_one(sql, read="sqlite"), ())
    except (SqlglotError, KeyError, AttributeError):
        return None
    rows = _merged(reader.rows, schema)
    for row in rows:
        row.cells = {column: cell.root for column, cell in row.cells.items()}
    for condition in reader.conditions:
        condition.cells = [cell.root for cell in condition.cells]
    return Witness(rows, reader.conditions)


class _Reader:
    """Collects rows and conditions of a statement, from the outside in."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.rows: list[Row] = []
        self.conditions: list[Condition] = []
        self._outputs: dict[exp.Expr, Outputs] = {}  # the same subquery written twice is one

    def select(self, query: Any, outer: Sequence[Scope]) -> Outputs:
        """Collect a query's rows and conditions, and return its outputs."""
        query = query.unnest()
        if query not in self._outputs:
            if isinstance(query, exp.SetOperation):
                self._outputs[query] = self.select(query.left, outer)
                self.select(query.right, outer)
            else:
                self._outputs[query] = self._one_select(query, outer)
        return self._outputs[query]

    def _one_select(self, query: exp.Select, outer: Sequence[Scope]) -> Outputs:
        scope: dict[str, Outputs] = {}
        joins = query.args.get("joins") or []
        for clause in filter(None, [query.args.get("from_"), *joins]):
            source = clause.this
            if isinstance(source, exp.Subquery):
                found = self.select(source.this, outer)
            else:
                row = Row(self.schema.tables[source.name.lower()])
                self.rows.append(row)
                found = row.cells
            scope[source.alias_or_name.lower()] = found
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
            outputs[name] = self._cell(expression, scopes)
        return outputs

    def _condition(self, part: Any, scopes: Sequence[Scope]) -> None:
        """Equate cells, or keep a comparison. Exclusions (NOT IN, <> of a subquery) are left out."""
        other = part.args.get("query") or part.args.get("expression")
        if isinstance(part, (exp.EQ, exp.In)) and other:
            cells = [self._cell(part.this, scopes), self._cell(other, scopes)]
            sides = [cell for cell in cells if cell]
            literals = [side for side in (part.this, other) if isinstance(side, exp.Literal)]
            if len(sides) == 2:
                sides[0].equate(sides[1])
                return
            if sides and literals:
                sides[0].root.constants.append(_constant(literals[0]))
                return
        queries = _subqueries(part)
        if not queries:
            self._keep(part, scopes)
        elif not part.find(exp.NEQ, exp.Not):
            for query in queries:
                self.select(query, scopes)

    def _keep(self, comparison: exp.Expr, scopes: Sequence[Scope]) -> None:
        if comparison.find(exp.AggFunc, exp.Window):
            return
        found = [_found(column, scopes) for column in comparison.find_all(exp.Column)]
        cells = [cell for cell in found if cell]
        if not cells or len(cells) < len(found):
            return
        self.conditions.append(Condition(comparison, cells))
        if comparison.find(exp.Func):
            return  # of a part of the value, such as its year
        for literal in comparison.find_all(exp.Literal):
            constant = _constant(literal)
            if isinstance(constant, str):
                constant = constant.strip("%")
            cells[0].root.compared.append(constant)

    def _cell(self, expression: Any, scopes: Sequence[Scope]) -> Cell | None:
        """Return the cell that an expression is, and collect its subqueries. None: it is computed."""
        inner = expression.unalias()
        while isinstance(inner, (exp.Paren, exp.Min, exp.Max)):
            inner = inner.this
        if isinstance(inner, exp.Column):
            return _found(inner, scopes)
        if isinstance(inner, exp.Query):
            return next(iter(self.select(inner, scopes).values()), None)
        for query in _subqueries(inner):
            self.select(query, scopes)
        return None


def _constant(literal: exp.Literal) -> str | int | float:
    if literal.is_string:
        return str(literal.this)
    return float(literal.this) if "." in literal.this else int(literal.this)


def _found(column: exp.Column, scopes: Sequence[Scope]) -> Cell | None:
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


def _merged(rows: Sequence[Row], schema: Schema) -> list[Row]:
    """Return the rows, with those of one patient, admission or dictionary entry joined by key."""
    merged: list[Row] = []
    for row in rows:
        same = [kept for kept in merged if _is_same(row, kept, schema)]
        if not same:
            merged.append(row)
            continue
        for column, cell in row.cells.items():
            same[0].cells[column].equate(cell)
    return merged


def _is_same(row: Row, kept: Row, schema: Schema) -> bool:
    if kept.table is not row.table or row.table.name not in schema.entities:
        return False
    shared = schema.keys & row.cells.keys()
    return any(kept.cells[column].root is row.cells[column].root for column in shared)
