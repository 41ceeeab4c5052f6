"""A model's reply without the thought before it.

after_thought("<think>The row says so.</think>\\n密封保存")     # "密封保存"
after_thought("The row says so.</think>\\n密封保存")            # the same: the prompt opened the thought
after_thought("<think>The row says")                          # None: it never ended
"""

from __future__ import annotations

import re

OPEN = "<think>"
TAG = re.compile("</?think>", re.IGNORECASE)
# A tag that stands alone in its line, as templates write it; others may be mentioned
OWN_LINE = re.compile(r"^[ \t]*(</?think>)[ \t]*$", re.IGNORECASE | re.MULTILINE)
# A reply that begins like this may be an object or a program, which may hold the word
OBJECT_OR_CODE = ("{", "`")


def after_thought(text: str, opened: bool = True) -> str | None:
    """Return what a reply says after its thoughts, stripped; None if a thought never ends.

    opened: the prompt may have opened the thought. This is so for a whole reply, and not for what
    is left of one. Such a thought is closed more often than it is opened. A thought may name the
    tags that it is going to write, and what follows it may name them, too.
    """
    text = text.strip()
    if opened and not _opens(text):
        end = _end(text, OWN_LINE)
        if end is None and not text.startswith(OBJECT_OR_CODE):
            end = _end(text, TAG)
        if end is not None and "</answer>" not in text[:end].lower():
            text = text[end:].strip()
    while _opens(text):
        rest = text[len(OPEN) :]
        end = _end(rest, OWN_LINE)
        if end is None:
            end = rest.lower().find("</think>") + len("</think>")
            if end < len("</think>"):
                return None
        text = rest[end:].strip()
    return text


def _opens(text: str) -> bool:
    return text[: len(OPEN)].lower() == OPEN


def _end(text: str, tags: re.Pattern[str]) -> int | None:
    """Return where a thought ends that is open at the beginning, by tags of this form."""
    depth = 1
    for tag in tags.finditer(text):
        depth += -1 if "/" in tag[0] else 1
        if depth == 0:
            return tag.end()
    return None
