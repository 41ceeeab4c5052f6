"""A reply is one question or one conclusion; everything else has a name and is read quickly."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consultation_agent.advice import advice_value
from consultation_agent.protocol import OWN, Choice, Conclusion, Malformed, Question, read_reply
from consultation_agent.task import task_of
from episodes.episode import AgentError
from episodes.prompts import load_prompts
from tests.consultation_agent.cases import reference_row
from tests.corpora import cases_of

CONCLUSION = Conclusion("急性阑尾炎", "马上去急诊")


def test_a_question_and_a_conclusion_are_read_in_either_language():
    assert read_reply("<answer>问题：哪里疼？</answer>") == Question("哪里疼？")
    assert read_reply("<answer>question: 哪里疼？</answer>") == Question("哪里疼？")
    chinese = "<answer>诊断：急性阑尾炎\n建议：马上去急诊</answer>"
    english = "<answer>Diagnosis: 急性阑尾炎\nRecommendation: 马上去急诊</answer>"
    assert read_reply(chinese) == read_reply(english) == CONCLUSION
    traditional = "<answer>診斷：急性闌尾炎\n建議：馬上去急診</answer>"
    assert read_reply(traditional) == CONCLUSION
    assert read_reply("<answer>問題：哪裡疼？</answer>") == Question("哪里疼？")


@pytest.mark.parametrize("case", cases_of(__file__, "problems"), ids=lambda case: case["problem"])
def test_what_is_neither_has_a_name(case):
    assert read_reply(case["text"]) == Malformed(case["problem"])


@pytest.mark.parametrize("case", cases_of(__file__, "choices"), ids=lambda case: case["said"])
def test_only_an_option_of_the_case_is_a_choice(case):
    options = case.get("options", {"A": "Aspirin", "B": "Colchicine"})
    problem = Malformed(case.get("problem", "no_diagnosis"))
    wanted = Choice(case["letter"], "") if case.get("letter") else problem
    assert read_reply(f"<answer>{case['said']}</answer>", options) == wanted


@pytest.mark.parametrize(
    "case", cases_of(__file__, "several_choices"), ids=lambda case: case["said"]
)
def test_a_list_of_letters_is_a_choice_where_several_are_right(case):
    options = {"A": "Aspirin", "B": "Colchicine", "C": "Vitamin A", "D": "Rest"}
    problem = Malformed(case.get("problem", "no_diagnosis"))
    wanted = Choice(case["letters"], "") if case["letters"] else problem
    assert read_reply(f"<answer>{case['said']}</answer>", options, several=True) == wanted


PIECES = ("<think>", "</think>", "<answer>", "</answer>", "问题：", "诊断：", "建议:", "Question:")
PROMPTS = load_prompts(OWN)
MARKS = ("\n", " ", "\x00", "\ud800")


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES + MARKS)).map("".join)))
def test_any_text_is_read(text):
    said = read_reply(text)
    assert not isinstance(said, Malformed) or said.problem in PROMPTS.problems


@pytest.mark.parametrize("piece", ["<think>", "<answer>", "问题：", "诊断：", "\n", "("])
def test_reading_takes_time_in_proportion(piece):
    """What grows with the square of so many pieces would run into the timeout of the test."""
    read_reply(f"<answer>问题：{piece * 200_000}</answer>", {"A": "Rest"} if piece == "(" else None)
    assert advice_value((), "".join(map(chr, range(0x4E00, 0x9FA0))) * 20, "建议手术治疗") < 0.001


@pytest.mark.parametrize(
    "words", ["turn = '{nobody}'", "nonsense = 1", "[problems]\nwrong = 'x'", "last = 3", "="]
)
def test_prompts_that_cannot_be_used_are_refused(tmp_path, words):
    path = tmp_path / "prompts.toml"
    path.write_text(words)
    with pytest.raises(AgentError, match="--prompts"):
        load_prompts(OWN, path)


def test_replies_of_somebody_who_has_not_read_the_protocol():
    """A reply is written as its parts, each a text and how many times it stands there."""
    kinds = {Question: "question", Conclusion: "conclusion", Malformed: "malformed"}
    for row in cases_of(__file__, "doctor_replies"):
        said = read_reply("".join(text * times for text, times in row["parts"]))
        assert kinds[type(said)] == row["expect"], row
        if isinstance(said, Conclusion) and row["diagnosis"]:
            assert said.diagnosis == row["diagnosis"]


def without(row: dict[str, Any], *path: str) -> dict[str, Any]:
    inner = row
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return row


@pytest.mark.parametrize(
    "row",
    [
        without(reference_row(), "reward_model", "ground_truth"),
        without(reference_row(), "prompt"),
        reference_row() | {"prompt": [{"role": "system", "content": "x"}]},
        reference_row() | {"prompt": 3},
        reference_row(ground_truth={"diagnosis": " ", "recommendation": "x"}),
        reference_row(patient_information=[{"doctor_question": 3, "patient_response": ["x"]}]),
        reference_row() | {"extra_info": {"condition": "no such"}},
        reference_row() | {"extra_info": {"facets": "{"}},
        reference_row() | {"extra_info": {"sex": "女"}},
    ],
)
def test_what_is_no_consultation_is_refused(row):
    with pytest.raises(AgentError, match="row 'r1'"):
        task_of(row)
