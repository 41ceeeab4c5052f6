"""What a question asks a patient for.

things_in("有没有恶心、出汗？")      # ["nausea", "sweats"]
"""

from consultation_agent.doctor_questions import (
    ANOTHER_PERSON,
    ASKING,
    CLAUSE,
    JOINT,
    WHETHER,
    asking_of,
    asking_sentences,
    asks,
    content_of,
)
from consultation_agent.likeness import heard

# Of the probability that a question asks for a thing: to answer by it, and to take a thing of a list
# or a part of another question for one of its own.
SURE = 0.15
LISTED = 0.35
VERY_SURE = 0.5
OTHER = "other"  # what no patient can tell, or is not understood
ANOTHER_TIME = "another_time"  # when something was that is not the complaint
UNRECORDED = "unrecorded"  # what a patient knows, and no record has
SIDES = frozenset({"onset", "course", "place", "character", "severity", "aggravating", "relieving"})
OTHERS = frozenset({"relatives", "contacts"})  # who are asked for each thing behind them


def parts_of(question: str) -> list[str]:
    """Return the sentences of a question that ask, or the clauses that each ask for something."""
    parts = list[str]()
    for sentence in asking_sentences(question):
        clauses = _clauses(sentence)
        for clause in clauses if len(clauses) > 1 else [sentence]:
            things = clause.split("、")
            parts += things if all(map(asks_by_itself, things)) else [clause]
    if len(parts) < 2:
        return [question]
    return [part if asks(part) else f"{part}?" for part in parts]


def _clauses(sentence: str) -> list[str]:
    """Return the clauses that ask, the first of a list with the bare things behind it."""
    clauses = list[str]()
    for clause in CLAUSE.split(sentence):
        is_thing = bool(clauses) and heard(clause).probability >= VERY_SURE
        if asks_by_itself(clause) or (is_thing and heard(clause).item in SIDES):
            clauses.append(clause)
        elif is_thing:
            clauses[-1] += f"，{clause}"
    return clauses


def asks_by_itself(clause: str) -> bool:
    least = SURE if content_of(clause) else LISTED  # "how much" asks for nothing alone
    return bool(ASKING.search(clause)) and heard(clause).probability >= least


def things_in(part: str, question: str = "") -> list[str]:
    """Return what one part of a question asks for, OTHER for what is not understood."""
    asking = asking_of(part)
    if not asking:
        return [OTHER]
    if ANOTHER_PERSON.search(asking):
        return [UNRECORDED]
    around = asking_of(question) or asking
    whole = heard(asking, around)
    pieces = list(filter(None, JOINT.split(WHETHER.sub("", asking))))
    if len(pieces) > 1 and whole.item not in SIDES and heard(pieces[0]).item not in OTHERS:
        least = LISTED if "、" in asking else VERY_SURE
        sure = dict[str, None]()
        for piece in pieces:
            if heard(piece).probability >= least:
                sure.update(dict.fromkeys(heard(piece, around).item.split("+")))
        if len(sure) > 1:
            return list(sure)
    least = SURE if asking == around else LISTED
    return whole.item.split("+") if whole.probability >= least else [OTHER]
