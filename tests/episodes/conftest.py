"""The scripted endpoint of the tests, and the SQL agent's small database."""

import pytest

from tests.episodes.scripted import ScriptedLLM
from tests.serving import serving
from tests.sql_agent.small_database import database_url  # noqa: F401


@pytest.fixture
def llm():
    scripted = ScriptedLLM()
    with serving(scripted):
        yield scripted
