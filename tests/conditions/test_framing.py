"""A diagnosis is read out of whatever frames it, and what only looks like a frame is left alone."""

import pytest

from conditions.framing import diagnosis_in, parts_of
from consultation_agent import protocol as consultation
from diagnosis_agent import protocol as diagnosis
from tests.corpora import cases_of


@pytest.mark.parametrize(("text", "named"), cases_of(__file__, "framed"))
def test_both_doctors_are_read_alike(text, named):
    ends = f"{diagnosis.STOP_PHRASE}\n{text}\nReason: it fits."
    told = diagnosis.read_reply(f"<think>red toe</think>{ends}")
    assert isinstance(told, diagnosis.Conclusion)
    assert told.diagnosis == named
    said = consultation.read_reply(f"<think>red toe</think>\n<answer>{text}\n建议：休息</answer>")
    assert isinstance(said, consultation.Conclusion)
    assert said.diagnosis == diagnosis_in(text) == named


def test_labels_stand_at_the_beginning_of_lines():
    assert parts_of("他说诊断：痛风") == [("", "他说诊断：痛风")]
    said = consultation.read_reply("<answer>问题：您之前的诊断：是什么？</answer>")
    assert said == consultation.Question("您之前的诊断：是什么？")
    held = consultation.read_reply("<answer>诊断：痛风 治疗建议：休息</answer>")
    assert held == consultation.Conclusion("痛风", "休息")


@pytest.mark.parametrize(
    "piece", ["based on ", "the diagnosis ", "最可能的", "**", "- ", "诊断\n", " "]
)
def test_reading_takes_time_in_proportion(piece):
    """What grows with the square of so many pieces would run into the timeout of the test."""
    diagnosis_in(piece * 100_000)
