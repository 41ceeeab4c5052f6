"""Generated statements against the guard, with the connection behind it as the judge.

The guard ends in an answer whatever it is given, in each dialect, and what it lets pass must make
SQLite's authorizer see nothing but reads of allowed tables, allowed functions and recursion: 3,000
statements in every check, the same ones. 50 of them are run, and leave the file as it was.
FUZZ_CASES=n asks for n of the first kind, and a fifth of that of the second: `make nightly` for
20,000 new ones, `make fuzz` for 100,000 or CASES=n.
"""

import itertools
import json
import os
import sqlite3

import pytest

from tests.tools.sql import sites
from tests.tools.sql.fuzzing import draw
from tools.sql.guard import FUNCTIONS, Refused, check
from tools.sql.query import Limits, QueryTool

pytestmark = pytest.mark.system

TABLES = frozenset({"drugs_info", "disease"})
ASKED = int(os.environ.get("FUZZ_CASES", "250"))
CHECKED, RUN = max(3_000, ASKED), max(50, ASKED // 5)
DIALECTS = ("sqlite", "postgres", "mariadb")


@pytest.fixture
def seed(pytestconfig):
    """The one of `make nightly` and `make fuzz`."""
    return int(pytestconfig.getoption("hypothesis_seed") or 0)


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
def test_the_guard_ends_in_an_answer_and_lets_only_reads_of_allowed_tables_pass(
    dialect, guarded, seed
):
    for sql in itertools.islice(draw(dialect, seed), CHECKED // len(DIALECTS)):
        try:
            statement = check(sql, dialect, TABLES)
        except Refused:
            continue  # an answer too
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}, of {sql!r}")
        assert statement.tables <= TABLES
        if dialect == "sqlite":
            _reads_only(guarded, statement)


def _reads_only(path, statement):
    for action, first, second in seen_by_sqlite(path, statement.sql):
        if action == sqlite3.SQLITE_READ:
            own = not second and first.lower() in statement.own_names | {""}
            assert first.lower() in TABLES or own, statement.sql
        elif action == sqlite3.SQLITE_FUNCTION:
            assert second.lower() in FUNCTIONS["sqlite"], statement.sql
        else:
            assert action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE), statement.sql


def test_any_text_gives_a_bounded_json_result_and_changes_nothing(guarded, seed):
    before = sites.file_state(guarded)
    tool = QueryTool(f"sqlite:///{guarded}", limits=Limits(deadline=0.3), cache=False)
    for sql in itertools.islice(draw("sqlite", seed), RUN):
        result = tool.run(sql)
        message = json.loads(result.to_json())
        assert list(message)[:6] == ["status", "columns", "rows", "count", "truncated", "error"]
        assert result.tables_read <= TABLES, sql
        assert sites.SECRET not in result.to_json(), sql
        assert sites.file_state(guarded) == before, sql
