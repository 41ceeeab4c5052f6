"""Help for the model's mistakes in one short Chinese sentence: near names or near values.

Hints read no more than the statement may.
"""

import re
import string
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import chain

from rapidfuzz import fuzz, process
from rapidfuzz.distance import Levenshtein
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from tools.sql.database import PLAIN_NAME, Column, Database
from tools.sql.dialects import PLAIN_SPACE, gaps, tokens_of
from tools.sql.errors import DeadlineExceeded, StatementError
from tools.sql.guard import FUNCTIONS, Refused, Statement
from tools.sql.result import neutralise, shorten
from tools.sql.scopes import fold

MAX_HINT = 200  # characters
SHOWN = 3  # names or values
NEAR_NAME = 60  # of 100, by rapidfuzz's ratio
CHARACTERS_A_SLIP = 6  # of a text that may differ by a character from the value that is meant
VALUE_CHARACTERS = 30
CANDIDATES = 30
HINT_SECONDS = 0.2  # what a hint is worth

# Signs of Chinese keyboards that Unicode does not call full-width forms of another.
CHINESE_SIGNS = {"‘": "'", "’": "'", "“": '"', "”": '"', "、": ",", "。": ".", "《": "<", "》": ">"}

QUOTED = {TokenType.STRING, TokenType.IDENTIFIER, TokenType.NATIONAL_STRING}
# How the three engines name a column or a function that is not there.
UNKNOWN_COLUMN = re.compile(
    r"no such column: (\S+)|column (.+?) does not exist|Unknown column '([^']+)'"
)
UNKNOWN_FUNCTION = re.compile(
    r"no such function: (\S+)|function (\w+)\(.*\) does not exist|FUNCTION (\S+) does not exist"
)


def hint_for_refusal(refusal: Refused, database: Database, allowed_tables: Iterable[str]) -> str:
    """Return tables or functions near a name that is not allowed."""
    if refusal.kind == "table":
        return _near("表", refusal.name, allowed_tables)
    if refusal.kind == "function":
        return _near("函数", refusal.name, FUNCTIONS[database.dialect])
    return ""


def hint_for_spelling(
    sql: str, reason: str, database: Database, allowed_tables: Iterable[str]
) -> str:
    """Return what to spell otherwise: a foreign sign, or a name that needs quotes."""
    columns = [columns.values() for columns in _columns(database, allowed_tables).values()]
    names = {"列": [column.name for column in chain.from_iterable(columns)], "表": allowed_tables}
    tokens = tokens_of(sql, database.dialect)
    words = _words(tokens)
    known = set(map(fold, chain.from_iterable(names.values())))
    for space in "".join(gap for gap in gaps(tokens, sql) if gap.isspace()):
        if space not in PLAIN_SPACE:  # sqlglot skips it, and engines take it for a letter
            return f"SQL 里有特殊空格 U+{ord(space):04X}，请改用普通空格。"
    foreign = _foreign_sign("".join(word for word in words if word not in known))
    return foreign or _without_quotes(words, reason, database, names)


def _words(tokens: Iterable[Token]) -> list[str]:
    """Return the folded words and signs, and "" for each text and quoted name."""
    return ["" if token.token_type in QUOTED else fold(token.text) for token in tokens]


def _without_quotes(
    words: list[str], reason: str, database: Database, names: Mapping[str, Iterable[str]]
) -> str:
    """Name a column or table whose parts stand side by side where the reason finds fault.

    The reason names one of the parts, or the word behind them: `JOIN lab results l`.
    """
    blamed = {word for word in re.findall(r"\w+", fold(reason)) if not word.isdecimal()}
    for kind, found in names.items():
        for name in found:
            if PLAIN_NAME.fullmatch(name):
                continue  # a reserved word may stand there as a keyword
            parts = _words(tokens_of(name, database.dialect))
            length = len(parts)
            if length < 2:
                continue  # a number
            for at in range(len(words)):
                is_there = words[at : at + length] == parts
                if is_there and not blamed.isdisjoint(words[at : at + length + 1]):
                    written = database.as_written(name)
                    return shorten(neutralise(f"{kind}名要加引号：{written}"), MAX_HINT)
    return ""


def _foreign_sign(text: str) -> str:
    for sign in text:
        if sign in CHINESE_SIGNS:
            return f"SQL 里有全角标点“{sign}”，请改用半角“{CHINESE_SIGNS[sign]}”。"
        plain = unicodedata.normalize("NFKC", sign)
        if plain != sign and plain in string.punctuation + " ":
            return f"SQL 里有全角标点“{sign}”，请改用半角“{plain}”。"
        if unicodedata.category(sign) == "Cf":
            return f"SQL 里有看不见的字符 U+{ord(sign):04X}，请删除。"
    return ""


def hint_for_error(
    error: str, statement: Statement, database: Database, allowed_tables: Iterable[str]
) -> str:
    """Return columns or functions near one that does not exist, or the table that has the column."""
    called = UNKNOWN_FUNCTION.search(error)
    if called:
        name = fold(next(filter(None, called.groups())).rpartition(".")[2])
        # One that is there was called with other types, or with a space before its bracket
        is_there = name in FUNCTIONS[database.dialect]
        return "" if is_there else _near("函数", name, FUNCTIONS[database.dialect])
    found = UNKNOWN_COLUMN.search(error)
    if not found:
        return ""
    name = next(filter(None, found.groups())).strip('"`').rpartition(".")[2].lower()
    columns = _columns(database, allowed_tables)
    owners = [table for table in sorted(columns) if name in columns[table]]
    if owners:
        stored = columns[owners[0]][name].name
        written = database.as_written(stored)
        quotes = "，要加引号" if written != stored else ""
        return shorten(neutralise(f"{written} 是表 {'、'.join(owners)} 的列{quotes}"), MAX_HINT)
    named = [columns[table] for table in statement.tables or allowed_tables]
    for column in chain.from_iterable(found.values() for found in named):
        told = column.comment
        if told and not name.isascii() and (name in told or told in name):
            return shorten(neutralise(f"相近的列：{column.name}（{told}）"), MAX_HINT)
    is_quoted = database.dialect == "postgres" and f'"{name}"' in statement.sql.lower()
    text = "文本要用单引号，双引号里是名称。" if is_quoted else ""
    return _near("列", name, chain.from_iterable(named)) or text


def hint_for_empty(statement: Statement, database: Database) -> str | None:
    """Return values near a text that finds none, "" without any, None if it takes long."""
    columns = _columns(database, statement.tables)
    for name, text, condition in statement.comparisons:
        for table in sorted(statement.tables):
            column = columns[table].get(name)
            if column is None:
                continue
            try:
                values = _near_values(text[:VALUE_CHARACTERS], column, table, database)
                # Else another condition finds nothing
                is_meant = values and not _finds(condition, column, table, database)
            except DeadlineExceeded:
                return None
            except StatementError:
                continue  # no text column, for instance
            if is_meant:
                quoted = "、".join(f"“{value}”" for value in values)
                return shorten(neutralise(f"{name} 中相近的值：{quoted}"), MAX_HINT)
    return ""


def _columns(database: Database, tables: Iterable[str]) -> dict[str, dict[str, Column]]:
    found = {}
    for table in tables:
        found[table] = {column.name.lower(): column for column in database.columns(table)}
    return found


def _near(what: str, name: str, choices: Iterable[str]) -> str:
    choices = sorted(set(choices))
    found = process.extract(
        name.lower(), choices, scorer=fuzz.ratio, limit=SHOWN, score_cutoff=NEAR_NAME
    )
    return f"相近的{what}：{'、'.join(choice for choice, _, _ in found)}" if found else ""


def _near_values(text: str, column: Column, table: str, database: Database) -> list[str]:
    sql = _search(text, column.name, table, database)
    found = database.read_table(table, sql, HINT_SECONDS, CANDIDATES)
    near = []
    for value, *_ in found.rows:
        if isinstance(value, str) and len(value) <= VALUE_CHARACTERS and is_near(text, value):
            near.append(value)
    return [value for value, _, _ in process.extract(text, near, scorer=fuzz.ratio, limit=SHOWN)]


def _finds(condition: exp.Expr, column: Column, table: str, database: Database) -> bool:
    """Return whether a condition of the statement finds rows by itself."""
    own = condition.copy()
    for named in own.find_all(exp.Column):
        named.replace(exp.column(column.name, quoted=True))
    found = exp.select("1").from_(database.place(table)).where(own).limit(1)
    sql = found.sql(dialect=database.dialect)
    return bool(database.read_table(table, sql, HINT_SECONDS, 1).rows)


def is_near(text: str, value: str) -> bool:
    """Return whether a text may mean a value: a part of two characters or more, or a typing error.

    A looser measure finds other names with the same ending, and another drug is dangerous.
    """
    shorter, longer = sorted((text.lower(), value.lower()), key=len)
    is_part = len(shorter) > 1 and shorter in longer
    return is_part or Levenshtein.distance(shorter, longer) <= slips(text)


def slips(text: str) -> int:
    """Return how many characters may differ in a text that still means the same value."""
    return max(1, len(text) // CHARACTERS_A_SLIP)


def _search(text: str, column: str, table: str, database: Database) -> str:
    """Return the values that share most of the text's first eight pairs of characters."""
    pieces = sorted({text[at : at + 2] for at in range(max(1, len(text) - 1))}, key=text.find)[:8]
    name = exp.column(column, quoted=True)
    like = name.ilike if database.dialect == "postgres" else name.like  # others fold letters
    likes = [like(f"%{piece}%") for piece in pieces]
    score: exp.Expression = exp.Literal.number(0)
    for match in likes:
        found = exp.case().when(match.copy(), exp.Literal.number(1)).else_(exp.Literal.number(0))
        score = exp.Add(this=score, expression=found)
    return (
        exp.select(exp.column(column, quoted=True), exp.alias_(score, "shared"))
        .distinct()
        .from_(database.place(table))
        .where(exp.or_(*likes))
        .order_by("shared DESC")
        .limit(CANDIDATES)
        .sql(dialect=database.dialect)
    )
