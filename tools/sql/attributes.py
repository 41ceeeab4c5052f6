"""Finds names behind a dot that are no column: PostgreSQL reads `t.name` as the call name(t) then.

Such a call would pass every list of functions. Names are resolved as PostgreSQL does.
"""

import re
from collections.abc import Mapping, Sequence

from sqlglot import exp

from tools.sql.scopes import fold

Sources = Mapping[str, Sequence[str]]
# Every table has the first ones. The others name an expression without a name: 'a'::text
ALWAYS = {"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}
ALWAYS |= {"case", "btrim", "date_part", "timezone", "bool", "text", "bpchar", "varchar", "json"}
ALWAYS |= {"int2", "int4", "int8", "float4", "float8", "numeric", "jsonb", "uuid"}
ALWAYS |= {"date", "time", "timestamp", "timestamptz", "interval"}
CALLED = re.compile(r"(\w+)[(\[]|(CURRENT_\w+|LOCALTIME\w*)$")
WRAPPED = (exp.Bracket, exp.Cast, exp.Collate, exp.Filter, exp.Paren, exp.Window, exp.WithinGroup)
NAMELESS = "?column?"
QUERIES = (exp.Select, exp.SetOperation)
VALUES = [f"column{number}" for number in range(1, 101)]


def unknown_attributes(tree: exp.Expr, tables: Sources) -> list[str]:
    """Return the names behind dots, as `t.name`, that are no column of what stands before the dot.

    tables: the columns of each table that the statement may read.
    """
    return _Attributes(tables).of(tree)


class _Attributes:
    def __init__(self, tables: Sources) -> None:
        self._tables = tables
        self._columns: dict[int, list[str]] = {}  # of each query, by its identity
        self._unknown: list[str] = []

    def of(self, tree: exp.Expr) -> list[str]:
        self._query(tree, {}, {})
        return self._unknown

    def _query(self, query: exp.Expr, withs: Sources, outer: Sources) -> list[str]:
        """Look through a query and return the names of its columns. outer: what it can see."""
        query = query.unnest()
        if id(query) not in self._columns:
            self._columns[id(query)] = []
            self._columns[id(query)] = self._look_through(query, withs, outer)
        return self._columns[id(query)]

    def _look_through(self, query: exp.Expr, withs: Sources, outer: Sources) -> list[str]:
        if isinstance(query, exp.Values):
            return VALUES
        clause = query.args.get("with_")
        for cte in clause.expressions if clause else ():
            alias = cte.args["alias"]
            first = cte.this
            while isinstance(first, (exp.SetOperation, exp.Subquery)):
                first = first.this  # a recursive one sees the columns of its first part
            itself = {_exact(alias.this): _renamed(self._query(first, withs, outer), alias)}
            names = self._query(cte.this, {**withs, **itself}, outer)
            withs = {**withs, _exact(alias.this): _renamed(names, alias)}
        sources: dict[str, Sequence[str]] = {}
        for clause in (query.args.get("from_"), *(query.args.get("joins") or ())):
            if clause:
                self._source(clause.this, withs, outer, sources)
        visible = {**outer, **sources}
        names = []
        if isinstance(query, exp.SetOperation):
            names = self._query(query.this, withs, outer)
            self._query(query.expression, withs, outer)
        for expression in query.expressions if isinstance(query, exp.Select) else ():
            names += _names(expression, sources, visible)

        def is_inner(node: exp.Expr) -> bool:
            return node is not query and isinstance(node, (*QUERIES, exp.With))

        for node in query.walk(prune=is_inner):
            if node is not query and isinstance(node, QUERIES):
                self._query(node, withs, visible)
            elif isinstance(node, exp.Dot):
                self._dot(node, visible)
            elif isinstance(node, exp.Column) and node.args.get("table"):
                owner = _exact(node.args["table"])
                if owner in visible:  # PostgreSQL has its own words for what is not there
                    self._check(node, node.this, visible[owner])
        return names

    def _source(
        self, item: exp.Expr, withs: Sources, outer: Sources, sources: dict[str, Sequence[str]]
    ) -> None:
        """Add what an item of FROM is called, with its columns."""
        alias = item.args.get("alias")
        name = _exact(alias.this) if alias and alias.this else ""
        inner: dict[str, Sequence[str]] = {}
        if isinstance(item, exp.Lateral):
            outer = {**outer, **sources}
        query = item.this.unnest() if isinstance(item, exp.Lateral) else item.unnest()
        if isinstance(query, (*QUERIES, exp.Values)):
            names = self._query(query, withs, outer)
        elif isinstance(item, exp.Subquery):  # a join in brackets
            self._source(item.this, withs, outer, inner)
            names = [column for columns in inner.values() for column in columns]
        elif isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            name = name or _exact(item.this)
            known = self._tables if item.args.get("db") else withs
            names = list(known.get(_exact(item.this), ()))
        else:  # a function, which names its one column
            names = [name or fold(item.this.sql("postgres").partition("(")[0])]
        if name:
            sources[name] = _renamed(names, alias)
        else:
            sources.update(inner or {f" {len(sources)}": names})
        for join in item.args.get("joins") or ():
            self._source(join.this, withs, outer, sources)

    def _dot(self, node: exp.Dot, visible: Sources) -> None:
        """Check (t).name. Where t may also be a column, nothing is known of it."""
        owner = node.this.unnest()
        known: Sequence[str] = ()
        if isinstance(owner, exp.Column) and not owner.args.get("table"):
            name = _exact(owner.this)
            if all(name not in columns for columns in visible.values()):
                known = visible.get(name, ())
        self._check(node, node.expression, known)

    def _check(self, node: exp.Expr, name: exp.Expr, known: Sequence[str]) -> None:
        if isinstance(name, exp.Identifier) and _exact(name) not in {*known, *ALWAYS}:
            self._unknown.append(node.sql("postgres"))


def _names(expression: exp.Expr, sources: Sources, visible: Sources) -> list[str]:
    """Return how PostgreSQL names a column of a SELECT, or the columns of a star."""
    if isinstance(expression, exp.Star):
        return [column for columns in sources.values() for column in columns]
    if isinstance(expression, exp.Alias):
        return [_exact(expression.args["alias"])]
    if isinstance(expression, exp.Column):
        if isinstance(expression.this, exp.Star):
            return list(visible.get(_exact(expression.args["table"]), ()))
        return [_exact(expression.this)]
    if isinstance(expression, exp.Dot) and isinstance(expression.expression, exp.Identifier):
        return [_exact(expression.expression)]
    if isinstance(expression, exp.Subquery):
        first = expression.unnest()
        selected = first.selects if isinstance(first, exp.Query) else []
        return _names(selected[0], {}, {}) if selected else []
    if isinstance(expression, WRAPPED):
        return _names(expression.this, sources, visible)
    if isinstance(expression, exp.Case) and expression.args.get("default"):
        return _names(expression.args["default"], sources, visible)
    text = CALLED.match(expression.sql("postgres"))
    is_call = isinstance(expression, exp.Func) and not isinstance(expression, exp.Binary)
    return [fold(text[1] or text[2])] if is_call and text else [NAMELESS]


def _renamed(names: list[str], alias: exp.Expr | None) -> list[str]:
    given = [_exact(column) for column in (alias and alias.args.get("columns")) or ()]
    return [*given, *names[len(given) :]]


def _exact(name: exp.Expr) -> str:
    """Return a name as PostgreSQL keeps it."""
    identifier = name.this if isinstance(name, exp.ColumnDef) else name
    return str(identifier.name if identifier.args.get("quoted") else fold(identifier.name))
