"""The stand-in endpoint serves these tests too; the small set has one folder for all of them."""

import asyncio
import shutil

import pytest

from code_agent.environment import CodeEnvironment
from code_agent.protocol import Action
from code_agent.tasks.base import TaskSet
from common.settings import Settings
from episodes.episode import Episode
from episodes.script import Script
from scoring.rubric import Reward
from tests.code_agent.cases import Small, write_tables
from tests.sql_agent.curation.conftest import llm, no_waiting  # noqa: F401
from tools.sandbox import sandbox

SETTINGS = Settings.model_construct(
    **{name: field.get_default() for name, field in Settings.model_fields.items()}
)


def played(tasks: TaskSet, *actions: Action, index: int = 0) -> tuple[Episode, Reward]:
    """An episode of these actions on a task of the set, and what it earns."""
    environment = CodeEnvironment(SETTINGS, {}, task_sets={tasks.name: tasks})
    task = tasks.task(index)
    policy = Script([str(action) for action in actions], len(actions))

    async def both() -> tuple[Episode, Reward]:
        episode = await environment.play(task, policy)
        return episode, await environment.score(task, episode)

    try:
        return asyncio.run(both())
    finally:
        environment.close()


@pytest.fixture(autouse=True)
def no_sandbox_unasked(request, monkeypatch):
    """Hides bubblewrap from a test that does not ask for it: it is played where there is none."""
    found = shutil.which
    if "bubblewrap" not in request.fixturenames:
        monkeypatch.setattr(
            shutil,
            "which",
            lambda program, *more, **options: (
                None if program == "bwrap" else found(program, *more, **options)
            ),
        )


@pytest.fixture
def plain_processes(monkeypatch):
    """Programs run in processes of their own, without bubblewrap."""
    settings = sandbox.load_settings().model_copy(update={"sandbox": "process"})
    monkeypatch.setattr(sandbox, "load_settings", lambda: settings)


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    return write_tables(tmp_path_factory.mktemp("small") / "tables")


@pytest.fixture
def opened(tables):
    """Environments of the small set, by options."""
    made: list[CodeEnvironment] = []

    def make(**options: str) -> CodeEnvironment:
        made.append(CodeEnvironment(SETTINGS, options, task_sets={"small": Small(tables)}))
        return made[-1]

    yield make
    for environment in made:
        environment.close()
