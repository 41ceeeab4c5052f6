"""What holds for every test."""

import math
import os
import shutil
import signal

import pytest
from hypothesis import settings

from common.settings import load_settings
from episodes import registry
from episodes.agent import folder_of
from tests.programs import ran
from tests.runs import fast_run, start  # noqa: F401 (fixtures)
from tests.tools.sql import servers

# A shell that starts the tests in the background makes them, and every program they start, deaf to
# Ctrl-C, and nohup to SIGHUP; the tests that send these would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Tests read what programs print in English.
for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
    if os.environ.get(name, "").startswith("zh"):
        os.environ[name] = "C.UTF-8"

# Whether a commit passes depends on the commit alone: hypothesis's own profile `ci` generates the
# same cases every time and looks at no clock. `make fuzz` and `make nightly` draw new ones, from a
# seed that they print.
settings.register_profile("random", settings.get_profile("default"), deadline=None, print_blob=True)
settings.load_profile("ci")


@pytest.fixture(autouse=True)
def settings_of_this_test():
    """Settings and the variables that a `main` sets are no other test's."""
    before = dict(os.environ)
    load_settings.cache_clear()
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(autouse=True)
def stop_signals():
    """As a program finds them: processes that a test forks inherit them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])


# What asks for one of these fixtures starts a program, and is `system` without a mark of its own.
STARTS = {"browser", "bubblewrap", "mariadb", "postgres"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if STARTS & set(getattr(item, "fixturenames", ())):
            item.add_marker("system")


@pytest.fixture(scope="session")
def bubblewrap():
    """Skip unless bubblewrap itself can run a program here."""
    if not shutil.which("bwrap"):
        pytest.skip("no sandbox is tested without bubblewrap (apt-get install bubblewrap)")
    line = "bwrap --unshare-all --unshare-user --ro-bind / / --proc /proc true"
    tried = ran(*line.split())
    if tried.returncode:
        pytest.skip(f"this machine allows no sandbox (docs/safety.md): {tried.stderr.strip()}")


@pytest.fixture
def has_packages_of(request):
    """Skip the rest of a test where the Debian packages of the agent it names are missing."""

    def require(name: str) -> None:
        if (folder_of(registry.get(name)) / "debian-packages.txt").exists():
            request.getfixturevalue("bubblewrap")

    return require


@pytest.fixture(autouse=True)
def no_bar_of_slow_work(monkeypatch):
    """What a program says on stderr does not depend on how busy the machine is."""
    monkeypatch.setattr("common.terminal.QUICK_SECONDS", math.inf)


@pytest.fixture(scope="session")
def postgres():
    """An administrator's URL of a PostgreSQL that all tests share: `servers.fresh_database`."""
    with servers.postgres_server() as (url, _):
        yield url


@pytest.fixture(scope="session")
def mariadb():
    """The same of a MariaDB."""
    with servers.mariadb_server() as (url, _):
        yield url
