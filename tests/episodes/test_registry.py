"""Agents by their names, and what every agent of a folder must say of itself."""

import argparse
import os
from pathlib import Path

import pytest

from common.settings import ROOT
from episodes import registry
from episodes.agent import folder_of
from episodes.episode import AgentError
from tests.episodes.guessing_agent import GuessingAgent
from tests.messages import missing

NAMES = sorted(path.parent.name.removesuffix("_agent") for path in ROOT.glob("*_agent/agent.py"))


def test_the_agents_are_the_folders_and_what_is_registered(monkeypatch):
    assert "sql" in NAMES
    monkeypatch.setattr(registry, "_registered", {})
    agent = GuessingAgent()
    registry.register(agent)
    assert registry.names() == sorted([*NAMES, "guessing"])
    assert registry.get("guessing") is agent
    with pytest.raises(AgentError, match=r"sqll.*sql"):
        registry.get("sqll")


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write the file of an agent that lies on Python's path, in a folder of its own."""
    monkeypatch.setenv("PYTHONPATH", "before")
    monkeypatch.syspath_prepend(tmp_path)

    def written(name: str, text: str) -> Path:
        file = tmp_path / f"{name}_agent" / "agent.py"
        file.parent.mkdir()
        file.write_text(text)
        return file

    return written


def made(name: str) -> str:
    """Return the text of an agent's file."""
    module = "from tests.episodes.guessing_agent import GuessingAgent"
    return f"{module}\nAGENT = GuessingAgent()\nAGENT.name = {name!r}\n"


def test_processes_started_later_find_an_agent_of_another_folder(tmp_path, write):
    """Runners, Ray's workers and the parts of a demo do not start where the command did."""
    write("faraway", made("faraway"))
    assert folder_of(registry.get("faraway")) == tmp_path / "faraway_agent"
    assert os.environ["PYTHONPATH"] == os.pathsep.join([str(tmp_path), "before"])


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("broken", "def broken(:"),
        ("unfinished", "AGENT = Agent()"),
        ("uninstalled", "import no_such_package"),
        ("left", "raise SystemExit(0)"),
    ],
)
def test_an_agent_that_cannot_be_imported_is_named_with_its_line(name, line, write):
    file = write(name, f"from episodes.agent import Agent; AGENT = 1\n{line}\n")
    with pytest.raises(AgentError) as caught:
        registry.get(name)
    assert not missing(str(caught.value), f"{file}, line 2")


@pytest.mark.parametrize(
    ("name", "part", "value"),
    [("empty", "", None), ("late", "turns", "3"), ("flat", "columns", ["score"])],
)
def test_an_agent_of_other_parts_is_named_with_them(name, part, value, write):
    file = write(name, f"{made(name)}AGENT.{part} = {value!r}\n" if part else "")
    with pytest.raises(AgentError) as caught:
        registry.get(name)
    assert not missing(str(caught.value), f"{file}: {part or 'AGENT'} is {value!r}")


def test_a_command_has_the_flags_of_the_agent_that_it_names(capsys):
    parser, words = argparse.ArgumentParser(), ["--n", "3", "diagnosis", "--simulator", "llm"]
    parser.add_argument("--n")
    assert registry.add_agent(parser, words) is registry.get("diagnosis")
    assert parser.parse_args(words).simulator == "llm"

    other, wrong = argparse.ArgumentParser(), ["sql", "diagnosis"]
    registry.add_agent(other, wrong)
    with pytest.raises(SystemExit, match="2"):
        other.parse_args(wrong)
    assert not missing(capsys.readouterr().err, "diagnosis")


def test_an_agents_name_may_be_the_value_of_a_flag():
    parser, words = argparse.ArgumentParser(), ["--model", "sql", "diagnosis"]
    parser.add_argument("--model")
    assert registry.add_agent(parser, words) is registry.get("diagnosis")
    assert parser.parse_args(words).agent == "diagnosis"
