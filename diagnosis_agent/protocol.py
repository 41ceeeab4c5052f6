"""What a reply says, in DiagAgent's phrases: an order, or the stop phrase with the diagnosis and why.

read_reply("Current diagnosis: appendicitis\\nFurther examination needed: CBC.\\nReason: fever")
# Order("appendicitis", "CBC", "fever")
"""

import re
from dataclasses import dataclass
from pathlib import Path

from common.thoughts import after_thought
from conditions.framing import diagnosis_in, labelled, leads, parts_of, unframed
from episodes.text_loop import Ending, Malformed
from scoring.text import simplified

STOP_PHRASE = "The available information is sufficient to make a diagnosis."
STOP = re.compile(
    rf"(?:^|(?<=[\n.:;!?。])|(?<=[.:;!?] )){'[ ]'.join(STOP_PHRASE[:-1].split())} ?(?:[.:;!。！]|$|(?=\n))",
    re.IGNORECASE,
)
ORDER = re.compile(r"\b(?:needed|performed) ?[:：]", re.IGNORECASE)
REASON = re.compile(
    r"(?:^|(?<=[\n.:;!?。]) ?)(?:[-•] |\d{1,2}[.)] )?(?:reason(?:s|ing)?(?: [^\n:：]{0,40})?|rationale) ?[:：] ?",
    re.IGNORECASE,
)
ANOTHER = re.compile(r"final diagnosis ?[:：]|最终诊断[:：]", re.IGNORECASE)
# Not behind "abd. ultrasound" and "vit. B12"
SENTENCE_END = re.compile(
    r"(?<=\w{3}[.!?])(?<!\b(?i:abd|vit|lat|ant|sup|inf|ext|int|art|ven)\.) |(?<=[)\]][.!?]) "
)
ITEM = re.compile(r"\A(?:[-–•>] |\d{1,2}(?:[.)] |、))")
LISTED = re.compile(r"[:：] ?" + ITEM.pattern.removeprefix(r"\A"))
SPACE = re.compile(r"[^\S\n]+")
MARKDOWN = re.compile(r"[*`#]+|__+")

OWN = Path(__file__).with_name("prompts.toml")


@dataclass(frozen=True)
class Order:
    diagnosis: str
    examination: str
    reason: str

    @property
    def reply(self) -> str:
        """The reply that says this."""
        wanted = f"Further examination needed: {self.examination}."
        return f"Current diagnosis: {self.diagnosis}\n{wanted}\nReason: {self.reason}"


@dataclass(frozen=True)
class Conclusion(Ending):
    diagnosis: str
    reason: str

    def __str__(self) -> str:
        return self.diagnosis

    @property
    def reply(self) -> str:
        """The reply that says this."""
        return f"{STOP_PHRASE}\nFinal diagnosis: {self.diagnosis}\nReason: {self.reason}"


def read_reply(text: str) -> Order | Conclusion | Malformed:
    """Return what a reply says, or the name of its problem."""
    reply = after_thought(text, opened=False)
    if reply is None:
        return Malformed("open_thought")
    lines = []
    for line in _lines(SPACE.sub(" ", MARKDOWN.sub("", simplified(reply)))):
        heads = not line.endswith((":", "：")) and parts_of(line) == [("diagnosis", "")]
        lines.append(f"{line}:" if heads else line)
    text = re.sub(r"([:：])\n", r"\1 ", "\n".join(lines))
    if not text:
        return Malformed("empty")
    head = REASON.split(text, maxsplit=1)[0]
    head = head if STOP.search(head) or ORDER.search(head) else text
    stop = STOP.search(head)
    orders = list(ORDER.finditer(head))
    if (stop and ORDER.search(text)) or (orders and STOP.search(text)):
        return Malformed("both")
    if not (stop or orders):
        return Malformed("no_examination")
    return _conclusion(text[stop.end() :]) if stop else _order(text, orders)


def _order(text: str, phrases: list[re.Match[str]]) -> Order | Conclusion | Malformed:
    before = text[: phrases[0].start()]
    behind = text[phrases[0].end() :]
    begins = max(before.rfind("\n"), before.rfind(". "), 0)  # the sentence of the phrase itself
    said, *earlier = REASON.split(before[:begins], maxsplit=1)
    listed, *later = REASON.split(behind, maxsplit=1)
    first, *more = _lines(listed) or [""]
    items = [line for line in (first, *more) if ITEM.match(line)]
    if len(phrases) > 1 or (ITEM.match(first) and len(items) > 1):
        return Malformed("several_examinations")
    name, *sentence = SENTENCE_END.split(ITEM.sub("", first, count=1), maxsplit=1)
    lines = _lines(said)
    named = [line for line in lines if _names_a_diagnosis(line)] or lines or [""]
    reason = " ".join([*earlier, *sentence, *more, *later]).strip()
    return _whole(Order(_named(named[0]), name.strip(" .。"), reason))


def _conclusion(text: str) -> Order | Conclusion | Malformed:
    conclusion, *reasons = REASON.split(text, maxsplit=1)
    lines = _lines(conclusion)
    if reasons:
        said = list[str]()
        behind = list[str]()
        for line in lines:
            first, *rest = SENTENCE_END.split(line, maxsplit=1)
            is_diagnosis = _names_a_diagnosis(first)
            said.append(first if is_diagnosis else line)
            behind += rest if is_diagnosis else []
        why = "\n".join([*behind, reasons[0].strip()])
        # A second diagnosis behind the reason counts as well: naming several is no way to be right.
        again = "\n".join(line for line in _lines(why) if ANOTHER.match(line))
        named = [diagnosis_in("\n".join(said)), *labelled(parts_of(again))]
        if not any(named):
            named = labelled(parts_of(why))
        distinct: dict[str, str] = {}
        for name in filter(None, named):  # the first spelling stands where the last does
            distinct[name.casefold()] = distinct.pop(name.casefold(), name)
        return _whole(Conclusion("; ".join(distinct.values()), why.strip()))
    stated = [line for line in lines if _names_a_diagnosis(line)] or lines[:1]
    if any(map(LISTED.search, stated)):  # the items of a list are no reason
        stated += [line for line in lines if ITEM.match(line) and line not in stated]
    names = list[str]()
    reason = list[str]()
    for line in stated:
        first, *rest = SENTENCE_END.split(line, maxsplit=1)
        names.append(_named(first))
        reason += rest
    reason += [line for line in lines if line not in stated]
    return _whole(Conclusion("; ".join(filter(None, names)), " ".join(reason)))


def _whole(said: Order | Conclusion) -> Order | Conclusion | Malformed:
    for part in ("diagnosis", "examination", "reason"):
        if vars(said).get(part) == "":
            return Malformed(f"no_{part}")
    return said


def _named(line: str) -> str:
    return "; ".join(labelled(parts_of(line))) or unframed(line)


def _names_a_diagnosis(line: str) -> bool:
    return leads(line) or bool(labelled(parts_of(line)))


def _lines(text: str) -> list[str]:
    return [line for line in map(str.strip, text.split("\n")) if line]
