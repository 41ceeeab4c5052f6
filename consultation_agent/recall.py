"""Which text of a record without facets answers a question.

    recalled(task, "Do you have any allergies?")      # ("sentence 3:allergies", "She has no allergies.")

A text answers if it is about the thing that is asked, and if it says of it what is asked, such as a
colour or a time (fits.py, kinds.py); the patient does not know the answer to any other question. Of several
texts the one counts that says most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from consultation_agent.doctor_questions import asked_for, content_of, plain
from consultation_agent.fits import (
    BARE,
    OPEN,
    Asked,
    Came,
    asked_of,
    came_with,
    denies_all,
    fits,
    is_side,
    of_the_complaint,
    subjects_of,
)
from consultation_agent.kinds import PAIN, kinds_of, left_of, names_it, parts_in, things_in
from consultation_agent.memory import ASKED, DENIED, Memory, age_of, hidden, memories_of, sex_of
from consultation_agent.task import ConsultationTask
from consultation_agent.topics import asking_of, topics

# The share of a question's content that an earlier question or a sentence must have to answer it
NEAR = 0.6
# An answer of several sentences is worth this much less than its one sentence that answers, and so
# is what there is not than what there is, where a question is open
WHOLE = 0.3
HEALTHY = re.compile(r"\bno\b|\bnot\b|none|never|healthy|unremarkable|没|无|健康|挺好")
POSITIVE = frozenset(
    {"onset", "place", "severity", "character", "frequency", "duration", "aggravating"}
)  # "no lump on the left" is none
# Sides that one thing has at another time than the next: the end of a fever is not that of a cough.
IN_TIME = frozenset({"onset", "course", "frequency", "duration", "earlier"})
# Sides that are things of their own: what one of these does is not told by what another does.
NAMED = frozenset({"meals", "chill", "overwork", "earlier", "radiation"})
# Sides by which one cause is asked for.
CAUSES = frozenset({"course", "aggravating", "triggers", "relieving", "meals"})
# Sides that only a text of their kind tells, since words such as "started" ask for none of them.
OF_A_KIND = frozenset({"onset", "course", "frequency", "duration", "character", "manner"})
# A length of time that stands beside these is theirs, not the complaint's.
ELSEWHERE = frozenset((
    "job", "smoking", "alcohol", "water", "diet", "exercise", "pets", "drugs", "living", "travel", "tests", "visits",
    "vaccines", "periods", "pregnancy", "relatives", "operation", "hypertension", "diabetes", "heart", "medicines",
    "allergies", "history",
))  # fmt: skip
# Topics that the same thing is told under: where a question asks for several of one group, one is enough.
GROUPS = (
    frozenset({"food", "diet", "taste", "appetite", "meals"}),
    frozenset({"medicines", "visits", "admission"}),
    frozenset({"weakness", "spirits", "mood"}),
)


def recalled(task: ConsultationTask, question: str) -> tuple[str, str] | None:
    """Return the name and the text of the memory that answers a question; None if the record has no
    answer.
    """
    held = memories_of(task.opening, task.exchanges, task.description, hidden(task))
    items = asked_for(question, "")
    for item, value in (("age", age_of(task)), ("sex", sex_of(task))):
        if items[:1] == [item] and value:
            return item, value
    came = came_with(held)
    whole = asked_of(question)
    asked = of_the_complaint(whole, came)
    same = _asked_alike(question, task.opening, held)
    if same and _is_no_other(asked, same) and fits(asked, same, came):
        return same.name, same.text
    told = [one for one in held if fits(asked, one, came)]
    by_topic = bool(asked.names or asked.kinds)
    best = _best(asked, told, came) if by_topic else None
    if not whole.subjects:
        best = best or _by_content(question, task.opening, told)
    best = best or _by_things(asked, told) or _of_the_part_that_hurts(asked, told)
    return (":".join((best.name, *sorted(asked.names))), best.text) if best else None


def _of_the_part_that_hurts(asked: Asked, held: Iterable[Memory]) -> Memory | None:
    """Return what the patient came with, where a question asks for pain in the part that it names;
    None for another question.
    """
    yes_or_no = not (asked.sides or asked.kinds or asked.is_open)
    named = parts_in(asked.text) if yes_or_no and PAIN.search(asked.text) else frozenset[int]()
    complaint = (one for one in held if one.name.startswith("complaint"))
    return next(
        (one for one in complaint if named & parts_in(one.text) and PAIN.search(plain(one.text))),
        None,
    )


def _by_things(asked: Asked, held: Iterable[Memory]) -> Memory | None:
    """Return the first memory that names all things and parts of the body that a question names; None
    if there is none.
    """
    if asked.subjects or not things_in(asked.text):
        return None
    parts = parts_in(asked.text)
    return next(
        (
            one
            for one in held
            if not one.question and names_it(asked.text, one.text) and parts <= parts_in(one.text)
        ),
        None,
    )


def _asked_alike(question: str, complaint: str, held: Iterable[Memory]) -> Memory | None:
    """Return the memory whose question has nearly the same content beyond the complaint; None if
    none is near enough.
    """
    content = _beyond(question, complaint)
    once = [(_beyond(one.question, complaint), one) for one in held if one.question]
    shares = [
        (len(content & other) / len(content | other), one) for other, one in once if content | other
    ]
    share, best = max(shares, key=lambda found: found[0], default=(0.0, None))
    return best if share >= NEAR else None


def _is_no_other(asked: Asked, one: Memory) -> bool:
    """Return whether an answer to nearly the same question is not about something else."""
    about = subjects_of([one])
    return not about or not asked.subjects or bool(about & asked.subjects)


def _beyond(question: str, complaint: str) -> set[str]:
    """Return the content of a question without that of the complaint, or all of it if nothing else
    is left.
    """
    return content_of(question) - content_of(complaint) or content_of(question)


def _best(asked: Asked, held: Iterable[Memory], came: Came) -> Memory | None:
    """Return the memory that says most about what is asked, the first of equals; None if none says
    anything.
    """
    content, scored = content_of(asked.text), list[tuple[float, Memory]]()
    for one in held:
        worth = (
            _subject_worth(asked, one, came) if asked.subjects else _side_worth(asked, one, came)
        )
        if not worth:
            continue
        near = 1.5 * len(content & content_of(one.text)) / max(1, len(content))
        beside = 0.7 * len(asked.sides & one.mentioned) if asked.subjects else 0
        named = 0.5 * bool(things_in(asked.text) & things_in(one.text))
        denied = asked.is_open and bool(DENIED.match(one.text))
        less = WHOLE * (bool(one.question) + denied)
        scored.append((worth + beside + near + named - less, one))
    return max(scored, key=lambda found: found[0], default=(0.0, None))[1]


def _subject_worth(asked: Asked, one: Memory, came: Came) -> float:
    """Return how well a memory answers a question about subjects, and about sides of them if it names
    any; 0 if not at all.
    """
    wanted = asked.topics or asked.subjects
    told = {name for name in wanted if _tells(name, one)}
    others = subjects_of([one]) - asked.subjects
    once = {name for name in one.asked if not is_side(name)}
    of_kind = any(not kind.by_context for kind in asked.kinds) or asked.sides & one.mentioned
    if not told and not others and of_kind:
        told = {*wanted} & (once or {*came.subjects}) if _of_one_time(asked, one) else set()
    elif told and not others:
        told |= wanted & once
    elif not told and denies_all(asked, one):
        told = {*wanted}
    elif not told and _answers(asked.names, one):
        told = {*wanted} & once
    enough = bool(told) if asked.any_does else all(_is_among(name, told) for name in wanted)
    if not enough or not _tells_sides(asked, one):
        return 0.0
    return 3 + 0.5 * len(told) + bool(asked.subjects & one.asked)


def _of_one_time(asked: Asked, one: Memory) -> bool:
    """Return whether a memory that names no subject dates what is asked, if a date is asked for: it
    does if that is what it was once asked for.
    """
    timed = any(kind.name in ("date", "length") for kind in asked.kinds)
    alike = "onset" in one.asked or {*asked.kinds} & {*kinds_of(one.context)}
    return not timed or bool(alike) or {n for n in one.asked if not is_side(n)} == asked.subjects


def _is_among(name: str, told: Iterable[str]) -> bool:
    """Return whether a topic, or another of its group, is told."""
    group = next((group for group in GROUPS if name in group), frozenset({name}))
    return not group.isdisjoint(told)


def _tells_sides(asked: Asked, one: Memory) -> bool:
    """Return whether a memory tells the sides that a question names beside its subject; those that are
    of a kind are told by the kind.
    """
    return asked.sides - OF_A_KIND <= one.mentioned


def _tells(name: str, one: Memory) -> bool:
    """Return whether a memory says something about a topic or what is under it, or that there is
    nothing of the kind.
    """
    topic = topics().get(name)
    if name in one.mentioned or topic is None:
        return name in one.mentioned
    if topic.kind == "general":
        others = "relatives" in one.mentioned or DENIED.match(one.text)
        return bool(one.mentioned & _under(name)) and not others
    general = (
        topic.under and topic.under in one.mentioned and not one.mentioned & _under(topic.under)
    )
    return bool(general and HEALTHY.search(plain(one.text)))


def _under(name: str) -> set[str]:
    return {topic.name for topic in topics().values() if topic.under == name}


def _side_worth(asked: Asked, one: Memory, came: Came) -> float:
    """Return how well a memory answers a question about sides of the complaint; 0 for one about
    another thing.
    """
    sides = asked.sides
    mentioned, once = sides & one.mentioned, sides & one.asked
    subjects = subjects_of([one]) | {name for name in one.asked if not is_side(name)}
    in_time = sides <= IN_TIME
    if not sides & NAMED <= mentioned | once:
        return 0.0
    of_another = bool(subjects) and not subjects_of([one])
    if in_time and subjects and came.subjects and subjects.isdisjoint(came.subjects):
        return 0.0
    mentioned -= POSITIVE if DENIED.match(one.text) else frozenset()
    own = one.name.startswith("complaint") or not one.mentioned & ELSEWHERE
    if mentioned and (once or own or not sides <= IN_TIME - {"course"}):
        return 2 + 0.5 * len(mentioned) + 1.5 * bool(once) - of_another
    alike = asked.kinds and set(asked.kinds) & set(kinds_of(one.context))
    return 1.2 if (once and _answers(sides, one)) or alike else 0.0


def _answers(wanted: Iterable[str], one: Memory) -> bool:
    """Return whether an answer that names nothing of what was asked is an answer to it.

    It is one if its own question asked for nothing else, and if it neither asks back nor is about
    another subject.
    """
    if not one.question or one.text.rstrip().endswith(ASKED):
        return False
    if BARE.fullmatch(one.text.strip()) and OPEN.search(one.question.lower()):
        return False
    asked, mentioned = ({*names} - {*wanted} for names in (one.asked, one.mentioned))
    beyond = {name for name in mentioned if not is_side(name)} - {"childhood"}
    asked -= CAUSES if CAUSES.intersection(wanted) else frozenset()
    return not beyond and not asked and (not mentioned or not {*wanted} & {*one.mentioned})


def _by_content(question: str, complaint: str, held: Iterable[Memory]) -> Memory | None:
    """Return the memory that has most of a question's content beyond the complaint; None if that is
    not enough.
    """
    left = bool(left_of(question))
    content = left_of(question) or _beyond(question, complaint)
    shares = [
        (len(content & content_of(text)) / len(content), -len(content_of(text)), one)
        for one in held
        if content
        for text in (
            one.text,
            *[asking_of(one.question)] * (bool(one.question) and (left or len(content) > 1)),
        )
    ]
    share, _, best = max(shares, key=lambda found: found[:2], default=(0.0, 0, None))
    return best if share >= NEAR else None
