"""Statements that are small to write and large to read or plan are refused before any work."""

from itertools import product

import pytest

from tools.sql.bounds import MAX_DEPTH, Refused
from tools.sql.guard import check

TABLES = frozenset({"drugs_info", "disease"})
DIALECTS = ("sqlite", "postgres", "mariadb")


def chain(levels, template, first="SELECT 1 AS x", hint=""):
    """A WITH of so many queries, each made of the one before."""
    queries = [first, *(template.format(f"c{level}") for level in range(levels))]
    named = ", ".join(f"c{at} AS {hint}({sql})" for at, sql in enumerate(queries))
    return f"WITH {named} SELECT x FROM c{levels}"


TOO_DEEP = [
    *product(DIALECTS, ("DATE(", "STRUCT(", "(")),
    *product(("postgres", "mariadb"), ["TIMESTAMP["]),  # SQLite quotes with [ ]
]
TOO_LONG = [
    "SELECT id" + "->1" * 6_600,
    "SELECT 1 WHERE 1" + " or 1" * 3_990,
    "SELECT " + "id," * 6_000 + "id FROM disease",
    "SELECT '" + "药" * 7_000 + "'",
]
IDS, JOIN = "SELECT id AS x FROM disease", "SELECT a.x FROM {0} a JOIN {0} b ON a.x = b.x"
UNFOLDING = [
    chain(24, "SELECT (SELECT x FROM {0}) + (SELECT x FROM {0}) AS x"),
    chain(21, JOIN, IDS, "NOT MATERIALIZED "),
    chain(24, "SELECT x + x AS x FROM {0}"),
    "SELECT x + x FROM (SELECT x + x AS x FROM (" * 8 + IDS + ") a) b" * 8,
    "SELECT count(*) FROM disease" + ", disease" * 200,
]
BUILDING = [
    chain(9, "SELECT concat(x, x) AS x FROM {0}", "SELECT cause AS x FROM disease"),
    "SELECT replace(replace(cause, 'a', '{0}'), 'b', '{0}') FROM disease".format("x" * 50),
    "SELECT concat(" + "cause, " * 400 + "cause) FROM disease",
]


@pytest.mark.parametrize(("dialect", "opening"), TOO_DEEP)
def test_what_is_nested_too_deep_is_refused_before_it_is_parsed(dialect, opening, monkeypatch):
    monkeypatch.setattr("sqlglot.parser.Parser.parse", pytest.fail)
    closing_bracket = "]" if opening.endswith("[") else ")"
    with pytest.raises(Refused, match="嵌套太深"):
        check("SELECT " + opening * 30 + "1" + closing_bracket * 30, dialect, TABLES)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sql", TOO_LONG)
def test_what_has_too_many_parts_is_refused_before_it_is_parsed(dialect, sql, monkeypatch):
    monkeypatch.setattr("sqlglot.parser.Parser.parse", pytest.fail)
    with pytest.raises(Refused, match=r"太复杂|太长"):
        check(sql, dialect, TABLES)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sql", UNFOLDING)
def test_a_plan_that_doubles_is_refused(dialect, sql):
    with pytest.raises(Refused, match="展开后太大"):
        check(sql, dialect, TABLES)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sql", BUILDING)
def test_a_text_that_multiplies_is_refused(dialect, sql):
    with pytest.raises(Refused, match="文本太长"):
        check(sql, dialect, TABLES)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM disease WHERE id IN (" + "1, " * 1_400 + "2)",
        "SELECT id FROM disease WHERE " + "id = 1 OR " * 180 + "id = 2",
        "SELECT " + "(" * (MAX_DEPTH - 1) + "id" + ")" * (MAX_DEPTH - 1) + " FROM disease",
        chain(4, JOIN, IDS),
        "SELECT replace(replace(replace(replace(cause, '（', '('), '）', ')'), '，', ','), '。', '') FROM disease",
    ],
)
def test_what_people_write_is_within_the_bounds(dialect, sql):
    assert check(sql, dialect, TABLES).tables == {"disease"}


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", 'WITH "Secret" AS (SELECT 1 AS token) SELECT token FROM secret'),
        ("postgres", 'SELECT * FROM "DISEASE"'),
        ("postgres", "SELECT * FROM other.disease"),
        ("postgres", "SELECT * FROM pg_temp.disease"),
        *product(DIALECTS, ["WITH kin AS (SELECT 1 AS a) SELECT a FROM \u212ain"]),
        *product(DIALECTS, ["WITH \uff24isease AS (SELECT 1 AS id) SELECT id FROM disease"]),
    ],
)
def test_names_that_an_engine_keeps_apart_are_kept_apart(dialect, sql):
    with pytest.raises(Refused, match=r"不能查询|不能使用表名"):
        check(sql, dialect, TABLES)


def test_a_table_whose_name_python_would_fold_into_an_allowed_one_is_not_read(made):
    script = "CREATE TABLE k(a); CREATE TABLE \u212a(a); INSERT INTO \u212a VALUES ('canary')"
    tool = made(script, "k")
    assert tool.run("SELECT * FROM K").ok
    for sql in ("SELECT * FROM \u212a", "SELECT (SELECT a FROM \u212a) FROM k"):
        assert not tool.run(sql).ok
