"""What any model is warmed up with: gold rows, and files of episodes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from code_agent.agent import AGENT
from code_agent.protocol import Action
from code_agent.task import read_rows
from episodes.episode import AgentError
from tests.code_agent.conftest import SETTINGS

ROWS = read_rows(AGENT.splits["train"])


def test_gold_rows_are_supervised_data() -> None:
    [first, *_] = AGENT.teaching.demonstrations("policy", ROWS[:3], SETTINGS)
    assert first.learn == [True, True]
    with pytest.raises(AgentError, match="'patient'"):
        AGENT.teaching.demonstrations("patient", ROWS[:3], SETTINGS)


def test_a_file_of_episodes_is_read_or_named(tmp_path: Path) -> None:

    folder = tmp_path
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": str(Action("submit"))},
    ]
    (folder / "sft.jsonl").write_text(json.dumps({"messages": messages}) + "\n", encoding="utf-8")
    [kept] = AGENT.teaching.dialogues(folder / "sft.jsonl", "code", SETTINGS)
    assert (kept.messages, kept.learn) == (messages, [True])
    for text, said in (('{"messages": [{"role": "user"}]}\n', "line 1"), ("", "has no episodes")):
        (folder / "bad.jsonl").write_text(text, encoding="utf-8")
        with pytest.raises(AgentError, match=said):
            AGENT.teaching.dialogues(folder / "bad.jsonl", "code", SETTINGS)
