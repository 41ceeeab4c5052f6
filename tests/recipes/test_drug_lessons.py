"""Demonstrations are patterns of training rows, and leak no name of the database."""

import json
import sqlite3
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from common.settings import ROOT, load_settings
from episodes.episode import AgentError, Conversation
from recipes.drugs.lessons import Cases, alphabet, names_in
from sql_agent.agent import AGENT
from sql_agent.gold_episodes import gold_conversations
from sql_agent.intake.question_files import load_rows
from sql_agent.tables import NAME_COLUMN
from tools.sql.errors import DatabaseError

DATABASE = f"sqlite:///{ROOT / 'data' / 'medical.db'}"


@pytest.fixture(scope="module")
def rows():
    return load_rows(ROOT / "data" / "train.parquet")


@pytest.fixture(scope="module")
def cases(rows):
    return Cases(rows, names_in(DATABASE), alphabet(rows, Random(0)), Random(0))


@pytest.fixture(scope="module")
def played(cases):
    flaws = ["right", "no_call", "wrong_column", "empty", "gives_up"] * 80
    drawn = [
        replace(cases.case(cases.random.randrange(len(cases.patterns))), flaw=flaw)
        for flaw in flaws
    ]
    return list(zip(drawn, cases.play(drawn), strict=True))


def results_of(conversation: Conversation) -> list[dict[str, Any]]:
    told = [message for message in conversation.messages if message["role"] == "tool"]
    return [json.loads(message["content"]) for message in told]


def test_no_name_of_the_database_is_in_a_conversation(played):
    text = json.dumps([conversation.messages for _, conversation in played], ensure_ascii=False)
    # Of the real ones a disease such as 痛风 may be named inside another's text.
    invented = []
    with sqlite3.connect(ROOT / "data" / "medical.db") as connection:
        for table, column in NAME_COLUMN.items():
            find = f"SELECT {column} FROM {table} WHERE source = 'fictional'"
            invented += [name for (name,) in connection.execute(find)]
    assert len(invented) > 500
    assert not [name for name in invented if name in text]


def test_a_mended_mistake_is_shown_and_not_learned(cases):
    drawn = [replace(cases.case(index % len(cases.patterns)), called="") for index in range(300)]
    mended = [conversation for conversation in cases.play(drawn) if len(conversation.learn) == 3]
    assert 0 < len(mended) < 60
    for conversation in mended:
        assert [result["status"] for result in results_of(conversation)] == ["error", "success"]
        assert conversation.learn == [False, True, True]


def test_gold_conversations_are_the_gold_episodes(rows):
    tasks = [AGENT.task(row, load_settings()) for row in rows[:5]]
    for task, conversation in zip(tasks, gold_conversations(tasks, DATABASE), strict=True):
        assert conversation.messages[-1]["content"] == task.reference
        assert all(conversation.learn)
    unanswered = [replace(tasks[0], reference=""), replace(tasks[0], sql=())]
    assert list(gold_conversations(unanswered, DATABASE)) == []


def test_a_misspelt_name_is_asked_for_as_written_and_then_as_the_hint_has_it(rows):
    tasks = [AGENT.task(row, load_settings()) for row in rows]
    misspelt = [task for task in tasks if task.difficulty == "hard"]
    assert len(misspelt) > 20
    for task, conversation in zip(misspelt, gold_conversations(misspelt, DATABASE), strict=True):
        right, called = task.names
        calls = [message for message in conversation.messages if message.get("tool_calls")]
        asked = [call["tool_calls"][0]["function"]["arguments"] for call in calls]
        assert [f"= '{called}'" in asked[0], f"= '{right}'" in asked[1]] == [True, True]
        hint, found = results_of(conversation)
        assert right in hint["hint"]
        assert len(found["rows"]) == 1


def test_gold_of_another_database_is_one_message(rows, tmp_path):
    task = AGENT.task(rows[0], load_settings())
    with pytest.raises(AgentError, match="DATABASE_URL"):
        list(gold_conversations([replace(task, sql=("SELECT nothing FROM disease",))], DATABASE))
    with pytest.raises(DatabaseError, match=r"none\.db"):
        list(gold_conversations([task], f"sqlite:///{tmp_path}/none.db"))
