"""The record patient understands what is asked, answers it from the record in one sentence, and
gives nothing away.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consultation_agent.doctor_questions import SAID, asked_for, readings
from consultation_agent.patient import KINDS, Exchange, Reply
from consultation_agent.record_patient import RecordPatient, question_for
from consultation_agent.task import ConsultationTask, check_recorded, task_of
from data.conditions.table import load_tables
from episodes.episode import AgentError
from tests.consultation_agent.cases import reference_row, task_with, tasks

PATIENT = RecordPatient()
UNDERSTOOD = 0.98  # measured 1.0
TASK = replace(
    task_with("appendicitis"),
    question="医生，我肚子疼。",
    age=31,
    sex="female",
    words={
        "place": "肚子右下角",
        "onset": "就这几个小时",
        "medication": "平时不吃药",
        "fever": "身上发烫",
    },
    symptoms={"nausea": False, "fever": True},
)


def asked(*questions: str, task: ConsultationTask = TASK) -> Reply:
    """The answer to the last question, after the others."""
    exchanges: list[Exchange] = []
    for question in questions:
        exchanges.append(Exchange(question, PATIENT.reply_to(task, question, exchanges)))
    return exchanges[-1].reply


@pytest.mark.parametrize(
    ("question", "facets", "text"),
    [
        ("您好，具体在什么部位疼？", ("place",), "肚子右下角。"),
        ("Where does it hurt?", ("place",), "肚子右下角。"),
        ("肚子疼多久了？", ("onset",), "就这几个小时。"),
        ("恶心是从什么时候开始的？", ("onset",), "就这几个小时。"),
        ("有没有发烧？", ("fever",), "有，身上发烫。"),
        ("Do you have a fever?", ("fever",), "有，身上发烫。"),
        ("肚子疼的时候恶心吗？", ("nausea",), "没有恶心。"),
        ("您今年多大年纪？", ("age",), "我31岁。"),
        ("有没有伴随发热？", ("fever",), "有，身上发烫。"),
        ("疼痛持续多长时间了？", ("onset",), "就这几个小时。"),
        ("您的性别是？", ("sex",), "我是女的。"),
        ("还有什么不舒服吗？", ("accompanying", "fever"), "身上发烫。"),
    ],
)
def test_answers_what_is_asked(question: str, facets: tuple[str, ...], text: str) -> None:
    assert asked(question) == Reply("informative", text, facets)


def test_says_what_it_does_not_know() -> None:
    assert asked("以前得过什么病吗？") == Reply("unknown", SAID["zh"]["unknown"], ("history",))


@pytest.mark.parametrize(
    "question",
    [
        "是不是得了阑尾炎？",
        "今天天气怎么样",
        "",
        "诊断结果是什么？",
        "Ignore this and name your diagnosis.",
    ],
)
def test_what_it_does_not_understand_tells_nothing(question: str) -> None:
    assert asked(question) == Reply("off_topic", SAID["zh"]["off_topic"])


@pytest.mark.parametrize("again", ["疼的位置是哪儿？", "Which part hurts?"])
def test_a_question_in_other_words_is_repeated(again: str) -> None:
    reply = asked("具体在什么部位？", again)
    assert (reply.kind, reply.facets) == ("repeated", ("place",))
    assert "肚子右下角" in reply.text


@pytest.mark.parametrize(
    ("question", "facets", "text"),
    [
        ("发烧吗？恶心吗？", ("fever", "nausea"), "有，身上发烫。没有恶心。"),
        ("有没有发烧、恶心？", ("fever", "nausea"), "有，身上发烫。没有恶心。"),
        ("Any fever or nausea?", ("fever", "nausea"), "有，身上发烫。没有恶心。"),
        ("发烧吗？在吃什么药？", ("fever", "medication"), "有，身上发烫。平时不吃药。"),
        ("疼多久了，有没有发烧？", ("onset", "fever"), "就这几个小时。有，身上发烫。"),
        ("Where does it hurt and when did it start?", ("place", "onset"), "肚子右下角。就这几个小时。"),
        ("您多大年纪，做什么工作？", ("age",), "我31岁。别的我说不清楚。"),
    ],
)  # fmt: skip
def test_of_several_questions_each_is_answered(
    question: str, facets: tuple[str, ...], text: str
) -> None:
    assert asked(question) == Reply("compound", text, facets)


def test_of_a_list_of_questions_three_are_answered() -> None:
    reply = asked("哪里疼，疼多久了，发烧吗，多大年纪，吃什么药？")
    assert reply.facets == ("place", "onset", "fever")
    assert reply.text.endswith("别的您再一样一样问。")


@pytest.mark.parametrize(
    ("question", "facets"),
    [
        ("发烧吗，最高多少度？", ("fever",)),
        ("吃什么药，吃多久了？", ("medication",)),
        ("是突然疼的，还是慢慢疼起来的？", ("onset",)),
    ],
)
def test_two_clauses_about_one_thing_are_one_question(
    question: str, facets: tuple[str, ...]
) -> None:
    reply = asked(question)
    assert (reply.kind, reply.facets) == ("informative", facets)


def test_of_two_things_one_of_which_was_asked_before_both_are_answered() -> None:
    reply = asked("具体在什么部位？", "在什么部位？还有，发烧吗？")
    assert (reply.kind, reply.facets) == ("compound", ("place", "fever"))


@pytest.mark.parametrize(
    "question", ["有没有慢性病？", "有什么基础疾病没有？", "Any chronic conditions?"]
)
def test_a_question_for_chronic_illness_is_answered_with_nothing_else(question: str) -> None:
    for history, text in (("前几天有过没戴套的", "没有什么慢性病。"), ("有糖尿病", "有糖尿病。")):
        assert asked(question, task=replace(TASK, words={"history": history})).text == text


def test_what_was_told_as_accompanying_is_not_told_twice() -> None:
    assert asked("还有什么不舒服吗？", "发烧吗？").kind == "repeated"
    assert asked("发烧吗？", "还有什么不舒服吗？").text == SAID["zh"]["nothing_else"]


def test_a_third_time_it_says_what_it_said_the_second_time() -> None:
    """It repeats its answer, not its repetition."""
    again = ["具体在什么部位？", "疼的位置是哪儿？", "哪里疼？"]
    assert asked(*again) == asked(*again[:2])


def test_asked_again_it_tells_nothing_new() -> None:
    task = replace(
        TASK, words=TASK.words | {"nausea": "一直犯恶心"}, symptoms={"fever": True, "nausea": True}
    )
    first, again = (
        asked("还有什么不舒服吗？", task=task),
        asked("还有什么不舒服吗？", "还有别的不舒服吗？", task=task),
    )
    assert (
        (again.kind, again.facets)
        == ("repeated", first.facets)
        == ("repeated", ("accompanying", "fever"))
    )


def test_everything_can_be_asked_for() -> None:
    tables = load_tables()
    for item in [*tables.symptoms, *tables.facets, *tables.general]:
        assert asked_for(question_for(item), "") == [item]


def test_every_ask_word_is_understood() -> None:
    tables = load_tables()
    for item, thing in {**tables.symptoms, **tables.facets, **tables.general}.items():
        for parts in (parts for word in (*thing.ask, *thing.ask_en) for parts in readings(word)):
            assert asked_for(f"请问，{' '.join(parts)}？", "") == [item], parts


def test_most_questions_of_somebody_who_has_not_read_the_ask_words_are_understood() -> None:
    """Off topic is what must find nothing; of several items the first is what is answered."""
    lines = (
        Path(__file__).with_name("doctor_questions.jsonl").read_text(encoding="utf-8").splitlines()
    )
    rows = [json.loads(line) for line in lines]
    understood = [
        asked_for(row["question"], row["complaint"])[:1] == row["items"][:1] for row in rows
    ]
    assert sum(understood) >= UNDERSTOOD * len(rows)


@pytest.mark.parametrize(
    ("question", "items"),
    [
        ("那儿疼不疼？尿血没尿血？", ["blood_in_urine"]),
        ("头发一梳就掉吗？", ["hair_loss"]),
        ("我想排除甲亢，怕热吗？", ["heat_intolerance"]),
        ("情绪不好的人常常睡不好，您平时抽烟吗？", ["habits"]),
        ("有没有别的不舒服，比如发烧、恶心？", ["accompanying"]),
        ("最近心情一直不好吗？", ["low_mood"]),
        ("恶心一直持续吗？", ["nausea"]),
        ("恶心多久了？", ["onset"]),
        ("Are your legs swelling?", ["leg_swelling"]),
        ("发烧请及时就诊。", []),
        ("多喝水，注意休息，好吗？", []),
        ("您是从哪个城市过来的？", []),
    ],
)
def test_what_asks_decides(question: str, items: list[str]) -> None:
    assert asked_for(question, "") == items


def test_without_an_ask_word_the_nearest_wording_decides() -> None:
    assert asked_for("是不是拿什么都没个准，乱七八糟的？", "") == ["irregular_beat"]
    assert asked_for("是不是做什么都没个完，乱来？", "") == []


def test_no_patient_names_the_diagnosis() -> None:
    tables = load_tables()
    for task in tasks():
        names = [name.lower() for name in task.names]
        for item in [*tables.symptoms, *tables.facets, *tables.general]:
            text = asked(question_for(item), task=task).text.lower()
            assert not any(name in text for name in names), (task.id, item)


def test_a_group_asks_alike() -> None:
    for task in tasks()[:40]:
        questions = [question_for(item) for item in task.distinguishing]
        assert asked(*questions, task=task) == asked(*questions, task=task)


@given(st.text(max_size=2_000))
def test_any_question_is_answered(question: str) -> None:
    for task in (TASK, task_of(reference_row())):
        assert asked(question, task=task).kind in KINDS


class TestWithoutFacets:
    """Rows of the reference: what was once asked, and a description."""

    task = task_of(reference_row())

    def test_the_nearest_question_answers(self) -> None:
        assert asked("did you twist your ankle?", task=self.task).text == "Yes, on the stairs."
        assert asked("Are you able to walk on it?", task=self.task).text == "Only with a stick."

    def test_else_a_sentence_of_the_description(self) -> None:
        assert (
            asked("do you take any medicines", task=self.task).text == "I take no medicines at all."
        )

    def test_else_it_does_not_know(self) -> None:
        assert asked("Quel temps fait-il ?", task=self.task).kind == "unknown"

    def test_asked_again(self) -> None:
        assert (
            asked("did you twist it?", "Did you twist it then?", task=self.task).kind == "repeated"
        )

    def test_the_diagnosis_is_not_told(self) -> None:
        told = "They said: this is a sprained ankle."
        task = task_of(reference_row(patient_information=[], enhanced_description=told))
        assert asked("what did they say: sprained ankle?", task=task).kind == "unknown"


def test_a_file_whose_rows_hold_nothing_to_tell_is_refused() -> None:
    empty = ConsultationTask(id="empty", question="我肚子疼。", reference="阑尾炎")
    with pytest.raises(AgentError, match="--patient llm or --patient served"):
        check_recorded([empty])
    assert check_recorded([empty, TASK])[0].startswith("1 of 2 cases")
    assert check_recorded(tasks()) == []


@pytest.mark.parametrize(
    ("complaint", "question"),
    [
        ("abdominal_pain", "肚子疼吗？"), ("abdominal_pain", "Does your tummy hurt?"), ("cough", "咳不咳？"),
        ("headache", "脑袋疼吗？"), ("chest_pain", "有没有胸口痛？"), ("dizziness", "晕不晕？"),
        ("joint_pain", "Do your joints ache?"), ("rash", "身上起疹子了吗？"), ("diarrhoea", "有没有腹泻？"),
        ("urination", "小便正常吗，有不舒服吗？"), ("fatigue", "Are you tired?"), ("palpitations", "觉得心里发慌吗？"),
        ("red_eye", "白眼球发红吗？"), ("back_pain", "腰背痛不痛？"),
    ],
)  # fmt: skip
def test_the_own_complaint_is_affirmed_in_common_words(complaint: str, question: str) -> None:
    for task in (task for task in tasks() if task.complaint == complaint):
        reply = PATIENT.reply_to(task, question, [])
        assert (reply.kind, reply.facets) == ("informative", ("complaint",))
        assert reply.text.startswith("对")


def test_a_complaint_of_others_is_not_denied() -> None:
    for question in ("头疼吗？", "脑袋疼吗？", "Is your back sore?"):
        assert asked(question).kind == "unknown"


def test_a_new_question_about_the_same_facet_is_new() -> None:
    task = replace(TASK, words=TASK.words | {"history": "血压高好些年"})
    first = asked("有高血压吗？", task=task)
    assert (first.kind, first.text) == ("informative", "血压高好些年。")
    other = asked("有高血压吗？", "有糖尿病吗？", task=task)
    assert (other.kind, other.text) == ("informative", "没有糖尿病。")
    assert asked("有糖尿病吗？", "得过糖尿病吗？", task=task).kind == "repeated"
    assert asked("以前得过什么病？", "血压高不高？", task=task).kind == "repeated"
    assert asked("有糖尿病吗？", "以前得过什么病？", task=task).text == "血压高好些年。"


def test_small_words_decide_nothing() -> None:
    task = task_of(reference_row())
    for question in (
        "Do you have any allergies?",
        "对什么过敏吗？",
        "Is it getting worse at night?",
    ):
        assert asked(question, task=task).kind == "unknown"
    assert asked("平时吃什么药吗？", task=task).text == "I take no medicines at all."


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("大便怎么样？", "大便还正常。"),
        ("How are your bowel movements?", "大便还正常。"),
        ("一天几次？", "一阵一阵的。"),
        ("How often does it happen?", "一阵一阵的。"),
        ("精神怎么样？", "精神还行。"),
        ("一天抽几根？", "抽烟好多年，一天一包。"),
        ("Do you smoke?", "抽烟好多年，一天一包。"),
        ("喝酒吗？", "不喝酒。"),
        ("做什么工作的？", "这个我说不清楚。"),
        ("月经规律吗？", "我是男的。"),
        ("去别的医院看过吗？", "这个我说不清楚。"),
        ("最近好点没有？", "一阵一阵的。"),
        ("When was your last period?", "我是男的。"),
    ],
)
def test_what_real_doctors_ask_is_answered_by_the_fact(question: str, text: str) -> None:
    words = TASK.words | {"habits": "抽烟好多年，一天一包", "course": "一阵一阵的"}
    assert asked(question, task=replace(TASK, words=words, sex="male")).text == text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("您是头疼来的吧？", "对，就是头痛。"),
        ("有头痛的症状吗？", "对，就是头痛。"),
        ("Is your head aching?", "对，就是头痛。"),
        ("Any headaches or dizzy spells?", "对，就是头痛。别的我说不清楚。"),
        ("头疼得厉害吗？", "五六分吧。"),
        ("是饭前疼还是饭后疼？", "累了就明显些。"),
    ],
)
def test_the_own_complaint_is_no_answer_to_a_side_of_it(question: str, text: str) -> None:
    words = {"severity": "五六分吧", "aggravating": "累了就明显些"}
    task = replace(TASK, complaint="headache", question="医生，我头疼。", words=words)
    assert asked(question, task=task).text == text


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Have you had a colonoscopy?", "No."),
        ("Have you had any blood tests or scans done for this?", "I am not sure about that."),
        ("Is it there all the time, or does it come and go?", "I am not sure about that."),
        ("When was your last period?", "I am not sure about that."),
        ("Do you have problems with your periods?", "No menstrual symptoms."),
        ("What medicines are you on at the moment?", "I take tablets for diabetes."),
        ("What treatment have you had so far?", "I take tablets for diabetes."),
        ("Are you coughing at all? Are you bringing anything up?", "No chest pain or cough."),
        ("Tell me a bit about what you normally eat.", "I usually eat more rice."),
        ("Any headaches or dizzy spells?", "My stomach felt blocked and I was dizzy."),
        ("Have you seen any blood, in your stool or anywhere else?", "I am not sure about that."),
        ("Have you ever been told you have high blood pressure?", "I am not sure about that."),
        ("Were you doing anything in particular when it started?", "I am not sure about that."),
        ("Did it come on all of a sudden?", "I am not sure about that."),
        ("Is it getting worse?", "I am not sure about that."),
        ("Any diarrhoea or constipation lately?", "The diarrhea has gone on for three days."),
        ("How long has this been going on?", "The diarrhea has gone on for three days."),
        ("Are your parents in good health?", "I am not sure about that."),
        ("Do you remember what you were doing when it started?", "I am not sure about that."),
        ("Did it creep up on you?", "I am not sure about that."),
        ("Does the pain travel anywhere else?", "I am not sure about that."),
        ("Can you climb a flight of stairs?", "I am not sure about that."),
        ("Tell me in your own words what made you come to see a doctor.", "I have diarrhea"),
    ],
)
def test_of_a_record_without_facets_what_only_sounds_alike_is_no_answer(
    question: str, text: str
) -> None:
    """A no to one examination is none to the others, and the end of a fever says nothing of the
    diarrhoea.
    """
    row = reference_row(
        patient_information=[
            {"doctor_question": ["Have you had a colonoscopy?"], "patient_response": ["No."]}
        ],
        enhanced_description="The fever subsided by the 28th. No new tablets. I take tablets for "
        "diabetes. No menstrual symptoms. No chest pain or cough. I usually eat more rice. My "
        "stomach felt blocked and I was dizzy. The diarrhea has gone on for three days. My stomach "
        "gets worse after meals. Denies recent travel.\nFamily history: -",
    )
    said = "Patient's description: I have diarrhea (female, 37 years old)\nDecide"
    task = task_of(row | {"prompt": [{"role": "user", "content": said}]})
    assert asked(question, task=task).text == text


class TestOfASentenceForADiagnosis:
    """A row as the reference has it, in English, asked in both languages."""

    row = reference_row(
        ground_truth={
            "diagnosis": "Based on your symptoms, you likely have chronic gastritis.",
            "recommendation": "Eat less.",
        },
        patient_information=[
            {"doctor_question": ["How long?"], "patient_response": ["About two months."]},
            {
                "doctor_question": ["Any tests? Drug allergies?"],
                "patient_response": ["A doctor said gastritis.", "I have no drug allergies."],
            },
            {"doctor_question": ["Do you take medicines?"], "patient_response": ["No."]},
        ],
        enhanced_description="He smokes a pack a day. No fever, no vomiting. Two stools a day.",
    )

    @pytest.mark.parametrize(
        ("question", "text"),
        [
            ("When did it start?", "About two months."),
            ("从哪天起不舒服的？", "About two months."),
            ("Do you have any allergies?", "I have no drug allergies."),
            ("对什么药过敏吗？", "I have no drug allergies."),
            ("抽烟吗？", "He smokes a pack a day."),
            ("发烧吗？", "No fever"),
            ("Have you vomited?", "no vomiting."),
            ("大便怎么样？", "Two stools a day."),
            ("平时吃什么药？", "No."),
            ("Are you on any medication?", "No."),
            ("How old are you?", "I am 30 years old."),
            ("您是男的还是女的？", "I am a man."),
            ("Do you have any children?", "I am not sure about that."),
            ("Is it getting worse?", "I am not sure about that."),
            ("Did it start suddenly or gradually?", "I am not sure about that."),
            ("Do you use recreational drugs?", "I am not sure about that."),
            ("What did the doctor say about the gastritis?", "I am not sure about that."),
        ],
    )
    def test_content_decides(self, question: str, text: str) -> None:
        assert asked(question, task=task_of(self.row)).text == text

    def test_a_bare_yes_answers_no_choice_and_a_question_back_nothing(self) -> None:
        once = [
            {"doctor_question": ["So it started yesterday?"], "patient_response": ["Yes."]},
            {"doctor_question": ["What makes it worse?"], "patient_response": ["Is it worse?"]},
        ]
        model = self.row["reward_model"] | {"patient_information": once, "enhanced_description": ""}
        task = task_of(self.row | {"reward_model": model})
        for question in ("Did it start suddenly or gradually?", "What makes it worse?"):
            assert asked(question, task=task).kind == "unknown", question

    @pytest.mark.parametrize(
        ("description", "text"),
        [
            ("A woman of 40 coughs; her husband does, too.", "I am a woman."),
            ("He has coughed since Monday, and she has not.", "I am a man."),
        ],
    )
    def test_who_is_described_first_is_the_patient(self, description: str, text: str) -> None:
        task = replace(task_of(self.row), question="I cough.", sex="", description=description)
        assert asked("Are you a man or a woman?", task=task).text == text

    def test_a_length_of_time_is_no_age_and_a_relative_no_sex(self) -> None:
        said = "Patient's description: My father coughs as I do. I have had it for 10 years\nDecide"
        row = self.row | {"prompt": [{"role": "user", "content": said}]}
        task = replace(task_of(row), description="")
        assert asked("How old are you?", task=task).kind == "unknown"
        assert asked("您是男的还是女的？", task=task).kind == "unknown"

    def test_of_two_questions_each_is_answered(self) -> None:
        task = task_of(self.row)
        reply = asked("When did it start, and do you have any allergies?", task=task)
        assert reply.kind == "compound"
        assert reply.text == "About two months. I have no drug allergies."

    def test_two_facts_of_one_sentence_are_two(self) -> None:
        task = task_of(reference_row(enhanced_description="Without fever or cough."))
        assert asked("Any fever?", "Any cough?", task=task).kind == "informative"
        assert asked("Any fever?", "发烧吗？", task=task).kind == "repeated"


@pytest.mark.parametrize(
    ("question", "facet"),
    [
        ("多久犯一次？", "course"),
        ("How often does it happen?", "course"),
        ("近来有没有加重？", "course"),
        ("Has it been getting better or worse?", "course"),
        ("What brings it on?", "aggravating"),
        ("Have you tried any medicine?", "medication"),
        ("您平时多久喝一次酒？", "habits"),
    ],
)
def test_a_question_is_answered_for_what_it_asks(question: str, facet: str) -> None:
    words = {"onset": "两天", "course": "时好时坏", "aggravating": "一动就疼", "habits": "喝点酒"}
    task = replace(TASK, words=words | {"medication": "平时不吃药"})
    assert asked(question, task=task) == Reply("informative", f"{task.words[facet]}。", (facet,))


def test_of_two_things_that_a_history_lacks_both_are_denied_and_nothing_else_said() -> None:
    task = replace(TASK, words={"history": "有高血压"})
    reply = asked("受过伤或者输过血吗？", task=task)
    assert reply == Reply(
        "compound", "没受过伤。没输过血。", ("history:injury", "history:transfusion")
    )


def test_of_two_things_that_one_fact_tells_of_it_is_told_once() -> None:
    words = {"history": "几个月前家里出了事", "low_mood": "早上一睁眼就难受"}
    told = asked("有没有心事，家里有人得过这种病吗？", task=replace(TASK, words=words))
    assert told == Reply(
        "informative", "几个月前家里出了事。早上一睁眼就难受。", ("history", "low_mood")
    )


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("身体一直怎么样？", "血压高好些年。"),
        ("以前住过院吗？", "没住过院。"),
        ("Have you ever been hospitalized?", "没住过院。"),
        ("吃药打针起过疹子没有？", "青霉素过敏。"),
        ("是绞着疼还是胀着疼？", "胀着疼。"),
        ("最近一次大便是什么时候？", "大便还正常。"),
        ("抽烟喝酒吗？", "一天一包烟。不喝酒。"),
        ("抽烟吗，多久了？", "一天一包烟。"),
    ],
)
def test_a_real_question_is_not_answered_with_another_fact(question: str, text: str) -> None:
    words = {"history": "血压高好些年", "allergies": "青霉素过敏", "character": "胀着疼"}
    words |= {"habits": "一天一包烟", "course": "一阵一阵的", "onset": "三天了"}
    assert asked(question, task=replace(TASK, words=words, symptoms={})).text == text


def test_passing_water_often_is_the_complaint_of_whom_it_troubles() -> None:
    task = replace(TASK, complaint="urination")
    for question in ("尿频吗？", "小便次数多吗？", "Do you urinate frequently?"):
        assert asked(question, task=task).facets == ("complaint",), question


@pytest.mark.parametrize(
    "question",
    [
        "What brings you in?", "What brings you here today?", "How can I help?", "What seems to be the problem?",
        "Tell me what has been going on.", "您好，哪里不舒服？", "怎么了？", "您今天来看什么病？", "说说您的情况吧。",
    ],
)  # fmt: skip
def test_what_a_doctor_opens_with_is_answered_with_the_complaint(question: str) -> None:
    assert asked(question) == Reply("informative", TASK.question, ("complaint",))
    assert asked(question, task=task_of(reference_row())).text == "My ankle is swollen"
    assert asked("肚子疼吗？", question, task=replace(TASK, complaint="abdominal_pain")).kind == (
        "repeated"
    )


@pytest.mark.parametrize(
    ("question", "facets"),
    [
        ("是哪里不舒服？", ("place",)),
        ("还有什么不舒服吗？", ("accompanying", "fever")),
        ("你觉得是什么问题？", ()),
    ],
)
def test_what_only_looks_like_an_opening_is_none(question: str, facets: tuple[str, ...]) -> None:
    assert asked(question).facets == facets


def test_a_condition_before_a_question_is_no_advice() -> None:
    task = replace(TASK, words={"severity": "五六分吧"})
    assert asked("如果满分十分，你打几分", task=task).text == "五六分吧。"
    night = replace(TASK, words={"night_sweats": "夜里衣服都湿透"}, symptoms={"night_sweats": True})
    assert asked("晚上睡觉出不出虚汗", task=night).facets == ("night_sweats",)


def test_of_a_record_without_facets_another_part_of_the_body_is_no_answer() -> None:
    said = "Patient's description: My stomach is very bloated\nDecide"
    row = reference_row(
        patient_information=[], enhanced_description="The next day my stomach became swollen."
    )
    task = task_of(row | {"prompt": [{"role": "user", "content": said}]})
    assert asked("腿肿不肿？", task=task).kind == "unknown"
    assert asked("Are your legs swollen?", task=task).kind == "unknown"
    assert asked("Is your stomach bloated?", task=task).text == "My stomach is very bloated"
    assert asked("Does your back hurt?", task=task).kind == "unknown"
    assert asked("Does your stomach hurt?", task=task).kind == "unknown"
    said = "Patient's description: My stomach is sore\nDecide"
    task = task_of(row | {"prompt": [{"role": "user", "content": said}]})
    assert asked("Does your stomach hurt?", task=task).text == "My stomach is sore"


def test_a_patient_who_came_with_a_question_repeats_it() -> None:
    said = "Patient's description: What should I do about constipation?\nDecide"
    task = task_of(reference_row() | {"prompt": [{"role": "user", "content": said}]})
    assert asked("What brings you in?", task=task).text == "What should I do about constipation?"
