"""Resolves every table name of a statement: an allowed table, or what a WITH around it defines.

Names are compared as the engine does, and written in the one way it cannot misread.
"""

import string
import unicodedata
from collections.abc import Mapping

from sqlglot import exp

from tools.sql.bounds import Refused, Size, size_of

DEFAULT_SCHEMAS = {"sqlite": "main", "postgres": "public", "mariadb": ""}
RESERVED_PREFIXES = ("sqlite_", "pragma_", "pg_", "information_schema")
ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def fold(name: str) -> str:
    """Fold a name as engines do, A to Z only. Python's lower() makes a k of the Kelvin sign."""
    return name.translate(ASCII_LOWER)


def _key(identifier: exp.Expr, dialect: str) -> str:
    is_exact = dialect == "postgres" and identifier.args.get("quoted")
    return identifier.name if is_exact else fold(identifier.name)


def _looks(name: str) -> str:
    """Return the name without case, width and accents, as the loosest collation would compare it."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(letter for letter in plain if not unicodedata.combining(letter)).casefold()


class Scopes:
    """Resolves the names of one statement in place. schema: of allowed tables, "" for default."""

    def __init__(self, dialect: str, allowed_tables: frozenset[str], schema: str) -> None:
        self._dialect = dialect
        self._allowed = allowed_tables
        self._schema = schema or DEFAULT_SCHEMAS[dialect]
        # MariaDB's tables are those of the connection's database, with its name or without
        self.written_schema = "" if dialect == "mariadb" else self._schema
        self._own: set[str] = set()
        self._tables: set[str] = set()
        self._seen: set[int] = set()

    def resolve(self, tree: exp.Query) -> tuple[frozenset[str], frozenset[str]]:
        """Return the WITH names and the allowed tables of the statement. Raises Refused."""
        self._query(tree, {})
        for table in tree.find_all(exp.Table):
            if id(table) not in self._seen:
                raise self._unknown(table)
        return frozenset(self._own), frozenset(self._tables)

    def _query(self, query: exp.Expr, visible: Mapping[str, tuple[exp.Expr, Size]]) -> Size:
        """Return the size of a query. WITH queries see earlier ones, and if recursive themselves."""
        clause = query.args.get("with_")
        for cte in clause.expressions if clause else ():
            name = _key(cte.args["alias"].this, self._dialect)
            # A WITH name that hides a real table would make "which tables were read" ambiguous.
            is_taken = _looks(name) in map(_looks, self._allowed)
            if is_taken or fold(name).startswith(RESERVED_PREFIXES):
                raise Refused(f"WITH 子句不能使用表名 {name}，请换一个名字。")
            self._own.add(name)
            identifier = cte.args["alias"].this
            itself = {name: (identifier, Size())} if cte.parent.args.get("recursive") else {}
            size = self._query(cte.this, {**visible, **itself})
            visible = {**visible, name: (identifier, size)}

        def is_inner(node: exp.Expr) -> bool:
            return node is not query and isinstance(node, (exp.Query, exp.With))

        nodes = list(query.walk(prune=is_inner))
        inner = [self._query(node, visible) for node in nodes[1:] if isinstance(node, exp.Query)]
        tables = [self._table(node, visible) for node in nodes if isinstance(node, exp.Table)]
        return size_of(nodes, inner + tables)

    def _table(self, table: exp.Expr, visible: Mapping[str, tuple[exp.Expr, Size]]) -> Size:
        self._seen.add(id(table))
        name = _key(table.this, self._dialect) if isinstance(table.this, exp.Identifier) else ""
        schema = _key(table.args["db"], self._dialect) if table.args.get("db") else ""
        if name in visible and not schema and not table.args.get("catalog"):
            identifier, size = visible[name]
            table.set("this", identifier.copy())
            return size
        is_bare = not schema and not table.this.args.get("quoted")
        if self._dialect == "mariadb" and name == "dual" and is_bare:
            return Size()  # it stands for no table. In quotes it would be a table of that name
        own_schemas = ("", self._schema, fold(self._schema))
        if name not in self._allowed or schema not in own_schemas or table.args.get("catalog"):
            raise self._unknown(table)
        self._tables.add(name)
        table.this.set("this", name)
        written = self.written_schema
        table.set("db", exp.to_identifier(written, quoted=True) if written else None)
        return Size()

    def _unknown(self, table: exp.Expr) -> Refused:
        choice = "、".join(sorted(self._allowed))
        return Refused(
            f"不能查询 {table.sql(comments=False)}，可用的表：{choice}。", "table", table.name
        )
