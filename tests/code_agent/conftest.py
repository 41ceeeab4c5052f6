"""The stand-in endpoint serves these tests too; the small set has one folder for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from code_agent.environment import CodeEnvironment
from common.settings import Settings
from tests.code_agent.cases import Small, write_tables
from tests.utils.conftest import llm, no_waiting  # noqa: F401

SETTINGS = Settings.model_construct(
    **{name: field.get_default() for name, field in Settings.model_fields.items()}
)


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tables(tmp_path_factory.mktemp("small") / "tables")


@pytest.fixture
def opened(tables: Path) -> Iterator[Callable[..., CodeEnvironment]]:
    """Environments of the small set, by options."""
    made: list[CodeEnvironment] = []

    def make(**options: str) -> CodeEnvironment:
        made.append(CodeEnvironment(SETTINGS, options, task_sets={"small": Small(tables)}))
        return made[-1]

    yield make
    for environment in made:
        environment.close()
