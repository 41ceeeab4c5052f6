"""Supervised data for a model of the simulator: recorded cases as DiagGym's texts.

    .venv/bin/python -m training.cold_start diagnosis --role simulator --base MODEL --out models/world
    .venv/bin/python -m evaluation.evaluate diagnosis --gold --simulator served --simulator-model models/world

Results follow in the order of care, each with its reference range half of the time. A case has
several texts, each with no more results than a policy orders.
"""

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from conditions.table import load_tables
from diagnosis_agent.llm_simulator import SEPARATOR, context, opening, split_range
from diagnosis_agent.record_simulator import RecordSimulator
from diagnosis_agent.task import DiagnosisTask
from episodes.episode import Conversation, Message

STEPS = (
    "physical",
    "lab",
    "imaging",
    "procedure",
)  # of care. What the tables do not know comes last
RANGE_SHOWN = 0.5
MOST_EVENTS = 8  # of a text
OTHERS = 4  # examinations that the case has nothing of, each normal


def partner_lessons(tasks: Iterable[DiagnosisTask], seed: int = 0) -> Iterator[Conversation]:
    """Yield the texts of each case, without a chat template. Only the results are learned."""
    for task in tasks:
        random = Random(f"{seed}/{task.id}")
        events = events_of(task, random)
        events = random.sample(events, len(events))
        for at in range(0, len(events), MOST_EVENTS):
            yield _text(task, in_order(events[at : at + MOST_EVENTS], random), random)


def _text(task: DiagnosisTask, events: Sequence[tuple[str, str]], random: Random) -> Conversation:
    messages: list[Message] = []
    for name, text in events:
        results, usual = split_range(text)
        asked = opening(name, usual if random.random() < RANGE_SHOWN else "")
        messages.append({"role": "user", "content": asked if messages else context(task) + asked})
        messages.append({"role": "assistant", "content": results + SEPARATOR})
    return Conversation(messages, [True] * len(events), raw=True)


def events_of(task: DiagnosisTask, random: Random) -> list[tuple[str, str]]:
    """Return the recorded results by name and, for a case of the tables, some of other
    examinations.
    """
    names = [one.en for one in load_tables().examinations.values()] if task.condition else []
    others = [
        RecordSimulator().reply_to(task, name, [])
        for name in random.sample(names, min(OTHERS, len(names)))
    ]
    return [
        *task.results.items(),
        *((one.name, one.text) for one in others if one.kind == "normal"),
    ]


def in_order(events: Sequence[tuple[str, str]], random: Random) -> list[tuple[str, str]]:
    """Return the events step by step, shuffled within a step. Unknown examinations come last."""
    step_of = {one.en: STEPS.index(one.kind) for one in load_tables().examinations.values()}
    shuffled = random.sample(events, len(events))
    return sorted(shuffled, key=lambda event: step_of.get(event[0], len(STEPS)))
