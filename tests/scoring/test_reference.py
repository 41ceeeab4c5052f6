"""The offline judge: 1 for every gold answer, 0 for answers that say nothing, in between for answers partly right.

Keeps of docs/offline-judge.md: the same answer scores the same, right answers high and wrong ones low.
"""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring.reference.degenerate import is_degenerate
from scoring.reference.gold import read_gold

from common.settings import ROOT
from data.load import load_rows
from scoring.judge import Case, ReferenceJudge, Verdict
from scoring.text import words_only

QUESTION = "朵朵片怎么吃？"
FIELD = "一次15毫克，一日3次，饭后服用"
REFERENCE = f"朵朵片的用法用量：{FIELD}"
GOLD = {"structured_gt": {"columns": ["dosage"], "rows": [[FIELD]]}}


def verdict(answer, reference=REFERENCE, context=(), gold=GOLD, question=QUESTION):
    return asyncio.run(
        ReferenceJudge().judge(Case(question, answer, reference, list(context), gold))
    )


def score(answer, **case):
    return verdict(answer, **case).score


def dataset():
    return [
        row
        for split in ("train", "val", "test")
        for row in load_rows(ROOT / "data" / f"{split}.parquet")
    ]


def gold(columns, rows, **more):
    return {"structured_gt": {"columns": columns, "rows": rows, **more}}


COMPARED = gold(
    ["med_name", "dosage"], [["朵朵片", "一次15毫克，一日3次"], ["莎洛胶囊", "一次40毫克，一日1次"]]
)
NAMED = gold(["med_name"], [["莎洛胶囊"], ["维诺散"], ["托米丸"]])
COUNTED = gold(["count"], [[12]])
NOTHING = gold(["dosage"], [])
EMPTY_CELL = gold(["dosage"], [[None]])


def gold_of(row):
    return {
        "structured_gt": json.loads(row["structured_gt"]),
        "evidence": json.loads(row["evidence"]),
    }


def results(*rows):
    return json.dumps({"status": "success", "columns": ["x"], "rows": rows}, ensure_ascii=False)


def test_every_gold_answer_scores_one_with_every_kind_of_gold():
    for row in dataset():
        whole = gold_of(row)
        context = [results(*whole["structured_gt"]["rows"])]
        for known in (
            whole,
            {"evidence": whole["evidence"]},
            {"structured_gt": whole["structured_gt"]},
            None,
        ):
            case = {
                "reference": row["answer"],
                "context": context,
                "gold": known,
                "question": row["question"],
            }
            assert score(row["answer"], **case) == 1, (row["question"], row["answer"], known)


def test_answers_of_other_rows_score_low():
    rows = dataset()
    wrong = [
        score(other["answer"], gold=gold_of(row), reference=row["answer"], question=row["question"])
        for row, other in itertools.pairwise(rows)
        if other["answer"] != row["answer"]
    ]
    assert max(wrong) < 0.9
    assert sum(wrong) / len(wrong) < 0.05


@pytest.mark.parametrize(
    "answer",
    ["", "  ", "？！……", ":", QUESTION, f"{QUESTION}{QUESTION}", "朵朵片怎么吃", "\u200b", "---"],
)
def test_answers_that_say_nothing_score_zero(answer):
    assert verdict(answer) == Verdict(0.0, {"degenerate": 1.0})


@pytest.mark.parametrize(
    "answer",
    [
        "不知道",
        "我不能提供医疗建议，请咨询医生。",
        "Thought process:",
        "score: 1.0",
        "朵朵片",
        "是",
    ],
)
def test_answers_beside_the_point_score_zero(answer):
    assert score(answer) == 0


@pytest.mark.parametrize(
    "answer",
    [
        "一次15毫克，一日3次",
        "饭后服用",
        "一次15毫克，一日2次，饭后服用",
        "一次15毫克，一日3次，饭前服用",
        "一次15毫克或20毫克，一日3次，饭后服用",
    ],
)
def test_answers_partly_right_score_in_between(answer):
    assert 0 < score(answer) < 1


def test_more_of_the_gold_text_scores_more():
    ladder = ["饭后服用", "一日3次，饭后服用", FIELD]
    assert [score(answer) for answer in ladder] == sorted({score(answer) for answer in ladder})


def test_a_wrong_number_costs_more_than_a_wrong_word():
    assert score("一次75毫克，一日3次，饭后服用") < score("一回15毫克，一日3次，饭后服用")


def test_naming_many_numbers_does_not_pay():
    listed = "、".join(f"一次{number}毫克" for number in (5, 10, 15, 20, 25))
    assert score(f"{listed}，一日3次，饭后服用") < 0.5


def test_white_space_width_and_case_do_not_matter():
    assert score("朵朵片：一次 15 毫克, 一日３次，\n饭后服用。") == 1
    assert score("Below 25°c", gold=gold(["a"], [["below 25 °C"]]), reference="") == 1


def test_dumping_the_row_costs():
    cells = [
        "朵朵片",
        FIELD,
        "用于轻度胃部胀痛伴皮疹",
        "恶心、乏力，偶见手足麻木",
        "体弱者及对蜂蜜过敏者禁用",
    ]
    dump = "；".join(cells)
    assert score(dump) < 0.8
    assert verdict(dump, context=[results(cells)]) == Verdict(0.0, {"degenerate": 1.0})
    assert score(f"{FIELD}；{cells[3]}", context=[results(cells)]) < 0.6
    assert score(REFERENCE, context=[results(cells), "not json", "[1]", "3"]) == 1


def test_padding_costs():
    padding = "请遵医嘱并注意休息保持心情愉快" * 20
    assert 0 < score(REFERENCE + padding) < 0.4


def test_several_gold_values_are_paid_by_share():
    several = gold(["n"], [["头晕口干"], ["皮疹瘙痒"], [7], [None]])
    assert score("头晕口干", gold=several, reference="", question="q") == pytest.approx(
        1 / 3, abs=0.1
    )
    assert score("头晕口干、皮疹瘙痒，共7种", gold=several, reference="", question="q") == 1


def test_without_anything_to_compare_with_the_case_is_not_scored():
    for known in (
        None,
        {},
        {"structured_gt": {"columns": [], "rows": []}, "evidence": []},
        {"structured_gt": None},
    ):
        assert verdict("头晕", reference=" ", gold=known) == Verdict(None, {}, "no_reference")
    with pytest.raises(ValueError, match="nothing to compare with"):
        ReferenceJudge().score(question="?", answer="头晕", rows=[])


@pytest.mark.parametrize(
    "answer",
    [
        "每次１５ mg，每天三次，饭后吃",
        "- 单次剂量：15毫克\n- 频次：一日3次\n- 时间：饭后服用",
        "每次0.015克，每日三次，饭后服用",
        "饭后服用，一日3次，一次15毫克",
    ],
)
def test_the_same_said_otherwise_scores_high(answer):
    assert score(answer) > 0.8


@pytest.mark.parametrize(
    ("right", "same"),
    [
        ("孕妇禁用", "怀孕的人不能用"),
        ("避光，不超过25℃", "遮光，77℉以下"),
        ("一次0.5克，一日2次", "每回500mg，bid"),
        ("每日3次", "每8小时一次"),
        ("惡心、頭暈", "恶心、头晕"),
        ("营养支持12天", "营养支持十二天"),
        ("与止咳糖浆同服会增加出血", "不要和止咳糖浆一起吃，会增加出血"),
    ],
)
def test_other_words_characters_numerals_and_units_are_the_same(right, same):
    assert score(same, gold=gold(["field"], [[right]]), reference="", question="？") > 0.9


@pytest.mark.parametrize(
    ("right", "swapped"),
    [
        ("成人一次0.5克，儿童一次0.25克", "成人一次0.25克，儿童一次0.5克"),
        ("左眼一次1滴", "右眼一次1滴"),
        ("饭后服用", "饭前服用"),
        ("25℃以下保存", "25℉以下保存"),
        ("血糖升高", "血糖降低"),
        ("孕妇禁用，老年人慎用", "老年人禁用，孕妇慎用"),
    ],
)
def test_who_which_side_when_and_how_warm_may_not_be_swapped(right, swapped):
    assert score(right, gold=gold(["field"], [[right]]), reference="", question="？") == 1
    assert score(swapped, gold=gold(["field"], [[right]]), reference="", question="？") < 0.3


@pytest.mark.parametrize(
    "advice", ["请遵医嘱。", "如有不适请及时就医。", "祝您早日康复！", "以上信息仅供参考。"]
)
def test_advice_costs_nothing_and_an_invention_costs(advice):
    assert score(f"{REFERENCE}。{advice}") == 1
    assert score(f"{REFERENCE}。{advice}长期服用会导致白内障。") < 0.6
    assert score(f"{REFERENCE}。会导致白内障、脱发和耳聋。{advice}") < 0.45


def test_a_tools_result_is_no_answer():
    assert score(results(["朵朵片", FIELD])) <= 0.2
    assert score(json.dumps({"dosage": FIELD}, ensure_ascii=False)) <= 0.2


def test_the_name_alone_is_no_answer():
    known = gold(["med_name", "dosage"], [["朵朵片", FIELD]])
    for question in ("朵朵怎么吃？", "多多片怎么吃？"):
        assert score("朵朵片", gold=known, question=question) == 0


def test_a_scale_in_gold_is_no_word_to_the_judge():
    known = gold(["field"], [["NIHSS评分6分以上者取栓"]])
    assert score("NIHSS评分达到6分的患者取栓", gold=known, reference="", question="谁要取栓？") == 1
    assert score("评分：6分以上者取栓", gold=known, reference="", question="谁要取栓？") == 1
    assert (
        score("评分：1.0，取栓", gold=gold(["field"], [["取栓"]]), reference="", question="谁？")
        < 0.2
    )


@pytest.mark.parametrize(
    "answer",
    [
        "一次15克，一日3次，饭后服用",
        "一次150毫克，一日3次，饭后服用",
        "一次1.5毫克，一日3次，饭后服用",
    ],
)
def test_a_wrong_unit_costs_as_a_wrong_number_does(answer):
    assert score(answer) == pytest.approx(score("一次80毫克，一日3次，饭后服用"), abs=0.1)
    assert score(answer) < 0.5


@pytest.mark.parametrize(
    ("right", "flipped"),
    [
        ("哺乳期妇女及对酒精、花粉过敏者禁用", "哺乳期妇女及对酒精、花粉过敏者可用"),
        ("哺乳期妇女及对酒精、花粉过敏者禁用", "哺乳期妇女及对酒精、花粉过敏者都可以放心服用"),
        ("持续胸痛、大汗、濒死感", "没有持续胸痛、大汗、濒死感"),
        ("低盐饮食，限酒", "不用低盐饮食，无需限酒"),
        ("避免饮酒", "可以饮酒"),
    ],
)
def test_what_turns_the_sense_around_scores_zero(right, flipped):
    known = gold(["field"], [[right]])
    assert score(right, gold=known, reference="", question="？") == 1
    assert score(flipped, gold=known, reference="", question="？") < 0.1


def test_names_count_in_any_order_against_missing_and_extra_ones():
    def names(answer, **more):
        return score(
            answer,
            gold=gold(["med_name"], NAMED["structured_gt"]["rows"], **more),
            reference="",
            question="哪些药？",
        )

    assert names("托米丸、莎洛胶囊和维诺散") == names("1. 维诺散\n2. 托米丸\n3. 莎洛胶囊") == 1
    assert names("托米丸") == pytest.approx(1 / 3)
    assert names("托米丸") < names("托米丸、维诺散") < 1
    assert names("托米丸、莎洛胶囊、维诺散、朵朵片") < 1
    assert (
        names("昂奇颗粒、朵朵片")
        == names("没有找到这样的药")
        == names("托米丸、莎洛胶囊、维诺散都不能治")
        == 0
    )
    assert names("莎洛胶囊、维诺散、托米丸", ordered=True) == 1
    assert names("托米丸、维诺散、莎洛胶囊", ordered=True) == 0.5


def test_a_count_must_be_equal():
    def count(answer, known=COUNTED):
        return score(answer, gold=known, reference="", question="避光的药有几种？")

    assert count("12") == count("共有12种。") == count("一共十二种") == 1
    assert count("21种") == count("120") == count("1种") == count("很多") == count("没有查到") == 0
    assert 0 < count("12种或13种") < 0.4
    assert count("共有12种。此外还可能导致心脏骤停。") < 0.6
    assert count("、".join(map(str, range(20)))) == 0
    assert (
        count("没有找到这样的药", gold(["count"], [[0]]))
        == count("0种", gold(["count"], [[0]]))
        == 1
    )
    assert count("一种", gold(["count"], [["1"]])) == 1


@pytest.mark.parametrize(
    "answer",
    [
        "芙洛吉素",
        "关于含有芙洛吉素的药是什么，含有芙洛吉素的药的情况如上所述。",
        "含芙洛吉的药",
        "芙洛吉片",
        "芙洛吉、维诺、莎洛、朵朵、昂奇",
        "维诺芙洛吉莎洛朵朵昂奇",
        *(
            mark.join(["维诺散", "芙洛吉口服液", "莎洛胶囊", "朵朵片"])
            for mark in ("、", "/", " ", "·", "—", "", "或")
        ),
    ],
)
def test_neither_the_words_of_the_question_nor_a_list_of_all_names_finds_a_name(answer):
    known = gold(["med_name"], [["芙洛吉口服液"]])
    for question in ("含有芙洛吉素的药是什么？", "哪种药治胃痛？"):
        assert score("有芙洛吉口服液。", gold=known, reference="", question=question) == 1
    assert score(answer, gold=known, reference="", question="含有芙洛吉素的药是什么？") < 0.5
    if answer.count("洛") > 1 and "关于" not in answer:
        assert score(answer, gold=known, reference="", question="哪种药治胃痛？") < 0.5


def test_a_name_without_its_form_counts_where_the_question_does_not_have_it():
    known = gold(["med_name"], [["缬沙坦胶囊"], ["苯磺酸氨氯地平片"]])
    assert score("氨氯地平、缬沙坦", gold=known, reference="", question="高血压用什么药？") == 0.75
    assert (
        score(
            "可以用缬沙坦或者氨氯地平，请遵医嘱。",
            gold=known,
            reference="",
            question="高血压用什么药？",
        )
        == 0.75
    )
    assert (
        score(
            "氨氯地平、缬沙坦、硝苯地平、卡托普利",
            gold=known,
            reference="",
            question="高血压用什么药？",
        )
        < 0.5
    )


def test_a_value_must_stand_with_its_name():
    def compare(answer):
        return score(
            answer, gold=COMPARED, reference="", question="比较朵朵片和莎洛胶囊的用法用量。"
        )

    assert compare("莎洛胶囊：一次40毫克，一日1次；朵朵片：一次15毫克，一日3次") == 1
    assert (
        compare(
            "| 药 | 用法 |\n|---|---|\n| 朵朵片 | 一次15毫克，一日3次 |\n| 莎洛胶囊 | 一次40毫克，一日1次 |"
        )
        == 1
    )
    assert compare("朵朵片：一次15毫克，一日3次") == pytest.approx(0.5)
    assert compare("朵朵片：一次40毫克，一日1次；莎洛胶囊：一次15毫克，一日3次") < 0.1
    assert compare("阿莫西林胶囊：一次15毫克，一日3次；一次40毫克，一日1次") == 0


def test_all_fields_asked_for_are_needed():
    known = gold(["dosage", "storage"], [[FIELD, "避光，置阴凉处"]])
    question = "朵朵片的用法用量和贮藏方法是什么？"
    assert score(f"{FIELD}；避光，置阴凉处", gold=known, reference="", question=question) == 1
    assert 0.4 < score(FIELD, gold=known, reference="", question=question) < 0.8


@pytest.mark.parametrize("known", [NOTHING, EMPTY_CELL, gold(["dosage"], [[""]]), None])
@pytest.mark.parametrize("reference", ["数据库中没有找到朵朵片的用法用量。"])
def test_where_nothing_is_found_an_abstention_is_right(known, reference):
    def answered(answer):
        return score(answer, gold=known, reference=reference)

    assert (
        answered(reference) == answered("抱歉，没有查到朵朵片的相关信息，建议咨询医生或药师。") == 1
    )
    assert answered("暂无资料") == answered("查询结果为空") == 1
    assert answered("不知道") == 0.5
    for invented in (
        FIELD,
        "没有找到，不过一般一次2片，一日3次",
        "没有副作用，可以放心服用",
        "请咨询医生",
    ):
        assert answered(invented) == 0


def test_an_abstention_where_the_answer_is_known_scores_zero():
    for known, question in (
        (GOLD, QUESTION),
        (NAMED, "哪些药？"),
        (COUNTED, "有几种？"),
        (COMPARED, "比较两药"),
    ):
        assert (
            score("很抱歉，数据库中没有找到相关信息。", gold=known, reference="", question=question)
            == 0
        )


def test_the_helper_reads_rows_as_dicts():
    judge = ReferenceJudge()
    assert (
        judge.score(question=QUESTION, answer=FIELD, reference=REFERENCE, rows=[{"dosage": FIELD}])
        == 1
    )
    assert judge.score(question=QUESTION, answer=FIELD, reference=REFERENCE) == 1
    assert (
        judge.score(question=QUESTION, answer="没有查到", reference="数据库中没有找到", rows=[])
        == 1
    )
    assert judge.score(question=QUESTION, answer="没有查到", rows=[{"dosage": None}]) == 1
    rows = [{"id": 7, "med_name": "朵朵片", "dosage": FIELD, "storage": "避光，置阴凉处"}]
    assert judge.score(question=QUESTION, answer=REFERENCE, reference=REFERENCE, rows=rows) == 1
    assert 0 < judge.score(question=QUESTION, answer="一日3次", reference=REFERENCE, rows=rows) < 1


@pytest.mark.parametrize(
    "answer",
    [
        "一次5毫克、一次10毫克、一次20毫克、一次25毫克、一次30毫克，一日3次",
        "可能是恶心、头晕、皮疹、便秘、腹泻或者失眠",
    ],
)
def test_many_guesses_are_worth_nothing(answer):
    assert score(answer) < 0.1


@pytest.mark.parametrize(
    "answer", [FIELD, "可能是一次15毫克或20毫克", REFERENCE, "恶心、头晕、皮疹、便秘、腹泻"]
)
def test_ordinary_answers_are_not_degenerate(answer):
    assert not is_degenerate(
        Case(QUESTION, answer, REFERENCE, [results(["朵朵片", FIELD, "避光保存"])], GOLD)
    )


def test_kinds_of_gold():
    def kind(known, reference="", question="？"):
        return read_gold(Case(question, "", reference, [], known)).kind

    assert [kind(known) for known in (GOLD, COMPARED, NAMED, COUNTED, NOTHING, EMPTY_CELL)] == [
        "facts", "facts", "names", "number", "nothing", "nothing",
    ]  # fmt: skip
    assert kind(None, "没有找到该药") == "nothing"
    assert kind(None, "共有5种。", "有几种？") == "number"
    assert (
        kind({"evidence": [{"quote": "密封"}]})
        == kind(None, "填补记忆空白，危险是空气栓塞")
        == "facts"
    )


@pytest.mark.parametrize(
    "answer",
    [
        "尚不明确",
        "朵朵片的不良反应目前尚不明确，用药后如有不适请及时就医。",
        "说明书里的不良反应写的是尚不明确。",
    ],
)
def test_not_established_is_an_answer_and_no_abstention(answer):
    known, question = {"evidence": [{"quote": "尚不明确。"}]}, "朵朵片有什么不良反应？"
    reference = "根据现有资料，朵朵片的不良反应**尚不明确**。建议用药前咨询医生，并仔细阅读说明书。"
    assert score(answer, gold=known, reference=reference, question=question) == 1
    assert score("没有找到相关信息。", gold=known, reference=reference, question=question) == 0
    assert score("头晕、恶心。", gold=known, reference=reference, question=question) == 0


def test_the_quote_the_reference_and_a_summary_of_both_are_right():
    quote = (
        "<p>1. 常见：<b>头晕</b>、口干。</p>\n<p>2. 少见：皮疹，停药后消失。儿童 3 例曾有抽搐。</p>"
    )
    reference = "常见的不良反应有头晕和口干，少数人会出现皮疹，停药后可消失。建议遵医嘱用药。"
    known, question = {"evidence": [{"quote": quote}]}, "朵朵片有什么不良反应？"
    for answer in (quote, reference, "可能头晕、口干；少见皮疹，停药就消失。"):
        assert score(answer, gold=known, reference=reference, question=question) > 0.9
    assert score("腹泻、便秘。", gold=known, reference=reference, question=question) == 0


@given(answer=st.text(max_size=80), reference=st.text(max_size=80), question=st.text(max_size=30))
def test_any_text_gives_a_score_in_range_or_a_cause(answer, reference, question):
    found = verdict(answer, reference=reference, gold=None, question=question)
    assert (found.cause == "no_reference") == (not words_only(reference))
    assert found.score is None or 0 <= found.score <= 1
    assert found == verdict(answer, reference=reference, gold=None, question=question)
