"""Rewriting a text step by step.

rewritten("2 and 3", [(["and"], re.compile(" and "), "、")])      # "2、3"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Step = tuple[Sequence[str], re.Pattern[str], str | Callable[[re.Match[str]], str]]
"""Signs of which a text has one where the step changes it ("" for any), what is replaced, with what."""


def rewritten(text: str, steps: Sequence[Step]) -> str:
    """Apply the steps of which the text has a sign; most texts have few, and a search costs."""
    for signs, pattern, new in steps:
        for sign in signs or ("",):
            if sign in text:
                text = pattern.sub(new, text)
                break
    return text
