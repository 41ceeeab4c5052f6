"""What a statement may be made of: functions, types and syntax, as allow-lists.

Functions are lower-case names per dialect. None of them sleeps, locks, reads files or settings, names a sequence, runs
SQL from text, or builds a long string from a short one in one call (repeat, lpad, space, printf). Syntax is sqlglot's
node classes: what is not listed is refused, so a construct nobody thought of is refused too.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError
from sqlglot.generators.mysql import MySQLGenerator


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class MariaDB(MySQL):
    """sqlglot's MySQL, written so that MariaDB understands it too."""

    class Generator(MySQLGenerator):
        TRANSFORMS: ClassVar = {
            **MySQLGenerator.TRANSFORMS,
            exp.RegexpLike: lambda generator, node: generator.binary(node, "REGEXP"),
        }


COMMON = _words("""
abs avg ceil ceiling coalesce concat concat_ws count cume_dist current_date current_time current_timestamp
dense_rank first_value floor lag last_value lead left length lower ltrim max min mod ntile nth_value nullif
percent_rank power rank replace right round row_number rtrim sign substr substring sum trim upper
""")

FUNCTIONS: dict[str, frozenset[str]] = {
    "sqlite": (COMMON - _words("concat concat_ws left right mod power ceil ceiling floor"))
    | _words("""
cast date datetime glob group_concat ifnull iif instr julianday like strftime time total typeof unicode
unixepoch
"""),
    "postgres": COMMON
    | _words("""
age array_agg array_to_string ascii bit_length bool_and bool_or btrim char_length character_length chr
clock_timestamp date date_part date_trunc every extract greatest initcap json_agg json_build_array
json_build_object jsonb_agg jsonb_build_array jsonb_build_object least localtime localtimestamp lcase md5
make_date mode now octet_length percentile_cont percentile_disc position regexp_count regexp_like regexp_matches
regexp_replace regexp_substr reverse split_part sqrt starts_with statement_timestamp stddev string_agg
string_to_array strpos to_char to_date to_number to_timestamp translate trunc var_samp variance
"""),
    "mariadb": COMMON
    | _words("""
ascii bit_length char_length character_length curdate current_date curtime date date_add date_format date_sub
datediff day dayname dayofmonth dayofweek dayofyear elt extract field find_in_set format greatest group_concat
hour if ifnull instr isnull json_extract json_unquote lcase least locate md5 mid minute month monthname now
octet_length ord position quarter regexp_instr regexp_replace regexp_substr reverse second sqrt std stddev
stddev_pop str_to_date strcmp substring_index time timediff timestampdiff to_days truncate ucase var_pop
variance week weekday year
"""),
}

_STRUCTURE = _words("""
Alias Aliases All Any Between Boolean Bracket CTE Collate Column ColumnDef Cube DataType DataTypeParam Distinct
Dot Escape Except Fetch Filter From GroupingSets Group Having Identifier In Intersect Interval IntervalSpan Join
JSONPath JSONPathKey JSONPathRoot JSONPathSubscript Lateral Limit Literal National Neg Not Null Offset Order
Ordered Paren RawString Rollup Select Star Subquery Table TableAlias Tuple Union Values Var Where Window
WindowSpec With WithinGroup
""")

_OPERATORS = _words("""
Add BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor DPipe Div EQ GT GTE Glob ILike
IntDiv Is LT LTE Like Mod Mul NEQ NullSafeEQ NullSafeNEQ Sub Xor JSONExtract JSONExtractScalar
""")

# Syntax that sqlglot counts among the functions.
_FUNCTION_LIKE = _words("""
And Array Case Cast Coalesce DateAdd DateDiff DateSub Exists Extract If Or RegexpILike RegexpLike Trim
TsOrDsToDate TsOrDsToTimestamp
""")

# Words that may stand before a parenthesis without being a function.
PLAIN_WORDS = _words("""
all and any as between by case cast cube distinct else escape except exists filter from group having in
intersect interval is join lateral like limit materialized not offset on or over partition recursive rollup
select sets some then union using values when where array bigint binary char character date datetime decimal
double float int integer nchar nvarchar numeric real signed smallint text time timestamp timestamptz unsigned
varchar ilike glob regexp rlike div xor
""")


@lru_cache(maxsize=8)
def nodes(dialect: str) -> frozenset[type[exp.Expr]]:
    """The classes a syntax tree may consist of: structure, operators, and what the dialect's functions parse to."""
    allowed = {getattr(exp, name) for name in _STRUCTURE | _OPERATORS | _FUNCTION_LIKE if hasattr(exp, name)}
    for name in FUNCTIONS[dialect]:
        for arguments in ("", "a", "a, b", "a, b, c"):
            with suppress(SqlglotError, ValueError, AttributeError):
                tree = sqlglot.parse_one(f"SELECT {name}({arguments})", read=dialect)
                allowed.update(type(node) for node in tree.walk())
    return frozenset(allowed)


# Types a cast may name. Object identifiers such as regclass are missing: they look names up in the catalogue.
TYPES = frozenset(
    exp.DataType.Type[name]
    for name in _words("""
ARRAY BIGINT BINARY BOOLEAN CHAR DATE DATETIME DECIMAL DOUBLE FLOAT INT INTERVAL JSON JSONB MEDIUMINT NCHAR
NVARCHAR SMALLINT TEXT TIME TIMESTAMP TIMESTAMPTZ TINYINT UBIGINT UINT UUID VARCHAR
""")
)

# Words without parentheses that tell who is connected and where; SQLite has none.
SESSION_WORDS: dict[str, frozenset[str]] = {
    "sqlite": frozenset(),
    "postgres": _words("""
user current_user session_user system_user current_role current_catalog current_schema
"""),
    "mariadb": _words("""
current_user current_role session_user system_user
"""),
}
