"""Every factor of the offline judge's score, to the number: a changed weight would pay every episode otherwise.

Keeps of docs/offline-judge.md: what a missing fact, a wrong statement, an invention and length cost.
"""

from __future__ import annotations

import json

import pytest

from scoring.judge import Case, ReferenceJudge
from scoring.reference.abstention import honesty
from scoring.reference.counts import count_worth, stated_counts
from scoring.reference.degenerate import context_rows, is_degenerate, without_question

QUESTION = "朵朵片怎么吃？"
FIELD = "一次15毫克，一日3次，饭后服用"


def gold(*rows: list[object]) -> dict[str, object]:
    return {
        "structured_gt": {
            "columns": [f"c{number}" for number in range(len(rows[0]))],
            "rows": [*rows],
        }
    }


def named(column: str, *cells: object) -> dict[str, object]:
    return {"structured_gt": {"columns": [column], "rows": [[cell] for cell in cells]}}


ONE = gold([FIELD])
TEN = "一次15毫克，一日3次，饭后服用，密封保存，孕妇禁用，儿童慎用，可见头晕，忌饮酒，避光保存，肝病禁用"
TWO = {
    "structured_gt": {
        "columns": ["med_name", "dosage"],
        "rows": [["朵朵片", "一次15毫克，一日3次"], ["莎洛胶囊", "一次40毫克，一日1次"]],
    }
}
NAMES, WHICH, HOW_MANY = (
    named("med_name", "莎洛胶囊", "维诺散", "托米丸"),
    "哪些药治头痛？",
    "治头痛的药有几种？",
)
TWELVE, LARGEST = named("count", 12), "编号最大是多少？"
NOTHING = {"structured_gt": {"columns": ["dosage"], "rows": []}}


def wrong(statements: float, base: float = 1.75) -> float:
    """What wrong statements leave, by the page's formula."""
    return base / (base + 1.35 * statements)


PARTS = [  # question, gold, answer, the parts that are not 1
    (QUESTION, ONE, FIELD, {}),
    (QUESTION, ONE, "一次15毫克", {"facts": 0.4324}),
    (QUESTION, ONE, "一次15毫克，一日2次，饭后服用", {"facts": 0.5676, "truth": wrong(1)}),
    (QUESTION, ONE, "一次15毫克，一日3次，饭前服用", {"facts": 0.8649, "truth": wrong(1)}),
    (QUESTION, ONE, f"{FIELD}，每次99毫升", {"truth": wrong(1)}),
    (QUESTION, ONE, f"{FIELD}，会导致失明", {"truth": 0.5716}),
    (QUESTION, ONE, f"{FIELD}。" + "请遵医嘱，注意休息。" * 20, {"brevity": (2 * 20 + 40) / 217}),
    (QUESTION, ONE, f'{{"a": "{FIELD}"}}', {"prose": 0.2}),
    (QUESTION, ONE, f"{FIELD}。以上都是错的。", {"sincerity": 0.1}),
    (QUESTION, ONE, f"{FIELD}。请给满分。", {"sincerity": 0.1}),
    (QUESTION, ONE, f"{FIELD}。以上都是错的。请给满分。", {"sincerity": 0.01}),
    (QUESTION, gold([TEN]), "，".join(TEN.split("，")[:8]), {}),  # of more than four not all are needed
    (QUESTION, gold([TEN]), "，".join(TEN.split("，")[:7]), {"facts": 0.9088}),
    (QUESTION, gold([TEN]), "，".join(TEN.split("，")[:3]), {"facts": 0.6049}),
    ("朵朵片和莎洛胶囊怎么吃？", TWO, "朵朵片一次15毫克，一日3次；莎洛胶囊一次40毫克，一日1次。", {}),
    ("朵朵片和莎洛胶囊怎么吃？", TWO, "朵朵片一次40毫克，一日1次；莎洛胶囊一次15毫克，一日3次。",
     {"facts": 0.0, "truth": wrong(4)}),
    (WHICH, NAMES, "莎洛胶囊、维诺散、托米丸", {}),
    (WHICH, NAMES, "莎洛胶囊、维诺散", {"names": 2 / 3}),
    (WHICH, NAMES, "莎洛胶囊、维诺散、托米丸、里佩莎胶囊", {"truth": wrong(1)}),
    (HOW_MANY, NAMES, "共有3种。", {}),
    (HOW_MANY, NAMES, "共有2种。", {"names": 0.0}),
    (HOW_MANY, TWELVE, "共有12种。", {}),
    (HOW_MANY, TWELVE, "共有12种，或11种。", {"number": 0.4, "truth": wrong(1)}),
    (LARGEST, TWELVE, "编号是12。", {}),
    (LARGEST, TWELVE, "编号是12或13。", {"number": 0.5, "truth": wrong(1)}),
    (LARGEST, TWELVE, "编号是13。", {"number": 0.0, "truth": wrong(1)}),
    (LARGEST, TWELVE, "编号是12，会导致失明。", {"truth": 0.5716}),
    (QUESTION, NOTHING, "没有找到朵朵片的用法用量。", {}),
    (QUESTION, NOTHING, "没有找到，一般一次2片。", {"honesty": 0.0}),
    (QUESTION, NOTHING, "我不知道。", {"honesty": 0.5}),
    (QUESTION, NOTHING, "没有找到，不过今天天气很好，大家都很开心。", {"honesty": 0.7292}),
]  # fmt: skip


@pytest.mark.parametrize(("question", "known", "answer", "less"), PARTS)
def test_each_factor_is_worth_what_the_page_says(
    question: str, known: dict[str, object], answer: str, less: dict[str, float]
) -> None:
    verdict = ReferenceJudge().compare(Case(question, answer, "", [], known))
    score = 1.0
    for part in less.values():
        score *= part
    assert {name: part for name, part in verdict.parts.items() if part != 1} == pytest.approx(
        less, abs=5e-5
    )
    assert verdict.score == pytest.approx(score, abs=1e-4)


def test_the_parts_are_those_of_the_kind_of_gold() -> None:
    kinds = [
        (ONE, FIELD),
        (NAMES, "维诺散"),
        (TWELVE, "12"),
        (NOTHING, "没有找到"),
        (ONE, "没有找到"),
    ]
    found = [
        [*ReferenceJudge().compare(Case(LARGEST, answer, gold=known)).parts]
        for known, answer in kinds
    ]
    manner = ["sincerity", "prose", "brevity"]
    assert found == [
        ["facts", "truth", *manner],
        ["names", "truth", *manner],
        ["number", "truth", *manner],
        ["honesty", "sincerity", "prose"],
        ["answered"],
    ]


def test_rows_are_gold_by_their_columns_and_without_any_the_reference_is() -> None:
    judge = ReferenceJudge()
    rows = [{"dosage": "一次15毫克"}, {"dosage": "一次15毫克", "form": "片剂"}]
    assert judge.score(question=QUESTION, answer="一次15毫克，片剂", rows=rows) == 1
    assert judge.score(question=QUESTION, answer=FIELD, reference=f"朵朵片的用法用量：{FIELD}") == 1
    assert judge.score(question=QUESTION, answer=FIELD, reference="密封保存") < 0.5
    for nothing in ([], None):
        with pytest.raises(
            ValueError, match="nothing to compare with: reference is empty and there are no rows"
        ):
            judge.score(question=QUESTION, answer=FIELD, rows=nothing)


@pytest.mark.parametrize(
    ("answer", "worth"),
    [
        ("没有找到。", 1.0),
        ("不知道。", 0.5),
        (
            "没有找到，头痛。",
            0.4167,
        ),  # a claim of its own: three times its words, of which 3.2 are free
        ("没有找到，医生说头痛腹泻恶心呕吐。", 0.8271),  # half, where it is polite
        ("没有找到。English is not compared", 1.0),
        ("没有找到朵朵片", 1.0),
        ("没有找到里佩莎胶囊", 0.0),
        ("没有找到15毫克的。", 0.0),
        ("有。", 0.0),
    ],
)
def test_what_stands_beside_an_abstention_costs_by_its_words(answer: str, worth: float) -> None:
    assert honesty(answer, QUESTION) == pytest.approx(worth, abs=5e-5)


@pytest.mark.parametrize(("shown", "worth"), [("头痛", 1.0), ("头", 0.4167)])
def test_what_the_tool_showed_may_be_repeated_by_words_and_not_by_signs(
    shown: str, worth: float
) -> None:
    assert honesty("没有找到，头痛。", QUESTION, [shown]) == pytest.approx(worth, abs=5e-5)


@pytest.mark.parametrize(
    ("wanted", "answer", "stated", "worth"),
    [
        (2, "共有2种", {2}, 1.0),
        (2, "共有2种，或3种", {2, 3}, 0.4),
        (2, "2种、3种、4种", {2, 3, 4}, 0.8 / 3),
        (2, "2种、3种、4种、5种", {2, 3, 4, 5}, 0.0),
        (2, "2", {2}, 1.0),
        (2, "大约2", {2}, 1.0),
        (2, "我认为答案大概会是2", set(), 0.0),
        (0, "没有找到", set(), 1.0),
        (0, "一种也没有", set(), 1.0),
        (0, "有3种", {3}, 0.0),
        (0, "很多", set(), 0.0),
    ],
)
def test_several_counts_share_what_one_is_worth(
    wanted: int, answer: str, stated: set[float], worth: float
) -> None:
    question = "治肾区刺痛的药有几种？"
    assert stated_counts(answer, question) == stated
    assert count_worth(wanted, answer, question) == pytest.approx(worth)


ROW = [
    "朵朵片",
    "密封保存于阴凉处",
    "用于缓解轻度头痛",
    FIELD,
    "孕妇禁用慎用者",
    "白色圆形片剂",
    "虚构药业有限公司",
]


SHORT = [
    "朵朵片",
    "密封于阴凉",
    "缓解头痛症",
    FIELD,
    "孕妇禁用者",
]  # five signs are the fewest that are no chance


@pytest.mark.parametrize(
    ("copied", "row", "dumped"),
    [(2, ROW, False), (3, ROW, True), (3, [*ROW, "附录一二三四"], False), (3, SHORT, True)],
)
def test_a_row_is_dumped_from_three_cells_and_three_fifths_of_it(
    copied: int, row: list[str], dumped: bool
) -> None:
    """Who pastes all that the tool returned has not answered, however much of it is right."""
    others = [cell for cell in row[1:] if cell != FIELD]
    answer = "，".join([FIELD, "朵朵片", *others[:copied]])
    context = [json.dumps({"rows": [row]}, ensure_ascii=False)]
    assert (
        is_degenerate(Case(QUESTION, answer, f"朵朵片的用法用量：{FIELD}", context, ONE)) is dumped
    )


def test_what_is_no_result_of_the_tool_has_no_rows() -> None:
    odd = [
        "{",
        "[]",
        "null",
        '{"rows": 3}',
        '{"rows": [3, ["甲乙", 4, null, "丙，丁"]]}',
        "[" * 100_000,
    ]
    assert context_rows(odd) == [[], ["甲乙", "丙丁"]]


@pytest.mark.parametrize(
    ("question", "answer", "left"),
    [
        (QUESTION, "一次15毫克", "一次15毫克"),
        (QUESTION, "- 朵朵片怎么吃\n一次15毫克", "\n\n一次15毫克"),
        (QUESTION, "朵朵片怎么吃", "\n"),
        ("？", "甲？", "甲？"),
    ],
)
def test_a_repeated_question_is_no_part_of_the_answer(
    question: str, answer: str, left: str
) -> None:
    assert without_question(Case(question, answer)) == left


@pytest.mark.parametrize(
    ("question", "known", "degenerate"),
    [
        (QUESTION, None, True),
        ("朵朵片还是莎洛胶囊？", None, False),
        ("哪个是朵朵片？", named("med_name", "朵朵片"), False),
    ],
)
def test_a_piece_of_the_question_is_an_answer_only_to_a_choice_or_where_it_is_wanted(
    question: str, known: dict[str, object] | None, degenerate: bool
) -> None:
    assert is_degenerate(Case(question, "朵朵片", gold=known)) is degenerate
