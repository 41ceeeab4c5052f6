"""Harmless statements that people write often run and give the engine's own rows; and what is
refused is called by the name that the caller wrote.
"""

from __future__ import annotations

import sqlite3

import pytest

from tests.tools.sql import sites
from tools.sql.query import QueryTool

TABLES = frozenset({"drugs_info", "disease"})
RUN = {
    "sqlite": [
        "SELECT json_object('id', id, 'name', disease_name) FROM disease ORDER BY id LIMIT 2",
        "SELECT json_array(id, 'a') FROM disease ORDER BY id LIMIT 2",
        "SELECT json_group_array(id) FROM disease WHERE id < 4",
        "SELECT json_group_object(disease_name, id) FROM disease WHERE id < 4",
        "SELECT count(*) FROM (SELECT random() AS r FROM disease) WHERE r IS NOT NULL",
    ],
    "postgres": [
        "SELECT id FROM disease ORDER BY id FETCH FIRST 2 ROWS ONLY",
        "SELECT id FROM disease ORDER BY id OFFSET 3 ROWS FETCH NEXT ROW ONLY",
        "SELECT id / 10 FROM disease ORDER BY id / 10 FETCH FIRST 2 ROWS WITH TIES",
        "SELECT random() BETWEEN 0 AND 1",
    ],
    "mysql": [
        "SELECT DAY(LAST_DAY('2024-02-03'))",
        "SELECT JSON_OBJECT('id', id, 'name', disease_name) FROM disease ORDER BY id LIMIT 2",
        "SELECT JSON_ARRAYAGG(id) FROM disease WHERE id < 4",
        "SELECT JSON_ARRAY(id, 'a') FROM disease ORDER BY id LIMIT 2",
        "SELECT id FROM disease ORDER BY id FETCH FIRST 2 ROWS ONLY",
        "SELECT disease_name FROM disease ORDER BY CONVERT(disease_name USING gbk), id LIMIT 5",
        "SELECT CONVERT(disease_name USING gbk) FROM disease ORDER BY id LIMIT 2",
        "SELECT RAND() BETWEEN 0 AND 1, RAND(7) = RAND(7)",
    ],
}
ENGINES = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.system),
    pytest.param("mysql", marks=pytest.mark.system),
]
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


@pytest.mark.parametrize("engine", ENGINES)
def test_what_people_write_often_gives_the_engines_own_rows(engine, request):
    site = request.getfixturevalue(f"{engine}_site")
    tool = QueryTool(site.url, cache=False)
    with sites.engine_at(site.url) as raw, raw.connect() as connection:
        for sql in RUN[engine]:
            options = connection.execution_options(no_parameters=True)
            expected = [list(row) for row in options.exec_driver_sql(sql)]
            result = tool.run(sql)
            assert (result.error, result.rows) == (None, expected), sql


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
