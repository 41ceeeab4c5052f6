"""The guard and the connection behind it: hostile statements do nothing; test_corpus.py has hundreds,
test_allowed.py the legal ones.

Keeps of docs/safety.md, "Layers": the syntax tree, names by scope, functions, and the read-only
connection.
"""

from __future__ import annotations

import hashlib
import sqlite3

import pytest

from tools.sql.database import Access, StatementError, open_database

TABLES = frozenset({"drugs_info", "disease"})


@pytest.fixture
def guarded(database):
    """The database with a table and a view nobody may read."""
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE secrets(word TEXT)")
        connection.execute("INSERT INTO secrets VALUES ('canary')")
        connection.execute("CREATE VIEW open_door AS SELECT * FROM secrets")
    connection.close()
    return database


def state(path):
    return hashlib.sha256(path.read_bytes()).hexdigest(), sorted(
        item.name for item in path.parent.iterdir()
    )


def test_the_file_is_opened_for_reading_only(database):
    connection = open_database(f"sqlite:///{database}")._engine.raw_connection()
    connection.cursor().execute("PRAGMA query_only = OFF")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.cursor().execute("DELETE FROM disease")
    connection.close()


def test_a_connection_writes_nowhere_else_either(database):
    """Another file that was attached is not opened for reading only."""
    connection = open_database(f"sqlite:///{database}")._engine.raw_connection()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.cursor().execute("CREATE TEMP TABLE mine (a)")
    connection.close()


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM disease",
        "SELECT * FROM secrets",
        "SELECT * FROM open_door",
        "SELECT count(*) FROM sqlite_master",
        "PRAGMA query_only = 0",
        "ATTACH ':memory:' AS x",
        "BEGIN",
        "SELECT load_extension('x')",
    ],
)
def test_the_connection_refuses_without_the_guard(guarded, sql):
    before = state(guarded)
    access = Access(TABLES, own_names=frozenset({"secrets"}))
    with pytest.raises(StatementError):
        open_database(f"sqlite:///{guarded}").read(sql, access, deadline=1.0, max_rows=5)
    assert state(guarded) == before
