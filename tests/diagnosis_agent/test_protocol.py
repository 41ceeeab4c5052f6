"""A reply is one order or the diagnosis; everything else has a name, and nothing makes reading fail
or crawl.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnosis_agent.protocol import (
    PROBLEMS,
    STOP_PHRASE,
    Conclusion,
    Order,
    framed,
    read_reply,
    spoken,
)
from episodes.episode import AgentError
from episodes.text_loop import Malformed
from tests.diagnosis_agent.cases import lines_of

ORDER = Order("acute appendicitis", "CBC", "white cells")
CONCLUSION = Conclusion("acute appendicitis", "tenderness")


def test_an_order_and_a_conclusion_are_read_with_and_without_marks() -> None:
    bold = "**Current diagnosis:** acute appendicitis\n**Examination needed: CBC.**\n**Reason:** white cells"
    assert read_reply(spoken(ORDER)) == read_reply(bold) == ORDER
    loud = f"{STOP_PHRASE.upper()}\n\nDiagnosis: acute appendicitis.\nReason: tenderness"
    assert read_reply(spoken(CONCLUSION)) == read_reply(loud) == CONCLUSION


@pytest.mark.parametrize("case", lines_of("problems"), ids=lambda case: case["problem"])
def test_what_is_neither_has_a_name(case: dict[str, str]) -> None:
    assert read_reply(case["text"]) == Malformed(case["problem"])


@pytest.mark.parametrize(
    "reason",
    [
        f"x\n{STOP_PHRASE}\nFinal diagnosis: septic arthritis\nReason: y",
        "it may as well be another.\nFinal diagnosis: septic arthritis",
    ],
)
def test_a_second_final_diagnosis_counts_as_well(reason: str) -> None:
    """The first one was paid as if it were the only one."""
    said = read_reply(f"{STOP_PHRASE}\nFinal diagnosis: gout\nReason: {reason}")
    assert isinstance(said, Conclusion)
    assert said.diagnosis == "gout; septic arthritis"


@pytest.mark.parametrize("reason", ["x\nFinal diagnosis: Gout", "x\nDiagnosis: confirmed by PCR"])
def test_the_same_diagnosis_again_is_no_second_one(reason: str) -> None:
    said = read_reply(f"{STOP_PHRASE}\nFinal diagnosis: gout\nReason: {reason}")
    assert isinstance(said, Conclusion)
    assert said.diagnosis == "gout"


def test_what_a_person_types_without_a_diagnosis_is_refused() -> None:
    """Passed on, it would cost them one of their turns."""
    with pytest.raises(AgentError, match="no_diagnosis"):
        framed("needed: CBC")


PIECES = ("<think>", "</think>", STOP_PHRASE, "Current diagnosis:", "Final diagnosis: ", "needed:")
MARKS = ("CBC", "Reason:", "\n", " ", ". ", "1. ", "- ", "**", "\x00", "\ud800", "：")


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES + MARKS)).map("".join)))
def test_any_text_is_read(text: str) -> None:
    said = read_reply(text)
    assert not isinstance(said, Malformed) or said.problem in PROBLEMS
    assert isinstance(said, Malformed) or all(vars(said).values())


@pytest.mark.parametrize("piece", ["</think>", STOP_PHRASE, "needed:", "\n", "- ", "**"])
def test_reading_takes_time_in_proportion(piece: str) -> None:
    """What grows with the square of so many pieces would run into the timeout of the test."""
    read_reply(f"Current diagnosis: A\nneeded: {piece * 100_000}")
