"""What an agent must bring is short, and docs/agents.md says the same.

Keeps of docs/agents.md: everything beyond eight names has a default that works.
"""

from __future__ import annotations

from common.settings import ROOT
from episodes.agent import Agent, Environment

OF_AGENTS = {"name", "splits", "rows", "task", "sizes", "open"}
OF_ENVIRONMENTS = {"play", "score"}


def required(contract: type) -> set[str]:
    """Return the names that a subclass has to define: abstract methods and values without a default."""
    values = {name for name in contract.__annotations__ if not hasattr(contract, name)}
    return values | set(getattr(contract, "__abstractmethods__", ()))


def test_eight_names_are_required() -> None:
    assert required(Agent) == OF_AGENTS
    assert required(Environment) == OF_ENVIRONMENTS
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    sentence = next(line for line in page.splitlines() if line.startswith("An agent must define"))
    assert all(f"`{name}`" in sentence for name in OF_AGENTS | OF_ENVIRONMENTS)
