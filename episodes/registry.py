"""Every agent by its name: the folder `NAME_agent/` whose `agent.py` holds `AGENT`.

It lies here or on Python's path (`PYTHONPATH=/my/agents`).
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from common.command import told
from common.settings import ROOT, WORK
from episodes.agent import Agent
from episodes.episode import AgentError
from episodes.joint import JOINED, JointAgent

_registered: dict[str, Agent] = {}


def names() -> list[str]:
    """Return the names that commands take, in alphabetical order."""
    return sorted({*_folders(), *_registered})


def get(name: str) -> Agent:
    """Return the agent, for a name such as "diagnosis+sql" both as one.
    Raises AgentError: missing, not importable, or of another name.
    """
    if name in _registered:
        return _registered[name]
    if JOINED in name:
        return joined(dict.fromkeys(name.split(JOINED), 1.0))
    folder = _folders().get(name)
    if folder is None:
        raise AgentError(f"there is no agent {name!r}; the agents are {', '.join(names())}")
    path = os.environ.get("PYTHONPATH", "")
    parent = str(folder.parent)
    if folder.parent != ROOT and parent not in path.split(os.pathsep):
        # Processes that play are started with it
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (parent, path)))
    module = f"{name}_agent.agent"
    try:
        found = import_module(module)
    except SyntaxError as error:
        raise AgentError(f"{error.filename}, line {error.lineno}: {error.msg}; mend it") from None
    except (Exception, SystemExit) as error:  # a file of another's hand may raise anything
        raise AgentError(f"the {name} agent cannot be imported: {told(error)}") from error
    agent = getattr(found, "AGENT", None)
    if not isinstance(agent, Agent):
        raise AgentError(
            f"{found.__file__}: AGENT is {agent!r}; expected an object of a class of Agent, such "
            "as AGENT = MyAgent() in the last line"
        )
    own = getattr(agent, "name", None)
    if own != name:
        raise AgentError(f"{module}.AGENT calls itself {own!r}; expected name = {name!r}")
    for part, kind in Agent.__annotations__.items():
        value = getattr(agent, part, None)
        try:
            # Strictly, no other mapping than a dict would do
            known = dict(value) if isinstance(value, Mapping) else value
            TypeAdapter(kind).validate_python(known, strict=True)
        except ValidationError:
            seen = repr(value)[:80]
            raise AgentError(f"{found.__file__}: {part} is {seen}; expected {kind}") from None
    return agent


def joined(weights: Mapping[str, float]) -> JointAgent:
    """Return agents as one. Raises AgentError: fewer than two, or an unknown one."""
    return JointAgent({name: get(name) for name in weights}, weights)


def register(agent: Agent) -> None:
    """Make an agent known in this process, beside those that are found."""
    _registered[agent.name] = agent


def add_agent(parser: ArgumentParser, argv: Sequence[str] | None) -> Agent | None:
    """Add the argument AGENT, and the flags of the agent that the words name. Return it, or None."""
    known = names()
    words = sys.argv[1:] if argv is None else argv
    named = [at for at, word in enumerate(words) if word in known]
    # A word behind a flag may be its value, so it is taken last
    named.sort(key=lambda at: at > 0 and words[at - 1].startswith("--"))
    name = words[named[0]] if named else None
    choices = [name] if name else known
    parser.add_argument("agent", choices=choices, metavar="AGENT", help=", ".join(known))
    if name is None:
        return None
    agent = get(name)
    group = parser.add_argument_group(f"flags of the {name} agent")
    agent.add_flags(cast("ArgumentParser", group))  # takes flags like a parser
    return agent


def completed(arguments: Namespace, split: str) -> Agent:
    """Return the agent of a command, with its `data` completed: by default the file of a split."""
    agent = get(arguments.agent)
    if not arguments.data and split not in agent.splits:
        raise AgentError(f"the {agent.name} agent has no {split} file; give --data")
    arguments.data = arguments.data or agent.splits[split]
    agent.complete(arguments)
    return agent


def own_options(agent: Agent, namespace: Namespace) -> dict[str, Any]:
    """Return the values of the agent's own flags among those of a command."""
    parser = ArgumentParser(add_help=False)
    agent.add_flags(parser)
    return {action.dest: getattr(namespace, action.dest) for action in parser._actions}


def training_command(name: str) -> list[str]:
    """Return what follows `python` to train the agent: its own program, or that for all."""
    if JOINED in name:
        return ["train_agents.py", "--agents", name.replace(JOINED, ",")]
    program = f"train_{name}_agent.py"
    return [program] if (WORK / program).is_file() else ["-m", "training.launch", name]


def _folders() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for entry in (ROOT, *(Path(text or ".") for text in sys.path)):
        for path in entry.glob("*_agent/agent.py"):
            found.setdefault(path.parent.name.removesuffix("_agent"), path.parent.resolve())
    return found
