"""What others do to a server's tables while a statement runs: it is repeated, or nobody's reward."""

import pytest

from tests.tools.sql import sites
from tests.tools.sql.test_servers_faults import administered
from tools.sql.database import DatabaseError, open_database
from tools.sql.query import QueryTool

pytestmark = pytest.mark.system


@pytest.fixture(params=["postgres", "mysql"])
def site(request):
    return request.getfixturevalue(f"{request.param}_site")


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
