"""A sandbox for the tests, which are skipped where this machine allows none."""

import asyncio
from typing import Any

import pytest

from common.settings import load_settings
from tools.sandbox import Run, Sandbox
from tools.sandbox import sandbox as sandbox_module


@pytest.fixture(scope="session")
def sandbox(bubblewrap, tmp_path_factory):
    """One for all, as its users have one: every test has an event loop and episodes of its own."""
    data = tmp_path_factory.mktemp("data") / "tables"
    data.mkdir()
    (data / "patients.csv").write_text("id,age\n1,70\n", encoding="utf-8")
    sandbox = Sandbox(data=[data])
    yield sandbox
    asyncio.run(sandbox.close())


@pytest.fixture
def run(sandbox, request):
    """Runs a program in an episode of this test's."""

    async def run(code: str, episode: str = "", **options: Any) -> Run:
        return await sandbox.run(code, f"{request.node.nodeid} {episode}", **options)

    return run


@pytest.fixture
async def fresh():
    """A sandbox of this test's own, which its first program starts."""
    sandbox = Sandbox()
    yield sandbox
    await sandbox.close()


@pytest.fixture
def bare(monkeypatch):
    """Sandboxes are processes of this account, which start at once."""
    monkeypatch.setenv("SANDBOX", "process")
    monkeypatch.setattr(sandbox_module, "WARM", ())
    load_settings.cache_clear()
    yield monkeypatch
    load_settings.cache_clear()
