"""A stand-in LLM endpoint for the curation programs, and the environment that leads them to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.jsonl import write_jsonl
from common.llm import retry
from common.settings import load_settings
from tests.common import llm_server
from tests.serving import serving
from tests.sql_agent.curation import questions


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failed calls are tried again at once."""
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.0)


@pytest.fixture
def llm() -> Iterator[llm_server.LLMServer]:
    """A running stand-in; the test sets `answer`, `faults`, `delay`."""
    server = llm_server.LLMServer()
    with serving(server):
        yield server


@pytest.fixture
def teacher(llm: llm_server.LLMServer, tmp_path: Path) -> dict[str, str]:
    """The environment of a program that asks the stand-in: pass it as `env` to a subprocess."""
    return {
        **os.environ,
        "TEACHER_MODEL": "openai/stand-in",
        "TEACHER_BASE_URL": llm.url,
        "TEACHER_API_KEY": llm_server.KEY,
        "LLM_CACHE": str(tmp_path / "llm_cache.sqlite"),
    }


@pytest.fixture
def place(
    tmp_path: Path,
    llm: llm_server.LLMServer,
    teacher: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    no_waiting: None,
) -> Iterator[Path]:
    """A folder with questions, and the settings that lead to the stand-in."""
    llm.answer = questions.judge
    for name, value in teacher.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    load_settings.cache_clear()
    rows = [
        {"id": f"q{number}", "question": text, "time": None}
        for number, text in enumerate(questions.QUESTIONS)
    ]
    write_jsonl(tmp_path / "in.jsonl", rows, force=False)
    yield tmp_path
    load_settings.cache_clear()
