"""The stand-in endpoint serves these tests too; the small set has one folder for all of them."""

import asyncio
import shutil
from contextlib import closing

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

SETTINGS = Settings.model_construct()


def played_in(environment: CodeEnvironment, name: str, *texts: str) -> tuple[Episode, Reward]:
    """An episode of these replies on the first task of a set, and what it earns."""
    task = environment.set_of(name).task(0)

    async def both() -> tuple[Episode, Reward]:
        episode = await environment.play(task, Script(texts, len(texts)))
        return episode, await environment.score(task, episode)

    return asyncio.run(both())


def played(tasks: TaskSet, *actions: Action) -> tuple[Episode, Reward]:
    environment = CodeEnvironment(SETTINGS, {}, task_sets={tasks.name: tasks})
    with closing(environment):
        return played_in(environment, tasks.name, *map(str, actions))


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
