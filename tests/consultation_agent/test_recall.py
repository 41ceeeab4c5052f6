"""What a patient without facets answers: what was said to the same question, or that it is not sure
(recall.jsonl). A run on such rows is told which patient is meant for them.
"""

from __future__ import annotations

from typing import Any

import pytest

from consultation_agent.record_patient import RecordPatient
from consultation_agent.task import ConsultationTask, check_recorded, task_of
from tests.consultation_agent.cases import reference_row
from tests.corpora import cases_of

CASES = cases_of(__file__, "recall")


def task_with(case: dict[str, Any]) -> ConsultationTask:
    once = []
    for question, answer in case["exchanges"]:
        once.append({"doctor_question": [question], "patient_response": [answer]})
    row = reference_row(patient_information=once, enhanced_description=case["described"])
    said = f"Patient's description: {case['complaint']}\nDecide"
    return task_of(row | {"prompt": [{"role": "user", "content": said}]})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["why"])
def test_only_the_same_question_has_the_answer_of_then(case):
    task = task_with(case)
    for question, text in case["asked"]:
        assert RecordPatient().reply_to(task, question, []).text == text


def test_a_run_on_such_rows_is_told_which_patient_is_meant_for_them():
    [note] = check_recorded([task_with(CASES[0])])
    assert "--patient llm" in note
