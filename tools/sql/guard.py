"""Lets only a single SELECT run, made of the syntax and functions of allowed.toml.

Only regenerated text is executed. sqlglot does not validate, and mends what is wrong, so the
engine reads the statement as it was written, too, and the connection refuses what it must
(tools/sql/database.py).
"""

import logging
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError
from sqlglot.parser import Parser
from sqlglot.tokens import Token, TokenType

from common.toml import table_beside
from tools.sql.bounds import JOINING, Refused, check_tokens, constant_length, inserted
from tools.sql.dialects import engine_dialect, mark_names, same_words, spelled
from tools.sql.scopes import Scopes, fold

# sqlglot warns about syntax it passes on unparsed. The guard refuses such statements and says so
# itself.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

# Parsing 180 KB of ORs takes over a second, before any deadline of the database applies.
MAX_SQL_BYTES = 20_000
CACHED_BYTES = 2_000  # longer statements are rare and would fill the memory

NO_SELECT = "查询要以 SELECT 或 WITH 开头：不要整个放进括号，也不要单独使用 VALUES。"
# Collect rows into one value, or join values to one text, without a bound of the engine's own
COLLECTING = {
    "postgres": ("group_concat", "array_agg", "json_agg", "jsonb_agg", "string_agg"),
    "mariadb": ("json_arrayagg",),
}
# Tokens of more than one word that may stand before a parenthesis.
SEVERAL_WORDS = {
    TokenType.ORDER_BY,
    TokenType.GROUP_BY,
    TokenType.PARTITION_BY,
    TokenType.GROUPING_SETS,
}
BEFORE_BRACKET = {
    *Parser.TYPE_TOKENS,
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.ARRAY,
    TokenType.R_PAREN,
    TokenType.R_BRACKET,
    TokenType.L_BRACKET,
    TokenType.COMMA,
}
LABEL = re.compile(
    r"(?:sql\s*(?:query)?(?:查询)?(?:语句)?|查询(?:语句)?)\s*[:：\n]\s*(?=select\b|with\b)",
    re.IGNORECASE,
)
FENCE = re.compile(r"```(?:sql\s|(?!select|with)\w*\s*\n)?(.*?)```", re.DOTALL | re.IGNORECASE)
STARTS = re.compile(r"(?:select|with)\b|--|/\*", re.IGNORECASE)
JOINING_NAMES = ("json_array", "json_object", "_build_array", "_build_object")

_LISTS = table_beside(__file__, "allowed.toml")
_ALLOWED: dict[str, dict[str, frozenset[str]]] = {}
for _part, _texts in _LISTS.items():
    _ALLOWED[_part] = {name: frozenset(text.split()) for name, text in _texts.items()}
_OF_ALL = _ALLOWED["functions"].pop("all")
# Lower-case names by dialect.
FUNCTIONS: dict[str, frozenset[str]] = {
    dialect: _OF_ALL | names for dialect, names in _ALLOWED["functions"].items()
}
PLAIN_WORDS = _ALLOWED["words"]["plain"]  # may stand before a parenthesis without being a function
TYPES = frozenset(exp.DataType.Type[name] for name in _ALLOWED["words"]["types"])
CHARSETS = _ALLOWED["words"]["charsets"]
SESSION_WORDS: dict[str, frozenset[str]] = _ALLOWED["session"]


@lru_cache(maxsize=8)
def nodes(dialect: str) -> frozenset[type[exp.Expr]]:
    """Return the allowed classes of a syntax tree, functions of the dialect included."""
    names = frozenset().union(*_ALLOWED["syntax"].values())
    allowed = {getattr(exp, name) for name in names if hasattr(exp, name)}
    for name in FUNCTIONS[dialect]:
        for arguments in ("", "a", "a, b", "a, b, c"):
            with suppress(SqlglotError, ValueError, AttributeError):
                tree = sqlglot.parse_one(
                    f"SELECT {name}({arguments})", read=engine_dialect(dialect)
                )
                allowed.update(type(node) for node in tree.walk())
    return frozenset(allowed)


class Statement(NamedTuple):
    """A statement that may run, and what an engine lets it read.

    sql: its regenerated text. allowed: folded names of tables. written: its own text, without what
    stands around it, or "" where it has the same words. The engine must accept it, too, because
    sqlglot mends what an engine refuses. own_names: folded names that its WITH defines. tables: the
    allowed ones it names. comparisons: the first columns that `=`, IN or LIKE compares with texts,
    without wildcards, and the conditions in which it does. kept: characters of a server's cell.
    """

    sql: str
    allowed: frozenset[str]
    written: str = ""
    own_names: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    comparisons: tuple[tuple[str, str, exp.Expr], ...] = ()
    kept: int = 4_000


def check(sql: str, dialect: str, allowed_tables: Iterable[str], schema: str = "") -> Statement:
    """Return the statement to execute in place of `sql`.

    dialect: "sqlite", "postgres" or "mariadb" (MySQL too). allowed_tables: lower-case tables or
    views that may be read. schema: where they are, "" for the dialect's default, such as "public".

    Raises Refused: not exactly one SELECT, too large, not parsable, or something not allowed.
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
    return run(sql, dialect, frozenset(allowed_tables), schema)


def parsed(sql: str, dialect: str) -> exp.Query:
    """Return the tree of a statement that `check` let pass."""
    sql = _unwrapped(sql)
    return _parse(sqlglot.tokenize(sql, read=engine_dialect(dialect)), sql, dialect)


def _check(sql: str, dialect: str, allowed_tables: frozenset[str], schema: str) -> Statement:
    try:
        sql = _unwrapped(sql)
        written = sqlglot.tokenize(sql, read=engine_dialect(dialect))
        tree = _parse(written, sql, dialect)
        comparisons = _comparisons(tree)
        scopes = Scopes(dialect, allowed_tables, schema)
        own_names, tables = scopes.resolve(tree)
        _check_nodes(tree, sql, dialect)
        if dialect == "postgres":
            _name_columns(tree, sql)
        text = tree.sql(dialect=engine_dialect(dialect), comments=False)
        tokens = sqlglot.tokenize(text, read=engine_dialect(dialect))
        _check_words(tokens, dialect, own_names)
        own = [token for token in written if token.token_type != TokenType.SEMICOLON]
        is_same = same_words(written, sql, tokens, text, scopes.written_schema)
        own_text = "" if is_same else sql[own[0].start : own[-1].end + 1]
        return Statement(text, allowed_tables, own_text, own_names, tables, comparisons)
    except (Refused, MemoryError):
        raise
    except RecursionError:
        raise Refused("SQL 嵌套太深，请简化。") from None
    except Exception as error:  # sqlglot asserts little about what it reads
        # Its own descriptions name its classes, which help no model
        details = getattr(error, "errors", None)
        if not details:
            raise Refused("SQL 语法错误：无法解析。") from None
        place = f"第 {details[0]['line']} 行第 {details[0]['col']} 列“{details[0]['highlight']}”"
        raise Refused(f"SQL 语法错误：{place}附近无法解析。") from None


# Siblings of a GRPO group repeat each other's SQL, and parsing costs more than running.
_check_cached = lru_cache(maxsize=4096)(_check)


def _unwrapped(sql: str) -> str:
    """Remove what models put around a statement: byte-order mark, label, Markdown fence, quotes."""
    text = sql.removeprefix("\ufeff").strip()
    label = LABEL.match(text)
    text = text[label.end() :] if label else text
    fenced = FENCE.findall(text)
    if len(fenced) == 1 and not STARTS.match(text):  # words of the model may stand around it
        text = fenced[0].strip()
    quoted = text[:1] in "\"'`" and text[-1:] == text[:1]
    if quoted and text[1:-1].lstrip().upper().startswith(("SELECT", "WITH")):
        text = text[1:-1]
    return text.strip().rstrip("; \t\n")


def _parse(tokens: list[Token], sql: str, dialect: str) -> exp.Query:
    check_tokens(tokens)
    if tokens and tokens[0].text.upper() == "VALUES":
        raise Refused(NO_SELECT)
    _check_spelling(tokens, sql, dialect)
    parsed = Dialect.get_or_raise(engine_dialect(dialect)).parser().parse(tokens, sql)
    # A comment behind the last semicolon is a statement to sqlglot
    statements = [tree for tree in parsed if tree and not isinstance(tree, exp.Semicolon)]
    if not statements:
        raise Refused("SQL 是空的，请写一条 SELECT 语句。")
    if len(statements) > 1:
        raise Refused("一次只能执行一条 SELECT 语句。")
    tree = statements[0]
    if isinstance(tree, exp.Subquery):
        raise Refused(NO_SELECT)
    if not isinstance(tree, (exp.Select, exp.SetOperation)):
        raise Refused("只允许 SELECT 查询，数据库是只读的。")
    if dialect == "sqlite":
        # It lacks `x::date` and `DATE '2024-05-06'`, of which sqlglot makes a CAST of another value
        casts = sum(1 for _ in tree.find_all(exp.Cast))
        if casts > sum(fold(token.text) == "cast" for token in tokens):
            raise Refused("SQLite 的类型转换只能写成 CAST(值 AS 类型)；日期请用 date() 等函数。")
        mark_names(tree, sql)
    return tree


def _check_spelling(tokens: Sequence[Token], sql: str, dialect: str) -> None:
    """Refuse what sqlglot rewrites with another meaning: 0x41 as x'41', [x] as an array."""
    if dialect == "sqlite":
        return
    for before, token in zip([None, *tokens], tokens, strict=False):
        if sql[token.start : token.end + 1][:2].lower() == "0x":
            raise Refused("十六进制文本请写成 x'41' 的形式，数字请用十进制。")
        is_bracket = token.token_type == TokenType.L_BRACKET
        if is_bracket and (before is None or before.token_type not in BEFORE_BRACKET):
            raise Refused("名称不能放在方括号 [ ] 里。")


def _check_nodes(tree: exp.Query, sql: str, dialect: str) -> None:
    allowed = nodes(dialect)
    joins = len(list(tree.find_all(exp.Table))) > 1
    for node in tree.walk():
        if isinstance(node, exp.Anonymous):
            _check_function(node.name, dialect)
        elif type(node) not in allowed:
            raise _unknown(node, sql, dialect)
        if isinstance(node, exp.Rand):  # an engine has one of the names `rand` and `random`
            _check_function(spelled(node, sql), dialect)
        if dialect != "sqlite":
            _check_building(node)
        if isinstance(node, exp.DataType):
            to_charset = node.this == exp.DataType.Type.CHARACTER_SET
            is_known = dialect == "mariadb" and fold(node.text("kind")) in CHARSETS
            if node.this not in TYPES or (to_charset and not is_known):
                raise Refused(f"不能转换为类型 {node.sql(comments=False)[:60]}。")
        if isinstance(node, exp.Func) and joins and dialect in COLLECTING:
            _check_collecting(node, sql, dialect)
        _check_inserted(node, sql, dialect)
        _check_rewritten(node, dialect)


def _name_columns(tree: exp.Query, sql: str) -> None:
    """Let a column keep PostgreSQL's name for it, which is its function's as the caller wrote it."""
    for select in list(tree.find_all(exp.Select)):
        for part in select.expressions:
            if isinstance(part, exp.Func) and "start" in part.meta:
                name = fold(spelled(part, sql))
                ours = fold(part.sql(dialect=engine_dialect("postgres"))).partition("(")[0]
                if name != ours:
                    part.replace(exp.alias_(part.copy(), name, quoted=True))


def _unknown(node: exp.Expr, sql: str, dialect: str) -> Refused:
    if isinstance(node, (exp.DML, exp.DDL, exp.Command, exp.Into, exp.Lock)):
        return Refused("只允许 SELECT 查询，数据库是只读的。")
    is_operator = isinstance(node, exp.Binary)
    if isinstance(node, exp.Func) and not is_operator and node.sql_names():
        name = spelled(node, sql)
        return Refused(f"不能使用函数 {name}。", "function", fold(name))
    text = node.sql(dialect=engine_dialect(dialect), comments=False)
    return Refused(f"不支持的语法：{text[:60] or type(node).__name__}")


def _check_collecting(function: exp.Func, sql: str, dialect: str) -> None:
    """Refuse to collect rows: servers build a gigabyte before they look at the deadline."""
    if _name(function).endswith(COLLECTING[dialect]):
        word = spelled(function, sql)
        raise Refused(f"{word} 只能用于一张表，不能与连接一起使用。")


def _name(function: exp.Func) -> str:
    is_unknown = isinstance(function, exp.Anonymous)
    return fold(function.name if is_unknown else function.sql_name())


def _check_rewritten(node: exp.Expr, dialect: str) -> None:
    """Refuse syntax that sqlglot would rewrite into another statement for an engine without it."""
    side = str(node.args.get("side") or "")
    kind = str(node.args.get("kind") or "")
    if isinstance(node, exp.Join) and (
        kind in ("SEMI", "ANTI") or (dialect == "mariadb" and side == "FULL")
    ):
        raise Refused(f"数据库没有 {side or kind} JOIN，请用 LEFT JOIN、EXISTS 或 UNION 改写。")
    if isinstance(node, exp.Distinct) and node.args.get("on") and dialect != "postgres":
        raise Refused("数据库没有 DISTINCT ON，请用 GROUP BY 改写。")
    options = isinstance(node, exp.LimitOptions) and dialect != "postgres"
    if options and (node.args.get("with_ties") or node.args.get("percent")):
        raise Refused("数据库只有 FETCH FIRST n ROWS ONLY，没有 WITH TIES 和 PERCENT。")
    counted = None
    if isinstance(node, (exp.Limit, exp.Offset, exp.Fetch)) and dialect == "mariadb":
        counted = node.args.get("count") or node.expression
    if counted and not (isinstance(counted, exp.Literal) and counted.is_int):
        raise Refused("LIMIT 和 OFFSET 只能是非负整数。")


def _check_inserted(node: exp.Expr, sql: str, dialect: str) -> None:
    """Refuse a column's text between any two characters of another: it may grow to a gigabyte.

    Workers and MariaDB's packets bound it by themselves, and the rows of an aggregate by theirs.
    """
    if dialect != "postgres" or isinstance(node, exp.GroupConcat):
        return
    for text in inserted(node):
        if isinstance(node, exp.Func) and constant_length(text) is None:
            raise Refused(f"{spelled(node, sql)} 的分隔符或替换文本只能是文本常量。")


def _check_building(node: exp.Expr) -> None:
    """Refuse a recursive WITH that doubles a text: thirty rounds make a gigabyte."""
    is_named_so = isinstance(node, exp.Func) and _name(node).endswith(JOINING_NAMES)
    joins = is_named_so or isinstance(node, JOINING)
    cte = node.find_ancestor(exp.With) if joins else None
    while cte is not None:
        if cte.args.get("recursive"):
            raise Refused("递归 WITH 里不能拼接文本。")
        cte = cte.find_ancestor(exp.With)


def _check_words(tokens: Sequence[Token], dialect: str, own_names: frozenset[str]) -> None:
    """Check the final text: every word before a parenthesis is a known function or plain syntax."""
    own_words = frozenset(map(fold, own_names))
    kinds = [token.token_type for token in tokens]
    for before, token, after in zip([None, *kinds], tokens, [*kinds[1:], None], strict=False):
        kind = token.token_type
        word = fold(token.text)
        if kind in SEVERAL_WORDS:
            word = word.split()[-1]  # BY of ORDER BY
        is_word = kind != TokenType.STRING and (word[:1].isalpha() or word[:1] == "_")
        is_plain = word in own_words or (word in PLAIN_WORDS and kind != TokenType.IDENTIFIER)
        if after == TokenType.L_PAREN and is_word and before != TokenType.ALIAS and not is_plain:
            _check_function(word, dialect)
        is_quoted = kind in (TokenType.IDENTIFIER, TokenType.STRING)
        is_part = before in (TokenType.DOT, TokenType.ALIAS)
        if word in SESSION_WORDS[dialect] and not is_quoted and not is_part:
            raise Refused(f"不能使用 {token.text}。", "function", word)


def _check_function(name: str, dialect: str) -> None:
    if fold(name) not in FUNCTIONS[dialect]:
        raise Refused(f"不能使用函数 {name}。", "function", fold(name))


def _comparisons(tree: exp.Query) -> tuple[tuple[str, str, exp.Expr], ...]:
    found = []
    for node in tree.find_all(exp.EQ, exp.In, exp.Like, exp.ILike):
        column = node.this.this if isinstance(node.this, (exp.Lower, exp.Upper)) else node.this
        condition = node.parent if isinstance(node.parent, exp.Not) else node
        for value in node.expressions or [node.expression]:
            is_text = isinstance(column, exp.Column) and isinstance(value, exp.Literal)
            if is_text and value.is_string and (text := value.name.strip("%_ ")):
                found.append((fold(column.name), text, condition))
    return tuple(found[:4])
