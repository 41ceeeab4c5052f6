"""`evaluation.lengths` says what `Sizes` must hold, and what is missing: docs/agents.md."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.command import UsageError
from common.settings import load_settings
from episodes import new, registry
from episodes.episode import Episode, Task
from evaluation import lengths
from tests.digits_agent.agent import AGENT as DIGITS


def test_without_a_model_the_command_that_makes_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    new.write_agent("lengthy", "partner", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert lengths.main(["lengthy"]) == 2
    assert "python -m training.cold_start lengthy makes it" in capsys.readouterr().err


def test_a_prompt_a_response_and_each_reply_are_measured() -> None:
    roles = ("system", "user", "assistant", "user", "assistant")
    messages = [{"role": role, "content": ""} for role in roles]
    lengths_found = lengths.lengths_of(messages, lambda given: 10 * len(given))
    assert lengths_found == {"prompt": [20], "response": [30], "reply": [10, 10]}
    silent = lengths.lengths_of(messages[:2], lambda given: 10 * len(given))
    assert silent == {"prompt": [20], "response": [], "reply": []}


def test_measured_lengths_stand_beside_what_a_tiny_model_is_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    agent = registry.get("diagnosis")
    assert lengths.main(["diagnosis", "--n", "2"]) == 0
    cells = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    given = {cell[0]: cell[-1] for cell in cells}
    for name in ("prompt", "response", "reply"):
        assert given[name] == str(getattr(agent.sizes("cpu"), name))
    assert agent.sizes("cpu") != agent.sizes("cuda")


def test_the_description_of_tools_is_part_of_the_prompt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counted: list[object] = []

    def count_characters(model: str, tools: object) -> lengths.Count:
        counted.append(tools)
        return lambda messages: len(str(messages))

    monkeypatch.setattr(lengths, "counter", count_characters)
    assert lengths.main(["sql", "--n", "1"]) == 0
    assert counted == [registry.get("sql").tools]


def test_without_gold_the_member_that_makes_it_is_named() -> None:
    """It named `Environment.gold`, where conformance refuses it."""
    environment = DIGITS.open(load_settings(), {})
    with pytest.raises(UsageError, match=r"Environment\.known\.gold makes them"):
        asyncio.run(lengths.measure(environment, [], len))


def test_gold_without_a_reply_has_no_lengths() -> None:
    async def silent(task: object) -> Episode:
        return Episode(messages=[{"role": "user", "content": "?"}])

    environment: Any = SimpleNamespace(known=SimpleNamespace(gold=silent))
    with pytest.raises(UsageError, match="no task has a gold episode with a reply"):
        asyncio.run(lengths.measure(environment, [Task(id="1", question="?")], len))
