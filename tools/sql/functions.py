"""What a statement may be made of: functions, types and syntax, as the allow-lists of `allowed.toml`.

What is not listed is refused, so a construct nobody thought of is refused too.
"""

from __future__ import annotations

import tomllib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.mysql import MySQL
from sqlglot.errors import SqlglotError
from sqlglot.generators.mysql import MySQLGenerator

_LISTS = tomllib.loads(Path(__file__).with_name("allowed.toml").read_text(encoding="utf-8"))
_ALLOWED = {part: {name: frozenset(text.split()) for name, text in lists.items()} for part, lists in _LISTS.items()}

_OF_ALL = _ALLOWED["functions"].pop("all")
FUNCTIONS: dict[str, frozenset[str]] = {dialect: _OF_ALL | names for dialect, names in _ALLOWED["functions"].items()}
"""Lower-case names by dialect."""
PLAIN_WORDS = _ALLOWED["words"]["plain"]
"""Words that may stand before a parenthesis without being a function."""
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
