"""A copy of the embedded database, the tool on it, and the three engines under attack."""

import math
import shutil

import pytest

from common.settings import ROOT
from tests.tools.sql import sites
from tools.sql import guard
from tools.sql.query import QueryTool


@pytest.fixture(autouse=True)
def nothing_was_checked_before():
    """What the guard keeps is not what a test looks at."""
    guard._check_cached.cache_clear()


@pytest.fixture
def database(tmp_path):
    return shutil.copy(ROOT / "data" / "medical.db", tmp_path / "medical.db")


@pytest.fixture
def guarded(database):
    """The database with a table and a view that nobody may read."""
    sites.run_script(database, sites.HIDDEN)
    return database


@pytest.fixture
def made(tmp_path):
    """Makes a database of a script, and returns the tool on some of its tables."""

    def make(script, *tables, **options):
        sites.run_script(tmp_path / "a.db", script)
        return QueryTool(f"sqlite:///{tmp_path / 'a.db'}", tables, **options)

    return make


@pytest.fixture
def tool(database):
    return QueryTool(f"sqlite:///{database}")


@pytest.fixture(scope="session")
def sqlite_site(tmp_path_factory):
    with sites.sqlite_site(tmp_path_factory.mktemp("sqlite")) as site:
        yield site


@pytest.fixture(scope="session")
def postgres_site(postgres, tmp_path_factory):
    with sites.server_site("postgres", postgres, tmp_path_factory.mktemp("postgres")) as site:
        yield site


@pytest.fixture(scope="session")
def mysql_site(mariadb, tmp_path_factory):
    with sites.server_site("mysql", mariadb, tmp_path_factory.mktemp("mysql")) as site:
        yield site


@pytest.fixture
def quiet(monkeypatch):
    """No clock shows that the machine was slow; the one that plays the test may be."""
    monkeypatch.setattr("tools.sql.query.CONTROL_SECONDS", math.inf)
