"""What a diagnosis names as the cause of what, however it joins the two.

due_to("Lithium-induced tremor")               # "tremor due to Lithium"
links("pneumonia complicated by sepsis")       # [({"pneumonia"}, {"sepsis"})]: what causes what
"""

import re
from collections.abc import Iterable, Sequence

from conditions.diagnosis_words import TABLE, Words, beside, words_of


def any_of(patterns: Iterable[str]) -> str:
    """Return one pattern of several, of which the English ones are whole words."""
    return "|".join(rf"\b{one}(?!\w)" if one.isascii() else one for one in patterns)


# "Lithium-induced tremor" is tremor due to lithium, but ANCA-associated vasculitis a vasculitis of its own
MADE = re.compile(
    r"(?<![\w.])((?:[\w.]+ )?)([\w.]+)[- ](?:induced|(?:associated|related)(?= \S+ \S))(?! by| to| with) (.+)",
    re.I,
)
# "hypotension, drug-induced"
MADE_BEHIND = re.compile(r"[,，(（]\s*([\w.]+)-induced(?:[)）]|(?=[,;，；])|[\s.]*\Z)", re.I)
# No list, and nothing denied
MADE_ZH = re.compile(r"\A([^\W不非没无未]{2,12}?)(?:所致|引起|导致)的?(.{2,})")
LINK = re.compile(
    rf"[\s,，(（]{{0,3}}(?:({any_of(TABLE['said']['cause'])})|({any_of(TABLE['said']['effect'])}))"
    r"|\b(?:with|in)\b|(?<![不无未])(?:伴有?|合并(?!症)|并(?![发且]))"
    r"|[,，;；()（）\n+&]|\band\b|(?<=[\u4e00-\u9fff]) +(?=[\u4e00-\u9fffIVX])",
    re.I,
)
Link = tuple[Words, Words]  # a cause and its effect


def due_to(said: str) -> str:
    """Return a text with "B due to A" in place of "A-induced B"."""
    return MADE_ZH.sub(r"\2由于\1", MADE_BEHIND.sub(r" due to \1", MADE.sub(_due_to, said)))


def _due_to(made: re.Match[str]) -> str:
    if words_of(made[1]) <= beside():  # "severe lithium-induced", but "shiga toxin-associated"
        return f"{made[1]}{made[3]} due to {made[2]}"
    return f"{made[3]} due to {made[1]}{made[2]}"


def parts_in(said: str) -> list[str]:
    """Return each cause, effect and companion."""
    return LINK.split(due_to(said))[::3]


def links(said: str) -> list[Link]:
    """Return each cause and effect that a text joins directly."""
    found = list[Link]()
    pieces = LINK.split(due_to(said))
    joined = zip(pieces[::3], pieces[1::3], pieces[2::3], pieces[3::3], strict=False)
    for before, cause, effect, behind in joined:
        if cause:
            found.append((words_of(behind), words_of(before)))
        elif effect:
            found.append((words_of(before), words_of(behind)))
    return found


def misjoined(said: Sequence[Link], right: Sequence[Link], words: Words) -> bool:
    """Return whether a text turns cause and effect round, or has another of the words as the cause."""
    for cause, effect in right:
        caused = effect - cause
        for named, result in said:
            turned = named & caused and result & (cause - effect)
            other = named & words and named.isdisjoint(cause)
            if turned or (other and caused and caused <= result):
                return True
    return False
