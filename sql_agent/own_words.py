"""Tells what a result has from the database from what the policy's own statement put there.

A policy that selects '一次500毫克' has read nothing, even if it names a table.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from scoring.text import words_only
from tools.sql.guard import parsed

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
    own name where it is such a column.
    """

    reads: bool = False
    whole: Literals = frozenset()
    inside: Literals = frozenset()
    name: str = ""

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


def columns_of(
    sql: str, dialect: str, tables: Mapping[str, Sequence[str]], width: int
) -> list[Column]:
    """Return the columns of the result of a statement that may run.

    tables: the columns that may be read, by table. width: how many columns the result has.
    """
    try:
        reader = _Reader(parsed(sql, dialect), dialect, tables)
        found = reader.columns(reader.whole)
    except (RecursionError, SqlglotError):  # a long chain of operators, for example
        return [Column()] * width  # nothing of it is known to be read
    return found if len(found) == width else [_merged(found)] * width


class _Reader:
    """Reads a statement in which sqlglot has written each column's table before it."""

    def __init__(self, tree: exp.Query, dialect: str, tables: Mapping[str, Sequence[str]]) -> None:
        is_exact = dialect == "postgres"  # of names in quotes
        self.names: dict[str, str] = {}
        schema: dict[str, object] = {}
        for table, names in tables.items():
            keys = names if is_exact else [name.lower() for name in names]
            self.names |= dict(zip(keys, names, strict=True))
            schema[table] = dict.fromkeys(keys, "TEXT")
        whole = qualify(
            tree,
            dialect="postgres" if is_exact else "sqlite",
            schema=MappingSchema(schema, normalize=False),
            allow_partial_qualification=True,
            validate_qualify_columns=False,
            quote_identifiers=False,
        )
        scopes = traverse_scope(whole)
        self.whole = scopes[-1]
        self.scopes = {id(scope.expression): scope for scope in scopes}
        self.found: dict[int, list[Column]] = {}

    def columns(self, scope: Scope) -> list[Column]:
        """Return the columns of a query."""
        query = scope.expression
        if id(query) not in self.found:
            self.found[id(query)] = self._columns(query, scope)
        return self.found[id(query)]

    def _columns(self, query: Any, scope: Scope) -> list[Column]:
        if isinstance(query, exp.SetOperation):
            sides = [self.columns(side) for side in scope.set_operation_scopes]
            return list(map(_merged, zip(*sides, strict=False)))
        if isinstance(query, exp.Values):
            rows = [map(self._value, row) for row in query.expressions]
            return list(map(_merged, zip(*rows, strict=False)))
        if isinstance(query, exp.Lateral):
            return self.columns(self.scopes[id(query.this.unnest())])
        return list(map(self._value, query.selects))

    def _value(self, node: exp.Expr) -> Column:
        """Return what an expression has of tables and of literals."""
        if isinstance(node, exp.Column):
            return self._looked_up(node)
        if isinstance(node, LITERALS):
            return Column(whole=_literals(node))
        if isinstance(node, exp.Query):
            scope = self.scopes.get(id(node.unnest()))
            return _merged(self.columns(scope)) if scope else Column()
        if _cuts(node):
            return self._of_cut(node)
        parts = []
        for child in node.iter_expressions():
            key = child.arg_key
            if key == "this" and isinstance(node, (exp.Case, exp.If)):
                continue  # it chooses the value
            part = self._value(child)
            is_sought = key in SOUGHT or (key == "expression" and isinstance(node, exp.Nullif))
            parts.append(Column(part.reads) if is_sought else part)
        all_of_it = _merged(parts)
        reads = all_of_it.reads or isinstance(node, COUNTING)
        if not reads and isinstance(node, (exp.AggFunc, *CONDITIONS)):
            reads = any(self._looked_up(column).reads for column in node.find_all(exp.Column))
        if isinstance(node, (*COUNTING, *CONDITIONS)):
            return Column(reads)
        whole = all_of_it.whole
        if not isinstance(node, (*CHOOSING, *CONCATENATING)):
            whole = frozenset(text for text in whole if isinstance(text, str))
        name = ""
        if isinstance(node, exp.Coalesce):  # sqlglot's form of a column that USING joins
            name = all_of_it.name
        elif isinstance(node, (exp.Alias, exp.Paren)):
            name = parts[0].name
        joins = isinstance(node, (exp.Func, exp.Binary, exp.JSONKeyValue))
        if joins and not isinstance(node, WHOLE):
            return Column(reads, inside=whole | all_of_it.inside)
        return Column(reads, whole, all_of_it.inside, name)

    def _of_cut(self, node: exp.Expr) -> Column:
        """Return what is left of a function's first argument, and what the function puts into it."""
        first = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        kept = self._value(first)
        if any(isinstance(own, str) for own in kept.whole | kept.inside):
            return Column()
        put_in = node.args.get("replacement") or node.args.get("to")
        if isinstance(node, exp.Overlay):
            put_in = node.expression
        new = self._value(put_in) if put_in else Column()
        return Column(kept.reads or new.reads, inside=kept.inside | new.whole | new.inside)

    def _looked_up(self, column: exp.Column) -> Column:
        own = self.scopes[id(column.parent_select)]
        scope: Scope | None = own
        while scope and column.table not in scope.sources:
            scope = scope.parent
        source = scope.sources[column.table] if scope else None
        if isinstance(source, exp.Table):
            return Column(True, name=self.names.get(column.name, column.name))
        if source:
            found = self.columns(source)
            query: Any = source.expression
            inner = query.this.unnest() if isinstance(query, exp.Lateral) else query
            names = query.alias_column_names or inner.named_selects
            return found[names.index(column.name)] if column.name in names else _merged(found)
        # No table has it. SQLite takes a name in double quotes as a text, and VALUES have no names
        unread = [Column(whole=_texts(column.name))]
        for source in own.sources.values():
            unread += self.columns(source) if isinstance(source, Scope) else []
        return _merged(unread)


def _cuts(node: exp.Expr) -> bool:
    if isinstance(node, exp.Trim):
        return bool(node.expression)  # without, it takes blanks away
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in CUTTING_NAMES and bool(node.expressions)
    return isinstance(node, CUTTING)


def _merged(columns: Sequence[Column]) -> Column:
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
