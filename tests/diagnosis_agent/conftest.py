"""The stand-in endpoint serves these tests too."""

from tests.utils.conftest import llm, no_waiting  # noqa: F401
