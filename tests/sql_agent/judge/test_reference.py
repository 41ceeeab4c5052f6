"""The offline judge pays what is quoted, in any order, form and frame, and nothing else."""

import asyncio
import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import pairwise

import pytest

from common.settings import ROOT
from scoring.case import Case, Verdict
from sql_agent.intake.question_files import load_rows
from sql_agent.judge.reference import ReferenceJudge
from tests.corpora import cases_of
from tests.judges import worth

QUESTION = "朵朵片怎么吃？"
FIELD = "一次15毫克，一日3次，饭后服用"
REFERENCE = f"朵朵片的用法用量：{FIELD}"
PAID = 0.5


def score(answer, *values, question=QUESTION, reference="", name="朵朵片"):
    rows = [{"name": name, "field": value} for value in values]
    return worth(question=question, answer=answer, reference=reference, rows=rows)


def bundled():
    rows = []
    for split in ("train", "val", "test"):
        rows += load_rows(ROOT / "data" / f"{split}.parquet")
    return rows


def gold_of(row):
    return {name: json.loads(row[name]) for name in ("structured_gt", "evidence")}


def compared(row, answer):
    case = Case(row["question"], answer, row["answer"], gold=gold_of(row))
    return ReferenceJudge().compare(case).score


@pytest.mark.system
def test_every_bundled_reference_and_every_bundled_value_earns_one():
    for row in bundled():
        cells = gold_of(row)["structured_gt"]["rows"]
        told = "；".join("：".join(map(str, filter(None, line))) for line in cells)
        assert compared(row, row["answer"]) == 1, row["answer"]
        assert not told or compared(row, told) == 1, told


@pytest.mark.system
def test_no_field_of_another_entity_is_paid():
    """Each row's value for the next question of the same columns: what a wrong query brings."""
    by_columns = {}
    for row in bundled():
        table = gold_of(row)["structured_gt"]
        if row["task_type"] != "count_filter" and table["rows"]:
            by_columns.setdefault((row["task_type"], *table["columns"]), []).append(row)
    pairs = []
    for rows in by_columns.values():
        for row, other in pairwise(rows):
            lines = gold_of(other)["structured_gt"]["rows"]
            if gold_of(row)["structured_gt"]["rows"] != lines:
                told = "；".join(str(line[-1]) for line in lines)
                pairs += [(row, told), (row, other["answer"])]
    paid = [(row["question"], text) for row, text in pairs if compared(row, text) >= PAID]
    assert len(pairs) > 1500
    assert len(paid) <= 0.005 * len(pairs), paid


@pytest.mark.system
def test_nothing_found_of_another_entity_is_not_paid():
    """The entity of the next unanswerable question, with the field that is asked."""
    missing = [row for row in bundled() if row["task_type"] == "unanswerable"]
    for row, other in pairwise(missing):
        said, field = row["answer"].rsplit("的", 1)
        told = other["answer"].rsplit("的", 1)[0]
        assert compared(row, f"{told}的{field}") == (said == told), (row["question"], told)


@pytest.mark.parametrize(("right", "wrong"), cases_of(__file__, "near_pairs"))
def test_one_changed_term_number_or_sign_is_not_paid_either_way(right, wrong):
    for gold, said in ((right, wrong), (wrong, right)):
        assert score(gold, gold) == 1
        assert score(said, gold) < PAID
        assert score(f"朵朵片的用法是：{said}。", gold) < PAID


@pytest.mark.parametrize("behind", cases_of(__file__, "sentences_of_ones_own"))
def test_what_is_right_is_not_paid_beside_a_sentence_of_ones_own(behind):
    assert score(f"{FIELD}。{behind}。", FIELD) < PAID
    assert score(f"{behind}：{FIELD}。", FIELD) < PAID


def test_a_share_of_gold_earns_its_share_and_many_guesses_nothing():
    assert 0.1 < score("一次15毫克", FIELD) < score("一次15毫克，一日3次", FIELD) < 1
    guesses = "、".join(f"{number}种" for number in range(1, 12))
    counted = {"question": "有几种药？", "rows": [{"count": 7}]}
    assert worth(answer=guesses, **counted) < PAID
    assert worth(answer="共有七种。", **counted) == worth(answer="7", **counted) == 1


@pytest.mark.parametrize(
    "repeated", ["查到有共计", "不 ", "一亿", "{[", "<a ", "共有12种", "咨询内科内科"]
)
def test_reading_a_repeated_text_ends(repeated):
    """Reading ends: a pattern that could split such a text in many ways tried all of them."""
    counted = {"question": "几种药？", "rows": [{"count": 12}]}
    assert worth(answer=repeated * 400, reference="共有12种。", **counted) < PAID


def test_a_reference_is_borne_out_by_the_rows_and_not_by_itself():
    judge, answer = ReferenceJudge(), Case(QUESTION, REFERENCE, REFERENCE)
    rows = {"columns": ["name", "field"], "rows": [["朵朵片", "一次20毫克，一日3次"]]}
    other = replace(answer, gold={"structured_gt": rows})
    assert asyncio.run(judge.judge(other)).score == 1
    assert judge.compare(other, by_reference=False).score < PAID
    rows["rows"][0][1] = FIELD
    assert judge.compare(other, by_reference=False).score == 1
    rows["rows"][0].append("密封保存")
    assert judge.compare(other, by_reference=False).score < 1


@pytest.mark.parametrize("answer", ["", "？！……", QUESTION, QUESTION * 2, "\u200b"])
def test_answers_that_say_nothing_score_zero(answer):
    gold = {"structured_gt": {"columns": ["dosage"], "rows": [[FIELD]]}}
    found = ReferenceJudge().compare(Case(QUESTION, answer, REFERENCE, [], gold))
    assert found == Verdict(0.0, {"degenerate": 1.0})


def test_without_anything_to_compare_with_the_case_is_not_scored():
    for known in (None, {}, {"structured_gt": None}):
        found = ReferenceJudge().compare(Case(QUESTION, "头晕", " ", [], known))
        assert found == Verdict(None, {}, "no_reference")


@pytest.mark.parametrize("case", cases_of(__file__, "worth"), ids=lambda case: case["promise"])
def test_what_an_answer_is_worth(case):
    known = {name: case[name] for name in ("question", "reference", "rows", "answer")}
    assert case["least"] <= worth(**known) <= case["most"]


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (1234567.5, "1234567.5"),
        (2.0, "2"),
        (0.1 + 0.2, "0.3"),
        (25.800711743772244, "25.800711743772244"),
        (Decimal("2.50"), "2.5"),
        (date(2024, 3, 9), "2024-03-09"),
    ],
)
def test_a_value_of_a_database_is_what_is_said_of_it(value, answer):
    assert worth(question="多少？", answer=answer, rows=[{"n": value}]) == 1
    assert worth(question="多少？", answer="1234570", rows=[{"n": value}]) == 0


SIDE = "头晕、恶心，偶见皮疹"


def told(answer):
    """What an answer about side effects is worth."""
    reference = f"朵朵片的不良反应：{SIDE}"
    return score(answer, SIDE, question="朵朵片的不良反应有哪些？", reference=reference)


@pytest.mark.parametrize("frame", cases_of(__file__, "frames"))
def test_a_frame_costs_nothing(frame):
    assert told(frame.format(SIDE)) == 1


@pytest.mark.parametrize("answer", cases_of(__file__, "other_answers"))
def test_another_name_field_or_sign_is_not_paid(answer):
    assert told(answer.format(SIDE)) < PAID


@pytest.mark.parametrize("answer", cases_of(__file__, "nothing_found"))
def test_saying_in_any_usual_words_that_nothing_is_there_is_right_only_where_it_is_true(answer):
    question = "朵朵片有什么不良反应？"
    nothing = "数据库中没有找到朵朵片的不良反应。"
    assert worth(question=question, answer=answer, reference=nothing, rows=[]) == 1
    assert told(answer) == 0


@pytest.mark.parametrize(
    ("question", "reference", "answer", "paid"), cases_of(__file__, "abstentions")
)
def test_an_abstention_goes_with_advice_and_names_what_is_asked_or_nothing(
    question, reference, answer, paid
):
    nothing = {"structured_gt": {"columns": [], "rows": []}}
    case = Case(question, answer, reference, gold=nothing)
    assert ReferenceJudge().compare(case).score == paid
