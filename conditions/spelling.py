"""Other spellings of a diagnosis's words: a slip in a long one, a noun's adjective.

spelt(words_of("polymiositis"), words_of("polymyositis"))      # {"polymyositis"}
"""

import re

from rapidfuzz.distance import OSA

from conditions.diagnosis_words import Words, beside, known_words, organs

MISSPELT = 8  # letters of a word in which a slip may be; in a shorter one it makes another word
SOUND = str.maketrans("yk", "ic")  # polymiositis, leucocytosis
# A noun and its adjective: ulna, ulnar; septum, septal but not septic; orbit; prostate; clavicle;
# appendix; larynx; maxilla; ovary; metastasis; tuberculosis; and a participle: sprain, rupture, infection
NOUN_ADJECTIVE = re.compile(
    r"(\w{3,})(?:a|um|us) \1a[lr]|(\w{4,}) \2a[lr]|(\w{4,})e \3(?:e?al|ar|ic)|(\w{3,})le \4ular"
    r"|(\w{4,})x \5(?:ceal|cic|geal)|(\w{4,})i?a \6(?:ary|ic)|(\w{3,})y \7i(?:an|al|c)"
    r"|(\w{4,})s(?:is|e) \8tic|(\w{4,})osis \9ous|(\w{4,}?)(?:e|ion)? \10ed"
)


def spelt(words: Words, gold: Words) -> Words:
    """Return words with those of a diagnosis in place of what is another spelling of them."""
    found = set[str]()
    known = gold | (beside() - organs())
    for word in words:
        unsaid = gold - words if word not in known else frozenset[str]()
        alike = [one for one in unsaid if _alike(word, one)]
        found.add(alike[0] if len(alike) == 1 else word)
    return frozenset(found)


def _alike(word: str, other: str) -> bool:
    """Return whether a word is another one in other spelling, or one is the other's adjective."""
    if any(map(NOUN_ADJECTIVE.fullmatch, (f"{word} {other}", f"{other} {word}"))):
        return True
    if {word, other} <= known_words() or min(len(word), len(other)) < MISSPELT:
        return False
    if word.translate(SOUND) == other.translate(SOUND):
        return True
    if word[0] != other[0]:
        return False
    # A letter is missing, too many, or swapped with the next. One letter for another is often
    # another disease: esotropia, exotropia
    for spelling in (word, f"{word}s"):  # the plural's s was taken away
        if spelling.startswith(other) or other.startswith(spelling):
            continue
        same_letters = sorted(spelling) == sorted(other)
        replaced = len(spelling) == len(other) and not same_letters
        if not replaced and OSA.distance(spelling, other, score_cutoff=1) <= 1:
            return True
    return False
