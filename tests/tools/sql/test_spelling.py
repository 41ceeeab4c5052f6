"""SQL and databases as people write them: legal runs, other is refused, with what is in the way."""

import json

import psycopg
import pytest
from sqlalchemy import URL, make_url
from sqlalchemy.exc import DBAPIError

from tests.corpora import cases_of
from tests.messages import missing
from tests.tools.sql import sites
from tests.tools.sql.sites import Site
from tests.tools.sql.test_statements import plain
from tools.sql.database import open_database
from tools.sql.errors import DatabaseError, GuardFault, StatementError
from tools.sql.guard import Refused, Statement, check
from tools.sql.query import UNSUPPORTED, QueryTool

ENGINES = ("sqlite", "postgres", "mariadb")
SITES = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.system),
    pytest.param("mysql", marks=pytest.mark.system),
]


def statements(name: str, engine: str) -> list[str]:
    """Return the statements of a file that are for an engine or for all."""
    return [sql for where, sql in cases_of(__file__, name) if where in ("all", engine)]


def shown(url: URL) -> str:
    return url.render_as_string(hide_password=False)


@pytest.mark.parametrize(("sql", "error", "hints", "no_hints"), cases_of(__file__, "hints"))
def test_what_is_in_the_way_is_named(tool, sql, error, hints, no_hints):
    """Signs of full width, names that are no column, functions of another engine."""
    result = tool.run(sql)
    assert result.error
    assert error in result.error
    assert missing(result.hint, *hints, *no_hints) == no_hints


def test_what_stands_in_double_quotes_stays_what_sqlite_takes_it_for(tool: QueryTool) -> None:
    form = tool.run("SELECT form FROM drugs_info LIMIT 1").rows[0][0]
    asked = "SELECT count(*) FROM drugs_info WHERE "
    assert tool.run(f'{asked} "form" = "{form}"').rows == tool.run(f"{asked} form = '{form}'").rows
    assert tool.run("SELECT floor(7.9) / 2, floor(NULL)").rows == [[3.5, None]]  # not SQLAlchemy's


@pytest.mark.parametrize("engine", SITES)
def test_what_the_engine_refuses_is_refused(engine: str, request: pytest.FixtureRequest) -> None:
    """sqlglot reads these statements, and writes something that runs."""
    site = request.getfixturevalue(f"{engine}_site")
    tool = QueryTool(site.url, cache=False)
    with sites.engine_at(site.url) as raw:
        for sql in statements("mended_by_sqlglot", engine):
            with raw.connect() as connection, pytest.raises(DBAPIError):
                connection.exec_driver_sql(sql, execution_options={"no_parameters": True}).all()
            assert tool.run(sql).error, sql


@pytest.mark.parametrize("engine", SITES)
def test_what_the_engine_runs_gives_its_own_rows(engine, request):
    site = request.getfixturevalue(f"{engine}_site")
    tool = QueryTool(site.url, cache=False)
    with sites.engine_at(site.url) as raw:
        for sql in statements("legal_by_engine", engine):
            with raw.connect() as connection:
                options = {"no_parameters": True}
                found = connection.exec_driver_sql(sql, execution_options=options).all()
            assert tool.run(sql).rows == [[*map(plain, row)] for row in found], sql


@pytest.mark.parametrize("engine", SITES)
def test_what_the_guard_alone_made_unreadable_is_not_called_wrong(engine, request, caplog):
    site = request.getfixturevalue(f"{engine}_site")
    database = open_database(site.url)
    sql = "SELECT INTERVAL '1' DAY" if engine == "mysql" else "SELECT 1 WHERE WHERE"
    unreadable = Statement(sql, frozenset())
    with pytest.raises(GuardFault):
        database.read(unreadable._replace(written="SELECT 1"), 1.0, 1)
    with pytest.raises(StatementError) as raised:
        database.read(unreadable, 1.0, 1)
    assert not isinstance(raised.value, GuardFault)
    if engine == "postgres":
        answer = QueryTool(site.url).answer(database, "SELECT FROM disease")
        assert answer.result.error == UNSUPPORTED
        assert not missing(caplog.text, "SELECT FROM disease")


@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("sql", cases_of(__file__, "legal_spellings"))
def test_what_is_legal_runs(sql: str, dialect: str) -> None:
    assert check(sql, dialect, {"t"}).sql.startswith(("SELECT", "WITH"))


def test_what_one_engine_alone_has_runs_there() -> None:
    sets = "SELECT a, count(*) FROM t GROUP BY GROUPING SETS ((a), ())"
    assert "GROUPING SETS" in check(sets, "postgres", {"t"}).sql
    made = "SELECT make_timestamp(2020, 1, 1, 0, 0, 0)"
    assert "MAKE_TIMESTAMP" in check(made, "postgres", {"t"}).sql
    assert check("SELECT X'41'", "sqlite", {"t"}).sql == "SELECT x'41'"
    assert check("SELECT 1 FROM dual", "mariadb", {"t"}).sql == "SELECT 1 FROM dual"
    named = check("SELECT a FROM medical.t", "mariadb", {"t"}, "medical")
    assert named.sql == "SELECT a FROM t"


@pytest.mark.parametrize(
    ("sql", "dialect"),
    [
        *cases_of(__file__, "written_otherwise"),
        (f"SELECT array_to_string(string_to_array(a, NULL), '{'x' * 400}') FROM t", "postgres"),
        (f"SELECT string_agg(a, '{'x' * 400}') FROM t", "postgres"),
        (f"SELECT replace(a, 'b', '{'x' * 200}' || '{'x' * 200}') FROM t", "postgres"),
    ],
)
def test_what_would_be_written_as_something_else_is_refused(sql: str, dialect: str) -> None:
    with pytest.raises(Refused):
        check(sql, dialect, {"t"}, "medical" if dialect == "mariadb" else "")


def test_a_comma_between_tables_leaves_their_order_to_sqlite() -> None:
    assert "CROSS" not in check("SELECT 1 FROM t, u WHERE t.a = u.a", "sqlite", {"t", "u"}).sql


@pytest.mark.parametrize(("sql", "hint"), cases_of(__file__, "blamed_names"))
def test_a_hint_is_about_the_name_that_the_error_names(sql, hint, made):
    columns = 'id, name, "2024", "剂量（mg）", "剂量(mg)", "T-BIL", "unit price", "5-HT level"'
    script = f'CREATE TABLE drugs ({columns}); CREATE TABLE "lab results" (id);'
    tool = made(script, "drugs", "lab results")
    result = tool.run(sql)
    assert result.error
    assert result.hint.endswith(f"：{hint}")


def test_names_that_need_quotes_are_shown_in_quotes(made):
    names = ["剂量(mg)", "用法/用量", "入院 日期", "2024年", "T-BIL", "order"]
    columns = ", ".join(f'"{name}" TEXT' for name in names)
    values = ", ".join(f"'{name}'" for name in names)
    script = f'CREATE TABLE "my table" ({columns}); INSERT INTO "my table" VALUES ({values});'
    tool = made(script, "my table")
    described = json.loads(tool.describe_table("my table"))["columns"]
    for name, column in zip(names, described, strict=True):
        assert tool.run(f'SELECT {column["name"]} FROM "my table"').rows == [[name]]
        assert column["samples"] == [name]
    assert '"剂量(mg)"' in tool.run('SELECT 剂量(mg) FROM "my table"').hint
    assert '"my table"' in tool.run("SELECT 1 FROM my table").hint


def test_wide_tables_and_long_cells_hide_nothing_else(made):
    wide = ", ".join(f"item_{number} REAL" for number in range(300))
    long = "病程记录。" * 20_000
    script = f"CREATE TABLE scores ({wide}); CREATE TABLE notes (id INTEGER, note TEXT);"
    script += f"INSERT INTO notes VALUES (1, '患者头痛'), (2, '{long}');"
    tool = made(script, "notes")
    assert tool.run("SELECT id FROM notes WHERE note LIKE '%头痛%'").rows == [[1]]
    assert tool.run("SELECT length(note) FROM notes WHERE id = 2").rows == [[len(long)]]


def test_a_view_shows_what_it_is_made_of_and_nothing_else(made):
    script = """CREATE TABLE patients (id INTEGER, name TEXT); INSERT INTO patients VALUES (1, '甲');
    CREATE VIEW inner_view AS SELECT id FROM patients; CREATE VIEW v AS SELECT id FROM inner_view;"""
    tool = made(script, "v")
    assert tool.run("SELECT id FROM v").rows == [[1]]
    assert tool.run("SELECT id FROM v").tables_read == {"v"}
    counted = tool.run("SELECT count(*) FROM v")
    assert (counted.rows, counted.tables_read) == ([[1]], {"v"})
    for name in ("v", "inner_view"):
        sql = f"WITH {name} AS (SELECT * FROM patients) SELECT * FROM {name}"
        statement = Statement(sql, frozenset({"v"}), own_names=frozenset({"v", "inner_view"}))
        with pytest.raises(StatementError):
            tool.database().read(statement, 1.0, 1)
    for hidden in ("patients", "inner_view"):
        assert tool.run(f"SELECT count(*) FROM {hidden}").error
        assert tool.run(f"SELECT id FROM {hidden}").error
        assert tool.run(f"SELECT id FROM v WHERE id IN (SELECT id FROM {hidden})").error


def test_a_view_may_call_what_its_operator_chose(made):
    script = "CREATE TABLE t (a); INSERT INTO t VALUES (7);"
    script += "CREATE VIEW v AS WITH x AS (SELECT a FROM t) SELECT printf('%03d', a) AS b FROM x;"
    script += (
        "CREATE VIEW w AS WITH RECURSIVE x(a) AS (SELECT 1 UNION SELECT a + 1 FROM x WHERE a < 3)"
    )
    script += " SELECT a FROM x;"
    tool = made(script, "v", "w")
    assert tool.run("SELECT b FROM v").rows == [["007"]]
    counted = tool.run("SELECT count(*) FROM w")
    assert (counted.rows, counted.tables_read) == ([[3]], {"w"})
    assert tool.run("SELECT printf('%03d', b) FROM v").error


def test_a_virtual_table_is_refused_at_the_start_and_a_new_table_is_found(made):
    script = "CREATE VIRTUAL TABLE leaflets USING fts5(name); CREATE TABLE t (a);"
    tool = made(script, "leaflets")
    with pytest.raises(DatabaseError, match="leaflets"):
        tool.database()
    later = QueryTool(tool.database_url, ["t", "later"])
    with pytest.raises(DatabaseError, match="later"):
        later.database()
    made("CREATE TABLE later (a)")
    assert later.run("SELECT count(*) FROM later").rows == [[0]]


def test_a_view_that_cannot_be_read_is_refused_at_the_start(made):
    script = """CREATE TABLE t (a); CREATE VIEW broken AS SELECT a FROM t; DROP TABLE t;
    CREATE VIRTUAL TABLE leaflets USING fts5(name); CREATE VIEW searched AS SELECT name FROM leaflets;"""
    made(script)
    for name in ("broken", "searched"):
        with pytest.raises(DatabaseError):
            made("", name).database()


@pytest.mark.parametrize(("url", "named"), cases_of(__file__, "addresses"))
def test_an_address_that_is_not_understood_is_one_line_without_the_password(url, named):
    with pytest.raises(DatabaseError) as raised:
        open_database(url)
    said = str(raised.value)
    assert not missing(said, named)
    assert "s3cret" not in said
    assert "\n" not in said


@pytest.mark.system
def test_on_postgres_names_schemas_and_views_of_others_work(postgres_site: Site) -> None:
    place = make_url(postgres_site.url).set(drivername="postgresql")
    with psycopg.connect(shown(place), autocommit=True) as connection:
        connection.execute("CREATE DATABASE of_others")
    url = shown(place.set(database="of_others"))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute('CREATE TABLE "my table" ("剂量(mg)" int)')
        connection.execute('CREATE TABLE "Wards" (id int)')
        connection.execute('CREATE MATERIALIZED VIEW labs AS SELECT 1 AS id, 2 AS "Age"')
        connection.execute("CREATE SCHEMA hosp; CREATE TABLE hosp.beds AS SELECT 7 AS id")
        connection.execute("CREATE MATERIALIZED VIEW unfilled AS SELECT 1 AS id WITH NO DATA")
        connection.execute("CREATE ROLE visitor LOGIN")
    tool = QueryTool(url, ["my table", "labs"])
    assert tool.run('SELECT "剂量(mg)" FROM "my table"').ok
    tool.database().prove(tool.allowed_tables - {"my table"})
    assert tool.run("SELECT id FROM labs").rows == [[1]]
    assert '"Age" 是表 labs 的列，要加引号' in tool.run("SELECT Age FROM labs").hint
    path = f"{url}?options=-csearch_path%3Dhosp"
    assert QueryTool(path, ["beds"]).run("SELECT id FROM beds").rows == [[7]]
    with pytest.raises(DatabaseError, match="my table"):
        QueryTool(shown(make_url(url).set(username="visitor")), ["my table"]).database()
    advices = {"hosp.beds": "search_path", "wards": "CREATE VIEW wards", "unfilled": "unfilled"}
    for table, advice in advices.items():
        with pytest.raises(DatabaseError, match=advice):
            QueryTool(url, [table]).database()
