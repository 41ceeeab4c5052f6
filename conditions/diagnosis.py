"""Whether a diagnosis is the gold one, by one of its names and nothing else. docs/diagnosis.md has the rules.

names_it("Likely acute appendicitis.", ["acute appendicitis", "appendicitis"])      # True
names_it("appendicitis or cholecystitis", ["acute appendicitis", "appendicitis"])   # False
"""

import re
import unicodedata
from collections.abc import Iterable
from itertools import chain

from conditions.causes import any_of, due_to, links, misjoined, parts_in
from conditions.diagnosis_words import (
    HAN,
    LEADING_CODE,
    LEVEL,
    TABLE,
    Words,
    beside,
    diseases,
    known_words,
    longest_first,
    organs,
    words_in,
    words_of,
)
from conditions.framing import TABLE as FRAMING
from conditions.framing import unframed
from conditions.gold_diagnosis import NEVER, Gold, gold_of
from conditions.initials import spelt_out, with_initials, without_initials
from conditions.spelling import spelt
from scoring.text import simplified

LONGEST = 200  # characters of a diagnosis
NUMBER = re.compile(r"((type|stage|grade|class|phase)(?:\d|[a-d]\Z))[a-c]?")
CLAUSE = re.compile(any_of(chain(*map(TABLE["said"].get, ("clause", "cause", "effect")))), re.I)
# Directly behind it, or one word later, stands what the cause is
CAUSE = rf"(?:\b(?:in|at)\b|{'|'.join(TABLE['said']['cause'])})\s*(?:an? |the )?(?:[a-z-]+ |[\u4e00-\u9fff]{{0,6}})?"
SYMPTOM = re.compile(
    rf"\A((?:[\w/-]+ ){{0,3}})(?:{'|'.join(TABLE['said']['symptom'])})s?"
    rf" (?!following|after)(?:{'|'.join(TABLE['said']['cause'])}) ",
    re.I,
)
# What is not called acute is then no longer so
LATER = {"恢复期", "慢性期", "稳定期", "缓解期"}
ONE_OF = words_in(chain(*TABLE["one_of"].values()))
FELT = words_in(TABLE["said"]["felt"])
FINDINGS = words_in(TABLE["said"]["findings"])  # that a disease may have or not
OF_OTHERS = words_in(TABLE["said"]["of_others"])  # beside what the tables do not have
COURSE = words_in([*TABLE["beside"]["course"], *TABLE["one_of"]["severity"]]) | FINDINGS
COURSE_ZH = "|".join(filter(HAN.search, TABLE["beside"]["course"] + TABLE["said"]["findings"]))
# "not perforated", "non-perforated", "unruptured", 未穿孔: what is denied of a course
OTHER_COURSE = re.compile(
    r"(?:[,;(、，；（]\s*|\s[-–—]\s)?(?:\bnot ([a-z]+(?:(?: or | and |/)[a-z]+)*)(?=\s*(?:$|[,;.)、，；。）]))"
    r"|\b(?:non[- ]?|un)([a-z]{5,})"
    rf"|(?:未|非|无|没有|不伴有?)(?:明显|合并|发生)?((?:{COURSE_ZH})(?:[、或和及/](?:{COURSE_ZH}))*))[)）]?",
    re.I,
)
ABSENT = re.compile(r"(?:\b(?:without|w/o|absent)\b|不伴有?)([^,;.(\[，；。（【]+)", re.I)
# A part between marks, "per DSM-5", and "HIV-negative": it may say what the patient does not have
PART = re.compile(
    r"(?:[,;(，；（]\s*| (?=(?:rather than|meeting|fulfilling|according to|by|per) ))"
    r"([^,;()，；（）]+?)[\s.。]*[)）]?\s*(?=$|[,;()，；（）])"
    r"|\b([\w/]+-negative)\b",
    re.I,
)
# What a grade, a score or a criterion ends with
GRADE = re.compile(
    r"(?:\d[\d.+/-]*[a-c]?|\b[ivx]+[a-c]?|\b(?:stage|grade|class|type|group) [a-e]|[\da-d一二三四五][期级型分]"
    r"|\b(?:criteria|classification)|\d ?[\w/%.²]{1,14})\W*\Z",
    re.I,
)
VALUE = re.compile(r"\d ?(?:%|[a-z]+/[a-z]+)\W*\Z", re.I)  # of a laboratory: no type or stage
OWN_GRADE = re.compile(r"\d+|[abcivx]+")  # a word of "Child C", "Killip II"
# No grade: how sure it is, and what looks like another disease
NO_GRADE = re.compile(
    r"probab|likel|confid|chance|odds|possib|certain|doubt|sure\b|\b(?:never|rank|p)\b|无"
    rf"|[炎癌瘤症病](?![型期级])|{FRAMING['gold']['illness'][0]}",
    re.I,
)
BECAUSE = re.compile("|".join(TABLE["said"]["cause"]), re.I)
UNDECIDED = re.compile("|".join(TABLE["said"]["undecided"]), re.I)
NOTHING = re.compile("|".join(TABLE["said"]["nothing"]), re.I)
DENIED = re.compile("|".join(TABLE["said"]["denied"]), re.I)
ABSENCE = re.compile("|".join(TABLE["said"]["absence"]), re.I)
EXCLUSION = re.compile("|".join(TABLE["said"]["exclusion"]), re.I)
TURNED = re.compile("|".join(TABLE["said"]["turned"]), re.I)
# A Chinese adjective behind its noun
ADJECTIVE = re.compile(r"([\u4e00-\u9fff\d]+)\(([\u4e00-\u9fff]{1,4}[性型])\)")
DOUBT = re.compile(r"^(?:possible|probable|suspected|likely)\s+", re.I)


def names_it(said: str, names: Iterable[str]) -> bool:
    """Return whether the words are the diagnosis that has these names, and no other one beside it.

    A gold of parts joined by ";" needs all of them. One of two joined by " / " needs either.
    """
    known = list[str]()
    said = simplified(said)
    for name in map(simplified, names):
        if name.strip() and _folded(said) == _folded(name):
            return True
        known += _alternatives(name)
    said = unframed(unicodedata.normalize("NFKC", said))
    if not known or len(said) > LONGEST:
        return False
    gold = gold_of(tuple(known))
    said = _without_qualifiers(said, gold)
    if _undecided(said, known):
        return False
    asides = _asides(said)
    bare = [NOTHING.sub(" ", name) for name in known if _asides(name) <= asides]
    return _says(said, known) or _says(
        _without_symptom(NOTHING.sub(" ", said), gold), bare or known
    )


def _alternatives(name: str) -> list[str]:
    """Return a gold name, also without its own initials, and each where it joins two by " / "."""
    parts = [DOUBT.sub("", part).strip() for part in re.split(r"\s/\s", name)]
    found = list(dict.fromkeys([name, without_initials(name, [])]))
    if len(parts) > 1:
        found += [part for part in parts if not words_of(part) <= beside()]
    return [one for one in found if one.strip()]


def _without_qualifiers(said: str, gold: Gold) -> str:
    """Return a text without what it denies of another disease or of the course, and its grades."""

    def without_course(denied: re.Match[str]) -> str:
        course = words_of(re.sub(r"\bor\b|[或和及]", " ", next(filter(None, denied.groups()))))
        return " " if course and course <= COURSE - gold.words else denied[0]

    said = OTHER_COURSE.sub(without_course, re.sub(r"(?i)\bwith no\b", "without", said))
    for part in list(PART.finditer(said)):
        text = next(filter(None, part.groups()))
        if _denies_another(text, gold) or _is_grade(text, gold):
            said = said.replace(part[0], " ")
    return said


def _is_grade(part: str, gold: Gold) -> bool:
    """Return whether a part is a grade, a score or a criterion, by its form, and names no disease.

    Where the diagnosis has a grade of its own, or a number, none is left out.
    """
    own = [word for word in gold.words if NUMBER.fullmatch(word) or OWN_GRADE.fullmatch(word)]
    if (own and not VALUE.search(part)) or not GRADE.search(part) or NO_GRADE.search(part):
        return False
    if UNDECIDED.search(part) or DENIED.search(part):
        return False
    names = False
    for word in words_of(part):
        if word.isdigit() or NUMBER.fullmatch(word):
            continue
        if word in organs() or word in known_words() - beside() or _contradicts(word, gold):
            return False
        names = True
    return names


def _folded(text: str) -> list[str]:
    return unicodedata.normalize("NFKC", text).casefold().split()


def _denies_another(part: str, gold: Gold) -> bool:
    """Return whether a part plainly denies another disease or a finding, in words of the tables."""
    exclusion = EXCLUSION.fullmatch(part)
    denial = exclusion or ABSENCE.fullmatch(part)
    if not denial or DENIED.search(part):
        return False
    what = next(filter(None, denial.groups()))
    words = spelt(words_of(what), gold.words)
    if TURNED.search(what) or any(name <= words for name in gold.readings):
        return False
    own = gold.words | gold.wider
    naming = words - beside() - FINDINGS
    if not naming:
        return words <= FINDINGS - own
    named = [other for other in (*gold.others, *diseases()) if other <= words]
    is_another = any(not other <= own for other in named)
    # Before "excluded" no qualifier stands, as it may be of the verb: "poorly excluded"
    plain = words if exclusion else naming
    return is_another and plain <= frozenset[str]().union(*named)


def _asides(text: str) -> set[str]:
    """Return what of a text may be left out unless a name has it, in letters and digits."""
    asides = (aside[0].lower() for aside in NOTHING.finditer(text))
    return {re.sub(r"class|stage|grade|[组层\W_]", "", one).replace("很", "极") for one in asides}


def _without_symptom(said: str, gold: Gold) -> str:
    symptom = SYMPTOM.match(said)
    words = words_of(symptom[1]) if symptom else frozenset()
    if not symptom or not words <= beside() | FELT | gold.words:
        return said
    return (symptom[1] if words & organs() else "") + said[symptom.end() :]


def _says(said: str, known: list[str]) -> bool:
    if gold_of(tuple(known)).outside:
        said = with_initials(said, known)
    said, known = _without_codes(said, known)
    said = without_initials(spelt_out(said), known)
    said = ADJECTIVE.sub(r"\2\1", said)
    gold = gold_of(tuple(known))
    if gold.links and misjoined(links(said), gold.links, gold.words):
        return False
    if gold.parts and _exchanged(said, gold):
        return False
    if any(_is(words, gold) for words in _readings(said, gold)):
        return True
    return any(_names_before_clause(text, gold) for text in (said, due_to(said)))


def _without_codes(said: str, names: list[str]) -> tuple[str, list[str]]:
    code = LEADING_CODE.match(said)
    if not code:
        return said, names
    coded = False
    bare = list[str]()
    for name in names:
        own = LEADING_CODE.match(name)
        coded = coded or own is not None
        same = own is not None and own[1].lower() == code[1].lower()
        bare.append(name[own.end() :] if own and same else name)
    rest = said[code.end() :]
    named = words_of(rest)
    alone = not coded and not rest.startswith(".") and (len(named) > 1 or named in diseases())
    return (rest if alone or bare != names else said), bare


def _undecided(said: str, names: list[str]) -> bool:
    for absent in ABSENT.findall(said):
        if any(frozenset() < words_of(name) <= words_of(absent) for name in names):
            return True
    # Words of a name's parts do not count, such as "status" in "status epilepticus"
    parts = map(str.strip, chain.from_iterable(map(parts_in, names)))
    beside_names = re.sub(longest_first(filter(None, parts)) or NEVER, " ", said, flags=re.I)
    return bool(UNDECIDED.search(NOTHING.sub(" ", beside_names)))


def _exchanged(said: str, gold: Gold) -> bool:
    """Return whether a part has what another part of the gold has: acute for chronic, left for right."""
    for part in map(words_of, parts_in(said)):
        alike = [own for own in gold.parts if own & part - ONE_OF]
        if len(alike) > 1 and not any(own <= part for own in alike):
            return True
        near = frozenset[str]().union(*alike)
        kept = gold._replace(words=near, own=near)
        if any(_contradicts(word, kept) for word in part - near):
            return True
    return False


def _names_before_clause(said: str, gold: Gold) -> bool:
    clause = CLAUSE.search(said)
    if not clause:
        return False
    before = _readings(said[: clause.start()], gold)
    behind = words_of(said[clause.end() :])
    denied = DENIED.search(said[clause.start() :])
    # What the tables have is a second diagnosis, but as the cause of what they do not have
    is_cause = gold.outside and BECAUSE.match(said[clause.start() :])
    second = _others(behind, gold) and not is_cause
    if denied or second or _of_another_kind(said[clause.start() :], gold):
        return False
    return any(_is(words, gold._replace(shorter=())) for words in before)


def _of_another_kind(clause: str, gold: Gold) -> bool:
    # A cause that makes another disease of it: diabetes due to steroids is not type 2
    # A cold before sinusitis is not its cause
    before_it = clause.lower().startswith(("following", "after"))
    words = words_of(clause)
    if not before_it and any(_contradicts(word, gold, ("agent", "stool")) for word in words):
        return True
    if any(re.fullmatch(gold.other_causes, kind) for kind in _with_agents(words) - words):
        return True
    return bool(re.search(rf"{CAUSE}(?:{gold.other_causes})(?![a-z])", clause.lower()))


def _readings(said: str, gold: Gold) -> list[Words]:
    """Return the words of a text, and those with what the gold has in Chinese cut out of it."""
    own = [word for word in gold.words if HAN.search(word) and len(word) > 1]
    chinese = re.compile(longest_first([*filter(HAN.search, gold.names), *own]) or NEVER)
    readings = [words_of(said), words_of(chinese.sub(r" \g<0> ", said))]
    if gold.parts:
        readings.append(words_in(chinese.sub(r" \g<0> ", part) for part in parts_in(said)))
    return readings


def _is(words: Words, gold: Gold) -> bool:
    words = spelt(words - gold.wider, gold.words) | (words & gold.wider)
    stages = {number[1] for number in map(NUMBER.fullmatch, words) if number}
    words |= stages & gold.words
    caused = _with_agents(words)
    named = filter(caused.issuperset, gold.readings + gold.shorter)
    stated = frozenset[str]().union(*named)
    beyond = words - stated
    if not stated or beyond & gold.elsewhere or _others(words, gold):
        return False
    if words & LATER and not any(map(caused.issuperset, gold.readings)):
        return False
    free = beside() | gold.wider | (OF_OTHERS if gold.outside else frozenset())
    for word in caused - stated:
        allowed = word in free or NUMBER.fullmatch(word) or LEVEL.fullmatch(word)
        other_cause = re.fullmatch(gold.other_causes, word)
        if not allowed or other_cause or _contradicts(word, gold):
            return False
    return True


def _with_agents(words: Words) -> Words:
    kinds = TABLE["agents"].items()
    return words | {kind for kind, agents in kinds if not words.isdisjoint(agents)}


def _contradicts(word: str, gold: Gold, kinds: Iterable[str] = tuple(TABLE["one_of"])) -> bool:
    number = NUMBER.fullmatch(word)
    if number and gold.words.isdisjoint({word, number[1]}):
        return any(one[2] == number[2] for other in gold.words if (one := NUMBER.fullmatch(other)))
    for name in kinds:
        kind = TABLE["one_of"][name]
        if word in kind:
            compared = gold.own if name == "acuity" else gold.words
            return any(other in compared for other in kind if other != word)
    return False


def _others(words: Words, gold: Gold) -> bool:
    acuity = frozenset(TABLE["one_of"]["acuity"])
    named = [name for name in gold.readings + gold.shorter if name <= words]
    whole = any(name <= words for name in gold.readings)
    # Without its "acute" it may be another disease: primary biliary cholangitis, but not a viral one
    more = words - frozenset(TABLE["one_of"]["agent"])
    for name in [] if whole else named:
        if any(name < other <= more for other in diseases()):
            return True
    for other in filter(words.issuperset, gold.others):
        # The acute form of a wider name is no other disease: NSTEMI is an acute infarction
        if not any(other <= name or other - acuity < name for name in named):
            return True
    return False
