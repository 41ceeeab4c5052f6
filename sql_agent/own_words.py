"""Tells what a result has from the database from what the policy's own statement put there.

A policy that selects '一次500毫克' has read nothing, even if it names a table.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sqlglot import exp

from scoring.text import words_only
from tools.sql.dialects import ONLY_A_NAME
from tools.sql.guard import parsed
from tools.sql.scopes import fold

MOST_COLUMNS = 4096  # MySQL's bound, the largest of the engines; stars of stars name more
LITERALS = (exp.Literal, exp.National, exp.HexString, exp.RawString, exp.Boolean)
COUNTING = (exp.Count, exp.Sum)
# Their value is true or false, whatever texts they compare.
CONDITIONS = (exp.Predicate, exp.Connector, exp.Not)
# A literal in them is a whole cell; numbers in others are arguments.
CHOOSING = (exp.Alias, exp.Paren, exp.Case, exp.If, exp.Coalesce, exp.Neg, exp.Cast, exp.Tuple)
WHOLE = (*CHOOSING, exp.Nullif, exp.Max, exp.Min, exp.Lower, exp.Upper, exp.Trim)
CONCATENATING = (exp.DPipe, exp.Concat, exp.ConcatWs)
# What is looked for, and does not become part of the value.
SOUGHT = ("substr", "delimiter", "from_")

# They return a part of their first argument, or its letters in another order, which no longer shows a
# literal that was in it. What says where to cut is not read.
CUTTING = (
    *(exp.Substring, exp.Left, exp.Right, exp.SplitPart, exp.SubstringIndex, exp.Overlay),
    *(exp.Replace, exp.RegexpReplace, exp.RegexpSubstr, exp.RegexpExtract, exp.Translate),
    *(exp.Reverse, exp.JSONExtract, exp.JSONExtractScalar, exp.StringToArray),
)
CUTTING_NAMES = {"mid", "json_unquote", "regexp_matches"}  # which sqlglot has no class for

Literals = frozenset[str | float]


class Column(NamedTuple):
    """A column of a result, or an expression.

    reads: whether a table's column or a count is in it. Otherwise all of it is the policy's own.
    whole: literals that may be a cell. inside: literals that may be part of one. name: the table's
    own name where it is such a column. key: how the statement calls it, "" where engines differ.
    """

    reads: bool = False
    whole: Literals = frozenset()
    inside: Literals = frozenset()
    name: str = ""
    key: str = ""

    def without_own(self, cell: Any) -> Any:
        """Return a cell without the statement's own words, or None if nothing is left."""
        literals = self.whole | self.inside
        number = abs(cell) if isinstance(cell, (int, float)) else None
        if cell is None or not self.reads or number in literals:
            return None
        if str(cell).strip().lower() in {str(text).strip().lower() for text in literals}:
            return None  # LOWER and TRIM may have been at it
        if not isinstance(cell, str) or not self.inside:
            return cell
        texts = [text if isinstance(text, str) else f"{text:.15g}" for text in self.inside]
        pattern = "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
        # A literal that begins with a digit is not looked for within a number
        left = re.sub(rf"(?:(?<![\d.])(?=\d)|(?=\D))(?:{pattern})+", "\n", cell, flags=re.I)
        return left if left == cell or words_only(left) else None


Columns = Sequence[Column]
Sources = list[tuple[str, Columns]]  # by alias


class Scope(NamedTuple):
    """What a query may name: columns of WITH, and the sources around it, the inner ones first."""

    known: dict[str, Columns]
    around: tuple[Sources, ...] = ()


def columns_of(
    sql: str, dialect: str, tables: Mapping[str, Sequence[str]], width: int
) -> list[Column]:
    """Return the columns of the result of a statement that may run.

    tables: the columns that may be read, by table. width: how many columns the result has.
    """
    known = {}
    for table, names in tables.items():
        known[table] = [Column(True, name=name, key=fold(name)) for name in names]
    try:
        found = _Resolver(dialect, known).columns(parsed(sql, dialect), Scope({}))
    except RecursionError:  # a long chain of operators: nothing of it is known to be read
        return [Column()] * width
    return found if len(found) == width else [_merged(found)] * width


class _Resolver:
    def __init__(self, dialect: str, tables: Mapping[str, Columns]) -> None:
        self.dialect = dialect
        self.tables = tables
        self.keys = {column.key for column in chain(*tables.values())}

    def columns(self, query: exp.Expr, scope: Scope) -> list[Column]:
        scope = Scope({**scope.known}, scope.around)
        clause = query.args.get("with_") or exp.With()
        for cte in clause.expressions:
            parts = [cte.this]
            if clause.recursive and isinstance(cte.this, exp.SetOperation):
                parts.insert(0, cte.this.left)  # what the rest may read by the query's own name
            for part in parts:
                columns = self._renamed(self.columns(part, scope), cte)
                scope.known[self._key(cte.args["alias"].this)] = columns
        if isinstance(query, exp.SetOperation):
            left = self.columns(query.left, scope)
            both = zip(left, self.columns(query.right, scope), strict=False)
            return [_merged(pair)._replace(key=pair[0].key) for pair in both]
        if isinstance(query, exp.Values):
            rows = [[self._value(cell, scope) for cell in row] for row in query.expressions]
            return list(map(_merged, zip(*rows, strict=False)))
        if not isinstance(query, exp.Select):
            return self.columns(query.this, scope)  # in parentheses, or LATERAL
        sources: Sources = []
        inner = Scope(scope.known, (sources, *scope.around))
        joins = query.args.get("joins") or []
        for part in filter(None, [query.args.get("from_"), *joins]):
            sources += self._sources(part.this, inner)
        found: list[Column] = []
        for part in query.expressions:
            if part.is_star and isinstance(part, (exp.Star, exp.Column)):
                found += self._starred(part, sources, joins)
                continue
            name = part.this if isinstance(part, exp.Column) else part.args.get("alias")
            found.append(self._value(part, inner)._replace(key=self._key(name)))
        return found[:MOST_COLUMNS]

    def _sources(self, part: exp.Expr, scope: Scope) -> Sources:
        if isinstance(part, exp.Subquery) and isinstance(part.unnest(), exp.Table):  # (a JOIN b)
            found = self._sources(part.this, scope)
        else:
            if isinstance(part, exp.Table):
                own = None if part.args.get("db") else scope.known.get(self._key(part.this))
                columns = own or self.tables.get(fold(part.name), [])
            else:
                columns = self.columns(part, scope)
            alias = part.args.get("alias")
            name = alias.this if alias else None
            found = [(self._key(name or part.this), self._renamed(columns, part))]
        for join in part.args.get("joins") or []:
            found += self._sources(join.this, scope)
        return found

    def _starred(self, part: exp.Expr, sources: Sources, joins: Iterable[exp.Expr]) -> list[Column]:
        table = self._key(part.args.get("table"))
        shared: set[str] = set()
        for join in joins:
            shared |= set(map(self._key, join.args.get("using") or []))
        found: list[Column] = []
        joined: set[str] = set()  # a star names the shared ones once
        for alias, columns in sources:
            for column in columns if table in ("", alias) else ():
                is_shared = not table and column.key in shared
                if not is_shared or column.key not in joined:
                    found.append(column)
                joined.add(column.key)
        return found

    def _renamed(self, columns: Columns, part: exp.Expr) -> list[Column]:
        alias = part.args.get("alias")
        keys = [self._key(name) for name in alias.args.get("columns") or []] if alias else []
        keys += [column.key for column in columns[len(keys) :]]
        return [column._replace(key=key) for key, column in zip(keys, columns, strict=False)]

    def _key(self, name: Any) -> str:
        """Return an identifier as the engine compares it, "" for anything else."""
        if not isinstance(name, exp.Identifier):
            return ""
        is_exact = self.dialect == "postgres" and name.args.get("quoted")
        return name.name if is_exact else fold(name.name)

    def _value(self, node: exp.Expr, scope: Scope) -> Column:
        """Return what an expression has of tables and of literals."""
        if isinstance(node, exp.Column):
            return self._looked_up(node, scope)
        if isinstance(node, LITERALS):
            return Column(whole=_literals(node))
        if isinstance(node, exp.Query):
            return _merged(self.columns(node, scope))
        if _cuts(node):
            return self._of_cut(node, scope)
        parts = []
        for child in node.iter_expressions():
            key = child.arg_key
            if key == "this" and isinstance(node, (exp.Case, exp.If)):
                continue  # it chooses the value
            part = self._value(child, scope)
            is_sought = key in SOUGHT or (key == "expression" and isinstance(node, exp.Nullif))
            parts.append(Column(part.reads) if is_sought else part)
        all_of_it = _merged(parts)
        reads = all_of_it.reads or isinstance(node, COUNTING)
        if not reads and isinstance(node, (exp.AggFunc, *CONDITIONS)):
            inner = [self._looked_up(column, scope) for column in node.find_all(exp.Column)]
            reads = any(column.reads for column in inner)
        if isinstance(node, (*COUNTING, *CONDITIONS)):
            return Column(reads)
        whole = all_of_it.whole
        if not isinstance(node, (*CHOOSING, *CONCATENATING)):
            whole = frozenset(text for text in whole if isinstance(text, str))
        name = parts[0].name if isinstance(node, (exp.Alias, exp.Paren)) else ""
        joins = isinstance(node, (exp.Func, exp.Binary, exp.JSONKeyValue))
        if joins and not isinstance(node, WHOLE):
            return Column(reads, inside=whole | all_of_it.inside)
        return Column(reads, whole, all_of_it.inside, name)

    def _of_cut(self, node: exp.Expr, scope: Scope) -> Column:
        """Return what is left of a function's first argument, and what the function puts into it."""
        first = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        kept = self._value(first, scope)
        if any(isinstance(own, str) for own in kept.whole | kept.inside):
            return Column()
        put_in = node.args.get("replacement") or node.args.get("to")
        if isinstance(node, exp.Overlay):
            put_in = node.expression
        new = self._value(put_in, scope) if put_in else Column()
        return Column(kept.reads or new.reads, inside=kept.inside | new.whole | new.inside)

    def _looked_up(self, column: exp.Column, scope: Scope) -> Column:
        table = self._key(column.args.get("table"))
        wanted = self._key(column.this)
        unnamed = []
        for sources in scope.around:
            there: list[Column] = []
            for alias, columns in sources:
                there += columns if table in ("", alias) else ()
            named = [found for found in there if found.key == wanted]
            if named:
                return _merged(named)
            unnamed += [found for found in there if not found.key]
        identifier = column.this
        is_quoted = identifier.args.get("quoted") and not identifier.meta.get(ONLY_A_NAME)
        if self.dialect == "sqlite" and is_quoted and not table and wanted not in self.keys:
            unnamed.append(Column(whole=_texts(column.name)))  # SQLite takes it as a text
        return _merged(unnamed) if unnamed else Column(True)


def _cuts(node: exp.Expr) -> bool:
    if isinstance(node, exp.Trim):
        return bool(node.expression)  # without, it takes blanks away
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in CUTTING_NAMES and bool(node.expressions)
    return isinstance(node, CUTTING)


def _merged(columns: Columns) -> Column:
    whole: Literals = frozenset().union(*(column.whole for column in columns))
    inside: Literals = frozenset().union(*(column.inside for column in columns))
    names = {column.name for column in columns}
    name = names.pop() if len(names) == 1 else ""
    return Column(any(column.reads for column in columns), whole, inside, name)


def _texts(text: str) -> Literals:
    return frozenset({text}) if words_only(text) else frozenset()


def _literals(node: exp.Expr) -> Literals:
    """Return a literal as a cell would show it."""
    if isinstance(node, exp.Boolean) or node.is_number:
        return frozenset({float(node.this)})
    if isinstance(node, exp.HexString):
        digits = str(node.this)
        text = bytes.fromhex("0" * (len(digits) % 2) + digits).decode(errors="replace")
        return _texts(text) | {float(int(digits[-16:] or "0", 16))}
    return _texts(str(node.this))
