"""Which statements may run: one SELECT made of known syntax and functions over the allowed tables, and nothing else.

The statement is parsed with sqlglot in the database's dialect, every node and name of the tree is compared with the
allow-lists of `allowed.toml`, which refuse what nobody thought of, and only the regenerated form is ever executed, so
comments, stacked statements and parser tricks do not reach the database. This is the first of several layers
(docs/sql-safety.md): sqlglot is not a validator, so the connection itself refuses too (tools/sql/database.py).

    from tools.sql.guard import check
    check("select 1; drop table t", "sqlite", {"t"})      # raises Refused
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError
from sqlglot.generators.mysql import MySQLGenerator
from sqlglot.tokens import TokenType

# sqlglot warns about syntax it passes on unparsed; the guard refuses such statements and says so itself.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

# Parsing 180 KB of ORs takes over a second, before any deadline of the database applies.
MAX_SQL_BYTES = 20_000
CACHED_BYTES = 2_000  # longer statements are rare and would fill the memory

OWN_SCHEMAS = {"sqlite": {"", "main"}, "postgres": {"", "public"}, "mariadb": {""}}
RESERVED_PREFIXES = ("sqlite_", "pragma_", "pg_", "information_schema")
COLLECTING = ("group_concat", "array_agg", "json_agg", "jsonb_agg", "string_agg")

_LISTS = tomllib.loads(Path(__file__).with_name("allowed.toml").read_text(encoding="utf-8"))
_ALLOWED = {part: {name: frozenset(text.split()) for name, text in lists.items()} for part, lists in _LISTS.items()}
_OF_ALL = _ALLOWED["functions"].pop("all")
# Lower-case names by dialect.
FUNCTIONS: dict[str, frozenset[str]] = {dialect: _OF_ALL | names for dialect, names in _ALLOWED["functions"].items()}
PLAIN_WORDS = _ALLOWED["words"]["plain"]  # may stand before a parenthesis without being a function
TYPES = frozenset(exp.DataType.Type[name] for name in _ALLOWED["words"]["types"])
SESSION_WORDS: dict[str, frozenset[str]] = _ALLOWED["session"]


class MariaDB(MySQL):
    """sqlglot's MySQL, written so that MariaDB understands it too."""

    class Generator(MySQLGenerator):
        TRANSFORMS: ClassVar = {
            **MySQLGenerator.TRANSFORMS,
            exp.RegexpLike: lambda generator, node: generator.binary(node, "REGEXP"),
        }


@lru_cache(maxsize=8)
def nodes(dialect: str) -> frozenset[type[exp.Expr]]:
    """The classes a syntax tree may consist of: structure, operators, and what the dialect's functions parse to."""
    names = frozenset().union(*_ALLOWED["syntax"].values())
    allowed = {getattr(exp, name) for name in names if hasattr(exp, name)}
    for name in FUNCTIONS[dialect]:
        for arguments in ("", "a", "a, b", "a, b, c"):
            with suppress(SqlglotError, ValueError, AttributeError):
                tree = sqlglot.parse_one(f"SELECT {name}({arguments})", read=dialect)
                allowed.update(type(node) for node in tree.walk())
    return frozenset(allowed)


class Refused(ValueError):
    """The statement may not run; the message is for the model, in Chinese, and says what to write instead.

    `name` is the table or function that is not allowed, `kind` what it is; both "" for other reasons.
    """

    def __init__(self, reason: str, kind: str = "", name: str = "") -> None:
        super().__init__(reason)
        self.kind, self.name = kind, name


class Comparison(NamedTuple):
    """A column compared with a text, as in `med_name = '...'` or `med_name LIKE '%...%'`; without wildcards."""

    column: str
    text: str


class Statement(NamedTuple):
    """A statement that may run.

    sql: its regenerated text. own_names: lower-case names it defines itself with WITH. tables: the allowed tables it
    names. comparisons: the first columns it compares with texts.
    """

    sql: str
    own_names: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    comparisons: tuple[Comparison, ...] = ()


def check(sql: str, dialect: str, allowed_tables: Iterable[str]) -> Statement:
    """The statement to execute in place of `sql`.

    Args:
        sql: what the model wrote.
        dialect: sqlglot's name of the database's dialect: "sqlite", "postgres" or "mariadb" (MySQL too).
        allowed_tables: lower-case names of the tables (or views) that may be read.

    Raises:
        Refused: not exactly one SELECT, too long, not parsable, or a table, function or syntax that is not allowed.
    """
    try:
        size = len(sql.encode("utf-8"))
    except UnicodeEncodeError:
        raise Refused("SQL 含有无效字符。") from None
    if size > MAX_SQL_BYTES:
        raise Refused(f"SQL 太长（上限 {MAX_SQL_BYTES} 字节），请写得更短。")
    if "\0" in sql:
        raise Refused("SQL 含有无效字符。")
    if dialect == "mariadb" and ("/*!" in sql or "/*M!" in sql):
        raise Refused("不能使用 /*! */ 形式的注释。")  # the server runs what stands inside
    run = _check_cached if size <= CACHED_BYTES else _check
    return run(sql, dialect, frozenset(allowed_tables))


def _check(sql: str, dialect: str, allowed_tables: frozenset[str]) -> Statement:
    try:
        tree = _parse(sql, dialect)
        own_names = _own_names(tree, allowed_tables)
        _check_nodes(tree, dialect, allowed_tables, own_names)
        text = tree.sql(dialect=dialect, comments=False)
        _check_words(text, dialect, own_names)
        tables = frozenset(table.name.lower() for table in tree.find_all(exp.Table)) & allowed_tables
        return Statement(text, own_names, tables, _comparisons(tree))
    except SqlglotError as error:
        raise Refused(f"SQL 语法错误：{_place(error)}") from None
    except RecursionError:
        raise Refused("SQL 嵌套太深，请简化。") from None


# Siblings of a GRPO group repeat each other's SQL, and parsing costs more than running.
_check_cached = lru_cache(maxsize=4096)(_check)


def _parse(sql: str, dialect: str) -> exp.Query:
    statements = [tree for tree in sqlglot.parse(sql.strip().rstrip("; \t\n"), read=dialect) if tree is not None]
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


def _check_nodes(tree: exp.Query, dialect: str, allowed_tables: frozenset[str], own_names: frozenset[str]) -> None:
    allowed = nodes(dialect)
    for node in tree.walk():
        if isinstance(node, exp.Anonymous):
            _check_function(node.name, dialect)
        elif type(node) not in allowed:
            raise _unknown(node)
        if isinstance(node, (exp.DPipe, exp.Concat, exp.ConcatWs)) and dialect == "postgres":
            _check_building(node)
        if isinstance(node, exp.Table):
            _check_table(node, dialect, allowed_tables, own_names)
        elif isinstance(node, exp.DataType) and node.this not in TYPES:
            raise Refused(f"不能转换为类型 {node.sql(comments=False)[:60]}。")
        elif isinstance(node, exp.Func):
            _check_replaces(node)
            _check_collecting(node, tree, dialect)


def _unknown(node: exp.Expr) -> Refused:
    if isinstance(node, (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock)):
        return Refused("只允许 SELECT 查询，数据库是只读的。")
    if isinstance(node, exp.Func) and node.sql_names():
        name = node.sql_name().lower()
        return Refused(f"不能使用函数 {name}。", "function", name)
    return Refused(f"不支持的语法：{node.sql(comments=False)[:60] or type(node).__name__}")


def _check_table(table: exp.Table, dialect: str, allowed_tables: frozenset[str], own_names: frozenset[str]) -> None:
    name = table.name.lower() if isinstance(table.this, exp.Identifier) else ""
    known = name in allowed_tables or (name in own_names and not table.db and _is_defined(table, name))
    if known and table.db.lower() in OWN_SCHEMAS[dialect] and not table.catalog:
        return
    choice = "、".join(sorted(allowed_tables))
    raise Refused(f"不能查询 {table.sql(comments=False)}，可用的表：{choice}。", "table", table.name)


def _is_defined(table: exp.Table, name: str) -> bool:
    """Whether a WITH defines the name where the table stands; elsewhere the name would mean a real table.

    A WITH's queries see those before them, and themselves when it is recursive.
    """
    inside: exp.Expr | None = None  # the CTE we come from
    node: exp.Expr | None = table
    while node is not None:
        if isinstance(node, exp.CTE):
            inside = node
        elif isinstance(node, exp.Query):
            ctes = node.ctes
            if inside:
                place = next(at for at, cte in enumerate(ctes) if cte is inside)
                recursive = inside.parent is not None and inside.parent.args.get("recursive")
                ctes = ctes[: place + bool(recursive)]
            if name in [cte.alias.lower() for cte in ctes]:
                return True
            inside = None
        node = node.parent
    return False


def _check_replaces(function: exp.Func) -> None:
    """Refuse more than three REPLACEs inside each other: thousands of characters from one, a gigabyte from four."""
    depth = 0
    node: exp.Expr | None = function
    while isinstance(node, exp.Expr):
        depth += "replace" in type(node).__name__.lower() or node.name.lower().endswith("replace")
        node = node.parent
    if depth > 3:
        raise Refused("REPLACE 嵌套太多，请简化。", "function", "replace")


def _check_collecting(function: exp.Func, tree: exp.Query, dialect: str) -> None:
    """PostgreSQL collects up to a gigabyte into one value, and a join gets there before the deadline is looked at."""
    name = function.name.lower() if isinstance(function, exp.Anonymous) else function.sql_name().lower()
    if dialect == "postgres" and name.endswith(COLLECTING) and len(list(tree.find_all(exp.Table))) > 1:
        raise Refused("string_agg、array_agg、json_agg 只能用于一张表，不能与连接一起使用。", "function", "string_agg")


def _check_building(node: exp.Expr) -> None:
    """A text that a recursive WITH doubles is a gigabyte after thirty rounds; other engines bound texts."""
    cte = node.find_ancestor(exp.With)
    while cte is not None:
        if cte.args.get("recursive"):
            raise Refused("递归 WITH 里不能拼接文本。")
        cte = cte.find_ancestor(exp.With)


def _check_words(text: str, dialect: str, own_names: frozenset[str]) -> None:
    """Look at the text that will run: every word before a parenthesis is a known function or plain syntax."""
    tokens = sqlglot.tokenize(text, read=dialect)
    kinds = [None, *(token.token_type for token in tokens)]
    for before, token, after in zip(kinds, tokens, kinds[2:], strict=False):
        word, kind = token.text.lower(), token.token_type
        is_word = kind != TokenType.STRING and (word[:1].isalpha() or word[:1] == "_")
        is_plain = word in own_names or (word in PLAIN_WORDS and kind != TokenType.IDENTIFIER)
        if after == TokenType.L_PAREN and is_word and before != TokenType.ALIAS and not is_plain:
            _check_function(word, dialect)
    for before, token in zip(kinds, tokens, strict=False):
        is_quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
        if token.text.lower() in SESSION_WORDS[dialect] and not is_quoted and before != TokenType.DOT:
            raise Refused(f"不能使用 {token.text}。", "function", token.text.lower())


def _check_function(name: str, dialect: str) -> None:
    if name.lower() not in FUNCTIONS[dialect]:
        raise Refused(f"不能使用函数 {name}。", "function", name.lower())


def _comparisons(tree: exp.Query) -> tuple[Comparison, ...]:
    found = []
    for node in tree.find_all(exp.EQ, exp.Like, exp.ILike):
        column, value = node.this, node.expression
        text = value.name.strip("%_ ") if isinstance(value, exp.Literal) and value.is_string else ""
        if isinstance(column, exp.Column) and text:
            found.append(Comparison(column.name.lower(), text))
    return tuple(found[:4])


def _place(error: SqlglotError) -> str:
    """Where sqlglot stopped reading; its descriptions speak of its own classes and would not help the model."""
    details = getattr(error, "errors", None)
    if not details:
        return str(error).splitlines()[0]
    return f"第 {details[0]['line']} 行第 {details[0]['col']} 列“{details[0]['highlight']}”附近无法解析。"
