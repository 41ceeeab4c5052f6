"""The record patient understands a question, answers from the record, and gives nothing away."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conditions.table import load_tables
from consultation_agent.agent import AGENT
from consultation_agent.hearing import parts_of, things_in
from consultation_agent.record_patient import KINDS, Exchange, RecordPatient, Reply, question_for
from consultation_agent.task import ConsultationTask, task_of
from episodes.episode import AgentError
from tests.consultation_agent.cases import reference_row, task_with, tasks
from tests.corpora import cases_of
from tests.messages import missing

PATIENT = RecordPatient()
UNDERSTOOD = 0.97  # measured 0.975
ORDINARY = 0.95  # measured 0.955
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
    values={},
    symptoms={"nausea": False, "fever": True},
)


def asked(*questions: str, task: ConsultationTask = TASK) -> Reply:
    """The answer to the last question, after the others."""
    exchanges: list[Exchange] = []
    for question in questions:
        exchanges.append(Exchange(question, PATIENT.reply_to(task, question, exchanges)))
    return exchanges[-1].reply


@pytest.mark.parametrize("case", cases_of(__file__, "answers"), ids=lambda case: case["question"])
def test_each_thing_that_is_asked_is_answered_and_nothing_else(case):
    wanted = Reply(case["kind"], case["text"], tuple(case["facets"]))
    task = replace(TASK, **case.get("task", {}))
    assert asked(*case.get("before", ()), case["question"], task=task) == wanted


def test_everything_can_be_asked_for():
    for item in [*load_tables().symptoms, *load_tables().facets]:
        task = replace(TASK, words={item: "就是这样"}, symptoms={})
        assert "就是这样" in asked(question_for(item), task=task).text


@pytest.mark.system
def test_what_ordinary_doctors_ask_is_answered_by_what_they_ask_for():
    """The questions were written by clinicians who knew the patients and not how they are heard.
    None of them is in likeness.toml.
    """
    by_id = {task.id: task for task in tasks()}
    right = 0
    rows = cases_of(__file__, "ordinary_questions")
    for number, items, question in rows:
        task = by_id[number]
        reply = PATIENT.reply_to(task, question, [])
        wanted = {*items.split("|")}
        told = {facet.split(":")[0] for facet in reply.facets}
        is_known = wanted & {*task.words, *task.symptoms}
        right += bool(wanted & told) or (not is_known and reply.kind == "unknown")
    assert right >= ORDINARY * len(rows)


def test_of_several_things_only_the_one_asked_again_is_repeated():
    assert asked("发烧吗？恶心吗？", "有没有恶心？").text == "刚才说过了，没有恶心。"


@pytest.mark.parametrize(
    ("question", "item", "words", "values"), cases_of(__file__, "told_in_another_place")
)
def test_what_there_is_is_told_where_it_answers_another_question(question, item, words, values):
    own = {item: words, "history": "没得过什么大病"}
    task = replace(TASK, words=own, values=values, symptoms={} if values else {item: True})
    assert asked(question, task=task).text == f"{words}。"


@pytest.mark.parametrize(("question", "item"), cases_of(__file__, "items_asked_for"))
def test_what_is_asked_for_is_not_denied_for_another_thing(question, item):
    for task in tasks():
        if item in task.words:
            assert item in asked(question, task=task).facets


def test_most_questions_of_somebody_else_are_understood():
    """Of several things that are asked at once one is answered, at least."""
    rows = cases_of(__file__, "doctor_questions")
    understood = 0
    for row in rows:
        heard = {thing for part in parts_of(row["question"]) for thing in things_in(part)}
        understood += bool(heard & {*row["items"]})
    assert understood >= UNDERSTOOD * len(rows)


@pytest.mark.system
def test_no_patient_names_the_diagnosis():
    tables = load_tables()
    for task in {task.condition: task for task in tasks()}.values():
        names = [name.lower() for name in task.names]
        for item in [*tables.symptoms, *tables.facets, *tables.general]:
            text = asked(question_for(item), task=task).text.lower()
            assert not any(name in text for name in names), (task.id, item)


@given(st.text(max_size=2_000))
def test_any_question_is_answered(question):
    for task in (TASK, task_of(reference_row())):
        assert asked(question, task=task).kind in KINDS


def test_a_file_whose_rows_hold_nothing_to_tell_is_refused():
    empty = ConsultationTask(id="empty", question="我肚子疼。", reference="阑尾炎")
    with pytest.raises(AgentError, match="--patient llm"):
        AGENT.check_recorded([empty])
    [note] = AGENT.check_recorded([empty, TASK])
    assert not missing(note, "1 of 2 cases", "--patient llm")
    assert AGENT.check_recorded(tasks()) == []


@pytest.mark.parametrize(
    ("complaint", "question"), cases_of(__file__, "whether_there_is_the_complaint")
)
def test_the_own_complaint_is_affirmed_in_common_words(complaint, question):
    for task in (task for task in tasks() if task.complaint == complaint):
        reply = PATIENT.reply_to(task, question, [])
        assert (reply.kind, reply.facets) == ("informative", ("complaint",))
        assert reply.text.startswith("对")


def test_a_complaint_of_others_is_not_denied():
    for question in ("头疼吗？", "脑袋疼吗？", "Is your back sore?"):
        assert asked(question).kind in ("unknown", "off_topic")


def test_what_another_symptom_sounds_or_lasts_like_is_not_told():
    words = {"joint_creaking": "走路都听得见", "morning_stiffness": "要一个多小时", "onset": "半年"}
    task = replace(TASK, words=words, symptoms={"hearing_loss": False})
    assert asked("耳朵听得见吗？", task=task).text == "没有听力下降。"
    assert "要一个多小时。" in asked("晨僵大概持续多长时间？", task=task).text


def test_a_new_question_about_the_same_facet_is_new():
    task = replace(TASK, words=TASK.words | {"history": "血压高好些年"})
    first = asked("有高血压吗？", task=task)
    assert (first.kind, first.text) == ("informative", "血压高好些年。")
    other = asked("有高血压吗？", "有糖尿病吗？", task=task)
    assert (other.kind, other.text) == ("informative", "没查出过糖尿病。")
    assert asked("有糖尿病吗？", "得过糖尿病吗？", task=task).kind == "repeated"
    assert asked("以前得过什么病？", "血压高不高？", task=task).kind == "repeated"
    assert asked("有糖尿病吗？", "以前得过什么病？", task=task).text == "血压高好些年。"


@pytest.mark.parametrize(("question", "text"), cases_of(__file__, "facts_asked_for"))
def test_what_real_doctors_ask_is_answered_by_the_fact(question, text):
    words = TASK.words | {"habits": "抽烟好多年，一天一包", "course": "一阵一阵的"}
    words["history"] = "没病"
    assert asked(question, task=replace(TASK, words=words, sex="male")).text == text


@pytest.mark.parametrize(("question", "text"), cases_of(__file__, "asked_of_the_record"))
def test_nothing_of_the_record_is_denied_or_told_for_another_thing(question, text):
    words = {"relieving": "歇着就好", "aggravating": "一用力就犯", "severity": "九分，痒得睡不着"}
    words |= {"course": "一阵一阵的，是不是老毛病了？", "place": "手肘", "chills": "裹着被子还发抖"}
    words |= {"character": "掉白皮", "breathlessness": "上楼就喘", "medication": "没吃什么药"}
    absent = {"fever": False, "sleep_problems": False, "cold_intolerance": False}
    task = replace(TASK, words=words, symptoms={"chills": True, "breathlessness": True, **absent})
    assert asked(question, task=task).text == text


@pytest.mark.parametrize("lead", cases_of(__file__, "leads"))
def test_what_only_leads_up_to_a_question_changes_nothing(lead):
    words = {"severity": "十分", "aggravating": "一用力就犯", "relieving": "歇着就好"}
    task = replace(TASK, words=words, symptoms={"unsteadiness": False})
    for question in (
        ["does exercise help?"] if lead.isascii() else ["还能走路吗？", "疼得睡得着吗？"]
    ):
        assert asked(f"{lead}{question}", task=task) == asked(question, task=task)


@pytest.mark.parametrize(("history", "question"), cases_of(__file__, "relatives_and_wounds"))
def test_a_relative_or_wound_of_the_record_is_not_denied(history, question):
    assert asked(question, task=replace(TASK, words={"history": history})).text == f"{history}。"


@pytest.mark.parametrize(
    ("complaint", "question", "text"), cases_of(__file__, "asked_of_the_complaint")
)
def test_what_is_asked_of_the_complaint_is_more_than_that_it_is_there(complaint, question, text):
    words = {"character": "掉白皮", "onset": "突然就来了", "course": "一阵一阵的"}
    words |= {"aggravating": "一用力就犯", "severity": "十分"}
    if complaint == "rash":
        words["skin_pain"] = "一碰就疼"
    task = replace(TASK, complaint=complaint, words=words, symptoms={})
    assert asked(question, task=task).text.removeprefix("有，") == text


def test_another_joint_is_answered_by_the_place():
    task = replace(TASK, complaint="joint_pain", words={"place": "手指和手腕"})
    assert asked("膝盖疼吗？", task=task).text == "手指和手腕。"


def test_of_two_places_in_one_question_that_one_is_told_which_has_it():
    words = {"pain_to_back": "疼到后背"}
    task = replace(TASK, words=words, symptoms={"pain_to_back": True, "pain_to_shoulder": False})
    for question in ("会放射到后背或者肩膀吗？", "疼痛往肩膀或者后背走吗？"):
        assert "pain_to_back" in asked(question, task=task).facets


def test_words_for_an_absent_symptom_are_told_by_what_there_is():
    """Else a patient who says 满头汗 has no sweat. The symptom counts as asked for."""
    task = replace(TASK, words={"severity": "难受得满头汗"}, symptoms={"sweating": False})
    assert asked("出汗吗？", task=task) == Reply(
        "informative", "难受得满头汗。", ("sweating", "severity")
    )


@pytest.mark.parametrize(("facet", "value", "words", "question"), cases_of(__file__, "meant"))
def test_what_words_mean_is_known_whatever_they_are(facet, value, words, question):
    task = replace(TASK, words={facet: words}, values={facet: value})
    assert asked(question, task=task).text == f"{words}。"


def test_the_opening_of_a_row_without_facets_and_again():
    assert asked("怎么了？", task=task_of(reference_row())).text == "My ankle is swollen"
    task = replace(TASK, complaint="abdominal_pain")
    assert asked("肚子疼吗？", "怎么了？", task=task).kind == "repeated"


@pytest.mark.parametrize("case", cases_of(__file__, "recall"), ids=lambda case: case["why"])
def test_only_the_same_question_has_the_answer_of_then(case):
    """Another one is answered by "not sure"."""
    once = []
    for question, answer in case["exchanges"]:
        once.append({"doctor_question": [question], "patient_response": answer})
    row = reference_row(patient_information=once, enhanced_description=case["described"])
    said = {"role": "user", "content": f"Patient's description: {case['complaint']}\nDecide"}
    task = task_of(row | {"prompt": [said], "extra_info": {"age": "52"}})
    for question, text in case["asked"]:
        assert PATIENT.reply_to(task, question, []).text == text
