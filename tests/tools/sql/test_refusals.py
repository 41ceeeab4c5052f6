"""What the guard alone says of a statement: the reason the model reads, or the text that is run in
its place.

Keeps of docs/safety.md, "Layers": each check of the guard, without the connection behind it,
which would hide that one is gone.
"""

from __future__ import annotations

import pytest
import sqlglot

from tools.sql.dialects import engine_dialect
from tools.sql.guard import CACHED_BYTES, Refused, _check_words, check

TABLES = frozenset({"drugs_info", "disease"})
INVALID = "SQL 含有无效字符。"
NO_SELECT = "查询要以 SELECT 或 WITH 开头：不要整个放进括号，也不要单独使用 VALUES。"
READ_ONLY = "只允许 SELECT 查询，数据库是只读的。"
BUILT = "递归 WITH 里不能拼接文本。"
REFUSED = [  # dialect, statement, reason
    ("sqlite", "SELECT \ud800", INVALID),
    ("sqlite", "SELECT 1\0", INVALID),
    ("sqlite", " ;; ", "SQL 是空的，请写一条 SELECT 语句。"),
    ("sqlite", "SELECT 1; SELECT 2", "一次只能执行一条 SELECT 语句。"),
    ("sqlite", "values (1)", NO_SELECT),
    ("sqlite", "(SELECT 1)", NO_SELECT),
    ("sqlite", "WITH x AS (DELETE FROM disease RETURNING id) SELECT * FROM x", READ_ONLY),
    ("sqlite", "今天天气怎么样", READ_ONLY),
    ("postgres", "SELECT id FROM disease FOR UPDATE", READ_ONLY),
    ("mariadb", "SELECT /*M! 1 */ 1", "不能使用 /*! */ 形式的注释。"),
    ("sqlite", "SELECT {x}", "不支持花括号 { }。"),
    ("sqlite", "SELECT 1a FROM disease", "数字与文字连写：1a，请用空格或运算符隔开。"),
    ("sqlite", "SELECT 1 AS a\nFROM disease WHERE (", "SQL 语法错误：第 2 行第 20 列“(”附近无法解析。"),
    ("sqlite", "SELECT '", "SQL 语法错误：无法解析。"),
    ("sqlite", "SELECT id FROM disease WHERE cause MATCH 'x'", "不支持的语法：cause MATCH 'x'"),
    ("postgres", "SELECT CAST(id AS xml) FROM disease", "不能转换为类型 XML。"),
    ("sqlite", "WITH Diséase AS (SELECT 1) SELECT 1", "WITH 子句不能使用表名 diséase，请换一个名字。"),
    ("sqlite", "SELECT a.id FROM disease a SEMI JOIN drugs_info b ON a.id = b.id",
     "数据库没有 SEMI JOIN，请用 LEFT JOIN、EXISTS 或 UNION 改写。"),
    ("mariadb", "SELECT a.id FROM disease a FULL JOIN drugs_info b ON a.id = b.id",
     "数据库没有 FULL JOIN，请用 LEFT JOIN、EXISTS 或 UNION 改写。"),
    ("sqlite", "SELECT DISTINCT ON (id) id FROM disease", "数据库没有 DISTINCT ON，请用 GROUP BY 改写。"),
    ("postgres", "SELECT string_agg(a.cause, ',') FROM disease a, drugs_info b",
     "string_agg 只能用于一张表，不能与连接一起使用。"),
    ("mariadb", "SELECT id FROM disease FETCH FIRST 2 ROWS WITH TIES",
     "数据库只有 FETCH FIRST n ROWS ONLY，没有 WITH TIES 和 PERCENT。"),
    ("mariadb", "SELECT CONVERT(cause USING utf16) FROM disease", "不能转换为类型 CHAR CHARACTER SET utf16。"),
    ("sqlite", "SELECT DATE '2024-05-06'", "SQLite 的类型转换只能写成 CAST(值 AS 类型)；日期请用 date() 等函数。"),
    ("mariadb", "SELECT id FROM disease LIMIT 5 OFFSET 1+1", "LIMIT 和 OFFSET 只能是非负整数。"),
    ("postgres", "WITH RECURSIVE s AS (SELECT 'a' AS t UNION ALL SELECT (WITH q AS (SELECT t || t AS u FROM s) "
     "SELECT u FROM q) FROM s) SELECT t FROM s", BUILT),
    ("mariadb", "WITH RECURSIVE s AS (SELECT 'a' AS t UNION ALL SELECT JSON_OBJECT('a', t, 'b', t) FROM s) "
     "SELECT t FROM s", BUILT),
]  # fmt: skip
NAMED = [  # dialect, statement, reason, what is not allowed, its name
    ("sqlite", "SELECT * FROM x.disease", "不能查询 x.disease，可用的表：disease、drugs_info。", "table", "disease"),
    ("postgres", 'SELECT 1 FROM "PUBLIC".disease',
     '不能查询 "PUBLIC".disease，可用的表：disease、drugs_info。', "table", "disease"),
    ("sqlite", "WITH x AS (SELECT id FROM x) SELECT id FROM x",  # the inner one would be a table of that name
     "不能查询 x，可用的表：disease、drugs_info。", "table", "x"),
    ("sqlite", "SELECT * FROM generate_series(1, 3)",
     "不能查询 GENERATE_SERIES(1, 3)，可用的表：disease、drugs_info。", "table", ""),
    ("mariadb", "SELECT random()", "不能使用函数 random。", "function", "random"),
    ("sqlite", "SELECT Rand()", "不能使用函数 Rand。", "function", "rand"),  # as the caller wrote it
    ("postgres", "SELECT UNNEST(ARRAY[1])", "不能使用函数 UNNEST。", "function", "unnest"),
    ("mariadb", "SELECT CHAR(65)", "不能使用函数 CHAR。", "function", "char"),
    ("sqlite", "SELECT LOAD_EXTENSION('x')", "不能使用函数 LOAD_EXTENSION。", "function", "load_extension"),
    ("postgres", "SELECT lower(disease_name), lpad(cause, 9), round(1) FROM disease", "不能使用函数 lpad。",
     "function", "lpad"),
    ("postgres", "SELECT current_user", "不能使用函数 current_user。", "function", "current_user"),
    ("postgres", "SELECT user", "不能使用 user。", "function", "user"),
]  # fmt: skip
RUN_AS_IT_IS = [  # dialect, a text that would run, what it names itself, the function in it that nobody allowed
    ("sqlite", "SELECT abs(1) WHERE 1 IN (1)", "", None),
    ("sqlite", "SELECT EVIL (1)", "", "evil"),
    ("sqlite", 'SELECT "in"(1)', "", "in"),  # quoted, a plain word is a function's name
    ("sqlite", "WITH own(a) AS (SELECT 1) SELECT a FROM own", "Own", None),
    ("mariadb", 'SELECT "evil" (1)', "", None),  # a text to MariaDB, a name to others
    ("sqlite", 'SELECT "evil" (1)', "", "evil"),
]
WRITTEN = [  # dialect, statement, the text that is run, what it names itself, tables
    ("sqlite", "select/*x*/ 1;;\n", "SELECT 1", "", ""),
    ("mariadb", "SELECT id FROM disease ORDER BY CONVERT(cause USING gbk)",
     "SELECT id FROM disease ORDER BY CAST(cause AS CHAR CHARACTER SET gbk)", "", "disease"),
    ("mariadb", "SELECT id FROM disease OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
     "SELECT id FROM disease LIMIT 2 OFFSET 1", "", "disease"),
    ("sqlite", "SELECT * FROM main.Disease", 'SELECT * FROM "main".disease', "", "disease"),
    ("sqlite", "SELECT a.id FROM disease a FULL JOIN drugs_info b ON a.id = b.id",
     'SELECT a.id FROM "main".disease AS a FULL JOIN "main".drugs_info AS b ON a.id = b.id', "", "disease drugs_info"),
    ("postgres", "WITH a AS (SELECT id FROM disease), b AS (SELECT id FROM a) SELECT id FROM b",
     'WITH a AS (SELECT id FROM "public".disease), b AS (SELECT id FROM a) SELECT id FROM b', "a b", "disease"),
    ("postgres", 'SELECT "user", d.user FROM disease d', 'SELECT "user", d.user FROM "public".disease AS d',
     "", "disease"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "sql", "reason"), REFUSED)
def test_a_refusal_says_what_to_write_instead(dialect: str, sql: str, reason: str) -> None:
    with pytest.raises(Refused) as caught:
        check(sql, dialect, TABLES)
    assert (str(caught.value), caught.value.kind, caught.value.name) == (reason, "", "")


@pytest.mark.parametrize(("dialect", "sql", "reason", "kind", "name"), NAMED)
def test_what_is_not_allowed_is_named_for_the_hint(
    dialect: str, sql: str, reason: str, kind: str, name: str
) -> None:
    with pytest.raises(Refused) as caught:
        check(sql, dialect, TABLES)
    assert (str(caught.value), caught.value.kind, caught.value.name) == (reason, kind, name)


@pytest.mark.parametrize(("dialect", "text", "own", "name"), RUN_AS_IT_IS)
def test_the_text_that_will_run_is_looked_at_once_more(
    dialect: str, text: str, own: str, name: str | None
) -> None:
    """Whatever sqlglot made of a statement on the way: a function that is not listed does not reach
    the database.
    """
    tokens = sqlglot.tokenize(text, read=engine_dialect(dialect))
    if name is None:
        _check_words(tokens, dialect, frozenset({own}))
    else:
        with pytest.raises(Refused, match=f"^不能使用函数 {name}。$"):
            _check_words(tokens, dialect, frozenset({own}))


@pytest.mark.parametrize(("dialect", "sql", "written", "own", "tables"), WRITTEN)
def test_what_is_allowed_is_written_anew_and_its_names_are_known(
    dialect: str, sql: str, written: str, own: str, tables: str
) -> None:
    for padding in ("", " " * CACHED_BYTES):  # long statements are not kept, and checked alike
        found = check(sql + padding, dialect, TABLES)
        assert (found.sql, found.own_names, found.tables) == (
            written,
            {*own.split()},
            {*tables.split()},
        )


def test_tables_of_a_schema_are_written_with_it() -> None:
    found = check("SELECT id FROM clinic.disease, drugs_info", "postgres", TABLES, "clinic")
    assert found.sql == 'SELECT id FROM "clinic".disease, "clinic".drugs_info'
    with pytest.raises(Refused, match=r"不能查询 public\.disease"):
        check("SELECT id FROM public.disease", "postgres", TABLES, "clinic")
