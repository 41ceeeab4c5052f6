"""The curation programs' stand-in endpoint serves these tests too."""

from tests.sql_agent.curation.conftest import llm, no_waiting, place, teacher  # noqa: F401
