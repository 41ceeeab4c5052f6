"""What is random is the same each time, and a cast of SQLite gives the engine's value."""

from __future__ import annotations

import sqlite3

import pytest

from tools.sql.query import QueryTool

MARIADB_AT_NIGHT = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.system),
    pytest.param("mysql", marks=pytest.mark.nightly),
]
RANDOM = {"sqlite": "random()", "postgres": "random()", "mysql": "rand()"}
KINDS = (
    "DATE", "DATETIME", "DECIMAL(4, 1)", "BOOLEAN", "VARCHAR(2)", "TEXT", "INT", "REAL", "JSON",
    "STRING", "BLOB", "MONEY",
)  # fmt: skip
VALUES = ("'2024-05-06'", "'1.50'", "'3 x'", "'x'", "2.5", "NULL")


@pytest.mark.parametrize("engine", MARIADB_AT_NIGHT)
def test_a_random_order_is_mixed_and_is_the_same_each_time(engine, request):
    """Training can be repeated, and the siblings of a group that ask the same read the same."""
    site = request.getfixturevalue(f"{engine}_site")
    sql = f"SELECT id FROM disease ORDER BY {RANDOM[engine]}"
    first = QueryTool(site.url, cache=False).run(sql)
    QueryTool(site.url, cache=False).run(f"SELECT {RANDOM[engine]} FROM disease")
    again = QueryTool(site.url, cache=False).run(sql)
    assert first.ok
    assert first.rows == again.rows
    assert first.rows != sorted(first.rows)


def test_a_cast_of_sqlite_gives_the_engines_value_or_is_refused(tool, database):
    connection = sqlite3.connect(database)
    refused = set()
    for kind in KINDS:
        for value in VALUES:
            sql = f"SELECT CAST({value} AS {kind}), typeof(CAST({value} AS {kind}))"
            result = tool.run(sql)
            if result.ok:
                assert result.rows == [list(connection.execute(sql).fetchone())], sql
            else:
                refused.add(kind)
    connection.close()
    assert refused == {"STRING", "BLOB", "MONEY"}
