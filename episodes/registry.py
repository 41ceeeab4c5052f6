"""Every agent by its name: the folders `*_agent/` of the repository, and what tests register.

registry.names()        # ["sql", ...]
registry.get("sql")     # Agent
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import Any, cast

from common.settings import ROOT
from episodes.agent import Agent, AgentError

_registered: dict[str, Agent] = {}


def names() -> list[str]:
    """The names commands take."""
    folders = [path.parent.name.removesuffix("_agent") for path in ROOT.glob("*_agent/agent.py")]
    return sorted({*folders, *_registered})


def get(name: str) -> Agent:
    """The agent of that name. Raises AgentError: there is none."""
    if name in _registered:
        return _registered[name]
    if name not in names():
        raise AgentError(f"there is no agent {name!r}; the agents are {', '.join(names())}")
    return cast(Agent, import_module(f"{name}_agent.agent").AGENT)


def register(agent: Agent) -> None:
    """Make an agent known in this process, beside those of the folders."""
    _registered[agent.name] = agent


def own_options(agent: Agent, namespace: Namespace) -> dict[str, Any]:
    """The values of the agent's own flags among those of a command."""
    parser = ArgumentParser(add_help=False)
    agent.arguments(parser)
    return {action.dest: getattr(namespace, action.dest) for action in parser._actions}
