"""Demonstrations: patterns out of training rows, and synthetic conversations that leak no name of
the database.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from common.settings import ROOT, load_settings
from episodes.episode import AgentError, Conversation
from sql_agent.agent import AGENT
from sql_agent.demonstrations import (
    Cases,
    alphabet,
    gold_conversations,
    lessons,
    names_in,
)
from sql_agent.intake.question_files import load_rows
from sql_agent.patterns import SyntheticCase, pattern_of
from sql_agent.prompts import TOOL, first_messages
from tools.sql.database import DatabaseError

DATABASE = f"sqlite:///{ROOT / 'data' / 'medical.db'}"


def row(**changes: Any) -> dict[str, Any]:
    usual = {
        "id": "r",
        "question": "朵莎洛片怎么保存？",
        "answer": "朵莎洛片的贮藏方法：密封",
        "sql": "SELECT storage FROM drugs_info WHERE med_name = '朵莎洛片'",
        "structured_gt": json.dumps({"columns": ["storage"], "rows": [["密封"]]}),
        "entities": json.dumps(["朵莎洛片"]),
    }
    return usual | changes


def test_a_name_within_another_is_taken_out_where_it_stands_alone() -> None:
    gold = {
        "columns": ["med_name", "storage"],
        "rows": [["甲片", "密封"], ["复方甲片", "避光密封"]],
    }
    pattern = pattern_of(
        row(
            question="甲片和复方甲片怎么保存？",
            sql="SELECT med_name, storage FROM drugs_info WHERE med_name IN ('甲片', '复方甲片')",
            entities=json.dumps(["甲片", "复方甲片"]),
            structured_gt=json.dumps(gold),
            answer="甲片：密封；复方甲片：避光密封",
        )
    )
    assert pattern is not None
    assert pattern.question == "⟦n0⟧和⟦n1⟧怎么保存？"
    assert pattern.answer == "⟦n0⟧：⟦v0⟧；⟦n1⟧：⟦v1⟧"
    assert pattern.columns == ("storage",)


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return load_rows(ROOT / "data" / "train.parquet")


@pytest.fixture(scope="module")
def cases(rows: list[dict[str, Any]]) -> Cases:
    return Cases(rows, names_in(DATABASE), alphabet(rows, Random(0)), Random(0))


@pytest.fixture(scope="module")
def played(cases: Cases) -> list[tuple[SyntheticCase, Conversation]]:
    flaws = ["right", "no_call", "wrong_column", "empty", "gives_up"] * 80
    drawn = [
        replace(cases.case(cases.random.randrange(len(cases.patterns))), flaw=flaw)
        for flaw in flaws
    ]
    return list(zip(drawn, cases.play(drawn), strict=True))


def results_of(conversation: Conversation) -> list[dict[str, Any]]:
    return [
        json.loads(message["content"])
        for message in conversation.messages
        if message["role"] == "tool"
    ]


def test_every_training_row_with_exact_names_is_a_pattern(
    rows: list[dict[str, Any]], cases: Cases
) -> None:
    exact = [
        row for row in rows if row["difficulty"] != "hard"
    ]  # hard: a name is misspelt or shortened
    assert all(pattern_of(row) for row in exact)


def test_synthetic_names_are_new_and_end_like_the_tables(cases: Cases) -> None:
    real, endings = names_in(DATABASE), cases.endings["drugs_info"]
    made = {cases.name(endings) for _ in range(500)}
    assert len(made) == 500
    assert not made & real
    assert sum(name.endswith(("胶囊", "颗粒")) for name in made) > 50
    assert "胶囊" not in cases.endings["disease"]


def test_no_name_of_the_database_is_in_a_conversation(
    played: list[tuple[SyntheticCase, Conversation]],
) -> None:
    text = json.dumps([conversation.messages for _, conversation in played], ensure_ascii=False)
    # Questions are about invented entities; a real disease such as 痛风 may be named inside another's
    # text.
    with sqlite3.connect(ROOT / "data" / "medical.db") as connection:
        pairs = (("drugs_info", "med_name"), ("disease", "disease_name"))
        found = [
            connection.execute(f"SELECT {c} FROM {t} WHERE source = 'fictional'").fetchall()
            for t, c in pairs
        ]
    invented = {name for names in found for (name,) in names}
    assert len(invented) > 500
    assert not [name for name in invented if name in text]


def test_conversations_begin_and_end_as_episodes_do(
    played: list[tuple[SyntheticCase, Conversation]],
) -> None:
    for _, conversation in played:
        question = conversation.messages[1]["content"]
        assert conversation.messages[:2] == first_messages(question)
        assert conversation.messages[-1]["role"] == "assistant"
        assert conversation.tools == (TOOL,)
        assert len(conversation.learn) == sum(
            message["role"] == "assistant" for message in conversation.messages
        )
        assert "⟦" not in json.dumps(conversation.messages, ensure_ascii=False)


def test_each_flaw_is_what_it_says(played: list[tuple[SyntheticCase, Conversation]]) -> None:
    for case, conversation in played:
        results, answer = results_of(conversation), conversation.messages[-1]["content"]
        assert bool(results) == (case.flaw != "no_call")
        assert (answer == "") == (case.flaw == "empty")
        if (
            case.flaw in ("right", "wrong_column")
            and results[-1]["rows"]
            and results[-1]["rows"][0][0] is not None
        ):
            assert str(results[-1]["rows"][0][0]) in answer
        if case.flaw == "wrong_column" and case.pattern.kind == "fields":
            assert not set(case.pattern.columns) & set(results[-1]["columns"])
        if case.flaw == "gives_up" and case.names[0] not in conversation.messages[1]["content"]:
            assert [result["rows"] for result in results] == [[]]
            assert answer.startswith(f"数据库中没有找到{case.called}的")


def test_what_is_called_by_another_name_is_found_through_the_hint(cases: Cases) -> None:
    plain = [
        i for i, one in enumerate(cases.patterns) if one.kind == "fields" and len(one.columns) == 1
    ]
    drawn = [case for case in map(cases.case, plain * 2) if case.called]
    assert len(drawn) > 100
    told = list(zip(drawn, cases.play(drawn), strict=True))
    misnamed = [
        (case, conversation)
        for case, conversation in told
        if conversation.learn == [True, True, True]
    ]
    assert len(misnamed) > 0.8 * len(
        drawn
    )  # the rest is too far from its name, and asked for by it
    for case, conversation in misnamed:
        question, (empty, found) = conversation.messages[1]["content"], results_of(conversation)
        assert case.called in question
        assert case.names[0] not in question
        assert empty["rows"] == []
        assert f"：“{case.names[0]}”" in empty["hint"]
        assert found["rows"] == [[case.names[0], case.rows[0][case.pattern.columns[0]]]]
        assert all(str(cell) in conversation.messages[-1]["content"] for cell in found["rows"][0])


def test_a_mended_mistake_is_shown_and_not_learned(cases: Cases) -> None:
    drawn = [replace(cases.case(index % len(cases.patterns)), called="") for index in range(300)]
    mended = [conversation for conversation in cases.play(drawn) if len(conversation.learn) == 3]
    assert 0 < len(mended) < 60
    for conversation in mended:
        assert [result["status"] for result in results_of(conversation)] == ["error", "success"]
        assert conversation.learn == [False, True, True]


def test_lessons_are_the_same_for_the_same_seed(rows: list[dict[str, Any]]) -> None:
    made = [lessons(rows, DATABASE, 20, 30, Random(seed)) for seed in (2, 2, 3)]
    assert made[0] == made[1] != made[2]
    assert (len(made[0].right), len(made[0].flawed), made[0].facts["patterns"]) == (20, 30, 792)
    # One query and the answer, or a mended query before them: what is right is never spoiled.
    assert all(conversation.learn[-2:] == [True, True] for conversation in made[0].right)


def test_gold_conversations_are_the_gold_episodes(rows: list[dict[str, Any]]) -> None:
    tasks = [AGENT.task(row, load_settings()) for row in rows[:5]]
    conversations = list(gold_conversations(tasks, DATABASE))
    assert [conversation.messages[-1]["content"] for conversation in conversations] == [
        task.reference for task in tasks
    ]
    assert all(conversation.learn == [True, True] for conversation in conversations)
    unanswered = [replace(tasks[0], reference=""), replace(tasks[0], sql=())]
    assert list(gold_conversations(unanswered, DATABASE)) == []


def test_gold_of_another_database_is_one_message(
    rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    task = AGENT.task(rows[0], load_settings())
    with pytest.raises(AgentError, match="DATABASE_URL"):
        list(gold_conversations([replace(task, sql=("SELECT nothing FROM disease",))], DATABASE))
    with pytest.raises(DatabaseError, match=r"none\.db"):
        list(gold_conversations([task], f"sqlite:///{tmp_path}/none.db"))
