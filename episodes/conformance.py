"""A pytest plugin that runs `episodes/conformance_checks.py` for one agent, wherever that lies.

PYTHONPATH=/my/agents .venv/bin/python -m pytest -p episodes.conformance --agent triage
"""

import warnings
from pathlib import Path

import pytest

from common.command import UsageError
from episodes import registry
from episodes.agent import Agent

CHECKS = Path(__file__).with_name("conformance_checks.py")
pytest.register_assert_rewrite("episodes.conformance_checks")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--agent", metavar="NAME", help="whose conformance is checked")
    dead = "a setting or flag that leads its judge or partner nowhere; may be given again"
    parser.addoption("--unreachable", metavar="NAME=VALUE", action="append", default=[], help=dead)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Add the checks to the tests, in place of all if no path is given."""
    # pytest-asyncio asks every project for this setting; the checks have no asynchronous fixture.
    warnings.filterwarnings("ignore", message=".*asyncio_default_fixture_loop_scope")
    name = config.getoption("--agent")
    if not name:
        raise pytest.UsageError("--agent NAME is missing: whose conformance is checked")
    for given in config.getoption("--unreachable"):
        if "=" not in given:
            raise pytest.UsageError(f"--unreachable {given}: expected NAME=VALUE")
    try:
        registry.get(name)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    named = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
    config.args = [*named, str(CHECKS)]


@pytest.fixture(scope="session")
def agent(request: pytest.FixtureRequest) -> Agent:
    return registry.get(request.config.getoption("--agent"))


@pytest.fixture(scope="session")
def unreachable(request: pytest.FixtureRequest) -> dict[str, str]:
    given = request.config.getoption("--unreachable")
    return dict(text.split("=", 1) for text in given)
