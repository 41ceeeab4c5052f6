"""What a patient without facets answers: something of the kind that is asked about the thing that is asked, or that
it is not sure.
"""

from __future__ import annotations

import pytest

from consultation_agent.record_patient import RecordPatient
from consultation_agent.task import ConsultationTask, task_of
from consultation_agent.topics import told_topics
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
        ("What shade are your stools?", UNSURE),
        ("How often do you open your bowels?", UNSURE),
        ("How long have your stools been loose?", UNSURE),
        ("Are your stools firm or soft?", "My stools are loose."),
        ("When did it start?", "About three weeks."),
        ("Is the cough getting better or worse?", UNSURE),
        ("Does the cough come and go?", UNSURE),
        ("What was your peak temperature?", "The highest was 38.9."),
        ("Has your fever come down?", "The fever went down on Sunday."),
        ("How many cigarettes a day do you smoke?", UNSURE),
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
        ("Has anyone in your family had bowel cancer?", UNSURE),
        ("Is there blood in your phlegm?", UNSURE),
        ("Do you go to the toilet at night?", UNSURE),
        ("Does the cough get worse in the garden?", UNSURE),
        ("Did you travel by the Orinoco?", UNSURE),
        ("Have you been taken to hospital 12 times?", UNSURE),
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
        "Have you tried any laxatives?",
        "Any antibiotics so far?",
        "Did you get a shot?",
        "打过点滴吗？",
    ],
)
def test_who_denies_all_of_a_kind_denies_each(question: str) -> None:
    assert said(question) == "I haven't taken any medicine."


def test_a_denial_of_one_thing_denies_no_other_that_the_sentence_names() -> None:
    task = task_with("My belly is swollen", ("Any blood?", "There's no blood in my stool."))
    assert said("Do you have difficulty passing stool?", task) == UNSURE
    assert said("Is there blood in your stool?", task) == "There's no blood in my stool."


def test_another_time_is_no_answer() -> None:
    task = task_with("My wrist hurts", ("Have you had it before?", "I had it once two years ago."))
    assert said("When did it start?", task) == UNSURE
    lately = "Last week I ate a lot of crab. Now I only eat soup."
    eats = task_with("My wrist hurts", ("What did you eat?", lately))
    assert said("What are you eating now?", eats) == "Now I only eat soup."
    assert said("Any previous episodes?", task) == "I had it once two years ago."


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
    ("question", "text"),
    [
        ("Is there anything that makes it better?", "It gets better if I sit still."),
        ("Do you spend a lot of time in a chair?", "I sit for long periods."),
        ("Are there drugs you react badly to?", "No allergies."),
        ("Did you have a big meal beforehand?", "I ate too much at a wedding."),
        ("Does food come back up?", "Food comes back up."),
        ("Have you had any investigations?", "I have had no tests."),
        ("Did you get an injection?", "I was given a shot."),
        ("What time of day is it at its worst?", "It is at its worst in the evening."),
    ],
)
def test_common_wordings_are_known(question: str, text: str) -> None:
    described = (
        "It gets better if I sit still. I sit for long periods. No allergies. I ate too much at a wedding. "
        "Food comes back up. I have had no tests. I was given a shot. It is at its worst in the evening."
    )
    assert said(question, task_with("My stomach hurts", described=described)) == text


ANKLE_TOLD = (
    "The skin came up red today. I had a fever on Monday. They gave me a drip of penicillin. I sit for long periods. "
    "My stool has always been loose. I feel like vomiting. I eat at the canteen, and everyone else is fine. "
    "I drink a litre of water a day. It is not related to anything. No stomach pain. I once had piles and shingles. "
    "It hurts near the side. I had a cold two years ago."
)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the drip called?", "They gave me a drip of penicillin."),
        ("What was the name of the fever?", UNSURE),
        ("Who told you that you had piles?", UNSURE),
        ("Why did you eat at the canteen?", UNSURE),
        ("Which side does it hurt on?", UNSURE),
        ("Do you exercise?", UNSURE),
        ("Do you sit a lot?", "I sit for long periods."),
        ("Is it hard to pass stool?", UNSURE),
        ("How long have your stools been loose?", "My stool has always been loose."),
        ("Does the cough come and go?", UNSURE),
        ("Do you throw up?", "I feel like vomiting."),
        ("Do you feel queasy?", "I feel like vomiting."),
        (
            "Where do you usually have your meals?",
            "I eat at the canteen, and everyone else is fine.",
        ),
        ("Have any colleagues fallen ill?", "I eat at the canteen, and everyone else is fine."),
        ("How much fluid do you get through in a day?", "I drink a litre of water a day."),
        ("Does rich food bring it on?", UNSURE),
        ("Is there pain in the upper abdomen?", "No stomach pain."),
        ("What illnesses have you had?", "I once had piles and shingles."),
    ],
)
def test_names_people_reasons_and_things_of_one_topic_are_kept_apart(
    question: str, text: str
) -> None:
    task = task_with("My ankle is swollen", described=ANKLE_TOLD)
    assert said(question, task) == text


BELLY = task_with(
    "My belly hurts. It suddenly started aching after lunch and got worse and worse.",
    ("How long has this been going on?", "About six weeks."),
    ("Does it hurt when you press on it?", "It hurts a little when pressed."),
    ("That is where the liver is. Is it swollen?", "Around the navel."),
    ("Have you had a colonoscopy?", "No."),
)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How long have you had the belly pain?", "About six weeks."),
        (
            "Did the belly pain come on suddenly?",
            "It suddenly started aching after lunch and got worse and worse.",
        ),
        ("Is the spot sore if you push on it?", "It hurts a little when pressed."),
        ("What makes the belly pain better?", UNSURE),
        ("How long have you had the headache?", UNSURE),
    ],
)
def test_a_side_of_the_pain_that_the_patient_came_with_is_told(question: str, text: str) -> None:
    assert said(question, BELLY) == text


def test_an_answer_is_found_by_what_was_asked_and_not_by_what_the_doctor_remarked() -> None:
    assert said("Has your liver been taken out?", BELLY) == UNSURE


def test_a_bare_no_answers_the_same_thing_by_another_name() -> None:
    assert said("Has anyone looked inside your bowel with a camera?", BELLY) == "No."


def test_of_an_answer_of_several_sentences_a_time_belongs_to_what_its_sentence_names() -> None:
    told = "The bloody stool started today, but the diarrhea has been going on for three days. I had a fever on Monday."
    task = task_with("Diarrhea", ("How long has this been going on?", told))
    assert said("How many days did the fever last?", task) == UNSURE


def test_a_cause_is_told_only_if_the_text_itself_names_it() -> None:
    lying = "It hurt on the right when sleeping on the right. It also hurts when pressed."
    task = task_with(
        f"My belly hurts. {lying}", ("When is it worse?", "It hurts more when I press on it.")
    )
    assert said("Does the position you lie in affect it?", task) == lying.partition(" It also")[0]


def test_what_one_thing_does_is_not_told_by_what_another_does() -> None:
    task = task_with("My knee is swollen", described="It is worse when I walk.")
    assert said("Is it worse after meals?", task) == UNSURE
    assert said("What makes it worse?", task) == "It is worse when I walk."


def test_ringing_is_a_word_of_its_own() -> None:
    assert "ears" not in told_topics("I was bringing up my food.")
    assert "ears" in told_topics("There is a ringing in my head.")


@pytest.mark.parametrize(
    ("complaint", "told"),
    [
        ("I cough since May. Is it serious?", "I cough since May."),
        ("我咳嗽三天了。要紧吗？", "我咳嗽三天了。"),
        ("我咳嗽三天了。要紧吗？会传染吗？", "我咳嗽三天了。"),
    ],
)
def test_a_question_to_the_doctor_is_no_part_of_the_complaint(complaint: str, told: str) -> None:
    assert said("What brings you in?", task_with(complaint)) == told
