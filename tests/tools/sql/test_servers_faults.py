"""PostgreSQL and MariaDB: results like SQLite's, a clean connection after every call, and whose fault a failure is."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import create_engine, text

from tests.tools.sql import servers, sites
from tools.sql.database import DatabaseError, open_database
from tools.sql.query import Limits, QueryTool

ENGINES = ("postgres", "mysql")


@pytest.fixture(params=ENGINES)
def site(request):
    return request.getfixturevalue(f"{request.param}_site")


@pytest.fixture
def tool(site):
    return QueryTool(site.url, cache=False)


def test_rows_columns_and_counts_are_those_of_sqlite(tool, sqlite_site):
    same = QueryTool(sqlite_site.url, cache=False)
    for sql in (
        "SELECT id, med_name, med_name FROM drugs_info ORDER BY id DESC",
        "SELECT a.id, b.id FROM drugs_info a, disease b WHERE a.id < 4 ORDER BY a.id DESC, b.id",
        "SELECT form, count(*) AS n FROM drugs_info WHERE id < 100 GROUP BY form ORDER BY form LIMIT 3",
        "WITH t AS (SELECT id FROM disease WHERE id < 4) SELECT id FROM t UNION ALL SELECT 9 ORDER BY 1 DESC LIMIT 2",
    ):
        ours, theirs = tool.run(sql), same.run(sql)
        assert ours.error is None
        assert (ours.columns, ours.count, ours.truncated) == (theirs.columns, theirs.count, theirs.truncated)
        if "form" not in sql:  # the engines sort Chinese text differently
            assert ours.rows == theirs.rows
    assert tool.run("SELECT med_name FROM drugs_info WHERE id = 1").tables_read == {"drugs_info"}


def test_long_cells_are_cut_by_the_server(tool):
    (cell,) = tool.run("SELECT precautions FROM drugs_info WHERE id = 1000001").rows[0]
    assert len(cell) == tool.limits.max_cell


def test_many_threads_share_one_tool(tool):
    def ask(number):
        return tool.run(f"SELECT id FROM drugs_info WHERE id = {number % 50 + 1}").rows

    with ThreadPoolExecutor(32) as threads:
        assert list(threads.map(ask, range(200))) == [[[number % 50 + 1]] for number in range(200)]


def test_a_connection_is_writable_for_nobody_and_clean_afterwards(site, tool):
    tool.limits = Limits(deadline=0.3)
    tool.run("SELECT count(*) FROM drugs_info a, drugs_info b, drugs_info c, drugs_info d, drugs_info e")
    tool.run("SELECT nope FROM drugs_info")
    database = open_database(site.url)
    pooled = database._engine.raw_connection()
    cursor = pooled.driver_connection.cursor()
    database._begin(cursor, 1.0)
    with pytest.raises(Exception, match=r"(?i)read.only"):
        cursor.execute("DELETE FROM disease")
    database._clean(pooled.driver_connection)
    pooled.close()
    assert tool.run("SELECT count(*) FROM disease").ok


def test_a_broken_connection_is_replaced_once(site, tool):
    assert tool.run("SELECT 1 AS a").ok
    kill = {
        "postgres": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'medical_agent_rl'",
        "mysql": "SELECT concat('KILL ', id) FROM information_schema.processlist WHERE id <> connection_id()",
    }[site.engine]
    admin = create_engine(site.url.replace("postgresql://", "postgresql+psycopg://"))
    with admin.connect() as connection:
        found = connection.execute(text(kill)).fetchall()
        if site.engine == "mysql":
            for (statement,) in found:
                connection.exec_driver_sql(statement)
    admin.dispose()
    assert found
    assert tool.run("SELECT 2 AS a").rows == [[2]]


@pytest.mark.parametrize("start", [servers.postgres_server, servers.mariadb_server])
def test_a_server_that_stops_is_the_machines_fault(start, tmp_path):
    with start() as (url, process):
        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        sites.fill(engine)
        engine.dispose()
        tool = QueryTool(url, cache=False)
        assert tool.run("SELECT 1 AS a").ok
        process.send_signal(signal.SIGINT if "postgres" in url else signal.SIGTERM)
        process.wait(30)
        start_time = time.monotonic()
        with pytest.raises(DatabaseError, match="cannot read the database"):
            tool.run("SELECT 1 AS a")
        assert time.monotonic() - start_time < 15
