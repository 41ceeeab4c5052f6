"""PostgreSQL and MariaDB: results like SQLite's, clean connections, whose fault a failure is."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from common.settings import load_settings
from tests.corpora import cases_of
from tests.tools.sql import sites
from tools.sql.database import forget_databases, open_database
from tools.sql.errors import DatabaseError
from tools.sql.guard import Statement
from tools.sql.mysql import MysqlDatabase
from tools.sql.query import Limits, QueryTool

pytestmark = pytest.mark.system
ENDLESS = "SELECT count(*) FROM " + ", ".join(f"drugs_info {name}" for name in "abcde")
mariadb_at_night = pytest.mark.parametrize(
    "site", ["postgres", pytest.param("mysql", marks=pytest.mark.nightly)], indirect=True
)


@pytest.fixture(params=["postgres", "mysql"])
def site(request):
    return request.getfixturevalue(f"{request.param}_site")


@contextmanager
def administered(site):
    """A connection of an administrator, whose statements count at once."""
    with sites.engine_at(site.url, isolation_level="AUTOCOMMIT") as admin, admin.connect() as one:
        yield one


@pytest.fixture
def tool(site):
    return QueryTool(site.url, cache=False)


def test_rows_columns_and_counts_are_those_of_sqlite(tool, sqlite_site):
    same = QueryTool(sqlite_site.url, cache=False)
    for sql in (
        "SELECT id, med_name, med_name FROM drugs_info ORDER BY id DESC",
        # Long texts keep the order, too
        "SELECT d.id, substr(precautions, 1, d.id % 7 * 500 + 1) AS words FROM disease d, drugs_info l"
        " WHERE l.id = 1000001 ORDER BY d.id DESC",
        "SELECT form, count(*) AS n FROM drugs_info WHERE id < 100 GROUP BY form ORDER BY form LIMIT 3",
        "WITH t AS (SELECT id FROM disease WHERE id < 4) SELECT id FROM t UNION ALL SELECT 9 ORDER BY 1 DESC LIMIT 2",
    ):
        ours, theirs = tool.run(sql), same.run(sql)
        assert ours.error is None
        assert ours.columns == theirs.columns
        assert ours.count == theirs.count
        assert ours.truncated == theirs.truncated
        if "form" not in sql:  # the engines sort Chinese text differently
            assert ours.rows == theirs.rows
    assert tool.run("SELECT med_name FROM drugs_info WHERE id = 1").tables_read == {"drugs_info"}


def test_a_column_has_postgresqls_name(postgres_site):
    inner = "SELECT char_length('ab'), substr('ab', 2), date_part('year', DATE '2024-05-06')"
    result = QueryTool(postgres_site.url).run(
        f"SELECT substr, char_length, date_part FROM ({inner}) AS s"
    )
    assert result.columns == ["substr", "char_length", "date_part"]
    assert result.rows == [["b", 2, 2024]]
    asked = 'SELECT id FROM disease WHERE cause = "血 钾"'
    assert "单引号" in QueryTool(postgres_site.url).run(asked).hint


def test_a_connection_is_writable_for_nobody_and_clean_afterwards(site, tool):
    tool.limits = Limits(deadline=0.3)
    tool.run(ENDLESS)
    tool.run("SELECT nope FROM drugs_info")
    database = open_database(site.url)
    pooled = database._engine.raw_connection()
    cursor = pooled.driver_connection.cursor()
    database.begin(cursor, 1.0)
    with pytest.raises(Exception, match=r"(?i)read.only"):
        cursor.execute("DELETE FROM disease")
    database.clean(pooled.driver_connection)
    pooled.close()
    assert tool.run("SELECT count(*) FROM disease").ok


def test_text_is_read_as_the_guard_reads_it_in_whatever_mode_the_server_is(mysql_site):
    with administered(mysql_site) as connection:
        mode = connection.exec_driver_sql("SELECT @@GLOBAL.sql_mode").scalar()
        connection.exec_driver_sql("SET GLOBAL sql_mode = 'NO_BACKSLASH_ESCAPES'")
        try:
            database = MysqlDatabase(make_url(mysql_site.url))
            answer = database.read(Statement(r"SELECT '\\' AS a", frozenset()), 5.0, 5)
        finally:
            connection.exec_driver_sql(f"SET GLOBAL sql_mode = '{mode}'")
    assert list(answer.rows) == [("\\",)]


def test_a_bit_is_a_number(mysql_site):
    with administered(mysql_site) as connection:
        connection.exec_driver_sql("CREATE TABLE beds AS SELECT id FROM disease LIMIT 1")
        connection.exec_driver_sql("ALTER TABLE beds ADD taken bit(1) DEFAULT 1, ADD flags bit(9)")
        found = QueryTool(mysql_site.url, ["beds"], cache=False).run("SELECT * FROM beds")
        connection.exec_driver_sql("DROP TABLE beds")
    assert found.rows == [[1, 1, None]]


def test_a_broken_connection_is_replaced_once(site, tool):
    assert tool.run("SELECT 1 AS a").ok
    kill = {
        "postgres": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'medical_agent_rl'",
        "mysql": "SELECT concat('KILL ', id) FROM information_schema.processlist WHERE id <> connection_id()",
    }[site.engine]
    with sites.engine_at(site.url) as admin, admin.connect() as connection:
        found = connection.execute(text(kill)).fetchall()
        if site.engine == "mysql":
            for (statement,) in found:
                connection.exec_driver_sql(statement)
    assert found
    assert tool.run("SELECT 2 AS a").rows == [[2]]


def test_a_password_in_chinese_is_sent_as_it_is(mysql_site):
    place = make_url(mysql_site.url).set(username="张三", password="密码")
    with sites.engine_at(mysql_site.url) as admin, admin.begin() as connection:
        connection.exec_driver_sql("CREATE USER '张三'@'localhost' IDENTIFIED BY '密码'")
        connection.exec_driver_sql("GRANT SELECT ON medical.* TO '张三'@'localhost'")
    tool = QueryTool(place.render_as_string(hide_password=False), cache=False)
    assert tool.run("SELECT 1 AS a").ok


@pytest.mark.parametrize("whole", [False, True], ids=["statement", "connection"])
def test_a_statement_that_others_cancel_is_not_the_policys_fault(site, tool, whole, quiet):
    """An administrator, a deadlock, a standby's recovery: it is repeated, and then unscored."""
    ends = {"postgres": "pg_terminate_backend" if whole else "pg_cancel_backend"}
    ends["mysql"] = "KILL" if whole else "KILL QUERY"
    running = {
        "postgres": "SELECT {}(pid) FROM pg_stat_activity"
        " WHERE application_name = 'medical_agent_rl' AND query LIKE '%%d.id%%'",
        "mysql": "SELECT concat('{} ', id) FROM information_schema.processlist"
        " WHERE id <> connection_id() AND info LIKE '%%d.id%%'",
    }[site.engine].format(ends[site.engine])
    tool.limits = Limits(deadline=30)
    with administered(site) as connection, ThreadPoolExecutor(1) as thread:
        asked = thread.submit(tool.run, ENDLESS.replace("*", "d.id"))
        while not asked.done():
            for (statement,) in connection.exec_driver_sql(running).fetchall():
                if site.engine == "mysql":
                    with suppress(DBAPIError):  # it has just ended
                        connection.exec_driver_sql(statement)
            time.sleep(0.05)
    assert isinstance(asked.exception(), DatabaseError)


def processes(site):
    """The numbers of our connections to a server."""
    own = {
        "postgres": "SELECT pid FROM pg_stat_activity WHERE application_name = 'medical_agent_rl'",
        "mysql": "SELECT id FROM information_schema.processlist WHERE id <> connection_id()",
    }[site.engine]
    with sites.engine_at(site.url) as admin, admin.connect() as connection:
        return {number for (number,) in connection.execute(text(own))}


def test_a_statement_that_outlives_the_servers_time_out_is_hung_up_on_and_terminated(
    site, monkeypatch
):
    database = type(open_database(site.url))(make_url(site.url))
    monkeypatch.setattr(database, "begin", lambda cursor, seconds: None)
    monkeypatch.setattr(database, "set_deadline", lambda cursor, seconds: None)
    pooled = database.connection()
    _, number = database.line(pooled.driver_connection)
    pooled.close()
    endless = (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT 1 FROM c) SELECT count(*) FROM c a, c b"
    )
    if site.engine == "mysql":
        endless = ENDLESS
    with pytest.raises(DatabaseError):
        database.read_table("drugs_info", endless, 0.2, 5)
    database.prove(["disease"])
    end = time.monotonic() + 20
    while number in processes(site) and time.monotonic() < end:
        time.sleep(0.1)
    assert number not in processes(site)


@mariadb_at_night
@pytest.mark.parametrize(
    "statement",
    [
        ENDLESS,
        # one comparison that takes seconds, in which MariaDB looks at no clock and hears no KILL
        f"SELECT count(*) FROM drugs_info WHERE id = 1000001 AND concat({', '.join(['precautions'] * 80)})"
        f" LIKE '%{'药' * 300}龘%'",
    ],
)
def test_what_the_statement_did_is_scored(tool, statement, quiet):
    tool.limits = Limits(deadline=0.3)
    assert tool.run(statement).status == "error"
    tool.limits = Limits()
    assert tool.run("SELECT 1 AS a").ok


# By engine: what a reader needs, and what is more than that with the words that name it
GRANTS = cases_of(__file__, "grants")


def test_an_account_that_may_do_more_is_said_and_with_strict_refused(site, monkeypatch, caplog):
    reader = make_url(site.url).set(username="reader").render_as_string(hide_password=False)

    def opened():
        forget_databases()
        tool = QueryTool(reader, cache=False)
        tool.database()
        return tool

    with administered(site) as connection:
        own = [(grant, named) for engine, grant, named in GRANTS if engine == site.engine]
        for grant in (grant for grant, named in own if not named):
            connection.exec_driver_sql(grant)
        assert opened().excess == ""
        assert opened().run("SELECT count(*) FROM disease").ok
        for grant, named in ((grant, named) for grant, named in own if named):
            connection.exec_driver_sql(grant)
            assert named in opened().excess
            assert named in caplog.text
        monkeypatch.setenv("DATABASE_STRICT", "1")
        load_settings.cache_clear()
        with pytest.raises(DatabaseError, match="DATABASE_STRICT"):
            opened()
    load_settings.cache_clear()
    forget_databases()


def test_a_table_that_comes_first_on_the_search_path_later_is_not_read(postgres_site):
    tool = QueryTool(postgres_site.url, limits=Limits(deadline=30), cache=False)
    database = open_database(postgres_site.url)
    with sites.engine_at(postgres_site.url) as admin:
        with admin.begin() as connection:
            create = "CREATE SCHEMA admin CREATE TABLE disease (id int, cause text)"  # "$user"
            connection.exec_driver_sql(create)
            connection.exec_driver_sql(f"INSERT INTO admin.disease VALUES (1, '{sites.SECRET}')")
        try:
            answer = tool.answer(database, "SELECT * FROM disease ORDER BY id").result
            assert answer.ok
            assert sites.SECRET not in answer.to_json()
        finally:
            with admin.begin() as connection:
                connection.exec_driver_sql("DROP SCHEMA admin CASCADE")


LOCKS = {
    "postgres": ("LOCK TABLE disease IN ACCESS EXCLUSIVE MODE", "COMMIT"),
    "mysql": ("LOCK TABLES disease WRITE", "UNLOCK TABLES"),
}


def test_a_lock_that_others_hold_is_not_a_slow_statement(site, quiet, monkeypatch):
    tool = QueryTool(site.url, cache=False)
    wanted = tool.run("SELECT count(*) FROM disease").rows
    database = open_database(site.url)
    prove = database.prove
    lock, unlock = LOCKS[site.engine]
    with sites.engine_at(site.url) as admin, admin.connect() as connection:

        def unlocked_and_proven(tables):
            connection.exec_driver_sql(unlock)
            prove(tables)

        monkeypatch.setattr(database, "prove", unlocked_and_proven)
        connection.exec_driver_sql(lock)
        assert tool.run("SELECT count(*) FROM disease").rows == wanted
        connection.exec_driver_sql(lock)
        assert tool.run("SELECT count(*) n FROM disease").rows == wanted  # compiled before it runs


def test_an_allowed_table_that_is_dropped_is_not_the_policys_fault(site):
    with administered(site) as connection:
        connection.exec_driver_sql("CREATE TABLE wards AS SELECT 7 AS beds, 1 AS id")
        tool = QueryTool(site.url, ["wards"], cache=False)
        assert tool.run("SELECT beds FROM wards").rows == [[7]]
        connection.exec_driver_sql("DROP TABLE wards")
        with pytest.raises(DatabaseError, match="wards"):
            tool.run("SELECT id FROM wards")
