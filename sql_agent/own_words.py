"""Tells what a result has from the database from what the policy's own statement put there.

A policy that selects '一次500毫克' has read nothing, even if it names a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlglot import exp

from scoring.text import words_only
from tools.sql.guard import parsed
from tools.sql.result import QueryResult

# These choose rows and values. Their literals do not become part of a result.
CONDITIONS = (exp.Predicate, exp.Connector, exp.Not, exp.Where, exp.Having)
CLAUSES = (*CONDITIONS, exp.Group, exp.Order, exp.Limit, exp.Offset)
# An expression without any of these reads nothing.
READ = (exp.Column, exp.Count, exp.Star, exp.Table)
# A cell that is put together may have a literal inside. Otherwise a literal is a whole cell.
JOINING = (exp.DPipe, exp.Concat, exp.ConcatWs, exp.Replace, exp.GroupConcat, exp.Anonymous)
CHOOSING = (exp.Alias, exp.Paren, exp.Case, exp.If, exp.Coalesce, *JOINING)


@dataclass(frozen=True)
class OwnWords:
    """The own words of one statement.

    everything: nothing of its result is known to come from the database. columns: places of those
    that read nothing. texts: literals elsewhere. joined: whether a cell may have one inside. names:
    column names from the database. star: whether all of its names may stand there.
    """

    everything: bool
    columns: frozenset[int]
    texts: tuple[str, ...]
    joined: bool
    names: frozenset[str]
    aliases: frozenset[str]
    star: bool

    def without(self, place: int, cell: Any) -> Any:
        """Return a cell without the statement's own words, or None if nothing is left."""
        if cell is None or self.everything or place in self.columns or str(cell) in self.texts:
            return None
        if not isinstance(cell, str) or not self.joined:
            return cell
        left = cell
        for text in self.texts:
            edge = r"(?<![\d.])" if text[0].isdigit() else ""
            left = re.sub(edge + re.escape(text), "\n", left)
        return left if left == cell or words_only(left) else None

    def gives(self, name: str) -> bool:
        """Return whether a result's column has its name from the statement."""
        if name in self.aliases:
            return True
        return name not in self.names and not (self.star and name.isidentifier())


def read_rows(sql: str, dialect: str, result: QueryResult) -> list[list[Any]]:
    """Return the rows without the statement's own words, None for a cell without others.

    A refused statement has no rows, and may be unreadable.
    """
    if not sql or not result.ok:
        return result.rows
    own = own_words(sql, dialect)
    return [[own.without(place, cell) for place, cell in enumerate(row)] for row in result.rows]


@lru_cache(maxsize=1024)
def own_words(sql: str, dialect: str) -> OwnWords:
    """Return the own words of a statement that has run."""
    tree = parsed(sql, dialect)
    branches = list(_branches(tree))
    star = any(branch.is_star for branch in branches)
    columns: set[int] = set()
    if not star:  # else the places are unknown
        columns = set.intersection(*map(_without_reading, branches))
    made = set()
    for branch in branches:
        made |= {id(branch.expressions[place]) for place in columns}
    texts = set()
    computed = False
    for node in _values(tree, made):
        if isinstance(node, exp.Literal) and _is_shown(node):
            texts.add(str(node.this))
        elif isinstance(node, (exp.Func, exp.Binary)):
            computed = computed or _is_computed(node)
    given = [*tree.find_all(exp.Alias), *tree.find_all(exp.TableAlias)]
    aliases = {alias.alias for alias in given if isinstance(alias, exp.Alias)}
    for alias in given:
        aliases |= {column.name for column in alias.args.get("columns") or []}
    with_clause = tree.args.get("with_")
    return OwnWords(
        everything=computed or bool(with_clause and with_clause.recursive),
        columns=frozenset(columns),
        texts=tuple(sorted(filter(words_only, texts), key=len, reverse=True)),
        joined=tree.find(*JOINING) is not None,
        names=frozenset(column.name for column in tree.find_all(exp.Column)),
        aliases=frozenset(aliases),
        star=star,
    )


def _branches(tree: exp.Expr) -> Iterator[exp.Select]:
    if isinstance(tree, exp.SetOperation):
        yield from _branches(tree.left)
        yield from _branches(tree.right)
    elif isinstance(tree, exp.Subquery):
        yield from _branches(tree.this)
    elif isinstance(tree, exp.Select):
        yield tree


def _without_reading(branch: exp.Select) -> set[int]:
    return {place for place, part in enumerate(branch.expressions) if not part.find(*READ)}


def _values(tree: exp.Expr, without: set[int]) -> Iterator[exp.Expr]:
    """Yield the nodes that may become part of a result."""
    yield tree
    for child in tree.iter_expressions():
        chooses = child.arg_key == "this" and isinstance(tree, (exp.Case, exp.If))
        if isinstance(child, CLAUSES) or chooses or id(child) in without:
            continue
        if isinstance(tree, exp.Join) and child.arg_key != "this":
            continue
        yield from _values(child, without)


def _is_shown(literal: exp.Literal) -> bool:
    """Return whether a literal text is in the result as written. Numbers are arguments, too."""
    parent = literal.parent
    while isinstance(parent, CHOOSING):
        parent = parent.parent
    return literal.is_string or isinstance(parent, (exp.Select, exp.Tuple))


def _is_computed(node: exp.Expr) -> bool:
    """Return whether a node makes a value of literals alone, among which 'now' does not count."""
    if node.find(*READ):
        return False
    return any(literal.this != "now" for literal in node.find_all(exp.Literal))
