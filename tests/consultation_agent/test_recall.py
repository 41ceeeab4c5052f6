"""What a patient without facets answers: what was said to the same question, or that it is not sure."""

from __future__ import annotations

import pytest

from consultation_agent.record_patient import RecordPatient
from consultation_agent.task import ConsultationTask, check_recorded, task_of
from tests.consultation_agent.cases import reference_row

PATIENT = RecordPatient()
UNSURE = "I am not sure about that."


def task_with(complaint: str, *exchanges: tuple[str, str], described: str = "") -> ConsultationTask:
    once = [
        {"doctor_question": [question], "patient_response": [answer]}
        for question, answer in exchanges
    ]
    row = reference_row(patient_information=once, enhanced_description=described)
    said = f"Patient's description: {complaint}\nDecide"
    return task_of(row | {"prompt": [{"role": "user", "content": said}]})


COUGH = task_with(
    "I cough and my chest is tight (female, 52 years old)",
    ("How long has this been going on?", "About three weeks."),
    ("Is there any phlegm? What colour is it?", "Much phlegm. It turned yellowish."),
    ("Have you had an ECG?", "No."),
    ("Have you taken any medicine?", "I haven't taken any medicine."),
    ("How high was the fever?", "The highest was 38.9. The fever went down on Sunday."),
    ("Do you have pain in your left chest?", "Yes, a little."),
    described="My mother had eczema.",
)
CHILD = task_with(
    "孩子七个月，发烧四天了。", ("请问您的小孩存不存在咳嗽的症状?", "是的, 小孩存在咳嗽的症状")
)


def said(question: str, task: ConsultationTask = COUGH) -> str:
    return PATIENT.reply_to(task, question, []).text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How long have you had it?", "About three weeks."),
        ("What colour is the phlegm?", "Much phlegm. It turned yellowish."),
        ("Thank you. Have you ever had an ECG?", "No."),
        ("And how high was your fever?", "The highest was 38.9. The fever went down on Sunday."),
    ],
)
def test_the_same_question_has_the_answer_of_then(question: str, text: str) -> None:
    assert said(question) == text


@pytest.mark.parametrize(
    "question",
    [
        "Have you had a CT scan?",  # another test
        "When was the fever?",  # another side of the same thing
        "How was the ECG?",
        "Do you have pain in your right chest?",
        "Do you have pain in your chest at night?",
        "Has your mother taken any medicine?",
        "Do you have eczema?",  # named in the description, of another person
        "Is your chest tight?",
    ],
)
def test_the_answer_to_another_question_is_never_given(question: str) -> None:
    assert said(question) == UNSURE


def test_the_answer_to_several_questions_is_none_to_one_of_them() -> None:
    asked = ("How long have you had it? How are your bowel movements?", "About 3 times a day.")
    assert said("How long have you had it?", task_with("My belly is bloated", asked)) == UNSURE


@pytest.mark.parametrize("who", ["", "孩子", "宝宝", "您家小孩", "患者"])
def test_a_child_who_is_the_patient_may_be_named_or_not(who: str) -> None:
    assert said(f"{who}有没有咳嗽？", CHILD) == "是的, 小孩存在咳嗽的症状"


def test_of_two_questions_each_is_answered() -> None:
    reply = PATIENT.reply_to(COUGH, "How long have you had it? Have you had an ECG?", [])
    assert (reply.kind, reply.text) == ("compound", "About three weeks. No.")


def test_a_sentence_that_names_the_diagnosis_is_not_told() -> None:
    told = "I had an ultrasound on May 5th. It showed a sprained ankle."
    task = task_with("My ankle is swollen", ("What tests did you have?", told))
    assert said("What tests did you have?", task) == "I had an ultrasound on May 5th."


@pytest.mark.parametrize(
    ("complaint", "told"),
    [
        ("I cough since May. Is it serious?", "I cough since May."),
        ("我咳嗽三天了。要紧吗？会传染吗？", "我咳嗽三天了。"),
    ],
)
def test_a_question_to_the_doctor_is_no_part_of_the_complaint(complaint: str, told: str) -> None:
    assert said("What brings you in?", task_with(complaint)) == told


def test_a_run_on_such_rows_is_told_which_patient_is_meant_for_them() -> None:
    [note] = check_recorded([COUGH])
    assert "--patient llm" in note
