"""A model's reply without its thoughts.

after_thought("<think>The row says so.</think>\\n密封保存")     # "密封保存"
after_thought("<think>The row says")                          # None: it never ended
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache

# <think>, <seed:think>, <thinking>, <thought>, [THINK] (Magistral), ◁think▷ (Kimi)
NAME = r"[\w:.-]*(?:think|thinking|thought)"
# How Cohere, Gemma and Kimi K3 end a thought, and how they begin it
PAIRS = {
    "<|end_thinking|>": "<|start_thinking|>",
    "<channel|>": "<|channel>thought",
    "<|close|>think<|sep|>": "<|open|>think<|sep|>",
}
FORMS = [
    rf"</?{NAME}>",
    rf"\[/?{NAME}\]",
    rf"◁/?{NAME}▷",
    *map(re.escape, [*PAIRS, *PAIRS.values()]),
]
TAG = re.compile("|".join(FORMS), re.IGNORECASE)
# A tag that stands alone in its line, as templates write it; others may be mentioned
OWN_LINE = re.compile(rf"(?<![^\n])[ \t]*(?:{TAG.pattern})[ \t\r]*(?![^\n])", re.IGNORECASE)
# How gpt-oss marks what it thinks and what it says
CHANNELS = ("<|channel|>", "<|start|>")
FINAL = "<|channel|>final<|message|>"
LAST_MARK = re.compile(r"(?:<\|(?:return|end)\|>\s*)+$")
# A reply that begins like this may be an object or a program, which may hold the word
OBJECT_OR_CODE = ("{", "`")
FENCE = "```"
UNSEEN = "\ufeff\u200b"  # a mark of byte order, a space without width


def after_thought(text: str, opened: bool = True) -> str | None:
    """Return what a whole reply says beside its thoughts, stripped, or None if a thought never
    ends.

    opened: the prompt may have opened the thought, which is then closed once more than opened.
    Tags in Markdown's code are text.
    """
    text = text.strip().lstrip(UNSEEN).lstrip()
    if text.startswith(CHANNELS):
        found, said = text.rpartition(FINAL)[1:]
        return LAST_MARK.sub("", said).strip() if found else None
    first = TAG.match(text)
    if opened and (first is None or _closes(first[0])):
        end = _balanced_end(OWN_LINE.finditer(text))
        if end is None and not text.startswith(OBJECT_OR_CODE):
            end = _balanced_end(TAG.finditer(text))
        if end is not None and "</answer>" not in text[:end].lower():
            text = text[end:].strip()
    endless: set[str] = set()  # what no later tag ends is not looked for again
    said = ""
    kept = looked = 0  # up to where the text was taken over, and looked at
    while tag := TAG.search(text, looked):
        looked = tag.end()
        kind = _kind(tag[0])
        begins_line = text[tag.start() - 1 : tag.start()] == "\n"
        if _closes(tag[0]) or (kind in endless and not begins_line):
            continue
        before = _joined(said, text[kept : tag.start()])
        if _in_code(before):
            continue
        end = None if kind in endless else _end_of_thought(tag)
        if end is None and not before.strip():
            return None
        if end is None and begins_line:
            return before.strip()
        if end is None:
            endless.add(kind)
        elif not (before.lstrip().startswith("{") and "}" in text[end:]):  # a value of an object
            said = before
            kept = looked = end
    return _joined(said, text[kept:]).strip()


def _in_code(before: str) -> bool:
    """Return whether what follows stands in a block or a span of Markdown's code."""
    line = before.rpartition("\n")[2]
    return before.count(FENCE) % 2 == 1 or line.count("`") % 2 == 1


def _joined(before: str, after: str) -> str:
    if not before:
        return after
    end = before.rstrip()
    start = after.lstrip()
    between = before[len(end) :] + after[: len(after) - len(start)]
    return end + ("\n" if "\n" in between else between[:1]) + start


def _closes(tag: str) -> bool:
    return "/" in tag or tag.lower() in PAIRS


def _kind(tag: str) -> str:
    tag = tag.lower().replace("/", "")
    return PAIRS.get(tag, tag)


@lru_cache(maxsize=2)  # the thoughts of a reply are looked for one after another
def _own_lines(text: str) -> list[re.Match[str]]:
    return list(OWN_LINE.finditer(text))


def _end_of_thought(opening: re.Match[str]) -> int | None:
    kind = _kind(opening[0])
    own_lines = _own_lines(opening.string)
    first = bisect_left(own_lines, opening.end(), key=lambda found: found.start())
    same_kind = (found for found in own_lines[first:] if _kind(found[0].strip()) == kind)
    end = _balanced_end(same_kind)
    if end is not None:
        return end
    for tag in TAG.finditer(opening.string, opening.end()):
        if _closes(tag[0]) and _kind(tag[0]) == kind:
            return tag.end()
    return None


def _balanced_end(tags: Iterable[re.Match[str]]) -> int | None:
    """Return where the thought ends in which the first of these tags stands, if one ends it."""
    depth = 1
    for found in tags:
        depth += -1 if _closes(found[0].strip()) else 1
        if depth == 0:
            return found.end()
    return None
