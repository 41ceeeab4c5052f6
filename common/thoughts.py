"""A model's reply without the thought before it.

after_thought("<think>The row says so.</think>\\n密封保存")     # "密封保存"
after_thought("The row says so.</think>\\n密封保存")            # the same: the prompt opened the thought
after_thought("<think>The row says")                          # None: it never ended
"""

from __future__ import annotations

import re

CLOSE = "</think>"
# A reply that begins like this is an object or a program, which may hold the word.
NO_THOUGHT = ("{", "`")
TAG = re.compile("<(?:think|answer)>", re.IGNORECASE)


def after_thought(text: str) -> str | None:
    """Return what a reply says after its thoughts, stripped; None if a thought never ends."""
    text = text.strip()
    before, closed, after = text.partition(CLOSE)
    if closed and not text.startswith(NO_THOUGHT) and not TAG.search(before):
        text = after.strip()
    while text[:7].lower() == "<think>":
        _, closed, after = text.partition(CLOSE)
        if not closed:
            return None
        text = after.strip()
    return text
