"""The tool's result: shape, limits, harmless text, and whose fault a failure is."""

import json
import os
import pickle
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.sql.errors import DatabaseError
from tools.sql.query import Limits, QueryTool, neutralise


@pytest.fixture
def diseases(database):
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("SELECT count(*) FROM disease").fetchone()[0]


@pytest.fixture
def strange(made, tmp_path):
    """A tool on a database whose one table is free to hold anything."""

    def with_rows(rows, **limits):
        script = "DROP TABLE IF EXISTS strange; CREATE TABLE strange(a, b)"
        tool = made(script, "strange", limits=Limits(**limits))
        with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
            connection.executemany("INSERT INTO strange VALUES (?, ?)", rows)
        return tool

    return with_rows


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT count(*) FROM disease", {"disease"}),
        ("SELECT 1 FROM drugs_info d JOIN disease s ON s.id = d.id", {"drugs_info", "disease"}),
        ("WITH t AS (SELECT 1 AS a) SELECT count(*) FROM t", set()),
        ("SELECT 'drugs_info'", set()),
    ],
)
def test_the_tables_read_are_those_the_database_opened(tool, sql, tables):
    assert tool.run(sql).tables_read == tables
    assert tool.run(sql).tables_read == tables  # the same when everything is cached


def test_counting_ends_with_the_deadline(tool):
    tool.limits = Limits(deadline=0.3)
    result = tool.run("SELECT a.id FROM drugs_info a, drugs_info b, disease c, disease d")
    assert result.ok
    assert len(result.rows) == tool.limits.max_rows
    assert str(result.truncated).startswith(f"超过 {result.count} 行")
    tool.limits = Limits()  # rows soon after the shown ones are read, and not asked for again
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99)"
    assert not tool.run(f"{numbers} SELECT abs(-9223372036854775807 - (i > 30)) FROM n").ok


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.binary(max_size=30),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=700),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(VALUES, VALUES), max_size=30))
def test_any_cells_give_valid_json_within_the_limits(strange, rows):
    result = strange(rows, max_chars=1_000).run("SELECT * FROM strange")
    text = result.to_json()
    assert result.ok
    assert result.count == len(rows)
    assert len(text) <= 1_000
    assert json.loads(text, parse_constant=pytest.fail)["count"] == len(rows)
    assert bool(rows) == bool(result.rows)
    assert "<|" not in text
    assert "</" not in text
    assert bool(result.truncated) or len(result.rows) == len(rows)


@pytest.mark.parametrize(
    "text", ["<|im_start|>system", "</tool_response>", "<think>", "<s>", "<｜User｜>"]
)
def test_chat_tokens_and_tags_cannot_open(strange, text):
    assert text not in neutralise(text)
    assert neutralise(text)[1:] == text[1:]
    tool = strange([(text, "1")])
    assert text not in tool.run("SELECT a FROM strange").to_json()
    assert text not in tool.run(f'SELECT b AS "{text}" FROM strange').to_json()
    assert text not in tool.run(f"SELECT [{text}].c FROM strange").to_json()


def test_results_of_one_tool_are_not_another_s(tool):
    """Tools of one process share what they keep: only what decides a result tells whose it is."""
    url, sql = tool.database_url, "SELECT id FROM drugs_info"
    shown = [len(QueryTool(url, limits=Limits(max_rows=rows)).run(sql).rows) for rows in (3, 20, 3)]
    assert shown == [3, 20, 3]
    assert not QueryTool(url, ["disease"]).run(sql).ok
    assert QueryTool(url, ["drugs_info"]).run(sql).ok


def test_many_threads_share_one_tool(tool):
    def ask(number):
        return tool.run(f"SELECT id, med_name FROM drugs_info WHERE id = {number}").rows[0][0]

    numbers = [*range(1, 301), *range(1, 301)]
    with ThreadPoolExecutor(24) as threads:
        assert list(threads.map(ask, numbers)) == numbers


def test_a_tool_survives_pickling_and_fork(tool, diseases):
    assert tool.run("SELECT 1 FROM disease LIMIT 1").ok
    assert pickle.loads(pickle.dumps(tool)).run("SELECT count(*) FROM disease").rows == [[diseases]]
    child = os.fork()
    if child == 0:
        os._exit(0 if tool.run("SELECT count(*) FROM disease").rows == [[diseases]] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tool.run("SELECT count(*) FROM disease").rows == [[diseases]]


def test_a_deleted_database_raises_and_a_replaced_one_is_read_anew(tool, database, diseases):
    assert tool.run("SELECT count(*) FROM disease").rows == [[diseases]]
    kept = shutil.copy(database, str(database) + ".kept")
    os.unlink(database)
    with pytest.raises(DatabaseError, match="database"):
        tool.run("SELECT count(*) FROM disease")
    with sqlite3.connect(kept) as connection:
        connection.execute("DELETE FROM disease WHERE id > 150")
    connection.close()
    os.replace(kept, database)
    assert tool.run("SELECT count(*) FROM disease").rows == [[150]]


def test_a_damaged_or_locked_database_raises(tool, database):
    holder = sqlite3.connect(database, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseError, match="locked"):
        tool.run("SELECT count(*) FROM disease")
    holder.execute("ROLLBACK")
    holder.close()
    assert tool.run("SELECT count(*) FROM disease").ok
    content = bytearray(database.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    database.write_bytes(bytes(content))
    with pytest.raises(DatabaseError, match="malformed"):
        tool.run("SELECT * FROM drugs_info ORDER BY med_name")


def test_an_allowed_table_that_is_lost_is_not_the_policys_fault(tool, database):
    assert tool.run("SELECT overview FROM disease LIMIT 1").ok
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DROP TABLE disease")
    assert tool.run("SELECT nothing FROM drugs_info").error
    with pytest.raises(DatabaseError, match="disease"):
        tool.run("SELECT count(*) FROM disease")
