"""What holds for every test."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.runs import fast_run, start  # noqa: F401 (fixtures)
from tests.tools.sql import servers

# A shell that starts the tests in the background makes them, and every program they start, deaf to Ctrl-C; the tests
# that send it would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Whether a commit passes depends on the commit alone: hypothesis's own profile `ci` generates the same cases every time
# and looks at no clock. `make fuzz` and `make nightly` draw new ones, from a seed that they print.
settings.register_profile("random", settings.get_profile("default"), deadline=None, print_blob=True)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """An administrator's URL of the PostgreSQL that all tests share; `servers.fresh_database` makes room on it."""
    with servers.postgres_server() as (url, _):
        yield url


@pytest.fixture(scope="session")
def mariadb() -> Iterator[str]:
    """The same of a MariaDB."""
    with servers.mariadb_server() as (url, _):
        yield url
