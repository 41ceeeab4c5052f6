"""What frames a diagnosis in an answer: labels of lines, and words that lead to it (framing.toml).

parts_of("### 诊断\\n**痛风**\\n治疗建议：多喝水")      # [("diagnosis", "痛风"), ("advice", "多喝水")]
unframed("The most likely diagnosis is gout.")       # "gout"
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from common.toml import table_beside

TABLE = table_beside(__file__)
LONGEST = 300  # characters of a sentence in which a lead is looked for
NAMES = "|".join(f"(?P<{kind}>{'|'.join(patterns)})" for kind, patterns in TABLE["labels"].items())
LABEL = re.compile(rf"(?:{NAMES})(?:[ \t]{{0,4}}[:：]| [-–—] |[ \t]*\Z)", re.IGNORECASE)
BRACKETED = re.compile(rf"[【\[](?:{NAMES})[】\]][:：]?", re.IGNORECASE)
LEAD = re.compile("|".join(f"(?:{one})" for one in TABLE["lead"]["patterns"]), re.IGNORECASE)
OPENER, TRAIL = (
    re.compile(f"(?:{'|'.join(TABLE['lead'][name])}){end}", re.IGNORECASE)
    for name, end in (("opener", ""), ("trail", r"[ .。]*\Z"))
)
MARKS = re.compile(r"\*\*|__|`|^[ \t]{0,4}#{1,6}[ \t]*", re.MULTILINE)
ITEM = re.compile(r"\s*(?:[-•>*]|\d{1,2}[.)、](?!\d)) ?")
AROUND = " \t.。\"'“”‘’「」"


class Part(NamedTuple):
    """A text with the kind of the label before it (framing.toml), "" without one."""

    kind: str
    text: str


def parts_of(text: str) -> list[Part]:
    """Return the parts of an answer in order. Lines without a label belong to the part before them."""
    parts = [Part("", "")]
    for line in MARKS.sub("", text).splitlines():
        words = without_item(line.strip())
        label = BRACKETED.match(words) or LABEL.match(words)
        if label:
            parts.append(Part(str(label.lastgroup), words[label.end() :].strip()))
        elif words:
            kind, before = parts[-1]
            parts[-1] = Part(kind, f"{before}\n{words}".strip())
    return [part for part in parts if part.kind or part.text]


def diagnosis_in(text: str) -> str:
    """Return the diagnoses after an answer's labels, else its text without a label."""
    named = labelled(parts_of(text))
    if not named:
        for part in parts_of(text):
            if not part.kind:
                named += filter(None, map(unframed, part.text.splitlines()))
    return "; ".join(named)


def labelled(parts: Iterable[Part]) -> list[str]:
    """Return the diagnoses of the labelled parts."""
    named = list[str]()
    for part in parts:
        if part.kind == "diagnosis":
            named += filter(None, map(bare, part.text.splitlines()))
    return named


def leads(sentence: str) -> bool:
    """Return whether a sentence begins or ends like one that names a diagnosis."""
    words = _unopened(sentence.strip(AROUND))
    return bool(LEAD.match(words[:LONGEST]) or TRAIL.search(words[-LONGEST:]))


def without_item(line: str) -> str:
    """Return a line without the number or dash of a list at its beginning."""
    item = ITEM.match(line)
    return line[item.end() :] if item else line


def unframed(sentence: str) -> str:
    """Return a sentence without the words that lead to its diagnosis, and marks around it."""
    words = _unopened(bare(sentence))
    lead = LEAD.match(words[:LONGEST])
    words = words[lead.end() :].strip(AROUND) if lead else words
    trail = TRAIL.search(words[-LONGEST:])
    return words[: len(words) - len(trail[0])].strip(AROUND) if trail else words


def _unopened(words: str) -> str:
    opener = OPENER.match(words)
    return words[opener.end() :] if opener else words


def bare(line: str) -> str:
    """Return a line without the number of a list and the marks around it."""
    return without_item(line).strip(AROUND)
