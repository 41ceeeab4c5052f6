"""sqlglot's dialects without unwanted rewriting, and function names as the caller wrote them."""

import re
from collections.abc import Sequence
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.dialects.mysql import MySQL
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.sqlite import SQLite
from sqlglot.errors import SqlglotError
from sqlglot.generator import Generator
from sqlglot.generators.mysql import MySQLGenerator
from sqlglot.generators.postgres import PostgresGenerator
from sqlglot.generators.sqlite import SQLiteGenerator
from sqlglot.parser import build_json_extract, build_json_extract_scalar
from sqlglot.parsers.mysql import MySQLParser
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.parsers.sqlite import SQLiteParser
from sqlglot.tokens import Token, TokenType

from tools.sql.scopes import fold

# Words that sqlglot takes for types of other engines. SQLite takes each for a number's type, so
# that what sqlglot writes in their place would give other values.
FOREIGN_TYPES = {"BYTE", "LONG", "SHORT", "STR", "STRING"}
ONLY_A_NAME = "only_a_name"  # of an identifier that must not be read as a text
PLAIN_SPACE = " \t\n\r\f"  # what all engines take for a space. sqlglot takes others, too
SPACES = re.compile(f"[{PLAIN_SPACE}]+")
# Functions that sqlglot writes as others: SQLite's mod(7.5, 2) is 1.5, and 7.5 % 2 is 1
REWRITTEN = {"DATE_PART", "LOG2", "LOG10", "MEDIAN", "MOD", "TIMESTAMPADD"}


def _as_written(readers: dict[str, Any]) -> dict[str, Any]:
    return {name: reader for name, reader in readers.items() if name not in REWRITTEN}


def _same_path(dialect: Dialect, path: exp.Expr | None) -> exp.Expr | None:
    """Leave a path of JSON as it is. sqlglot would make $.a of the wrong path a."""
    return path


class ExactPostgres(Postgres):
    """sqlglot's PostgreSQL, without the parentheses that CURRENT_TIME may not have there."""

    to_json_path = _same_path

    class Parser(PostgresParser):
        LAMBDAS: ClassVar = {}  # `a -> 'b'` is an operator, among arguments too
        FUNCTIONS: ClassVar = _as_written(PostgresParser.FUNCTIONS)
        FUNCTION_PARSERS: ClassVar = _as_written(PostgresParser.FUNCTION_PARSERS)
        JSON_OPERATORS: ClassVar = {
            **PostgresParser.JSON_OPERATORS,
            TokenType.ARROW: build_json_extract,
            TokenType.DARROW: build_json_extract_scalar,
        }

        def _parse_interval_span(
            self, this: exp.Expr, parse_function_unit: bool = True
        ) -> exp.Interval:
            """Keep '1 day ago' and '.5 hours', of which sqlglot would read one number and unit."""
            is_one = this.is_string and len(exp.INTERVAL_STRING_RE.findall(this.name)) == 1
            if is_one and not exp.INTERVAL_STRING_RE.fullmatch(this.name):
                return self.expression(exp.Interval(this=this))
            return super()._parse_interval_span(this, parse_function_unit)

    class Generator(PostgresGenerator):
        TRANSFORMS: ClassVar = {
            **PostgresGenerator.TRANSFORMS,
            exp.CurrentTime: lambda generator, node: "CURRENT_TIME",
        }


class MariaDB(MySQL):
    """sqlglot's MySQL, in a form that MariaDB understands too."""

    to_json_path = _same_path

    class Parser(MySQLParser):
        LAMBDAS: ClassVar = {}
        FUNCTIONS: ClassVar = _as_written(MySQLParser.FUNCTIONS)

    class Generator(MySQLGenerator):
        TRANSFORMS: ClassVar = {
            **MySQLGenerator.TRANSFORMS,
            exp.RegexpLike: lambda generator, node: generator.binary(node, "REGEXP"),
            exp.JSONExtractScalar: lambda generator, node: (
                f"JSON_UNQUOTE(JSON_EXTRACT({generator.sql(node, 'this')}, "
                f"{generator.sql(node, 'expression')}))"
            ),
        }

        def identifier_sql(self, expression: exp.Identifier) -> str:
            if not expression.quoted and fold(expression.name) == "dual":
                return expression.name  # in quotes it would be a table of that name
            return super().identifier_sql(expression)


class ExactSQLite(SQLite):
    """sqlglot's SQLite, which keeps casts, comma joins and quotes as they were read.

    sqlglot would turn CAST(x AS DATE) into DATE(x), but in SQLite DATE is numeric:
    CAST('2024-05-06' AS DATE) is 2024. It would turn a comma into CROSS JOIN, which fixes the join
    order, and `x` into "x", which is a text without a column x.
    """

    to_json_path = _same_path

    class Parser(SQLiteParser):
        LAMBDAS: ClassVar = {}
        FUNCTIONS: ClassVar = _as_written(SQLiteParser.FUNCTIONS)
        JOINS_HAVE_EQUAL_PRECEDENCE = False

    class Tokenizer(SQLite.Tokenizer):
        KEYWORDS: ClassVar = {
            word: kind
            for word, kind in SQLite.Tokenizer.KEYWORDS.items()
            if word not in FOREIGN_TYPES
        }

    class Generator(SQLiteGenerator):
        TYPE_MAPPING: ClassVar = {}
        TRANSFORMS: ClassVar = {
            **SQLiteGenerator.TRANSFORMS,
            exp.Cast: lambda generator, node: Generator.cast_sql(generator, node),
        }

        def identifier_sql(self, expression: exp.Identifier) -> str:
            if expression.meta.get(ONLY_A_NAME):
                return f"`{expression.name.replace('`', '``')}`"
            return super().identifier_sql(expression)


def mark_names(tree: exp.Expr, sql: str) -> None:
    """Mark SQLite names in backticks or brackets. Names in double quotes may be texts."""
    for identifier in tree.find_all(exp.Identifier):
        start = identifier.meta.get("start")
        if start is not None and sql[start] in "`[":
            identifier.meta[ONLY_A_NAME] = True


def engine_dialect(dialect: str) -> str:
    return f"exact{dialect}" if dialect in ("sqlite", "postgres") else dialect


def spelled(function: exp.Func, sql: str) -> str:
    """Return a function's name as the statement has it, or sqlglot's name if its place is unknown."""
    start = function.meta.get("start")
    end = function.meta.get("end")
    if start is None or end is None:
        names = [fold(name) for name in function.sql_names()]
        return next((name for name in names if name in fold(sql)), names[0])
    return sql[start : end + 1].strip("\"`'[]")


def tokens_of(sql: str, dialect: str) -> list[Token]:
    """Return the tokens of a statement, or none if it has a text without an end."""
    try:
        return sqlglot.tokenize(sql, read=engine_dialect(dialect))
    except SqlglotError:
        return []


def gaps(tokens: Sequence[Token], sql: str) -> list[str]:
    """Return what stands before, between and behind the tokens: white space and comments."""
    ends = [0, *(token.end + 1 for token in tokens)]
    starts = [*(token.start for token in tokens), len(sql)]
    return [sql[end:start] for end, start in zip(ends, starts, strict=True)]


def same_words(
    tokens: Sequence[Token], sql: str, ours: Sequence[Token], text: str, schema: str
) -> bool:
    """Return whether the guard's text differs from the statement in nothing but a schema it added.

    Engines end comments in other places than sqlglot, and take some of its spaces for letters.
    """
    if any(gap.strip(PLAIN_SPACE) for gap in gaps(tokens, sql)):
        return False
    return _spellings(tokens, sql) == _spellings(ours, text, f'"{schema}"')


def _spellings(tokens: Sequence[Token], sql: str, schema: str = "") -> list[str]:
    """Return how tokens are spelled: texts and quoted names exactly, words in whatever case."""
    found: list[str] = []
    for token in tokens:
        spelled = sql[token.start : token.end + 1]
        if token.token_type == TokenType.DOT and found and found[-1] == schema:
            found.pop()
        elif token.token_type == TokenType.L_PAREN and sql[token.start - 1] in PLAIN_SPACE:
            found.append(" (")  # MariaDB takes `count (*)` for a function of the database
        elif token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            found.append(spelled)
        else:
            found.append(SPACES.sub(" ", fold(spelled)))
    return found
