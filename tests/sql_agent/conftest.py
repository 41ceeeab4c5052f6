"""The scripted endpoint and the small database."""

from tests.episodes.conftest import database_url, llm  # noqa: F401
