"""How much of the gold advice a doctor gives: by its terms, each read in the sense of its clause.

advice_value(("多*休息*", "少喝*咖啡*"), "多休息，不要喝咖啡", "")      # 1.0
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

from common.toml import table_beside
from conditions.condition_types import terms
from conditions.table import chinese_pairs, load_tables
from consultation_agent.doctor_questions import HAN_RUN, content_of, plain
from scoring.text import words_only

WORDS = table_beside(__file__)
CLAUSE = re.compile(r"[，。；、,;.!！?？\n]")
JOINED = re.compile("|".join(WORDS["joined"]))
LISTED = re.compile(f"、(?!{'|'.join(WORDS['predicate'])})")
NEGATIONS = "|".join(map(re.escape, sorted(WORDS["negations"], key=len, reverse=True)))
NEGATED = re.compile("|".join([NEGATIONS, *WORDS["not"]]))  # 不用 before 不 with a verb behind it
NO_NEGATION = re.compile("|".join(WORDS["no_negations"]))
# A negation acts on what follows, up to the next predicate. Between it and another negation, which
# it undoes, stands at most its manner.
WITHIN = re.compile(rf"(?!{'|'.join(WORDS['next_predicate'])}).*")
DIRECTLY = re.compile(rf"\s*了?(?:{'|'.join(WORDS['manner'])})?\s*")
MUST = re.compile(r"[不非](?!不)([^不非]+)不[行可成][的了]?$")  # 不休息不行, 非手术不可
BEHIND = re.compile("|".join(WORDS["behind"]).replace("NEGATION", NEGATIONS))
PAIR = re.compile(r"(?=([\u4e00-\u9fff]{2}))")
# Of the pairs of Chinese characters beside the terms, so many are known where a clause has sense: all
# but three of 80 clauses of doctors have more, and random common characters 0.03 on the average.
KNOWN_PAIRS = 1 / 6
# Of a pair in doctors' questions: so many times, and so much oftener than its characters would meet by
# chance (Church and Hanks: Word association norms, mutual information, and lexicography, 1990)
OFTEN = 3
BY_CHANCE = 1 / 5
ANY_ADVICE = re.compile("|".join(WORDS["any_advice"]))


def advice_value(items: Sequence[str], advice: str, gold: str) -> float:
    """Return the mean over the gold items of the share of their terms that are advised.

    Contradicted terms count against it, as do terms of other conditions and senseless clauses, so
    that a list that fits every patient is worth little. Without known items it is the F1 of the
    content words of both texts, each in its sense.
    """
    if not items:
        if words_only(advice) == words_only(gold):
            return 1.0
        known = _content(gold)
        said = _content(advice, {word for word, _ in known})
        both_ways = {(word, not sense) for word, sense in said - known}
        return 2 * len(said & known - both_ways) / max(1, len(said) + len(known))
    every = CLAUSE.split(advice)
    clauses = [clause for clause in every if not _is_senseless(clause)]
    lists = [one for one in CLAUSE.split(LISTED.sub("和", advice)) if not _is_senseless(one)]
    own = set[str]()
    shares = list[float]()
    for item in items:
        wanted = CLAUSE.split(item.replace("*", ""))
        own.update(terms(item))
        shares.append(fmean(_given(term, wanted, clauses, lists) for term in terms(item)))
    right = sum(term in advice for term in own)
    senseless = len(every) - len(clauses)
    said_by_gold = "".join(items).replace("*", "")
    others = sum(term in advice and term not in said_by_gold for term in all_terms())
    return max(0.0, fmean(shares)) * right / max(1, right + others + senseless)


def _content(text: str, read: set[str] | None = None) -> set[tuple[str, bool | None]]:
    """Return the words of content that are not in any advice, each with its sense, if it is to be
    read: of each word in one long clause that takes time with its square.
    """
    found = set[tuple[str, bool | None]]()
    for clause in CLAUSE.split(JOINED.sub(",", LISTED.sub("和", plain(text)))):
        for word in content_of(ANY_ADVICE.sub(" ", clause)):
            found.add((word, _sense(word, clause) if read is None or word in read else None))
    return found


@cache
def all_terms() -> frozenset[str]:
    """Return the terms of advice for any condition."""
    found = set[str]()
    for condition in load_tables().conditions.values():
        for item in condition.advice_zh:
            found.update(terms(item))
    return frozenset(found)


def _is_senseless(clause: str) -> bool:
    beside = _any_term().sub(lambda term: f"{term[0][0]}\n{term[0][-1]}", clause)
    pairs = PAIR.findall(beside)
    known = sum(pair in _known_pairs() for pair in pairs)
    least = 2 if beside == clause else 1  # a word of its own may be unknown
    return len(pairs) >= least and known < KNOWN_PAIRS * len(pairs)


@cache
def _known_pairs() -> frozenset[str]:
    """Return the pairs of the tables, of what doctors and patients say around them, and those that
    doctors' questions have more often than chance.
    """
    said = PAIR.findall(_beside("advice") + _beside("said"))
    questions = _beside("likeness")
    singles = Counter("".join(HAN_RUN.findall(questions)))
    chance = sum(singles.values()) * BY_CHANCE
    bound = set[str]()
    for pair, times in Counter(PAIR.findall(questions)).items():
        if times >= OFTEN and times * chance >= singles[pair[0]] * singles[pair[1]]:
            bound.add(pair)
    return chinese_pairs().union(said, bound)


def _beside(name: str) -> str:
    return Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8")


@cache
def _any_term() -> re.Pattern[str]:
    longest_first = sorted(all_terms(), key=lambda term: (-len(term), term))
    named = "|".join(map(re.escape, longest_first))
    # Two in a row make sense: antibiotics for two weeks, a blood count
    return re.compile(f"(?:{WORDS['before']}(?:{named}){WORDS['after']}){{1,2}}")


def _given(term: str, gold: list[str], clauses: list[str], lists: list[str]) -> int:
    wanted = _sense(term, next(clause for clause in gold if term in clause))
    senses = {_sense(term, clause) for clause in (clauses if wanted else lists)} - {None}
    if len(senses) != 1:
        return 0
    return 1 if wanted in senses else -1


def _sense(term: str, clause: str) -> bool | None:
    clause = MUST.sub(r"\1", clause)
    at = clause.find(term)
    if at < 0:
        return None
    plainly = NO_NEGATION.sub(lambda found: " " * len(found[0]), clause)
    before = plainly[:at]
    behind = plainly[at + len(term) :].strip()
    acts = DIRECTLY if NEGATED.match(plainly, at) else WITHIN
    sense = True
    place = len(before)
    for negation in reversed([*NEGATED.finditer(before)]):
        if not acts.fullmatch(before, negation.end(), place):
            break
        acts = DIRECTLY
        sense = not sense
        place = negation.start()
    # Without a negation before the term, one behind it counts if it has no other object (咖啡不要喝)
    if place == len(before) and BEHIND.fullmatch(behind):
        return False
    return sense
