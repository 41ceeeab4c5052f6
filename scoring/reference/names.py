"""Names of drugs and diseases in an answer: how each is written, which are right, which nobody asked for.

named(["莎洛胶囊", "维诺散"], Reading("维诺散、莎洛胶囊、朵朵片", ""), ordered=False)     # 0.74: one too many
"""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz import fuzz

from scoring.reference.abstention import COURTESY
from scoring.reference.polarity import denies
from scoring.reference.quantities import canonical
from scoring.reference.reading import Reading
from scoring.reference.text import words_only

FORM = (
    r"(?:肠溶|缓释|控释|分散|咀嚼|泡腾|含|滴)?(?:片|胶囊|丸)|颗粒|口服液|散"
    r"|注射液|糖浆|软膏|乳膏|滴眼液|喷雾剂|冲剂|混悬液|(?:吸入)?气雾剂|口服溶液"
)
DISEASE_END = r"综合征|氏症|氏病|氏热|氏炎|氏疮|病|症|炎|癌|瘤"
NAME = re.compile(rf"[\w-]{{2,20}}?(?:{FORM}|{DISEASE_END})(?=$|[\W_]|及|和|与|或|以及)")
DRUG = re.compile(rf"\w{{2,14}}?(?:{FORM})(?!剂|状|型|步|服)")
NO_NAME = re.compile(r"的|疾病|病症|病因|炎症|症状|药片|这|那|该|种|吃|治|禁忌|[次服日天]\d")
BETWEEN = re.compile(r"[、:()\[\]“”\"'\s/\\+·•|~—–=>-]|以及|及|和|与|或者?|有|是|用")
BRACKETED = re.compile(r"\([^()]{0,80}\)|\[[^\[\]]{0,80}\]")
FORM_END = re.compile(rf"(?:{FORM})$")
SALT = re.compile(r"^(?:盐酸|苯磺酸|硫酸|马来酸|枸橼酸|酒石酸|富马酸|磷酸|氢溴酸|甲磺酸)")
ANY_FORM = re.compile(FORM)
NEAR_NAME, SHORT_NAME = 0.25, 0.75  # a name almost copied; a drug without its dosage form
NEAR_ENOUGH = 0.79
EXTRA_NAME = 0.7  # an invented name costs less than a missing one
STEM_LENGTH, SPARE_LENGTH = 3, 2  # characters of a drug's name without its form; of what an answer may say beside


def mentions(name: str, names: list[str], text: str) -> list[tuple[int, int, str]]:
    """Where the text mentions the name, or a part of it that no other name has: (start, end, name)."""
    for alias in aliases(canonical(name)):
        if alias and not any(alias in canonical(other) for other in names if other != name):
            found = [match.span() for match in re.finditer(re.escape(alias), text)]
            spans = [(start, end) for start, end in found if alias == canonical(name) or not ANY_FORM.match(text, end)]
            if spans:
                return [(start, end, name) for start, end in spans]
    return []


@lru_cache(maxsize=4096)
def aliases(name: str) -> tuple[str, ...]:
    """The name, then its shorter forms: without salt and dosage form, without the qualifier in front."""
    stem = SALT.sub("", FORM_END.sub("", name))
    short = re.sub(r"^(?:原发性|继发性|急性|慢性|特发性)", "", stem)
    return tuple(alias for alias in dict.fromkeys((name, stem, short)) if len(alias) > 2 or alias == name)


def named(names: list[str], reading: Reading, ordered: bool) -> float:
    """Share of the gold names in the answer, against extra names; half of it where order matters and is not kept.

    Returns 0 where the answer's clauses with the names deny them.
    """
    places: list[int] = []
    worth, by_stem = 0.0, False
    for name in names:
        value, place = _name_worth(canonical(name), reading)
        worth += value
        by_stem |= value == SHORT_NAME
        places += [place] if place >= 0 else []
    if not worth:
        return 0.0
    extra = len(extra_names(reading, names)) + (_extra_stems(reading, names) if by_stem else 0.0)
    kept = not ordered or places == sorted(places)
    score = worth / (len(names) + EXTRA_NAME * extra)
    return score * (1.0 if kept else 0.5) * (0.0 if _all_denied(names, reading) else 1.0)


def _name_worth(name: str, reading: Reading) -> tuple[float, int]:
    """What the answer's way to write the name is worth, and where it stands; -1 for nowhere.

    A part of the name that the question has is no find: who asks for drugs with 芙洛吉素 has said 芙洛吉 already.
    """
    text = reading.text
    if name in text:
        return 1.0, text.find(name)
    for alias in aliases(name)[1:]:
        place = text.find(alias) if alias not in reading.asked else -1
        if place >= 0 and not ANY_FORM.match(text, place + len(alias)):
            return SHORT_NAME, place
    match = fuzz.partial_ratio_alignment(name, text) if len(text) >= len(name) else None
    near = match is not None and match.score / 100 >= NEAR_ENOUGH
    return (NEAR_NAME, match.dest_start) if match is not None and near else (0.0, -1)


def extra_names(reading: Reading, known: list[str]) -> set[str]:
    """Names of drugs or diseases in the answer that are neither gold's nor the question's."""
    gold = sorted(map(canonical, known), key=len, reverse=True)
    spared = words_only("、".join(gold)) + reading.asked
    found: set[str] = set()
    for clause, _ in reading.clauses:
        for name in gold:
            clause = clause.replace(name, "、")
        found |= {name for name in _items_named(clause) if not _ends_known(words_only(name), spared)}
    return found


def _items_named(clause: str) -> list[str]:
    """The clause's names: all drugs, however they are strung together, and diseases that stand for themselves."""
    parts = BETWEEN.split(clause)
    found = [name for part in parts for name in (DRUG.findall(part) or NAME.findall(part) * bool(NAME.fullmatch(part)))]
    return [name for name in found if not NO_NAME.search(name)]


def _ends_known(name: str, known: str) -> bool:
    return any(name[i:] in known and len(FORM_END.sub("", name[i:])) > 1 for i in range(len(name)))


def _extra_stems(reading: Reading, names: list[str]) -> float:
    """About how many other names an answer has that writes names without their dosage form."""
    rest = BRACKETED.sub("", reading.text)
    for alias in (alias for name in names for alias in aliases(canonical(name))):
        rest = rest.replace(alias, "")
    rest = DRUG.sub("", COURTESY.sub("", rest))
    own = sum(character not in reading.asked for character in words_only(rest))
    return max(0, own - SPARE_LENGTH) / STEM_LENGTH


def _all_denied(names: list[str], reading: Reading) -> bool:
    clauses = [clause for clause, _ in reading.clauses if any(canonical(name) in clause for name in names)]
    return bool(clauses) and all(denies(clause) for clause in clauses)
