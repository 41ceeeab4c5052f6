"""A model's reply without the thought before it.

after_thought("<think>The row says so.</think>\\n密封保存")     # "密封保存"
after_thought("The row says so.</think>\\n密封保存")            # the same: the prompt opened the thought
after_thought("<think>The row says")                          # None: it never ended
"""

from __future__ import annotations

import re

OPEN = "<think>"
TAG = re.compile("</?think>", re.IGNORECASE)
# A reply that begins like this is an object or a program, which may hold the word.
NO_THOUGHT = ("{", "`")


def after_thought(text: str) -> str | None:
    """Return what a reply says after its thoughts, stripped; None if a thought never ends.

    A thought that the prompt opened is one that is closed more often than it is opened. It may
    name the tags that it is going to write.
    """
    text = text.strip()
    if not text.startswith(NO_THOUGHT) and not _opens(text):
        end = _end(text, depth=1)
        if end is not None and "</answer>" not in text[:end].lower():
            text = text[end:].strip()
    while _opens(text):
        end = _end(text, depth=0)
        if end is None:
            last = text.lower().rfind("</think>")
            if last < 0:
                return None
            end = last + len("</think>")
        text = text[end:].strip()
    return text


def _opens(text: str) -> bool:
    return text[: len(OPEN)].lower() == OPEN


def _end(text: str, depth: int) -> int | None:
    """Return where all thoughts are closed that are open after `depth` at the beginning."""
    for tag in TAG.finditer(text):
        depth += -1 if tag[0].startswith("</") else 1
        if depth == 0:
            return tag.end()
    return None
