"""The scripted endpoint and the small database of the SQL agent's tests."""

from tests.sql_agent.conftest import database_url, llm  # noqa: F401
