"""The illness that a gold diagnosis names if it is a sentence, as in DoctorAgent-RL's rows.

diseases_in("Based on your symptoms, you likely have a cold or stomach flu.")   # ("cold", "stomach flu")
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from conditions.diagnosis_words import TABLE, conditions, words_of
from conditions.framing import TABLE as FRAMING
from conditions.framing import unframed

GOLD = FRAMING["gold"]
LEAD, STOP, ILLNESS, ASIDE = (
    re.compile("|".join(f"(?:{one})" for one in GOLD[name]), re.IGNORECASE)
    for name in ("lead", "stop", "illness", "aside")
)
BETWEEN = re.compile(
    rf"\s*(?:(?:{'|'.join(GOLD['between'])})(?:\s+|(?<=[为是有])))+", re.IGNORECASE
)
ALIKE = re.compile(
    "|".join(rf"\b{one}\b ?" if one.isascii() else one for one in GOLD["alike"]), re.I
)
SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
INSIDE = re.compile(r"\(([A-Za-z][\w -]{1,40})\)")
OR = re.compile(r"\s+or\s+|或者?")
AND = re.compile(r"\s+and\s+|\s*(?:[和与及、]|合并)\s*")
CLAUSE = re.compile("[，,；;]")
LONGEST = 8  # words of a sentence that is the illness itself
BARE = 12  # characters of a Chinese one


@lru_cache(maxsize=4096)
def diseases_in(sentence: str) -> tuple[str, ...]:
    """Return the names of a gold sentence's illness, and the sentence. One is enough."""
    first = next((one for one in SENTENCE.split(sentence) if LEAD.search(one)), sentence)
    clauses = CLAUSE.split(first)
    of_it = [clause.strip() for clause in clauses if not ASIDE.search(clause)]
    if len(clauses) > len(of_it) > 0:
        first = "，".join(of_it)
    led = (_alternatives(first[lead.end() :]) for lead in LEAD.finditer(first))
    named = next(filter(None, led), [])
    bare = unframed(first)
    short = len(bare.split()) <= LONGEST if bare.isascii() else len(bare) <= BARE
    if short and not named:
        named = _alternatives(bare)
    named = [*named, *map(str.strip, INSIDE.findall(first))]
    several = ["; ".join(parts) for name in named if len(parts := AND.split(name)) > 1]
    return tuple(dict.fromkeys(filter(None, (*named, *several, sentence.strip(" .。")))))


def _alternatives(text: str) -> list[str]:
    text = _behind_lead(text)
    stop = STOP.search(text)
    names = OR.split(text[: stop.start()] if stop else text)
    return list(filter(None, (_behind_lead(name).strip(" .。\"'“”") for name in names)))


def _behind_lead(text: str) -> str:
    between = BETWEEN.match(f"{text} ")
    return text[between.end() :] if between else text


def secrets_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the texts that give a diagnosis away: its names, their heads, and synonyms."""
    found = dict[str, None]()
    for name in names:
        for part in (*diseases_in(name), *ILLNESS.findall(name)):
            head = ALIKE.sub("", part).strip()
            found |= dict.fromkeys([part, head] if words_of(head) else [part])
    wanted = {words_of(name) for name in found}
    for group in (*conditions(), *((one, *others) for one, others in TABLE["same"].items())):
        if any(words_of(one) in wanted for one in group):
            found |= dict.fromkeys(group)
    return tuple(found)
