"""Which examination an order means. Names are sets of words: compared as they are, then without the
words that say how an examination is made, then letter by letter.

    named("Complete Blood Count (CBC)")      # "complete blood count"
    named("CBC and CRP")                     # None: several in one order are none
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import chain

from rapidfuzz.distance import OSA

from common.toml import table_beside
from conditions.table import load_tables
from scoring.text import simplified

LONGEST = 120  # characters of an order that are listened to
LONGEST_NAME = 10  # words or Chinese characters of a name that is looked for in a sentence
SHORT = 4  # a word of fewer letters, or with a digit, is spelt right or another one: CT and MRI, T3 and T4
LONG = 12  # a word of so many letters may have two mistakes, a shorter one has one
BRACKETS = re.compile(r"\([^()]*\)")
# Their glucose is none of the blood
FLUID = re.compile(
    r"(?:urin|fluid|csf|stool|aspirat|pleural|ascit|saliva|lavage|dialysate|vitreous|peritoneal|amniotic"
    r"|umbilical|semen|drain)[a-z]*|cord blood|(?:bile|sweat)\b|(?<!糖)尿液?(?![素酸频急痛])|脑脊液"
    r"|[胸腹羊]水|粪便?|(?:引流|透析|灌洗|唾|汗)液|玻璃体|脐带?血|胆汁",
    re.IGNORECASE,
)
IN_FLUID = re.compile(
    rf"(?:[\d -]+h[a-z]*|\d+小时|of|spot|random|cerebrospinal|synovial|joint)? ?"
    rf"(?:{FLUID.pattern})(?:\s+(?:{FLUID.pattern}))*(?: (?:sample|specimen|output))?\s*\)?\s*",
    re.IGNORECASE,
)
OF_SERUM = re.compile(r"\b(?:serum|plasma)\b|血[清浆]", re.IGNORECASE)  # beside urine: two orders
# Which of two sides a text names; the side of a quadrant or of the heart belongs to the name.
SIDE = re.compile(
    r"\b(left|right)\b(?! (?:upper |lower )?(?:quadrant|heart))|([左右])(?![上下]腹|心)", re.I
)
SIDES = {"左": "left", "右": "right"}

ORDERS = table_beside(__file__, "orders.toml")
BESIDE = ORDERS["beside"]
SPELLINGS = {re.compile(other): usual for other, usual in ORDERS["spellings"].items()}
SPELT = " ".join(other.pattern for other in SPELLINGS)
TAIL = re.compile(
    rf"(?:(?<=\s)|^)(?:{'|'.join(BESIDE['tail'])})(?=\s|$)|{'|'.join(BESIDE['reason'])}",
    re.IGNORECASE,
)
JOINED = re.compile(
    r"/|\+(?=\s|\w)|[,;、&]|和|及|或|\b(?:and|or|then|plus|followed by|as well as)\b",
    re.IGNORECASE,
)
SCRIPTS = re.compile(r"(?<=[\u4e00-\u9fff])\s*(?=[A-Za-z])|(?<=[A-Za-z\d])\s*(?=[\u4e00-\u9fff])")
CLAUSE = re.compile(r"(?<=\?)\s*|[,;.!。]+(?=\s|$|[\u4e00-\u9fff])|\s[-–—]+\s")
ASKING = re.compile("|".join(BESIDE["asking"]), re.IGNORECASE)
WHY = re.compile("|".join(BESIDE["why"]), re.IGNORECASE)
NEVER = re.compile(
    r"\b(?:not|no|cancel|avoid|hold|skip|without)\b|n['’]t\b|不|别|取消", re.IGNORECASE
)
BEFORE = re.compile(rf"\A(?:{'|'.join(BESIDE['chinese_before'])})+(?=.)")
BEHIND = re.compile(rf"(?<=..)(?:{'|'.join(BESIDE['chinese_behind'])})+$")
INSIDE = re.compile("|".join(BESIDE["chinese_inside"]))
NOISE = frozenset(BESIDE["noise"])

Words = tuple[str, ...]  # of a name, in alphabetical order
Index = Mapping[Words, str]


@lru_cache(maxsize=4096)
def named(text: str, own: tuple[str, ...] = ()) -> str | None:
    """Return the examination that a text orders, by its name in the tables or among `own`, or None."""
    if len(text) > LONGEST:
        return None
    possible = [name for name in own if {side_of(name), side_of(text)} != {"left", "right"}]
    by_words = {words_of(name): name for name in possible}
    by_bare_words = {_bare(name): name for name in possible}
    text = unicodedata.normalize("NFKC", text)
    outside, _, inside = text.partition("(")
    if outside.strip().lower() == "".join(re.findall(r"\b[a-z]", inside.lower())):
        text = inside  # UA (uric acid)
    if _are_several(text, by_words):
        return None
    ways: list[Callable[[str], str | None]] = [
        lambda part: by_words.get(words_of(part)),
        lambda part: _by_words().get(words_of(part)),
        _without_the_rest,
        lambda part: by_bare_words.get(_bare(part)),
        lambda part: _spelt_like(words_of(part), by_words),
        lambda part: _spelt_like(words_of(part), _by_words()),
        lambda part: _in_a_sentence(part) if part == text or not of_fluid else None,
    ]
    plain = BRACKETS.sub("", text)
    # 血糖(餐后) and 胸部 CT
    said = [text, inside.rstrip(") ") + outside, plain, SCRIPTS.sub("", plain)]
    in_fluid = IN_FLUID.fullmatch(inside)
    of_fluid = FLUID.search(inside)
    said += [] if in_fluid else [inside]
    parts = dict.fromkeys(part for part in said if words_of(part))
    found = filter(None, (way(part) for way in ways for part in parts))
    return next((one for one in found if not in_fluid or _may_be_in_fluid(one, outside)), None)


def _may_be_in_fluid(found: str, outside: str) -> bool:
    known = _plainly(found) or found
    key = table_key(known)
    if key and load_tables().examinations[key].kind != "lab":
        return True
    names = [text for name, text in _names() if name == known]
    return bool(FLUID.search(" ".join([outside, found, *names])))


def names_examination(text: str, name: str) -> bool:
    """Return whether a text is a name of an examination, and not of a part of it."""
    own = _names(parts=False)
    return any(one == name and words_of(said) == words_of(text) for one, said in own)


def are_two_numbers(text: str, other: str) -> bool:
    """Return whether texts name two numbers, such as the sodium and the potassium of electrolytes."""
    numbers = [_numbers().get(words_of(BRACKETS.sub("", one))) for one in (text, other)]
    return None not in numbers and numbers[0] != numbers[1]


@cache
def _numbers() -> Index:
    found: dict[Words, str] = {}
    for names in chain.from_iterable(ORDERS["numbers"].values()):
        found.update(dict.fromkeys(map(words_of, names), names[0]))
    return found


def side_of(text: str) -> str:
    """Return "left" or "right" if a text names one of the two, else ""."""
    found = {SIDES.get(match[0], match[0]) for match in SIDE.finditer(text.lower())}
    return found.pop() if len(found) == 1 else ""


@cache
def covered_by(name: str) -> frozenset[str]:
    """Return what an order has made: itself, a panel's parts, and panels of these alone."""
    parts = panels().get(name, frozenset())
    smaller = {panel for panel, others in panels().items() if others <= parts}
    return frozenset({name} | parts | smaller)


@cache
def table_key(name: str) -> str | None:
    """Return the key of an English name in examinations.toml, or None for an unknown name."""
    return next((key for key, one in load_tables().examinations.items() if one.en == name), None)


def _are_several(text: str, own: Index) -> bool:
    """Return whether a text is no name and its parts are names of more than one examination."""
    known = {**own, **_by_words()}
    said = JOINED.split(BRACKETS.sub("", text))
    parts = list(filter(None, map(words_of, said)))
    are_two = len(said) > 1 and any(map(OF_SERUM.search, said)) and any(map(FLUID.search, said))
    if not parts or words_of(text) in (own if are_two else known):
        return False
    shared = [tuple(sorted((*parts[0], word))) for word in parts[-1]]  # blood and urine cultures
    found = {known[words] for words in shared if words in known}
    while parts:
        # Kidneys, ureters and bladder are one: the most parts that are a name together count as it
        for end in range(len(parts), 0, -1):
            together = tuple(sorted(chain(*parts[:end])))
            if together in known:
                found.add(known[together])
                break
        parts = parts[end:]
    return are_two or len(found) > 1


def _without_the_rest(text: str) -> str | None:
    head, *rest = TAIL.split(text)
    found = _plainly(text) or _by_bare_words().get(_bare(head)) or _together(head)
    if not found:
        head, *rest = re.split(r"\bfor\b(?! \d)", text, maxsplit=1, flags=re.IGNORECASE)
        found = _plainly(head)
        key = table_key(found) if found else None
        # What a sample is taken for may be another examination, what an image is for is a reason
        if not key or load_tables().examinations[key].kind == "lab":
            return None
    key = table_key(found)
    numbers = set[Words]()
    for one in load_tables().examinations[key].parts.values() if key else ():
        numbers.update((words_of(one.en), words_of(one.zh)))
    for part in JOINED.split(",".join(rest)):
        if words_of(part) not in numbers and _plainly(part) not in (None, found):
            return None
    return found


def _in_a_sentence(text: str) -> str | None:
    """Return what one clause orders, where the others order nothing and say why."""
    found = set[str]()
    beside = ""
    for clause in map(str.strip, CLAUSE.split(text)):
        asking = ASKING.match(clause)
        before = asking[0] if asking else ""
        one = _without_the_rest(clause[len(before) :])
        if one and not NEVER.search(before):
            found.add(one)
            beside += f"{before}\n"
        elif FLUID.search(clause) or not _says_why(clause):
            return None
        else:
            beside += f"{clause}\n"
    if len(found) != 1 or not found.issuperset(mentioned(beside).values()):
        return None
    return found.pop()


def _says_why(clause: str) -> bool:
    is_complaint = not _pieces(clause).isdisjoint(_complaints())
    says_nothing = SAYS_NOTHING.issuperset(words_of(clause))
    return is_complaint or says_nothing or bool(WHY.search(clause))


@cache
def _complaints() -> frozenset[str]:
    """Return what is said of patients, and of no examination."""
    tables = load_tables()
    every = (tables.symptoms, tables.complaints, tables.conditions)
    names = chain.from_iterable((one.en, one.zh) for kind in every for one in kind.values())
    return frozenset(chain.from_iterable(map(_pieces, names))) - _known_pieces()


@cache
def _known_pieces() -> frozenset[str]:
    return frozenset(chain.from_iterable(_pieces(text) for _, text in _names()))


def _pieces(text: str) -> frozenset[str]:
    """Return the words of a text, and every two Chinese characters."""
    return frozenset([*words_of(text), *re.findall("(?=([\u4e00-\u9fff]{2}))", text)])


@lru_cache(maxsize=4096)
def mentioned(text: str) -> dict[str, str]:
    """Return the names in a text, each of the most words that are one, and what they name."""
    found = dict[str, str]()
    said = list(re.finditer(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", text))
    stops = {at for at, one in enumerate(said) if _in_no_name(one[0], said[at - 1][0])}
    at = 0
    while at < len(said):
        most = min(at + LONGEST_NAME, len(said))
        stop = next((place for place in range(at, most) if place in stops), most)
        for end in range(stop, at, -1):
            name = text[said[at].start() : said[end - 1].end()]
            if words_of(name) in _by_words():
                found[name] = _by_words()[words_of(name)]
                at = end - 1
                break
        at += 1
    return found


def _in_no_name(word: str, before: str) -> bool:
    """Return whether no name has an English word, whatever stands beside it. C-reactive is one."""
    if len(word) < SHORT or len(before) == 1 or word[:SHORT].lower() in SPELT:
        return False
    return word.isascii() and word.isalnum() and _words_of_names().isdisjoint(words_of(word))


@cache
def _words_of_names() -> frozenset[str]:
    return NOISE.union(*_by_words())


def _plainly(text: str) -> str | None:
    return _by_words().get(words_of(text)) or _by_bare_words().get(_bare(text))


def _together(text: str) -> str | None:
    for joint in (JOINED, SCRIPTS):
        parts = [part for part in joint.split(text) if part.strip()]
        found = {_plainly(part) for part in parts}
        if len(parts) > 1 and len(found) == 1:
            return found.pop()
    return None


def _spelt_like(words: Words, index: Index) -> str | None:
    if sum(map(len, words)) <= SHORT:
        return None  # an abbreviation is spelt right or another one
    long = len(words)
    found = {name for other, name in index.items() if len(other) == long and _alike(words, other)}
    return found.pop() if len(found) == 1 else None


def _alike(words: Words, others: Words) -> bool:
    ours = sorted({*words} - {*others})
    theirs = sorted({*others} - {*words})
    return len(ours) == len(theirs) and all(map(_misspelt, ours, theirs))


def _misspelt(word: str, other: str) -> bool:
    length = min(len(word), len(other))
    # Another Chinese sign makes another word, and spine is no mistake for c-spine
    is_exact = length < SHORT or not (word.isalpha() and word.isascii())
    if is_exact or {word, other} <= _known_pieces():
        return False
    mistakes = 1 if length < LONG else 2
    return OSA.distance(word, other, score_cutoff=mistakes) <= mistakes


@cache
def _by_words() -> Index:
    homes: dict[Words, set[str]] = {}
    for one in load_tables().examinations.values():
        for part in one.parts.values():
            for text in (part.en, part.zh):
                homes.setdefault(words_of(text), set()).add(one.en)
    names = {words: found.pop() for words, found in homes.items() if len(found) == 1}
    for name, text in _names():
        names[words_of(text)] = name
    return names


@cache
def _by_bare_words() -> Index:
    """Return every examination by bare words that belong to it alone and say more than a kind."""
    homes: dict[Words, set[str]] = {}
    for name, text in _names():
        homes.setdefault(_bare(text), set()).add(name)
    kept: dict[Words, str] = {}
    for words, found in homes.items():
        if len(found) == 1 and (len(words) > 1 or not KINDS.issuperset(words)):
            kept[words] = found.pop()
    return kept


def _names(parts: bool = True) -> Iterator[tuple[str, str]]:
    """Yield each examination with each of its names, and with those of its parts. Of two that share
    one the later has it.
    """
    for key, names in ORDERS["names"].items() if parts else ():
        for text in names:
            yield load_tables().examinations[key].en, text
    for name, others in ORDERS["further"].items():
        for text in (name, *others):
            yield name, text
    for name, panel in ORDERS["panels"].items():
        for text in (name, *panel["names"]):
            yield name, text
    for one in load_tables().examinations.values():
        for text in (one.en, *one.aliases_en, one.zh, *one.aliases_zh):
            yield one.en, text


def _bare(text: str) -> Words:
    plain = text
    for other, usual in BESIDE["chinese_words"].items():
        plain = plain.replace(other, usual)
    plain = BEFORE.sub("", BEHIND.sub("", INSIDE.sub("", plain)), count=1)
    words = {_word(OTHER_WORDS.get(word, word)) for word in words_of(plain)} - BESIDE_ENGLISH
    without_soft = words - SOFT
    a_kind = len(without_soft) < 2 and KINDS.issuperset(without_soft)
    return tuple(sorted(words if a_kind else without_soft))


@lru_cache(maxsize=65536)
def words_of(text: str) -> Words:
    """Return the words that have content, in one spelling and in alphabetical order, or () for none."""
    plain = unicodedata.normalize("NFKC", simplified(text)).lower()
    for spelling, usual in SPELLINGS.items():
        plain = spelling.sub(usual, plain)
    words = [_word(word) for word in re.findall(r"[^\W_]+", plain)]
    return tuple(sorted([word for word in words if word not in NOISE] or words))


def _word(word: str) -> str:
    word = re.sub("[ao]e", "e", word)
    word = re.sub("(?<=[a-z]{3})graph(y|s|ies)?$", "gram", word)
    word = re.sub("(?<=[a-z]{3})ies$", "y", word)
    word = re.sub("(?<=[a-z]{2})is(?=e[ds]?$|ing$|ation$)", "iz", word)  # polarised, ionised
    word = {"examination": "exam", "examinations": "exam", "exams": "exam"}.get(word, word)
    plural = len(word) > SHORT and word.endswith("s") and not word.endswith(("ss", "is", "us"))
    return word[:-1] if plural else word


@cache
def panels() -> dict[str, frozenset[str]]:
    """Return the examinations of each panel by their names."""
    tables = load_tables().examinations
    return {
        name: frozenset(tables[key].en if key in tables else key for key in panel["of"])
        for name, panel in ORDERS["panels"].items()
    }


OTHER_WORDS = {_word(word): usual for word, usual in ORDERS["words"].items()}
BESIDE_ENGLISH = frozenset(map(_word, BESIDE["english"]))
SAYS_NOTHING = NOISE | BESIDE_ENGLISH
SOFT = frozenset(map(_word, BESIDE["soft"]))
KINDS = frozenset(map(_word, BESIDE["kinds"]))
