"""Teach a served patient the record patient's answers.

.venv/bin/python -m training.cold_start consultation --base MODEL --role patient --out models/patient
"""

from collections.abc import Iterable, Iterator

from consultation_agent.doctor_questions import SAID
from consultation_agent.llm_patient import WORDS, Said, clean, messages_for
from consultation_agent.record_patient import RecordPatient, question_for
from consultation_agent.task import ConsultationTask
from episodes.episode import Conversation

ASKED = (
    *("aggravating", "onset", "place", "character", "course", "history", "relieving"),
    *("accompanying", "habits", "severity", "medication", "allergies"),
)


def partner_lessons(tasks: Iterable[ConsultationTask]) -> Iterator[Conversation]:
    """Yield the record patient's answers to first questions, in the form that a served patient
    reads.

    The questions are about each facet and symptom of the record, about two at once, and one that no
    patient can answer.
    """
    patient = RecordPatient()
    words = WORDS["served"]
    for task in tasks:
        items = dict.fromkeys([*task.distinguishing, *ASKED, "age", "sex", *task.symptoms])
        single = [question_for(item) for item in items]
        for question in (*single, single[0] + single[-1], SAID["off_topic"]):
            reply = patient.reply_to(task, question, [])
            said = Said.model_validate(
                {"kind": reply.kind, "facets": list(reply.facets), "text": reply.text}
            )
            answer = {"role": "assistant", "content": said.model_dump_json()}
            yield Conversation([*messages_for(task, clean(question), words), answer], [True])
