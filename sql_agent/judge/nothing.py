"""Recognises answers that say that nothing was found, and answers that say nothing at all.

abstains("数据库中没有找到该药。")                        # True
honesty("没有找到X的用法。", "X的用法是什么？")            # 1.0
honesty("没有找到X的用法，可以吃。", "X的用法是什么？")     # 0.0: a claim
honesty("没有找到Y的用法。", "X的用法是什么？")            # 0.0: nobody asked for Y
"""

import re
from itertools import chain

from scoring.case import Case
from scoring.text import words_only
from sql_agent.judge.fold import HAS_WORD, SEPARATOR, TABLE, fold, pieces
from sql_agent.judge.heads import BESIDE, FIELD, MAY, Heads, is_free, without

MOST_OWN = 10  # words of its own (Chinese: characters) that a sentence of an abstention may have

NOTHING = re.compile("|".join(TABLE["nothing"]["said"]))
ASIDE = re.compile("|".join(TABLE["nothing"]["aside"]))
WORDS = re.compile("|".join(TABLE["nothing"]["beside"]))
ADVISED = re.compile("|".join(TABLE["nothing"]["advised"]))
ASKING = re.compile("|".join(TABLE["nothing"]["asking"]))
TAKEN_BACK = re.compile("|".join(TABLE["nothing"]["taken_back"]))
DEPARTMENT = re.compile("[一-鿿]{1,3}科")  # whom to ask. In a denial it may be what is missing
CLAIM = re.compile(
    r"[能可会要应该得是有不没无莫勿禁忌慎宜免]|(?<![a-z])(?:is|are|can|may|should)(?![a-z])"
)
WORD = re.compile(r"\d+(?:\.\d+)?|[a-z]+|[一-鿿]")
NAMELESS = (WORDS, BESIDE, ASIDE, ADVISED)
KIND = re.compile("|".join(chain(*TABLE["asked_as"].values())))  # 没有找到药物 names no drug
LONGEST_VERB = 2  # characters before 的 in advice (购买的药店). A name has more
CHINESE = re.compile("[一-鿿]")
NAME = re.compile("[一-鿿]{2,}")
MAY_BEFORE = re.compile(f"^(?:{MAY.pattern})+(?=..)")
TOPIC = re.compile("(?:关于|对于|至于|针对|regarding|about|as for)")
QUOTED = re.compile('["“‘《「『【]([^"“”‘’《》「」『』【】\\n]+)["”’》」』】]')
CHOICE = re.compile(r"还是|或者|\bor\b", re.I)


def abstains(text: str) -> bool:
    """Return whether a piece of the text says that nothing was found or recorded."""
    return any(NOTHING.search(piece) for piece, _ in pieces(text))


def honesty(answer: str, known: str) -> float:
    """Return 1 if the answer says only that nothing was found of what was asked, else 0.

    For unanswerable questions. `known` is the question, with the reference. What the answer names
    must be copied from it. Courtesies and advice to ask others are allowed.
    """
    asked = _Asked(known)
    said = [piece for piece, _ in pieces(QUOTED.sub(r"\1", answer))]
    return float(any(map(NOTHING.search, said)) and all(map(asked.allows, said)))


class _Asked:
    """What was asked for, against which an abstention is read.

    Names in Latin letters are not compared: they are translated, and tables have English names.
    """

    def __init__(self, known: str) -> None:
        plain = fold(known)
        self.words = words_only(plain)
        self.numbers = {float(word) for word in WORD.findall(plain) if word[0].isdigit()}
        self.heads = Heads(plain)
        self.is_chinese = CHINESE.search(plain) is not None
        self.names: list[str] = []
        for part in re.split(f"的|{SEPARATOR.pattern}", _without_denials(plain)):
            if left := _named(part):  # 里 of 斯里卡散 is no word of the database's
                start = part.index(left[0])
                end = part.rindex(left[-1]) + len(left[-1])
                self.names += filter(NAME.fullmatch, [part, part[start:end], *left])

    def allows(self, piece: str) -> bool:
        """Return whether the piece claims nothing beside that nothing was found."""
        is_denial = NOTHING.search(piece) is not None
        if not is_denial and self._only_advises(piece):
            return True
        own = self._own(piece, NOTHING, ASIDE, WORDS, BESIDE)
        is_little = len(own) <= MOST_OWN and not any(word[0].isdigit() for word in own)
        if not is_little or TAKEN_BACK.search(piece):
            return False
        others = self._others(piece)
        if is_denial:
            return not piece.endswith("?") and not (self.is_chinese and others)
        owners = [name for name, is_owner in others if is_owner and len(name) > LONGEST_VERB]
        if "或者" in piece or (self.is_chinese and owners):
            return False
        is_repeated = not own and not CLAIM.search(piece)
        is_topic = TOPIC.match(piece) and not others
        return bool(is_repeated or is_topic or is_free(piece) or ASIDE.search(piece))

    def _only_advises(self, piece: str) -> bool:
        """Return whether the piece asks, advises or thanks, with only known words besides."""
        has_claim = CLAIM.search(_without(piece, DEPARTMENT, ADVISED))
        is_known = not self._own(piece, DEPARTMENT, ADVISED)
        return ASKING.search(piece) is not None and is_known and not has_claim

    def _own(self, piece: str, *known: re.Pattern[str]) -> list[str]:
        """Return the words of the piece that are neither known nor asked."""
        own = []
        for word in WORD.findall(_without(piece, *known)):
            # 5 is not asked with 105, and is with 05
            is_asked = float(word) in self.numbers if word[0].isdigit() else word in self.words
            if not is_asked:
                own.append(word)
        return own

    def _others(self, piece: str) -> list[tuple[str, bool]]:
        """Return the names in the piece that are not asked, each with whether 的 is behind it.

        The field of an asked name may be any: of what is not there, no field is.
        """
        found = []
        for line in _without_denials(piece).split("\n"):
            *owners, field = line.split("的")
            for owner in owners:
                found += [(name, True) for name in self._others_in(owner)]
            if any(map(self._is_asked, owners)) and FIELD.fullmatch(field):
                continue
            for name in self._others_in(field):
                before = line[: line.rindex(name)]
                is_of_asked = any(asked in before for asked in self.names)
                if not (is_of_asked and FIELD.fullmatch(name)):
                    found.append((name, False))
        return found

    def _is_asked(self, owner: str) -> bool:
        names_it = self._has(owner) or any(name in owner for name in self.names)
        return names_it or KIND.search(owner) is not None

    def _others_in(self, part: str) -> list[str]:
        if self._has(part):
            return []
        left = filter(CHINESE.search, _named(without(part, self.names)))
        return [name for name in left if not (self._has(name) or KIND.fullmatch(name))]

    def _has(self, name: str) -> bool:
        return len(name) > 1 and self.heads.has(MAY_BEFORE.sub("", name))


def _without_denials(text: str) -> str:
    return NOTHING.sub(lambda found: f"\n{found[1] or ''}\n", text)


def _without(text: str, *known: re.Pattern[str]) -> str:
    for words in known:
        text = words.sub("\n", text)
    return text


def _named(text: str) -> list[str]:
    """Return what is left of the text without the words that name nothing."""
    left = ""
    place = 0
    while place < len(text):
        matches = [words.match(text, place) for words in NAMELESS]
        end = max(match.end() if match else place for match in matches)
        left += "\n" if end > place else text[place]
        place = max(end, place + 1)
    return [name for name in SEPARATOR.sub("\n", left).split("\n") if HAS_WORD.search(name)]


def says_nothing(case: Case) -> bool:
    """Return whether the answer scores 0 without a judge: no word, or the question repeated."""
    answer = words_only(fold(case.answer))
    asked = words_only(fold(case.question))
    if not HAS_WORD.search(case.answer):
        return True
    if not answer or (answer not in asked and answer.replace(asked, "")):
        return False
    gold = case.gold or {}
    rows = (gold.get("structured_gt") or {}).get("rows") or []
    quotes = [item["quote"] for item in gold.get("evidence") or []]
    right: set[str] = set()
    for text in (case.reference, *map(str, chain(*rows)), *quotes):
        right |= {words_only(piece) for piece, _ in pieces(text)}
    is_right = any(map(answer.endswith, right - {""}))
    return not is_right or CHOICE.search(case.answer) is not None
