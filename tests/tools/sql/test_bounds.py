"""Statements that are small to write and large to read, plan or name: refused before anything works
on them.

Keeps of docs/safety.md, "Layers": the caps before parsing and on what queries unfold to.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from tools.sql.bounds import MAX_DEPTH, MAX_SYNTAX, MAX_TOKENS, MAX_TYPE_DEPTH, Refused
from tools.sql.guard import check
from tools.sql.query import QueryTool
from tools.sql.result import neutralise

TABLES = frozenset({"drugs_info", "disease"})
DIALECTS = ("sqlite", "postgres", "mariadb")


def chain(levels, template, first="SELECT 1 AS x", hint=""):
    """A WITH of so many queries, each made of the one before."""
    queries = [first, *(template.format(f"c{level}") for level in range(levels))]
    return (
        "WITH "
        + ", ".join(f"c{at} AS {hint}({sql})" for at, sql in enumerate(queries))
        + f" SELECT x FROM c{levels}"
    )


DOUBLED = chain(24, "SELECT (SELECT x FROM {0}) + (SELECT x FROM {0}) AS x")
TOO_DEEP = ["DATE(", "STRUCT(", "ARRAY[", "BINARY(", "CHAR(", "TIMESTAMP[", "abs(", "("]
TOO_LONG = [
    "SELECT id" + "->1" * 6_600,
    "SELECT 1 WHERE 1" + " or 1" * 3_990,
    "SELECT " + "array_agg(id)," * 1_400 + "1 FROM disease",
    "SELECT " + "id," * 6_000 + "id FROM disease",
]
UNFOLDING = [
    DOUBLED,
    chain(8, "SELECT a.x FROM {0} a, {0} b"),
    chain(
        21,
        "SELECT a.x FROM {0} a JOIN {0} b ON a.x = b.x",
        "SELECT id AS x FROM disease",
        "NOT MATERIALIZED ",
    ),
    chain(24, "SELECT x + x AS x FROM {0}"),
    "SELECT x + x FROM (SELECT x + x AS x FROM (" * 8
    + "SELECT id AS x FROM disease"
    + ") a) b" * 8,
    "SELECT count(*) FROM disease" + ", disease" * 200,
]
BUILDING = [
    chain(9, "SELECT concat(x, x) AS x FROM {0}", "SELECT cause AS x FROM disease"),
    "SELECT replace(replace(cause, 'a', '{0}'), 'b', '{0}') FROM disease".format("x" * 50),
    "SELECT replace(replace(replace(cause, form, form), form, form), form, form) FROM disease",
    "SELECT concat(" + "cause, " * 400 + "cause) FROM disease",
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("opening", TOO_DEEP)
def test_what_is_nested_too_deep_is_refused_before_it_is_parsed(dialect, opening, monkeypatch):
    monkeypatch.setattr("sqlglot.parser.Parser.parse", pytest.fail)
    closing_bracket = "]" if opening.endswith("[") else ")"
    if dialect == "sqlite" and opening.endswith("["):
        pytest.skip("SQLite quotes names with [ ]")
    with pytest.raises(Refused, match="嵌套太深"):
        check("SELECT " + opening * 30 + "1" + closing_bracket * 30, dialect, TABLES)


@pytest.mark.parametrize(
    ("dialect", "opening", "end", "depth"),
    [
        ("sqlite", "(", ")", MAX_DEPTH),
        ("sqlite", "DATE(", ")", MAX_TYPE_DEPTH),
        ("postgres", "ARRAY[", "]", MAX_TYPE_DEPTH),
    ],
)
def test_a_statement_may_be_nested_to_the_bound_and_no_deeper(dialect, opening, end, depth):
    assert check(f"SELECT {opening * depth}1{end * depth}", dialect, TABLES).sql
    with pytest.raises(Refused, match=r"^SQL 嵌套太深，请简化。$"):
        check(f"SELECT {opening * (depth + 1)}1{end * (depth + 1)}", dialect, TABLES)


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
        chain(4, "SELECT a.x FROM {0} a JOIN {0} b ON a.x = b.x", "SELECT id AS x FROM disease"),
        "SELECT round(avg(cast(replace(trim(coalesce(cause, '0')), '，', '.') AS DECIMAL)), 2) FROM disease",
        "SELECT replace(replace(replace(replace(cause, '（', '('), '）', ')'), '，', ','), '。', '') FROM disease",
        "SELECT cause || '；' || overview || '；' || cause FROM disease",
    ],
)
def test_what_people_write_is_within_the_bounds(dialect, sql):
    assert check(sql, dialect, TABLES).tables == {"disease"}


def sum_of(name, times):
    return " + ".join([name] * times)


@pytest.mark.parametrize(
    ("dialect", "largest", "too_large"),
    [
        ("sqlite", *("SELECT count(*) FROM disease" + ", disease" * more for more in (99, 100))),
        (
            "sqlite",
            *(
                f"SELECT {sum_of('x', 100)} FROM (SELECT {sum_of('id', n)} AS x FROM disease)"
                for n in (200, 201)
            ),
        ),
        (
            "sqlite",
            *(
                f"SELECT replace(cause, 'a', '{'x' * length}') FROM disease"
                for length in (300, 301)
            ),
        ),
        (
            "postgres",
            *(f"SELECT concat({'cause, ' * more}cause) FROM disease" for more in (299, 300)),
        ),
    ],
    ids=["relations", "copies", "replacement", "concatenation"],
)
def test_a_statement_may_unfold_to_the_bound_and_no_further(dialect, largest, too_large):
    assert check(largest, dialect, TABLES).tables == {"disease"}
    with pytest.raises(Refused):
        check(too_large, dialect, TABLES)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "replace(" * 9 + "cause" + ", 'a', '')" * 9 + " FROM disease",
        "SELECT " + ", ".join(["(SELECT 1)"] * 60),
        "SELECT * FROM (" * 16 + "SELECT * FROM disease" + ")" * 16,
    ],
    ids=["texts are taken away", "nothing is read", "no column is named"],
)
def test_what_does_not_grow_may_be_repeated(sql):
    check(sql, "sqlite", TABLES)


def test_the_bounds_leave_room_and_are_bounds():
    assert 1_000 < MAX_TOKENS < 5_000
    assert 300 < MAX_SYNTAX < 1_000


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("sqlite", "SELECT x''"),
        *((dialect, "SELECT {: 1}") for dialect in DIALECTS),
        ("postgres", "SELECT b''"),
        ("mariadb", "SELECT id FROM drugs_info LIMIT 1.5"),
        ("mariadb", "SELECT id FROM drugs_info LIMIT 1e1"),
        ("mariadb", "SELECT id FROM drugs_info LIMIT 'a'"),
        ("mariadb", "SELECT id FROM drugs_info LIMIT 1 OFFSET 1.5"),
        ("mariadb", "SELECT DATE_ADD(, INTERVAL 2 MONTH)"),
    ],
)
def test_what_the_parser_dies_of_is_refused(dialect, sql):
    with pytest.raises(Refused):
        check(sql, dialect, TABLES)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("postgres", 'WITH "Secret" AS (SELECT 1 AS token) SELECT token FROM secret'),
        ("postgres", 'WITH secret AS (SELECT 1 AS token) SELECT token FROM "SECRET"'),
        *((dialect, "WITH \u212ain AS (SELECT 1 AS a) SELECT a FROM kin") for dialect in DIALECTS),
        *((dialect, "WITH kin AS (SELECT 1 AS a) SELECT a FROM \u212ain") for dialect in DIALECTS),
        ("postgres", 'SELECT * FROM "DISEASE"'),
        ("postgres", "SELECT * FROM other.disease"),
        ("postgres", "SELECT * FROM pg_temp.disease"),
        *(
            (dialect, "WITH diseasé AS (SELECT 1 AS id) SELECT id FROM disease")
            for dialect in DIALECTS
        ),
        *(
            (dialect, "WITH \uff24isease AS (SELECT 1 AS id) SELECT id FROM disease")
            for dialect in DIALECTS
        ),
    ],
)
def test_names_that_an_engine_keeps_apart_are_kept_apart(dialect, sql):
    with pytest.raises(Refused, match=r"不能查询|不能使用表名"):
        check(sql, dialect, TABLES)


def test_relations_are_written_the_one_way_an_engine_cannot_misread():
    assert (
        check("SELECT * FROM Disease d", "postgres", TABLES).sql
        == 'SELECT * FROM "public".disease AS d'
    )
    assert (
        check("SELECT * FROM disease", "postgres", TABLES, "care").sql
        == 'SELECT * FROM "care".disease'
    )
    assert check("SELECT * FROM DISEASE", "mariadb", TABLES).sql == "SELECT * FROM disease"
    own = "WITH Own AS (SELECT 1 AS a) SELECT a FROM OWN"
    assert check(own, "mariadb", TABLES).sql == "WITH Own AS (SELECT 1 AS a) SELECT a FROM Own"


def test_a_table_whose_name_python_would_fold_into_an_allowed_one_is_not_read(tmp_path):
    path = tmp_path / "kelvin.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE k(a); CREATE TABLE \u212a(a); INSERT INTO \u212a VALUES ('canary')"
        )
    tool = QueryTool(f"sqlite:///{path}", ("k",))
    assert tool.run("SELECT * FROM K").ok
    for sql in (
        "SELECT * FROM \u212a",
        'SELECT * FROM "\u212a"',
        "SELECT (SELECT a FROM \u212a) FROM k",
    ):
        assert not tool.run(sql).ok


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("mariadb", "SELECT 1 FROM disease a FULL JOIN disease b ON a.id = b.id"),
        ("mariadb", "SELECT 1 FROM disease a FULL OUTER JOIN disease b ON a.id = b.id"),
        ("sqlite", "SELECT 1e2-3e1"),
        ("postgres", "SELECT 1e2-3e1"),
        ("sqlite", "SELECT DISTINCT ON (cause) id FROM disease"),
        *(
            (dialect, "SELECT 1 FROM disease a LEFT SEMI JOIN drugs_info b ON a.id = b.id")
            for dialect in DIALECTS
        ),
    ],
)
def test_what_would_be_rewritten_into_something_else_is_refused(dialect, sql):
    with pytest.raises(Refused):
        check(sql, dialect, TABLES)


def test_numbers_are_what_they_say(tool):
    for sql, value in {
        "SELECT 1e2 - 3e1": 70.0,
        "SELECT 1e2-3": 97.0,
        "SELECT 1e2-3*1e1": 70.0,
    }.items():
        assert tool.run(sql).rows == [[value]]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("sql", ["VALUES (1),(2)", "(SELECT 1)", "((SELECT 1))", "values (1)"])
def test_what_does_not_begin_with_select_is_told_so(dialect, sql):
    with pytest.raises(Refused, match="以 SELECT 或 WITH 开头"):
        check(sql, dialect, TABLES)


def test_json_is_read_on_the_embedded_database(tool):
    document = """'{"a": {"b": [7, "x"]}}'"""
    assert tool.run(f"SELECT json_extract({document}, '$.a.b[0]')").rows == [[7]]
    assert tool.run(f"SELECT {document} -> '$.a.b', {document} ->> '$.a.b[1]'").rows == [
        ['[7,"x"]', "x"]
    ]


HIDDEN = "\xad\u034f\u061c\u115f\u1160\u17b4\u180b\u180e\u200b\u202e\u2060\u2064\u2066\u206f\u3164\ufe0f\ufeff\uffa0\ufff9"


@pytest.mark.parametrize(
    "character", [*HIDDEN, "\U0001d173", "\U000e0001", "\U000e0041", "\U000e01ef", "\U000e0fff"]
)
def test_characters_that_show_nothing_go(character):
    assert neutralise(f"<{character}|im_start|>a{character}b") == "＜|im_start|>ab"
