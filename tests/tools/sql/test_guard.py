"""Hostile statements do nothing, legal ones run, a refusal names what the caller wrote."""

import sqlite3
from pathlib import Path

import pytest
import sqlglot

from tests.corpora import cases_of
from tests.tools.sql import sites
from tools.sql.database import open_database
from tools.sql.dialects import engine_dialect
from tools.sql.errors import StatementError
from tools.sql.guard import CACHED_BYTES, Refused, Statement, _check_words, check
from tools.sql.mcp import in_both
from tools.sql.query import QueryTool
from tools.sql.result import failure

TABLES = frozenset({"drugs_info", "disease"})


def test_a_connection_reads_only_and_writes_nowhere_else_either(database):
    """Another file that was attached is not opened for reading only."""
    connection = open_database(f"sqlite:///{database}")._engine.raw_connection()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.cursor().execute("CREATE TEMP TABLE mine (a)")
    connection.cursor().execute("PRAGMA query_only = OFF")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.cursor().execute("DELETE FROM disease")
    connection.close()


@pytest.mark.parametrize("sql", cases_of(__file__, "corpus/below_the_guard"))
def test_the_connection_refuses_without_the_guard(guarded, sql):
    before = sites.file_state(guarded)
    statement = Statement(sql, TABLES, own_names=frozenset({"secrets"}))
    with pytest.raises(StatementError):
        open_database(f"sqlite:///{guarded}").read(statement, deadline=1.0, max_rows=5)
    assert sites.file_state(guarded) == before


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


CASES = cases_of(__file__, "corpus/guard")
REFUSED = [case for case in CASES if "refused" in case]
WRITTEN = [case for case in CASES if "written" in case]
RUN_AS_IT_IS = [  # dialect, a text that would run, what it names itself, the function in it that nobody allowed
    ("sqlite", "SELECT abs(1) WHERE 1 IN (1)", "", None),
    ("sqlite", "SELECT EVIL (1)", "", "evil"),
    ("sqlite", 'SELECT "in"(1)', "", "in"),  # quoted, a plain word is a function's name
    ("sqlite", "WITH own(a) AS (SELECT 1) SELECT a FROM own", "Own", None),
    ("mariadb", 'SELECT "evil" (1)', "", None),  # a text to MariaDB, a name to others
    ("sqlite", 'SELECT "evil" (1)', "", "evil"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: ascii(case["sql"]))
def test_a_refusal_names_what_is_not_allowed_for_the_hint(case):
    with pytest.raises(Refused) as caught:
        check(case["sql"], case["dialect"], TABLES)
    assert [caught.value.kind, caught.value.name] == case["refused"]
    assert caught.value.name in str(caught.value).lower()


def test_each_refusal_can_be_said_in_english():
    written = (Path(__file__).parent / "corpus" / "attacks.txt").read_text(encoding="utf-8")
    attacks = [line.partition("] ")[2] for line in written.splitlines() if line[:1] == "["]
    said = set()
    for sql in [*(case["sql"] for case in REFUSED), *attacks, "SELECT [a] FROM disease", " "]:
        for dialect in ("sqlite", "postgres", "mariadb"):
            try:
                check(sql, dialect, TABLES)
            except Refused as refusal:
                said.add(str(failure(str(refusal)).error))
    assert len(said) > 100
    assert [message for message in said if in_both(message) == message] == []


@pytest.mark.parametrize(("dialect", "text", "own", "name"), RUN_AS_IT_IS)
def test_the_text_that_will_run_is_looked_at_once_more(dialect, text, own, name):
    """Whatever sqlglot made of a statement, an unlisted function does not reach the database."""
    tokens = sqlglot.tokenize(text, read=engine_dialect(dialect))
    if name is None:
        _check_words(tokens, dialect, frozenset({own}))
    else:
        with pytest.raises(Refused, match=f"^不能使用函数 {name}。$"):
            _check_words(tokens, dialect, frozenset({own}))


@pytest.mark.parametrize("case", WRITTEN, ids=lambda case: case["sql"])
def test_what_is_allowed_is_written_anew_and_its_names_are_known(case):
    for padding in ("", " " * CACHED_BYTES):  # long statements are not kept, and checked alike
        found = check(case["sql"] + padding, case["dialect"], TABLES)
        assert found.sql == case["written"]
        assert (found.own_names, found.tables) == (set(case["own"]), set(case["tables"]))


def test_tables_of_a_schema_are_written_with_it():
    found = check("SELECT id FROM clinic.disease, drugs_info", "postgres", TABLES, "clinic")
    assert found.sql == 'SELECT id FROM "clinic".disease, "clinic".drugs_info'
    with pytest.raises(Refused, match=r"不能查询 public\.disease"):
        check("SELECT id FROM public.disease", "postgres", TABLES, "clinic")
