"""A stand-in LLM endpoint for the curation programs, and the environment that leads them to it."""

import os

import pytest

from common.jsonl import write_jsonl
from common.llm import retry
from tests.common import llm_server
from tests.serving import serving
from tests.sql_agent.curation import questions


@pytest.fixture
def no_waiting(monkeypatch):
    """Failed calls are tried again at once."""
    monkeypatch.setattr(retry, "FIRST_WAIT", 0.0)


@pytest.fixture
def llm():
    """A running stand-in; the test sets `answer`, `faults`, `delay`."""
    server = llm_server.LLMServer()
    with serving(server):
        yield server


@pytest.fixture
def teacher(llm, tmp_path):
    """The environment of a program that asks the stand-in: pass it as `env` to a subprocess."""
    return {
        **os.environ,
        "TEACHER_MODEL": "openai/stand-in",
        "TEACHER_BASE_URL": llm.url,
        "TEACHER_API_KEY": llm_server.KEY,
        "LLM_CACHE": str(tmp_path / "llm_cache.sqlite"),
    }


@pytest.fixture
def place(tmp_path, llm, teacher, monkeypatch, no_waiting):
    """A folder with questions, and the settings that lead to the stand-in."""
    llm.answer = questions.judge
    for name, value in teacher.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"q{number}", "question": text, "time": None}
        for number, text in enumerate(questions.QUESTIONS)
    ]
    write_jsonl(tmp_path / "in.jsonl", rows, force=False)
    return tmp_path
