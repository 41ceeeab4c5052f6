"""The curation programs' stand-in endpoint serves these tests too."""

from tests.utils.conftest import llm, no_waiting, place, teacher  # noqa: F401
