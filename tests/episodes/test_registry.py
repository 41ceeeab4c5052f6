"""Agents by their names, and what every agent of a folder must say of itself."""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from common.settings import ROOT, Settings
from episodes import registry
from episodes.agent import Environment
from episodes.episode import AgentError
from tests.episodes.guessing_agent import GuessingAgent

NAMES = sorted(path.parent.name.removesuffix("_agent") for path in ROOT.glob("*_agent/agent.py"))


def test_the_agents_are_the_folders_and_what_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sql" in NAMES
    monkeypatch.setattr(registry, "_registered", {})
    agent = GuessingAgent()
    registry.register(agent)
    assert registry.names() == sorted([*NAMES, "guessing"])
    assert registry.get("guessing") is agent
    with pytest.raises(AgentError, match="there is no agent 'sqll'; the agents are "):
        registry.get("sqll")


def test_processes_started_later_find_an_agent_of_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runners, Ray's workers and the parts of a demo do not start where the command did."""
    (tmp_path / "faraway_agent").mkdir()
    (tmp_path / "faraway_agent" / "agent.py").write_text(
        "from tests.episodes.guessing_agent import GuessingAgent\n"
        "AGENT = GuessingAgent()\nAGENT.name = 'faraway'\n"
    )
    monkeypatch.setenv("PYTHONPATH", "before")
    monkeypatch.syspath_prepend(tmp_path)
    assert registry.get("faraway")
    assert os.environ["PYTHONPATH"] == os.pathsep.join([str(tmp_path), "before"])


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_is_called_like_its_folder_and_knows_its_data_and_sizes(name: str) -> None:
    agent = registry.get(name)
    assert agent.name == name
    assert agent.prompt_version
    assert agent.folder.is_dir()
    assert agent.splits.keys() == {"train", "val", "test"}
    for device in ("cpu", "cuda"):
        sizes = agent.sizes(device)
        assert 0 < sizes.reply <= sizes.response
        assert sizes.prompt > 0
    assert not agent.showing.failures or agent.showing.failures[0] == "right"


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_travels_to_other_processes(name: str) -> None:
    assert pickle.loads(pickle.dumps(registry.get(name))).name == name


@pytest.mark.parametrize("name", NAMES)
def test_an_agent_is_light(name: str) -> None:
    heavy = {
        "torch",
        "verl",
        "vllm",
        "ray",
        "agentlightning",
        "transformers",
        "litellm",
        "agents",
        "sqlglot",
    }
    code = f"import sys; from episodes.registry import get; get({name!r}); print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_an_agents_own_flags_become_its_options() -> None:
    agent, parser = GuessingAgent(), argparse.ArgumentParser()
    parser.add_argument("--of-the-command", default=1)
    agent.flags.add(parser)
    assert registry.own_options(agent, parser.parse_args(["--hint", "h"])) == {"hint": "h"}


def test_a_command_has_the_flags_of_the_agent_that_it_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser, words = argparse.ArgumentParser(), ["--n", "3", "diagnosis", "--simulator", "llm"]
    parser.add_argument("--n")
    assert registry.add_agent(parser, words) is registry.get("diagnosis")
    assert parser.parse_args(words).simulator == "llm"
    assert "--simulator" in parser.format_help()

    other, wrong = argparse.ArgumentParser(), ["--n", "sql", "diagnosis"]
    other.add_argument("--n")
    registry.add_agent(other, wrong)
    with pytest.raises(SystemExit, match="2"):
        other.parse_args(wrong)
    assert "invalid choice: 'diagnosis' (choose from 'sql')" in capsys.readouterr().err


def test_what_an_agent_does_not_have_is_said_or_left_out() -> None:
    settings = Settings(_env_file=None)
    with pytest.raises(AgentError, match="no demonstrations for the role 'policy'"):
        GuessingAgent().teaching.demonstrations("policy", [], settings)
    assert list(GuessingAgent.flags.services(settings, {})) == []
    assert Environment.description(GuessingAgent().open(settings, {})) == {}
