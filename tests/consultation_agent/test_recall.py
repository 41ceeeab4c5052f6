"""What a patient without facets answers: something of the kind that is asked about the thing that is asked, or that
it is not sure.
"""

from __future__ import annotations

import pytest

from consultation_agent.patient import Exchange
from consultation_agent.record_patient import RecordPatient
from consultation_agent.task import ConsultationTask, task_of
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
    ("Does the cough get worse when you lie down?", "Yes, a little."),
    ("Have you coughed like this before?", "I had a cough once two years ago."),
    ("Do you eat fruit and vegetables?", "I eat more fruit, pears above all."),
    ("What did you eat?", "Last week I ate a lot of crab. Now I only eat soup."),
    described="My mother had eczema. My stools are loose. I will see a specialist.",
)


def said(question: str, task: ConsultationTask = COUGH) -> str:
    return PATIENT.reply_to(task, question, []).text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What colour is the phlegm?", "Much phlegm. It turned yellowish."),
        ("How long have your stools been loose?", UNSURE),
        ("Are your stools firm or soft?", "My stools are loose."),
        ("When did it start?", "About three weeks."),
        ("Is the cough getting better or worse?", UNSURE),
        ("What was your peak temperature?", "The highest was 38.9."),
        ("Has your fever come down?", "The fever went down on Sunday."),
        ("What did the doctor say about the cough?", UNSURE),
    ],
)
def test_an_answer_is_of_the_kind_that_is_asked(question: str, text: str) -> None:
    assert said(question) == text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Do you eat vegetables?", UNSURE),
        ("Do you eat fruit?", "I eat more fruit, pears above all."),
        ("Have you had a CT scan?", UNSURE),
        ("Have you had an ECG?", "No."),
        ("How old are you?", "I am 52 years old."),
        ("Has anyone in your family had bowel cancer?", UNSURE),
        ("Is there blood in your phlegm?", UNSURE),
        ("Have you seen a specialist?", UNSURE),
    ],
)
def test_an_answer_is_about_the_thing_that_is_asked(question: str, text: str) -> None:
    """Another test, another food, another time or a plan is no answer, nor is a text without the words that
    the question is about.
    """
    assert said(question) == text


@pytest.mark.parametrize(
    "question",
    [
        "Any antibiotics so far?",
        "打过点滴吗？",
    ],
)
def test_who_denies_all_of_a_kind_denies_each(question: str) -> None:
    assert said(question) == "I haven't taken any medicine."


def test_a_denial_of_one_thing_denies_no_other_that_the_sentence_names() -> None:
    task = task_with("My belly is swollen", ("Any blood?", "There's no blood in my stool."))
    assert said("Do you have difficulty passing stool?", task) == UNSURE
    assert said("Is there blood in your stool?", task) == "There's no blood in my stool."


def test_of_two_questions_each_is_answered() -> None:
    reply = PATIENT.reply_to(COUGH, "When did it start? What colour is the phlegm?", [])
    assert reply.kind == "compound"
    assert reply.text == "About three weeks. Much phlegm. It turned yellowish."


def test_what_was_told_is_repeated() -> None:
    question = "What colour is the phlegm?"
    once = Exchange(question, PATIENT.reply_to(COUGH, question, []))
    assert PATIENT.reply_to(COUGH, "Which colour is your phlegm?", [once]).kind == "repeated"


def test_a_part_that_is_not_said_to_hurt_does_not_hurt() -> None:
    assert said("Does your chest hurt?") == UNSURE
    assert said("Is there pain when you pass stool?") == UNSURE
    task = task_with("My chest hurts since May")
    assert said("Do you have pain in the chest?", task) == "My chest hurts since May"


def test_a_bare_yes_answers_only_what_it_was_said_to() -> None:
    task = task_with("My belly is bloated", ("So your belly is still bloated?", "Yes."))
    assert said("Is your belly still bloated?", task) == "Yes."
    assert said("Is the bloating constant?", task) == UNSURE
    worried = task_with("My belly is bloated", ("Any worries?", "Yes."))
    assert said("What are your worries?", worried) == UNSURE
    assert said("Any worries?", worried) == "Yes."


def test_an_answer_to_several_questions_is_one_to_each_that_it_tells() -> None:
    asked = ("How long have you had it? How are your bowel movements?", "About 3 times a day.")
    task = task_with("My belly is bloated", asked)
    assert said("How many times a day do you go?", task) == "About 3 times a day."
    assert said("How long have you been bloated?", task) == UNSURE


def test_of_a_sentence_that_names_the_diagnosis_the_rest_is_told() -> None:
    told = "I had a painless ultrasound on May 5th, and it showed a sprained ankle."
    task = task_with("My ankle is swollen", ("What tests did you have?", told))
    assert said("When was the ultrasound done?", task) == "I had a painless ultrasound on May 5th"


@pytest.mark.parametrize(
    ("complaint", "told"),
    [
        ("I cough since May. Is it serious?", "I cough since May."),
        ("我咳嗽三天了。要紧吗？会传染吗？", "我咳嗽三天了。"),
    ],
)
def test_a_question_to_the_doctor_is_no_part_of_the_complaint(complaint: str, told: str) -> None:
    assert said("What brings you in?", task_with(complaint)) == told
