"""Generated statements against the guard, with the connection behind it as the judge.

The guard ends in an answer whatever it is given, in each dialect: 3,000 statements in every check,
the same ones. What it lets pass must make SQLite's authorizer see nothing but reads of allowed
tables, allowed functions and recursion, and leave the file as it was: 150 statements in every
check. `make nightly` draws 20,000 new ones of each kind, `make fuzz` 100,000 or CASES=n, of the
second kind 100,000 at most (FUZZ_CASES).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.settings import ROOT
from tests.tools.sql.fuzzing import draw
from tools.sql.guard import FUNCTIONS, Refused, check
from tools.sql.query import Limits, QueryTool

pytestmark = pytest.mark.system

TABLES = frozenset({"drugs_info", "disease"})
ASKED = int(os.environ.get("FUZZ_CASES", "150"))
CASES, CALLS_OF_GUARD = min(ASKED, 100_000), max(3_000, ASKED)
DIALECTS = ("sqlite", "postgres", "mariadb")

VOCABULARY = """
SELECT FROM WHERE drugs_info disease sqlite_master secrets open_door main . * , ( ) ; ' " -- /* */ = id
med_name WITH AS t RECURSIVE UNION ALL DELETE INSERT INTO VALUES DROP TABLE UPDATE SET PRAGMA ATTACH count max
LIKE '%药%' 1 -1 1e999 NULL IN EXISTS JOIN ON ORDER BY GROUP LIMIT OFFSET CASE WHEN THEN END || x'00' :p ? [ ]
` REPLACE CREATE load_extension readfile pragma_table_info OVER PARTITION FILTER NOT IS CAST TEXT EXCEPT
VACUUM RETURNING temp LATERAL -> ->> json_each
"""
WORDS = st.sampled_from(VOCABULARY.split())
NAMES = st.sampled_from(
    [
        "drugs_info",
        "disease",
        "secrets",
        "open_door",
        "sqlite_master",
        "t",
        "main.secrets",
        '"secrets"',
    ]
)
CALLS = st.sampled_from(
    [
        "count",
        "max",
        "substr",
        "load_extension",
        "randomblob",
        "hex",
        "total",
        "sqlite_version",
        "glob",
    ]
)
VALUES = st.sampled_from(
    ["id", "word", "*", "1", "'x'", "NULL", "med_name", "x'00'", "t.id", "secrets.word", "sql"]
)


def _select(inner):
    value = st.one_of(
        VALUES, st.builds("{}({})".format, CALLS, VALUES), st.builds("({})".format, inner)
    )
    source = st.one_of(
        NAMES,
        st.builds("({}) AS t".format, inner),
        st.builds("{} JOIN {} ON 1".format, NAMES, NAMES),
    )
    plain = st.builds("SELECT {}, {} FROM {}".format, value, value, source)
    where = st.builds("{} WHERE {} IN ({})".format, plain, value, inner)
    with_ = st.builds(
        "WITH {} AS ({}) {}".format, st.sampled_from(["t", "secrets", "disease", "s"]), inner, plain
    )
    union = st.builds(
        "{} {} {}".format, plain, st.sampled_from(["UNION", "UNION ALL", "EXCEPT", ";"]), inner
    )
    write = st.builds(
        "WITH t AS ({}) {}".format,
        inner,
        st.sampled_from(["DELETE FROM disease", "INSERT INTO t VALUES(1)"]),
    )
    return st.one_of(plain, where, with_, union, write)


GRAMMAR = st.recursive(st.builds("SELECT {} FROM {}".format, VALUES, NAMES), _select, max_leaves=4)
STATEMENTS = st.one_of(
    GRAMMAR,
    st.text(max_size=60),
    st.lists(WORDS, max_size=25).map(" ".join),
    st.lists(WORDS, max_size=12).map(lambda words: "SELECT * FROM drugs_info " + " ".join(words)),
)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz") / "medical.db"
    shutil.copy(ROOT / "data" / "medical.db", path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE secrets(id INTEGER, word TEXT)")
        connection.execute("INSERT INTO secrets VALUES (1, 'canary')")
        connection.execute("CREATE VIEW open_door AS SELECT * FROM secrets")
    connection.close()
    return path


def seen_by_sqlite(path, sql):
    """Every action SQLite would take for the statement, all of them allowed; compiled, not run."""
    actions = []
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.set_authorizer(lambda *action: actions.append(action[:3]) or sqlite3.SQLITE_OK)
    try:
        connection.execute("EXPLAIN " + sql)
    except sqlite3.Error:
        return []  # not a statement at all
    finally:
        connection.close()
    return actions


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_guard_ends_in_an_answer(dialect, pytestconfig):
    seed = int(pytestconfig.getoption("hypothesis_seed") or 0)
    for sql in itertools.islice(draw(dialect, seed), CALLS_OF_GUARD // len(DIALECTS)):
        try:
            assert check(sql, dialect, TABLES).tables <= TABLES
        except Refused:
            pass  # an answer too
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}, of {sql!r}")


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(sql=STATEMENTS)
def test_what_the_guard_lets_pass_only_reads_allowed_tables(guarded, sql):
    try:
        statement = check(sql, "sqlite", TABLES)
    except Refused:
        return
    for action, first, second in seen_by_sqlite(guarded, statement.sql):
        if action == sqlite3.SQLITE_READ:
            own = not second and first.lower() in statement.own_names | {""}
            assert first.lower() in TABLES or own, statement.sql
        elif action == sqlite3.SQLITE_FUNCTION:
            assert second.lower() in FUNCTIONS["sqlite"], statement.sql
        else:
            assert action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE), statement.sql


@settings(max_examples=max(50, CASES // 5), deadline=None, suppress_health_check=list(HealthCheck))
@given(sql=STATEMENTS)
def test_any_text_gives_a_bounded_json_result_and_changes_nothing(guarded, sql):
    before = hashlib.sha256(guarded.read_bytes()).hexdigest(), sorted(guarded.parent.iterdir())
    result = QueryTool(f"sqlite:///{guarded}", limits=Limits(deadline=0.3), cache=False).run(sql)
    message = json.loads(result.to_json())
    assert list(message)[:6] == ["status", "columns", "rows", "count", "truncated", "error"]
    assert result.tables_read <= TABLES
    assert "canary" not in result.to_json()
    assert (
        hashlib.sha256(guarded.read_bytes()).hexdigest(),
        sorted(guarded.parent.iterdir()),
    ) == before
