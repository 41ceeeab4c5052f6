"""Canaries are really bad answers, which the offline judge hardly ever accepts; what stands against
them is right.

Keeps of docs/rewards.md, "Canaries": they are bad, and what beats them is honest.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from common.settings import Settings
from episodes.agent import ACCEPTED_FROM
from episodes.episode import Episode
from scoring.judge import Case, ReferenceJudge
from sql_agent.agent import AGENT
from sql_agent.canaries import ACCEPTED_FROM as OWN
from sql_agent.canaries import (
    DENIED,
    INVENTED,
    NOTHING_FOUND,
    PRAISE,
    TO_THE_JUDGE,
    Canaries,
    honest_answers,
    is_nothing,
)
from sql_agent.environment import SqlEnvironment
from sql_agent.reward import Query, case_of
from sql_agent.task import SqlTask, task_of

DOSAGE = {"structured_gt": {"columns": ["dosage"], "rows": [["一次15毫克"]]}}
CASE = Case(
    "朵朵片怎么吃？", "", "朵朵片的用法用量：一次15毫克", ['{"rows":[["一次15毫克"]]}'], DOSAGE
)
OTHER = Case(
    "图图片怎么吃？",
    "",
    "图图片的用法用量：外敷",
    [],
    {"structured_gt": {"columns": ["dosage"], "rows": [["外敷"]]}},
)
EMPTY = Case(
    "花花片怎么吃？",
    "",
    "数据库中没有找到花花片。",
    [],
    {"structured_gt": {"columns": ["dosage"], "rows": []}},
)
KINDS = {
    "another question's answer",
    "wrong numbers",
    "the question again",
    "words to the judge",
    "praise of itself",
    "nothing found",
    "the tool's JSON",
    "the name alone",
    "said of another",
    "right, beside a contradiction",
    "right, with an invention",
    "the same field of another row",
    "one term replaced",
    "a sign turned",
    "denied behind",
    "the rows retold",
    "a constant answer",
}
COLUMN = [
    "外敷，每晚1次",
    "外敷，饭前",
    "含服，睡前",
    "吸入，睡前",
    "含服，必要时",
    "滴眼，睡前",
    "一次15毫克",
]


def tasks(split: str) -> list[tuple[SqlTask, Case]]:
    """With the gold rows as what the tool returned: the judge sees what is right beside the canary."""
    found = [task_of(row) for row in AGENT.rows(AGENT.splits[split])]
    return [(task, case_of(task, Episode(events=Query.of_gold(task)))) for task in found]


def drawn(case: Case = CASE, names: tuple[str, ...] = ("朵朵片",), seed: int = 1) -> dict[str, str]:
    canaries = Canaries(lambda _: COLUMN)
    canaries.answers(OTHER, ["图图片"], Random(seed))
    return canaries.answers(case, names, Random(seed))


@pytest.mark.parametrize(("split", "every"), [("test", 1), ("train", 3)])
def test_the_offline_judge_accepts_too_few_to_warn(split: str, every: int) -> None:
    environment = SqlEnvironment(Settings(_env_file=None))
    canaries, judge, random = environment.known.canaries, ReferenceJudge(), Random(1)
    judged, accepted = Counter[str](), []
    for task, case in tasks(split)[::every]:
        for kind, answer in canaries.answers(case, task.names, random).items():
            score = judge.compare(replace(case, answer=answer)).score
            judged[kind] += 1
            if score is None or score >= OWN.get(kind, ACCEPTED_FROM):
                accepted.append((kind, case.question, answer, score))
    assert judged.keys() == KINDS
    assert len(accepted) <= 0.01 * judged.total(), accepted
    kinds = Counter(kind for kind, *_ in accepted)
    assert all(kinds[kind] <= 0.05 * judged[kind] for kind in KINDS), accepted


def test_every_kind_is_made_of_what_it_is_called() -> None:
    found = drawn()
    assert found.keys() == KINDS - {"one term replaced", "a sign turned"}, "one part, no opposite"
    assert found["another question's answer"] == "外敷"
    assert found["wrong numbers"] in {"一次31毫克", "一次46毫克", "一次76毫克"}
    assert found["the question again"].startswith("关于“朵朵片怎么吃”")
    assert found["the tool's JSON"] == CASE.context[0]
    assert found["the name alone"] == "朵朵片"
    assert found["said of another"] == "图图片的用法用量：一次15毫克"
    assert (
        found["right, beside a contradiction"]
        == f"一次15毫克。另有记录为：{found['wrong numbers']}。"
    )
    assert found["right, with an invention"].removeprefix("一次15毫克。") in INVENTED


def test_the_near_ones_differ_from_the_right_one_in_one_thing() -> None:
    value = "一次15毫克，饭后服用"
    gold = {"structured_gt": {"columns": ["dosage"], "rows": [[value]]}}
    case = Case("朵朵片怎么吃？", "", f"朵朵片的用法用量：{value}", [], gold)
    found = drawn(case)
    assert found["a sign turned"] == "一次15毫克，饭前服用"
    assert found["the same field of another row"] in COLUMN
    replaced = found["one term replaced"].split("，")
    assert len(set(replaced) & set(value.split("，"))) == 1
    assert found["denied behind"].startswith(f"{value}。")
    assert found["denied behind"].removeprefix(f"{value}。") in DENIED
    assert found["a constant answer"].startswith("睡前、")
    assert sum(text in found["the rows retold"] for text in COLUMN) >= 5
    assert not {"a constant answer", "the same field of another row"} & {
        kind for kind, answer in drawn(EMPTY, ("花花片",)).items() if answer
    }


def test_another_questions_answer_is_of_the_same_field_where_one_is_known() -> None:
    """One of another field is too easily told from the right one."""
    kept = replace(OTHER, gold={"structured_gt": {"columns": ["storage"], "rows": [["密封保存"]]}})
    for seed in range(10):
        canaries = Canaries()
        for other in (OTHER, kept):
            canaries.answers(other, ["图图片"], Random(seed))
        found = canaries.answers(CASE, ["朵朵片"], Random(seed))
        assert found["another question's answer"] == "外敷"


def test_every_wording_is_drawn() -> None:
    seen = {answer for seed in range(80) for answer in drawn(seed=seed).values()}
    assert set(TO_THE_JUDGE) | set(PRAISE) <= seen


def test_what_the_database_lacks_may_be_said_to_be_missing() -> None:
    assert is_nothing(EMPTY)
    assert honest_answers(EMPTY) == {"reference answer": EMPTY.reference}
    found = drawn(EMPTY, ("花花片",))
    assert not {"nothing found", "said of another", "wrong numbers"} & found.keys()
    assert drawn()["nothing found"] == NOTHING_FOUND
    counted = Case(
        "几种？", "", "共0种。", gold={"structured_gt": {"columns": ["count"], "rows": [[0]]}}
    )
    assert not is_nothing(counted)


def test_a_name_that_is_the_answer_is_no_canary() -> None:
    gold = {"structured_gt": {"columns": ["med_name"], "rows": [["朵朵片"]]}}
    assert "the name alone" not in drawn(Case("哪种药？", "", "朵朵片。", gold=gold), ("朵朵片",))


def test_the_evidence_is_said_word_for_word() -> None:
    table = {"columns": ["med_name", "dosage"], "rows": [["朵朵片", "口服"], ["图图片", None]]}
    quotes = [
        {"field": "dosage", "quote": quote} for quote in ("一次<b>15</b>毫克", "饭后", "饭后")
    ]
    for gold, told in (
        ({"structured_gt": table, "evidence": quotes}, "朵朵片：口服；图图片"),
        ({"evidence": quotes}, "一次<b>15</b>毫克\n饭后"),
    ):
        assert honest_answers(Case("？", "", "r", gold=gold)) == {
            "exact evidence": told,
            "reference answer": "r",
        }


def test_rows_with_quotes_only_have_canaries_of_them() -> None:
    quotes = [{"table": "t", "row_id": 1, "field": "dosage", "quote": "1.一次15毫克；2.皮疹"}]
    task = SqlTask(
        id="q",
        question="朵朵片怎么吃？",
        reference="每次15毫克",
        gold={"evidence": quotes},
        names=("朵朵片",),
    )
    (query,) = Query.of_gold(task)
    assert json.loads(query.result.to_json())["rows"] == [["dosage", "1.一次15毫克；2.皮疹"]]
    found = drawn(case_of(task, Episode(events=[query])))
    assert "皮疹" not in found["wrong numbers"]
    assert "皮疹" in found["the tool's JSON"]


def test_a_question_of_which_nothing_is_known_has_canaries_too() -> None:
    case = Case("q？", "")
    assert honest_answers(case) == {}
    assert Canaries().answers(case, (), Random(1)).keys() == {
        "the question again",
        "words to the judge",
        "praise of itself",
    }
