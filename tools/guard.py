"""Which statements may run: one SELECT over the allowed tables, and nothing else.

The statement is parsed with sqlglot and only its regenerated form is ever executed, so comments, stacked statements and
parser tricks do not reach the database. This is the first of several layers: the connection itself is read-only too
(tools/database.py).

    from tools.guard import check
    check("select 1; drop table t", "sqlite", {"t"})      # raises Refused
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

# sqlglot warns about syntax it passes on unparsed; the guard refuses such statements and says so itself.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

# Parsing 180 KB of ORs takes over a second, before any deadline of the database applies.
MAX_SQL_BYTES = 20_000

# Siblings of a GRPO group repeat each other's SQL, and parsing costs more than running.
CACHED_STATEMENTS = 4096

FORBIDDEN_NODES = (exp.DML, exp.Create, exp.Drop, exp.Alter, exp.Command, exp.Pragma, exp.Into, exp.Attach, exp.Detach)
OWN_SCHEMAS = {"", "main"}
RESERVED_PREFIXES = ("sqlite_", "pragma_")


class Refused(ValueError):
    """The statement may not run; the message is for the model, in Chinese, and says what to write instead."""


class Statement(NamedTuple):
    """A statement that may run: its regenerated text, and the lower-case names it defines itself with WITH."""

    sql: str
    own_names: frozenset[str]


def check(sql: str, dialect: str, allowed_tables: Iterable[str]) -> Statement:
    """The statement to execute in place of `sql`.

    Args:
        sql: what the model wrote.
        dialect: sqlglot's name of the database's dialect, e.g. "sqlite".
        allowed_tables: lower-case names of the tables that may be read.

    Raises:
        Refused: not exactly one SELECT, too long, not parsable, or reading another table.
    """
    try:
        size = len(sql.encode("utf-8"))
    except UnicodeEncodeError:
        raise Refused("SQL 含有无效字符。") from None
    if size > MAX_SQL_BYTES:
        raise Refused(f"SQL 太长（上限 {MAX_SQL_BYTES} 字节），请写得更短。")
    if "\0" in sql:
        raise Refused("SQL 含有无效字符。")
    return _check(sql, dialect, frozenset(allowed_tables))


@lru_cache(maxsize=CACHED_STATEMENTS)
def _check(sql: str, dialect: str, allowed_tables: frozenset[str]) -> Statement:
    try:
        tree = _parse(sql, dialect)
        own_names = _own_names(tree, allowed_tables)
        _check_nodes(tree, allowed_tables, own_names)
        return Statement(tree.sql(dialect=dialect, comments=False), own_names)
    except SqlglotError as error:
        raise Refused(f"SQL 语法错误：{_place(error)}") from None
    except RecursionError:
        raise Refused("SQL 嵌套太深，请简化。") from None


def _parse(sql: str, dialect: str) -> exp.Query:
    statements = [tree for tree in sqlglot.parse(sql, read=dialect) if tree is not None]
    if not statements:
        raise Refused("SQL 是空的，请写一条 SELECT 语句。")
    if len(statements) > 1:
        raise Refused("一次只能执行一条 SELECT 语句。")
    tree = statements[0]
    if not isinstance(tree, (exp.Select, exp.SetOperation)):
        raise Refused("只允许 SELECT 查询，数据库是只读的。")
    return tree


def _own_names(tree: exp.Query, allowed_tables: frozenset[str]) -> frozenset[str]:
    names = frozenset(cte.alias.lower() for cte in tree.find_all(exp.CTE))
    for name in names:
        # A WITH name that hides a real table would make "which tables were read" ambiguous.
        if name in allowed_tables or name.startswith(RESERVED_PREFIXES):
            raise Refused(f"WITH 子句不能使用表名 {name}，请换一个名字。")
    return names


def _check_nodes(tree: exp.Query, allowed_tables: frozenset[str], own_names: frozenset[str]) -> None:
    for node in tree.walk():
        if isinstance(node, FORBIDDEN_NODES):
            raise Refused("只允许 SELECT 查询，数据库是只读的。")
        if isinstance(node, exp.Table):
            _check_table(node, allowed_tables, own_names)


def _check_table(table: exp.Table, allowed_tables: frozenset[str], own_names: frozenset[str]) -> None:
    known = isinstance(table.this, exp.Identifier) and table.name.lower() in allowed_tables | own_names
    if not known or table.db.lower() not in OWN_SCHEMAS or table.catalog:
        raise Refused(f"不能查询 {table.sql()}，可用的表：{'、'.join(sorted(allowed_tables))}。")


def _place(error: SqlglotError) -> str:
    """Where sqlglot stopped reading; its descriptions speak of its own classes and would not help the model."""
    details = getattr(error, "errors", None)
    if not details:
        return str(error).splitlines()[0]
    return f"第 {details[0]['line']} 行第 {details[0]['col']} 列“{details[0]['highlight']}”附近无法解析。"
