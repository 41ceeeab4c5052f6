"""The tool's result: shape, limits, harmless text, and whose fault a failure is.

Keeps of docs/safety.md, "Whose fault it was", and of the tool's limits that nothing longer
reaches the model.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import socket
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.settings import ROOT
from tools.sql.database import (
    CONCURRENT,
    Access,
    ConnectionLost,
    Database,
    DatabaseError,
    Rows,
    forget_databases,
    open_database,
)
from tools.sql.query import Limits, QueryTool, neutralise
from tools.sql.result import fit

KEYS = ["status", "columns", "rows", "count", "truncated", "error"]


def _count(database, table):
    with sqlite3.connect(database) as connection:
        found = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    connection.close()
    return found


@pytest.fixture
def drugs(database):
    return _count(database, "drugs_info")


@pytest.fixture
def diseases(database):
    return _count(database, "disease")


@pytest.fixture
def strange(tmp_path):
    """A tool on a database whose one table is free to hold anything."""
    path = tmp_path / "strange.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE drugs_info(a, b)")
    connection.close()

    def with_rows(rows, **limits):
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM drugs_info")
            connection.executemany("INSERT INTO drugs_info VALUES (?, ?)", rows)
        connection.close()
        return QueryTool(f"sqlite:///{path}", ("drugs_info",), Limits(**limits))

    return with_rows


def test_a_result_has_the_documented_shape(tool):
    result = tool.run("SELECT id, med_name FROM drugs_info WHERE id IN (1, 2) ORDER BY id")
    message = json.loads(result.to_json())
    assert list(message) == KEYS
    assert message["status"] == "success"
    assert message["columns"] == ["id", "med_name"]
    assert message["error"] is None
    assert [row[0] for row in message["rows"]] == [1, 2]
    assert message["count"] == 2
    assert message["truncated"] is False
    assert result.ok
    assert result.tables_read == {"drugs_info"}
    assert "\\u" not in result.to_json()
    assert ", " not in result.to_json()


def test_an_empty_result_is_a_success(tool):
    result = tool.run("SELECT med_name FROM drugs_info WHERE med_name = '没有'")
    assert (result.status, result.columns, result.rows, result.count) == (
        "success",
        ["med_name"],
        [],
        0,
    )
    assert result.tables_read == {"drugs_info"}


def test_an_error_has_the_database_reason(tool):
    message = json.loads(tool.run("SELECT nope FROM drugs_info").to_json())
    assert list(message) == KEYS
    assert message["status"] == "error"
    assert "no such column: nope" in message["error"]
    assert message["columns"] == message["rows"] == []
    assert message["count"] == 0


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT 1", set()),
        ("SELECT count(*) FROM disease", {"disease"}),
        ("SELECT 1 FROM drugs_info d JOIN disease s ON s.id = d.id", {"drugs_info", "disease"}),
        ("WITH t AS (SELECT 1 AS a) SELECT count(*) FROM t", set()),
        ("SELECT 'drugs_info'", set()),
    ],
)
def test_the_tables_read_are_those_the_database_opened(tool, sql, tables):
    assert tool.run(sql).tables_read == tables
    assert tool.run(sql).tables_read == tables  # the same when everything is cached


def test_rows_beyond_the_limit_are_counted_and_said(tool, drugs):
    tool.limits = Limits(max_rows=3)
    result = tool.run("SELECT id FROM drugs_info")
    assert len(result.rows) == 3
    assert result.count == drugs
    assert result.truncated == f"共 {drugs} 行，只显示前 3 行"


def test_many_rows_are_counted_without_being_built(tool):
    tool.limits = Limits(deadline=20.0)
    diseases = tool.run("SELECT count(*) FROM disease").rows[0][0]
    result = tool.run("SELECT * FROM drugs_info, disease WHERE drugs_info.id <= 100 ORDER BY cause")
    assert result.count == 100 * diseases
    assert result.truncated.startswith(f"共 {result.count} 行")


def test_counting_ends_with_the_deadline(tool):
    tool.limits = Limits(deadline=0.3)
    result = tool.run("SELECT a.id FROM drugs_info a, drugs_info b, disease c, disease d")
    assert result.ok
    assert len(result.rows) == tool.limits.max_rows
    assert str(result.truncated).startswith(f"超过 {result.count} 行")


def test_long_cells_are_cut_and_said(strange):
    result = strange([("药" * 600, "短")]).run("SELECT a, b FROM drugs_info")
    assert result.rows == [["药" * 499 + "…", "短"]]
    assert result.truncated == "过长的内容已截断到 500 字"


def test_very_long_text_is_cut_like_any_other(strange):
    result = strange([("药" * 60_000, 1)]).run("SELECT a, a || a FROM drugs_info")
    assert not result.ok  # 360 KB in one value is over SQLite's limit here
    result = strange([("药" * 60_000, 1)]).run("SELECT a, b FROM drugs_info")
    assert result.rows == [["药" * 499 + "…", 1]]


def test_rows_go_before_cells_shrink_and_one_row_stays(strange):
    rows = [("药" * 400, "x" * 400)] * 10
    result = strange(rows, max_chars=2_000).run("SELECT a, b FROM drugs_info")
    assert len(result.rows) == 2
    assert len(result.rows[0][0]) == 400
    result = strange(rows, max_chars=500).run("SELECT a, b FROM drugs_info")
    assert len(result.rows) == 1
    assert result.count == 10
    assert "共 10 行" in str(result.truncated)


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
    result = strange(rows, max_chars=1_000).run("SELECT * FROM drugs_info")
    text = result.to_json()
    assert result.ok
    assert result.count == len(rows)
    assert len(text) <= 1_000
    assert json.loads(text, parse_constant=pytest.fail)["count"] == len(rows)
    assert bool(rows) == bool(result.rows)
    assert "<|" not in text
    assert "</" not in text
    assert bool(result.truncated) or len(result.rows) == len(rows)


def test_a_text_may_be_as_long_as_the_limit_and_no_character_longer():
    """What is longer would push the question out of the policy's context, or break the budget of an
    episode.
    """
    found = Rows(["a"], [("药" * 300,)] * 4, 4, True)
    whole = len(fit(found, Limits()).to_json())
    exact, below = (fit(found, Limits(max_chars=limit)) for limit in (whole, whole - 1))
    assert (len(exact.to_json()), len(exact.rows), exact.truncated) == (whole, 4, False)
    assert (len(below.rows), below.truncated) == (3, "共 4 行，只显示前 3 行")
    for limit in range(1_000, 1_400):
        assert len(fit(found, Limits(max_chars=limit)).to_json()) <= limit


def test_the_widest_result_still_fits(tool):
    names = ", ".join(f"'{'长' * 80}' AS \"{number}{'n' * 63}\"" for number in range(60))
    result = tool.run(f"SELECT {names} FROM disease")
    assert len(result.to_json()) <= tool.limits.max_chars
    assert result.rows


@pytest.mark.parametrize(
    "text",
    [
        "<|im_start|>system",
        "<|im_end|>",
        "</tool_response>",
        "<tool_call>",
        "<think>",
        "<s>",
        "</s>",
        "<｜User｜>",
        "<|endoftext|>",
    ],
)
def test_chat_tokens_and_tags_cannot_open(strange, text):
    assert text not in neutralise(text)
    assert neutralise(text)[1:] == text[1:]
    tool = strange([(text, "1")])
    assert text not in tool.run("SELECT a FROM drugs_info").to_json()
    assert text not in tool.run(f'SELECT b AS "{text}" FROM drugs_info').to_json()
    assert text not in tool.run(f"SELECT [{text}].c FROM drugs_info").to_json()


def test_ordinary_text_is_left_alone():
    for text in ("一次15毫克，一日3次", "x < 5", "血压<90", "a\tb\nc", "5 <= 6 >= 4", "《药典》"):
        assert neutralise(text) == text
    assert neutralise("a\x00b\x1b[31mc\u202ed\ufeff\r") == "ab[31mcd"


def test_column_names_and_errors_are_cut(tool):
    result = tool.run(f'SELECT 1 AS "{"名" * 300}" FROM disease LIMIT 1')
    assert len(result.columns[0]) == 64
    assert len(tool.run(f'SELECT "a"."{"名" * 900}" FROM disease').error or "") == 300


def test_results_of_one_tool_are_not_another_s(tool):
    """Tools of one process share what they keep: only what decides a result tells whose it is."""
    url, sql = tool.database_url, "SELECT id FROM drugs_info"
    shown = [len(QueryTool(url, limits=Limits(max_rows=rows)).run(sql).rows) for rows in (3, 20, 3)]
    assert shown == [3, 20, 3]
    assert [QueryTool(url, tables).run(sql).ok for tables in (["disease"], ["drugs_info"])] == [
        False,
        True,
    ]
    wrong = "SELECT med_nam FROM drugs_info"
    assert [
        bool(QueryTool(url, hints=hints).run(wrong).hint) for hints in (False, True, False)
    ] == [
        False,
        True,
        False,
    ]


def test_results_of_one_database_are_not_another_s(strange, tool, monkeypatch):
    """Two servers look the same from here; two files that do are told apart by where they are, too."""
    monkeypatch.setattr("tools.sql.sqlite._state", lambda path: 0)
    other = strange([("a", "b")])
    tool = QueryTool(tool.database_url, ("drugs_info",), other.limits)
    sql = "SELECT count(*) FROM drugs_info"
    assert other.run(sql).rows != tool.run(sql).rows


def test_many_threads_share_one_tool(tool):
    def ask(number):
        return tool.run(f"SELECT id, med_name FROM drugs_info WHERE id = {number % 300 + 1}").rows[
            0
        ][0]

    with ThreadPoolExecutor(24) as threads:
        assert list(threads.map(ask, range(600))) == [number % 300 + 1 for number in range(600)]


def test_a_tool_survives_pickling_and_fork(tool, diseases):
    assert tool.run("SELECT 1 FROM disease LIMIT 1").ok
    assert pickle.loads(pickle.dumps(tool)).run("SELECT count(*) FROM disease").rows == [[diseases]]
    child = os.fork()
    if child == 0:
        os._exit(0 if tool.run("SELECT count(*) FROM disease").rows == [[diseases]] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tool.run("SELECT count(*) FROM disease").rows == [[diseases]]


def test_a_fork_opens_connections_of_its_own(database):
    url = f"sqlite:///{database}"
    ours = open_database(url)
    child = os.fork()
    if child == 0:
        os._exit(0 if open_database(url) is not ours else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert open_database(url) is ours


def test_a_fork_opens_a_database_while_its_parent_still_waits_for_another(database: Path) -> None:
    """The thread that holds the lock is not in the child, which would wait for it for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent, ThreadPoolExecutor(1) as thread:
        silent.settimeout(60)
        port = silent.getsockname()[1]
        opened = thread.submit(open_database, f"postgresql://reader@127.0.0.1:{port}/medical")
        with silent.accept()[0]:
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                signal.alarm(20)  # ends it where it waits
                os._exit(0 if open_database(f"sqlite:///{database}") else 1)
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert opened.exception()
    assert ended == 0


class Restarted(Database):
    """A server that ended every connection it had; the driver is SQLite's."""

    def __init__(self, path):
        self._engine = self._pool(f"sqlite:///{path}", connect_args={"check_same_thread": False})
        pooled = [self._connection() for _ in range(CONCURRENT)]
        self.ended = [one.driver_connection for one in pooled]
        for one in pooled:
            one.close()

    def _read_once(self, sql, access, deadline, max_rows, operations):
        pooled = self._connection()
        if pooled.driver_connection in self.ended:
            pooled.invalidate()
            raise ConnectionLost("the server has ended it")
        pooled.close()
        return Rows(["a"], [(1,)], 1, True)

    def version(self):
        return 0

    def columns(self, table):
        return []


def test_after_a_servers_restart_the_first_statement_is_answered(database):
    """All pooled connections are dead, not only the one that was used."""
    restarted = Restarted(database)
    assert restarted.read("SELECT 1 AS a", Access(frozenset()), 1.0, 1).rows == [(1,)]


def test_a_deleted_database_raises_and_a_replaced_one_is_read_anew(tool, database, diseases):
    assert tool.run("SELECT count(*) FROM disease").rows == [[diseases]]
    kept = shutil.copy(database, str(database) + ".kept")
    os.unlink(database)
    with pytest.raises(DatabaseError, match="cannot read the database"):
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


def test_a_database_without_the_tables_raises(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE x(a)")
    connection.close()
    with pytest.raises(DatabaseError, match="no table disease, drugs_info"):
        QueryTool(f"sqlite:///{path}").run("SELECT 1")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nonsense", "not a database URL"),
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("sqlite:////nowhere/at/all.db", "no database at /nowhere/at/all.db"),
        (f"sqlite:///{ROOT / 'data' / 'train.parquet'}", "not a database"),
        ("oracle://user:canary@host/db", "use sqlite, postgresql, mysql or mariadb"),
        (
            "postgresql://user:canary@127.0.0.1:9/db",
            "cannot read the database postgresql://user:\\*\\*\\*@",
        ),
        (
            "mariadb://user:canary@127.0.0.1:9/db",
            "cannot read the database mariadb://user:\\*\\*\\*@",
        ),
    ],
)
def test_an_unusable_url_is_one_clear_line(url, message):
    with pytest.raises(DatabaseError, match=message) as caught:
        QueryTool(url).run("SELECT 1")
    assert "\n" not in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_path_with_special_characters_opens(tmp_path, database, diseases):
    odd = tmp_path / "药 #b.db"
    shutil.copy(database, odd)
    assert QueryTool(f"sqlite:///{odd}").run("SELECT count(*) FROM disease").rows == [[diseases]]


def test_threads_that_open_a_database_at_once_share_one(database):
    """Opened side by side, SQLAlchemy's first import of a dialect fails in one of them."""
    forget_databases()
    together = Barrier(16)

    def opened(_):
        together.wait()
        return id(open_database(f"sqlite:///{database}"))

    with ThreadPoolExecutor(16) as threads:
        assert len(set(threads.map(opened, range(16)))) == 1
