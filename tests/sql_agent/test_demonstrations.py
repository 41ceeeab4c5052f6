"""Demonstrations: patterns out of training rows, and synthetic conversations that leak no name of the database."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from common.settings import ROOT
from data.load import load_rows
from sql_agent.demonstrations import (
    Conversation,
    Flaws,
    Narrator,
    Synthesiser,
    pattern_of,
    taken_names,
    write_scratch_database,
)
from sql_agent.prompts import first_messages
from tools.sql.query import QueryTool
from training.tiny_tokenizer import common_characters

DATABASE = f"sqlite:///{ROOT / 'data' / 'medical.db'}"


def row(**changes: Any) -> dict[str, Any]:
    usual = {
        "id": "r",
        "question": "朵莎洛片怎么保存？",
        "answer": "朵莎洛片的贮藏方法：密封",
        "sql": ["SELECT storage FROM drugs_info WHERE med_name = '朵莎洛片'"],
        "structured_gt": json.dumps({"columns": ["storage"], "rows": [["密封"]]}),
        "entities": json.dumps(["朵莎洛片"]),
    }
    return usual | changes


def test_names_and_values_are_taken_out() -> None:
    pattern = pattern_of(row())
    assert pattern is not None
    assert pattern.question == "⟦n0⟧怎么保存？"
    assert pattern.sql == "SELECT storage FROM drugs_info WHERE med_name = '⟦n0⟧'"
    assert pattern.answer == "⟦n0⟧的贮藏方法：⟦v0⟧"
    assert (pattern.table, pattern.columns, pattern.names, pattern.kind) == ("drugs_info", ("storage",), 1, "fields")


SEARCH = "SELECT med_name FROM drugs_info WHERE indication LIKE '%鼻炎%'"
COUNT = "SELECT COUNT(*) AS count FROM drugs_info WHERE company_name = '甲厂'"


@pytest.mark.parametrize(
    ("changes", "kind", "answer"),
    [
        (
            {"structured_gt": '{"columns": ["storage"], "rows": []}', "answer": "没有找到朵莎洛片的贮藏方法。"},
            "absent",
            "没有找到⟦n0⟧的贮藏方法。",
        ),
        (
            {"structured_gt": '{"columns": ["storage"], "rows": [[null]]}', "answer": "没有找到朵莎洛片的贮藏方法。"},
            "blank",
            "没有找到⟦n0⟧的贮藏方法。",
        ),
        (
            {
                "question": "鼻炎用什么药？",
                "sql": [SEARCH],
                "structured_gt": '{"columns": ["med_name"], "rows": [["甲片"], ["乙片"]]}',
                "entities": '["鼻炎", "甲片", "乙片"]',
                "answer": "鼻炎相关的药品有：甲片、乙片。",
            },
            "listing",
            "⟦n0⟧相关的药品有：⟦list⟧。",
        ),
        (
            {
                "question": "甲厂有几种药？",
                "sql": [COUNT],
                "structured_gt": '{"columns": ["count"], "rows": [[3]]}',
                "entities": '["甲厂"]',
                "answer": "共有3种。",
            },
            "count",
            "共有⟦count⟧种。",
        ),
    ],
)
def test_every_kind_of_question_has_its_mould(changes: dict[str, Any], kind: str, answer: str) -> None:
    pattern = pattern_of(row(**changes))
    assert pattern is not None
    assert (pattern.kind, pattern.answer) == (kind, answer)
    assert "⟦n0⟧" in pattern.question
    assert "⟦n0⟧" in pattern.sql


@pytest.mark.parametrize(
    "changes",
    [
        {"entities": "[]"},
        {"entities": None},
        {"sql": []},
        {"sql": ["SELECT 1 FROM other"]},
        {"sql": ["SELECT storage FROM drugs_info WHERE med_name = '朵莎洛片'"] * 2},
        {"question": "怎么保存？"},
        {"structured_gt": json.dumps({"columns": ["count"], "rows": [[1]]}), "answer": "1"},
        {"answer": "不知道"},
        {"structured_gt": json.dumps({"columns": ["storage"], "rows": [["密封"], ["避光"]]})},
    ],
)
def test_rows_that_are_no_plain_look_up_have_no_pattern(changes: dict[str, Any]) -> None:
    assert pattern_of(row(**changes)) is None


@pytest.fixture(scope="module")
def maker() -> Synthesiser:
    rows = load_rows(ROOT / "data" / "train.parquet")
    return Synthesiser(rows, taken_names(DATABASE), common_characters(), random.Random(0))


@pytest.fixture
def told(maker: Synthesiser, tmp_path: Path) -> list[tuple[str, Conversation]]:
    flaws = ["right", "no_call", "wrong_column", "empty"] * 40
    plans = [maker.plan(maker.rng.randrange(len(maker.patterns)), flaw) for flaw in flaws]
    write_scratch_database(tmp_path / "scratch.db", plans, maker.patterns)
    narrator = Narrator(maker, QueryTool(f"sqlite:///{tmp_path}/scratch.db"))
    return [(plan.flaw, narrator.tell(plan)) for plan in plans]


def test_every_training_row_with_exact_names_is_a_pattern(maker: Synthesiser) -> None:
    rows = load_rows(ROOT / "data" / "train.parquet")
    exact = [row for row in rows if row["difficulty"] != "hard"]  # hard: a name is misspelt or shortened
    assert all(pattern_of(row) for row in exact)
    assert {pattern.kind for pattern in maker.patterns} == {"fields", "absent", "blank", "listing", "count"}


def test_synthetic_names_are_new_and_end_like_the_tables(maker: Synthesiser) -> None:
    real, endings = taken_names(DATABASE), maker.endings["drugs_info"]
    made = {maker.name(endings) for _ in range(500)}
    assert len(made) == 500
    assert not made & real
    assert sum(name.endswith(("胶囊", "颗粒")) for name in made) > 50
    assert "胶囊" not in maker.endings["disease"]


def test_long_answers_are_copied_more_often(maker: Synthesiser) -> None:
    def long_share(copying: bool) -> float:
        picked = [maker.patterns[i] for i in maker.pick(4000, copying=copying)]
        return sum(pattern.names > 1 or len(pattern.columns) > 1 for pattern in picked) / 4000

    assert long_share(copying=False) == pytest.approx(211 / 929, abs=0.03)
    assert long_share(copying=True) == pytest.approx(422 / 1140, abs=0.03)


def test_a_comparison_is_answered_in_the_order_of_the_result(maker: Synthesiser, tmp_path: Path) -> None:
    compared = [i for i, pattern in enumerate(maker.patterns) if pattern.names == 2 and pattern.kind == "fields"]
    plans = [maker.plan(i, "right") for i in compared]
    write_scratch_database(tmp_path / "scratch.db", plans, maker.patterns)
    narrator = Narrator(maker, QueryTool(f"sqlite:///{tmp_path}/scratch.db"))
    swapped = 0
    for plan in plans:
        messages = narrator.tell(plan).messages
        rows, answer = json.loads(messages[-2]["content"])["rows"], messages[-1]["content"]
        told = [answer.index(row[0]) for row in rows]
        assert told == sorted(told)
        swapped += rows[0][0] != plan.names[0]
    assert 0 < swapped < len(plans)


def test_no_name_of_the_database_is_told(told: list[tuple[str, Conversation]]) -> None:
    text = json.dumps([conversation.messages for _, conversation in told], ensure_ascii=False)
    # Questions are about invented entities; a real disease such as 痛风 may be named inside another's text.
    with sqlite3.connect(ROOT / "data" / "medical.db") as connection:
        pairs = (("drugs_info", "med_name"), ("disease", "disease_name"))
        found = [connection.execute(f"SELECT {c} FROM {t} WHERE source = 'fictional'").fetchall() for t, c in pairs]
    invented = {name for names in found for (name,) in names}
    assert len(invented) > 500
    assert not [name for name in invented if name in text]


def test_conversations_begin_and_end_as_episodes_do(told: list[tuple[str, Conversation]]) -> None:
    for _, conversation in told:
        question = conversation.messages[1]["content"]
        assert conversation.messages[:2] == first_messages(question)
        assert conversation.messages[-1]["role"] == "assistant"
        assert len(conversation.learn) == sum(message["role"] == "assistant" for message in conversation.messages)
        assert "⟦" not in json.dumps(conversation.messages, ensure_ascii=False)


def test_each_flaw_is_what_it_says(told: list[tuple[str, Conversation]]) -> None:
    for flaw, conversation in told:
        results = [json.loads(m["content"]) for m in conversation.messages if m["role"] == "tool"]
        answer = conversation.messages[-1]["content"]
        assert bool(results) == (flaw != "no_call")
        assert (answer == "") == (flaw == "empty")
        if flaw in ("right", "wrong_column") and results[-1]["rows"] and results[-1]["rows"][0][0] is not None:
            assert str(results[-1]["rows"][0][0]) in answer


def test_a_mended_mistake_is_shown_and_not_learned(maker: Synthesiser, tmp_path: Path) -> None:
    plans = [maker.plan(index % len(maker.patterns), "right") for index in range(300)]
    write_scratch_database(tmp_path / "scratch.db", plans, maker.patterns)
    narrator = Narrator(maker, QueryTool(f"sqlite:///{tmp_path}/scratch.db"))
    mended = [c for c in (narrator.tell(plan) for plan in plans) if len(c.learn) == 3]
    assert 0 < len(mended) < 60
    for conversation in mended:
        statuses = [json.loads(m["content"])["status"] for m in conversation.messages if m["role"] == "tool"]
        assert statuses == ["error", "success"]
        assert conversation.learn == [False, True, True]


def test_flaws_are_drawn_by_their_shares() -> None:
    rng = random.Random(0)
    drawn = [Flaws(no_call=0.5, wrong_column=0.2, empty=0.1).draw(rng) for _ in range(4000)]
    shares = {kind: drawn.count(kind) / len(drawn) for kind in ("no_call", "wrong_column", "empty", "right")}
    assert shares == {
        "no_call": pytest.approx(0.5, abs=0.05),
        "wrong_column": pytest.approx(0.2, abs=0.05),
        "empty": pytest.approx(0.1, abs=0.05),
        "right": pytest.approx(0.2, abs=0.05),
    }


def test_a_bare_conversation_lacks_only_its_beginning() -> None:
    whole = Conversation([*first_messages("x"), {"role": "assistant", "content": "y"}], [True])
    assert whole.bare() == Conversation(whole.messages[1:], [True], tools=False)
