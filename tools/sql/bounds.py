"""Bounds the size of statements: tokens before parsing, then what WITH and subqueries expand to.

Neither sqlglot nor a planner looks at a clock, and each level may double their work.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokens import Token, TokenType

# Tokens of all kinds, and of them keywords, operators and brackets
MAX_TOKENS = 3_000
MAX_SYNTAX = 700
# Brackets and CASEs open at a time, and those behind a type's name or a value
MAX_DEPTH = 24
MAX_TYPE_DEPTH = 4
MAX_RELATIONS = 100
MAX_COPIES = 20_000
MAX_GROWTH = 300

OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.CASE}
CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}
VALUES = {TokenType.NUMBER, TokenType.STRING, TokenType.IDENTIFIER, TokenType.VAR}
PLAIN = {TokenType.COMMA, *VALUES, *CLOSING}
# Functions whose result is a text made of their arguments
JOINING = (exp.DPipe, exp.Concat, exp.ConcatWs, exp.JSONArray, exp.JSONObject)
GROWING = (*JOINING, exp.Array, exp.Anonymous, exp.JSONArrayAgg, exp.JSONObjectAgg)
UNKNOWN_LENGTH = 64  # assumed for a replacement that is not made of constants
CONSTANTS = (exp.Literal, exp.ByteString, exp.Null)
JOINS = (exp.Cast, exp.Chr, exp.Concat, exp.DPipe, exp.Paren)  # no longer than their constants


class Refused(ValueError):
    """The statement may not run. The message tells the model, in Chinese, what to write instead.

    name, kind: the forbidden table or function, or "" for other reasons.
    """

    def __init__(self, reason: str, kind: str = "", name: str = "") -> None:
        super().__init__(reason)
        self.kind = kind
        self.name = name


def check_tokens(tokens: Sequence[Token]) -> None:
    """Refuse statements that are too nested or long, or that databases read differently."""
    opened: list[bool] = []  # for each open bracket: whether sqlglot reads it in two ways
    for before, token in zip([None, *tokens], tokens, strict=False):
        kind = token.token_type
        last = before and before.token_type
        if kind == TokenType.L_BRACE:
            raise Refused("不支持花括号 { }。")
        if (
            before
            and last == TokenType.NUMBER
            and before.end + 1 == token.start
            and token.text[:1].isidentifier()
        ):
            raise Refused(
                f"数字与文字连写：{before.text[:20]}{token.text[:20]}，请用空格或运算符隔开。"
            )
        if kind in OPENING:
            opened.append(kind == TokenType.L_BRACKET or last in Parser.TYPE_TOKENS)
        elif kind in CLOSING and opened:
            opened.pop()
        if len(opened) > MAX_DEPTH or sum(opened) > MAX_TYPE_DEPTH:
            raise Refused("SQL 嵌套太深，请简化。")
    syntax = sum(token.token_type not in PLAIN for token in tokens)
    if len(tokens) > MAX_TOKENS or syntax > MAX_SYNTAX:
        raise Refused("SQL 太复杂（括号、运算符或关键字太多），请写得更短。")


class Size(NamedTuple):
    """The size of a query after every WITH and subquery is written out where it is named.

    relations: tables. copies: of one column, once expressions replace the columns they define.
    growth: the factor by which a stored text may grow.
    """

    relations: int = 1
    copies: int = 1
    growth: int = 1


def size_of(nodes: Sequence[exp.Expr], inner: Sequence[Size]) -> Size:
    """Return the size of a query over its inner ones. Raises Refused: it is too large."""
    joined = 1  # times that one column is in a text
    replaced = 1
    for node in nodes:
        if isinstance(node, GROWING) and not isinstance(node.parent, GROWING):
            joined = max(joined, _most_named(node.walk()))
        for text in inserted(node):
            length = constant_length(text)
            replaced *= UNKNOWN_LENGTH if length is None else max(1, length)
    size = Size(
        max(1, sum(size.relations for size in inner)),
        _most_named(nodes) * max((size.copies for size in inner), default=1),
        joined * replaced * max((size.growth for size in inner), default=1),
    )
    if size.relations > MAX_RELATIONS or size.copies > MAX_COPIES:
        raise Refused("WITH 和子查询展开后太大，请减少层数或引用次数。")
    if size.growth > MAX_GROWTH:
        raise Refused("拼接或替换出的文本太长，请简化。")
    return size


def constant_length(text: exp.Expr) -> int | None:
    """Return the length that a text made of constants has at most, None for other expressions."""
    length = 0
    for node in text.walk():
        is_type = isinstance(node, exp.DataType) and not node.expressions
        is_text_type = is_type and node.this in exp.DataType.TEXT_TYPES
        # 1e1000 is a text of a thousand digits
        is_long = isinstance(node, exp.Literal) and node.is_number and not node.is_int
        if is_long or not (is_text_type or isinstance(node, (*CONSTANTS, *JOINS))):
            return None
        length += len(node.name) if isinstance(node, CONSTANTS) else 0
    return length


def inserted(node: exp.Expr) -> list[exp.Expr]:
    """Return texts that a function may put between any two characters or rows of another."""
    if isinstance(node, exp.ArrayToString):
        texts = [node.expression, node.args.get("null")]
    elif isinstance(node, exp.GroupConcat):
        texts = [node.args.get("separator")]
    else:
        texts = [node.args.get("replacement")] if isinstance(node, exp.Func) else []
    return [text for text in texts if isinstance(text, exp.Expr)]


def _most_named(nodes: Iterable[Any]) -> int:
    names = Counter(node.name.lower() for node in nodes if isinstance(node, exp.Column))
    return max(names.values(), default=1)
