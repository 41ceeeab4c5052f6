"""Tells what a result has from the database from what the policy's own statement put there.

A policy that selects '一次500毫克' has read nothing, even if it names a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlglot import exp

from scoring.text import words_only
from tools.sql.dialects import ONLY_A_NAME
from tools.sql.guard import parsed
from tools.sql.scopes import fold

LITERALS = (exp.Literal, exp.National, exp.HexString, exp.RawString, exp.Boolean)
# Their value is a number, whatever texts they look at.
COUNTING = (exp.Count, exp.Sum)
LOOKING = (exp.Predicate, exp.Connector, exp.Not, exp.StrPosition)
# What is in them says which rows are shown, and not what they show.
CHOOSING_ROWS = (exp.Where, exp.Having, exp.Order, exp.Group, exp.Limit, exp.Offset)
# A literal in them is a whole cell. In other functions and operators it is a part of one.
CHOOSING = (exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Neg, exp.Cast, exp.Max, exp.Min)
CONCATENATING = (exp.DPipe, exp.Concat, exp.ConcatWs)


class Column(NamedTuple):
    """A column of a result, or an expression.

    reads: whether a table's column or a count is in it. Otherwise all of it is the policy's own.
    texts, numbers: the literals in it. joined: whether they stand beside what was read in one cell.
    name: the table's own name where it is such a column, "*" for all of them.
    """

    reads: bool = False
    texts: frozenset[str] = frozenset()
    numbers: frozenset[float] = frozenset()
    joined: bool = False
    name: str = ""

    def without_own(self, cell: Any) -> Any:
        """Return a cell without the statement's own words, or None if nothing is left."""
        if not self.reads:
            return None
        if not isinstance(cell, str):
            is_own = isinstance(cell, (int, float)) and abs(cell) in self.numbers
            return None if is_own else cell
        if not self.joined:
            return None if words_only(cell) in map(words_only, self.texts) else cell
        if not self.texts:
            return cell
        if set(words_only(cell)) <= set(words_only("".join(self.texts))):
            return None  # cut from them, or turned round
        pattern = "|".join(map(re.escape, sorted(self.texts, key=len, reverse=True)))
        # A number of theirs does not begin inside another one
        left = re.sub(rf"(?:(?<![\d.])(?=\d)|(?=\D))(?:{pattern})+", "\n", cell, flags=re.I)
        return left if words_only(left) else None


def columns_of(
    sql: str, dialect: str, tables: Mapping[str, Sequence[str]], width: int
) -> list[Column]:
    """Return the columns of the result of a statement that may run.

    tables: the columns that may be read, by table. width: how many columns the result has.
    """
    names: dict[str, str] = {}
    for columns in tables.values():
        names |= {fold(name): name for name in columns}
    try:
        found = _Statement(parsed(sql, dialect), dialect, names).columns
    except RecursionError:  # a long chain of operators: nothing of it is known to be read
        return [Column()] * width
    return found if len(found) == width else [_merged(found)] * width


class _Statement:
    """A statement's columns. It is not resolved which inner query a name is of: each of them may
    have put its literals there, and a name under which none of them has read anything is not read.
    """

    def __init__(self, tree: exp.Expr, dialect: str, names: Mapping[str, str]) -> None:
        self.dialect = dialect
        self.names = names
        self.ctes = {fold(cte.alias) for cte in tree.find_all(exp.CTE)}
        self.inner = Column()
        self.unread: set[str] = set()
        inner = list(_inner_queries(tree))
        self.is_plain = not inner
        given: list[tuple[str, list[exp.Expr]]] = []
        for query, alias in inner:
            columns = _by_place(query)
            named = [self._key(name) for name in alias.args.get("columns") or []] if alias else []
            named += [self._key(column[0]) for column in columns[len(named) :]]
            given += zip(named, columns, strict=False)
        self.unread = {name for name, _ in given} - names.keys()
        for _ in given:  # what is read may be read on, in a recursion too
            read = {name for name, column in given if self._column(column).reads}
            self.unread = {name for name, _ in given} - read
        self.inner = _merged([self._column(column) for _, column in given])
        self.columns = [self._column(column) for column in _by_place(tree)]

    def _key(self, named: exp.Expr) -> str:
        """Return the name of a column as the engine compares it."""
        name = named.args.get("alias") or (named.this if isinstance(named, exp.Column) else named)
        if not isinstance(name, exp.Identifier):
            return ""
        is_exact = self.dialect == "postgres" and name.args.get("quoted")
        return name.name if is_exact else fold(name.name)

    def _column(self, column: Sequence[exp.Expr]) -> Column:
        """Return a column of a query, given its expression in each SELECT of a UNION."""
        return _merged([self._value(part) for part in column])

    def _value(self, node: exp.Expr) -> Column:
        """Return what an expression has of tables and of literals."""
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and node.is_star):
            return self._starred(node)
        if isinstance(node, exp.Column):
            return self._looked_up(node)
        if isinstance(node, LITERALS):
            return _literal(node)
        if isinstance(node, exp.Query):
            return _merged([self._column(column) for column in _by_place(node)])
        if isinstance(node, (*COUNTING, *LOOKING)):
            columns = node.find_all(exp.Column)
            is_count = isinstance(node, COUNTING)
            return Column(is_count or any(self._looked_up(column).reads for column in columns))
        parts = []
        for child in node.iter_expressions():
            if not (child.arg_key == "this" and isinstance(node, (exp.Case, exp.If))):
                parts.append(self._value(child))
        found = _merged(parts)
        if isinstance(node, CONCATENATING):
            shown = {f"{number:.15g}" for number in found.numbers}
            found = found._replace(texts=found.texts | shown)
        is_named = isinstance(node, (exp.Alias, exp.Paren))
        joins = isinstance(node, (exp.Func, exp.Binary)) and not isinstance(node, CHOOSING)
        name = parts[0].name if is_named else ""
        numbers = found.numbers if not joins else frozenset()  # arguments
        return found._replace(joined=found.joined or joins, numbers=numbers, name=name)

    def _looked_up(self, column: exp.Column) -> Column:
        name = self._key(column)
        is_quoted = column.this.args.get("quoted") and not column.this.meta.get(ONLY_A_NAME)
        known = self.names.get(name, "")
        if self.dialect == "sqlite" and is_quoted and not (column.table or known):
            return Column(texts=_texts(column.name))  # SQLite takes it as a text
        known = known if self.is_plain else ""
        return self.inner._replace(reads=name not in self.unread, name=known)

    def _starred(self, star: exp.Expr) -> Column:
        of = star.table if isinstance(star, exp.Column) else ""
        select = star.find_ancestor(exp.Select)
        clauses = [select.args.get("from_"), *(select.args.get("joins") or [])] if select else []
        sources = [clause.this for clause in clauses if clause]
        sources = [source for source in sources if of in ("", source.alias_or_name)]
        tables = [one for one in sources if isinstance(one, exp.Table)]
        reads = any(fold(table.name) not in self.ctes for table in tables)
        name = "*" if self.is_plain else ""
        return self.inner._replace(reads=reads or self.inner.reads, name=name)


def _by_place(query: exp.Expr) -> list[list[exp.Expr]]:
    """Return the expressions of a query's columns: of each, that of every SELECT of a UNION."""
    while isinstance(query, exp.Subquery):
        query = query.this
    if isinstance(query, exp.SetOperation):
        both = zip(_by_place(query.left), _by_place(query.right), strict=False)
        return [left + right for left, right in both]
    if isinstance(query, exp.Values):
        rows = [row.expressions for row in query.expressions]
        return [list(cells) for cells in zip(*rows, strict=False)]
    return [[part] for part in query.expressions]


def _inner_queries(tree: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr | None]]:
    """Yield the queries of WITH, FROM and JOIN, each with its alias."""
    for node in tree.walk(prune=lambda node: isinstance(node, CHOOSING_ROWS)):
        above = node.parent
        if isinstance(node, exp.CTE):
            yield node.this, node.args.get("alias")
        elif isinstance(node, exp.Query) and isinstance(above, (exp.From, exp.Join, exp.Lateral)):
            yield node, node.args.get("alias") or above.args.get("alias")


def _merged(columns: Sequence[Column]) -> Column:
    names = {column.name for column in columns}
    return Column(
        any(column.reads for column in columns),
        frozenset().union(*(column.texts for column in columns)),
        frozenset().union(*(column.numbers for column in columns)),
        any(column.joined for column in columns),
        names.pop() if len(names) == 1 else "",
    )


def _literal(node: exp.Expr) -> Column:
    """Return a literal as a cell would show it."""
    text = str(node.this)
    if isinstance(node, exp.Boolean) or (isinstance(node, exp.Literal) and not node.is_string):
        return Column(numbers=frozenset({float(node.this)}))
    if isinstance(node, exp.HexString):
        whole = bytes.fromhex("0" * (len(text) % 2) + text).decode(errors="replace")
        return Column(False, _texts(whole), frozenset({float(int(text[-16:] or "0", 16))}))
    return Column(texts=_texts(text))


def _texts(text: str) -> frozenset[str]:
    return frozenset({text}) if words_only(text) else frozenset()
