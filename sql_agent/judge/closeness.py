"""How nearly a text contains a piece of another one: for checks of gold and for canaries, not for
scores.

closeness("一次15毫克", "每次15毫克")     # 0.69: one character differs
closeness("一次15毫克", "一次20毫克")     # 0.0: the numbers differ
"""

from __future__ import annotations

from scoring.text import numbers

# Below this share of characters in pairs, what matches is what Chinese phrases have in common
# anyway
CHANCE = 0.3
NEAR = 0.9  # a near match never earns as much as the text itself


def closeness(fragment: str, text: str) -> float:
    """Return how well `text` contains `fragment`, in [0, 1], both as words only; 0 if a number is
    missing.

    Between 0 and 1 it grows with the share of the fragment's characters that belong to a pair found
    anywhere in the text, as for "胸痛持续" in "持续胸痛".
    """
    if not numbers(fragment) <= numbers(text):
        return 0.0
    if fragment in text:
        return 1.0
    starts = (i for i in range(len(fragment) - 1) if fragment[i : i + 2] in text)
    paired = len({place for i in starts for place in (i, i + 1)}) / len(fragment)
    return NEAR * max(0.0, (paired - CHANCE) / (1 - CHANCE))
