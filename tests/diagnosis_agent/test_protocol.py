"""A reply is one order or the diagnosis; everything else has a name and is read quickly."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnosis_agent.agent import AGENT
from diagnosis_agent.protocol import OWN, STOP_PHRASE, Conclusion, Order, read_reply
from diagnosis_agent.task import task_of
from episodes.episode import AgentError
from episodes.prompts import load_prompts
from episodes.text_loop import Malformed
from tests.corpora import cases_of, write_lines
from tests.diagnosis_agent.cases import reference_row

ORDER = Order("acute appendicitis", "CBC", "white cells")
CONCLUSION = Conclusion("acute appendicitis", "tenderness")


def test_an_order_and_a_conclusion_are_read_with_and_without_marks():
    bold = "**Current diagnosis:** acute appendicitis\n**Examination needed: CBC.**\n**Reason:** white cells"
    assert read_reply(ORDER.reply) == read_reply(bold) == ORDER
    loud = f"{STOP_PHRASE.upper()}\n\nDiagnosis: acute appendicitis.\nReason: tenderness"
    assert read_reply(CONCLUSION.reply) == read_reply(loud) == CONCLUSION


@pytest.mark.parametrize(
    "case", cases_of(__file__, "corpus/problems"), ids=lambda case: case["problem"]
)
def test_what_is_neither_has_a_name(case):
    assert read_reply(case["text"]) == Malformed(case["problem"])


@pytest.mark.parametrize(("reply", "parts"), cases_of(__file__, "corpus/parts"))
def test_which_words_are_the_diagnosis_and_which_the_reason(reply, parts):
    """A second final diagnosis counts as well: the first one was paid as if it were the only one."""
    said = read_reply(reply.format(stop=STOP_PHRASE))
    assert vars(said) | parts == vars(said)


PIECES = ("<think>", "</think>", STOP_PHRASE, "Current diagnosis:", "Final diagnosis: ", "needed:")
PROMPTS = load_prompts(OWN)
MARKS = ("CBC", "Reason:", "\n", " ", ". ", "1. ", "- ", "**", "\x00", "\ud800", "：")


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES + MARKS)).map("".join)))
def test_any_text_is_read(text):
    said = read_reply(text)
    assert not isinstance(said, Malformed) or said.problem in PROMPTS.problems
    assert isinstance(said, Malformed) or all(vars(said).values())


@pytest.mark.parametrize("piece", ["</think>", STOP_PHRASE, "needed:", "\n", "- ", "**"])
def test_reading_takes_time_in_proportion(piece):
    """What grows with the square of so many pieces would run into the timeout of the test."""
    read_reply(f"Current diagnosis: A\nneeded: {piece * 100_000}")


def row_with(**extra: Any) -> dict[str, Any]:
    """A row of DiagAgent's kind with these fields of `extra_info` besides."""
    row = reference_row()
    return row | {"extra_info": row["extra_info"] | extra}


def test_results_have_their_reference_range():
    examinations = [
        {"name": "CRP", "results": "65 mg/L (high)", "reference_range": "0 to 10"},
        {"name": "ECG", "results": "Sinus rhythm.", "reference_range": None},
    ]
    task = task_of(row_with(examinations=examinations))
    assert task.results == {
        "CRP": "65 mg/L (high) (reference range: 0 to 10)",
        "ECG": "Sinus rhythm.",
    }


def test_rows_of_the_reference(tmp_path):
    import pyarrow as arrow
    from pyarrow import parquet

    told = row_with(text="Flank pain for two days.")
    parquet.write_table(arrow.Table.from_pylist([told]), tmp_path / "rows.parquet")
    (row,) = AGENT.rows(tmp_path / "rows.parquet")
    task = task_of(row)
    assert (task.id, task.question) == ("r1", "54M, two days of flank pain")
    assert task.text == "Flank pain for two days."
    assert (task.reference, task.key[0]) == ("kidney stone", "CT Abdomen")
    assert (task.results, task.aliases, task.condition, task.age) == ({}, (), None, None)


@pytest.mark.parametrize("row", cases_of(__file__, "no_cases"))
def test_what_is_no_case_is_refused(row):
    with pytest.raises(AgentError, match="row 'r1'"):
        task_of(row)


def test_rows_of_a_jsonl_file_get_names_of_their_own(tmp_path):
    nameless = {key: value for key, value in reference_row().items() if key != "id"}
    file = write_lines(tmp_path / "rows.jsonl", [nameless, nameless, {"prompt": 1}])
    assert [row["id"] for row in AGENT.rows(file)] == ["0/0", "0/1", "2"]


@pytest.mark.parametrize("name", ["none.parquet", "bad.parquet", "bad.jsonl", "empty.jsonl"])
def test_files_that_cannot_be_read(tmp_path, name):
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no PAR1")
    (tmp_path / "bad.jsonl").write_text("{")
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(AgentError, match=name):
        AGENT.rows(tmp_path / name)
