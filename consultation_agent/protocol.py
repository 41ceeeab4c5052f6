"""What a doctor's reply says: an optional <think> block and one <answer>, either a question or a diagnosis with advice.

    read_reply("<answer>问题：哪里疼？</answer>")                   # Question("哪里疼？")
    read_reply("<answer>诊断：急性阑尾炎\\n建议：去急诊</answer>")     # Conclusion("急性阑尾炎", "去急诊")
    read_reply("哪里疼？")                                          # Malformed("no_answer")

`Question:`, `Diagnosis:` and `Recommendation:` are understood as well. Any text is read in time that grows with its
length and never raises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from episodes.text_loop import Ending, Malformed

LABEL = re.compile(
    r"(question|问题|diagnosis|诊断|recommendation|建议)[ \t]{0,4}[:：]", re.IGNORECASE
)
KINDS = {
    "question": "ask",
    "问题": "ask",
    "diagnosis": "name",
    "诊断": "name",
    "recommendation": "advise",
    "建议": "advise",
}

PROBLEMS = (
    "empty",  # nothing at all
    "open_thought",  # <think> without </think>
    "no_answer",  # no <answer> block
    "several_answers",
    "outside",  # words beside the blocks
    "no_label",  # neither a question nor a diagnosis
    "both",  # a question and a diagnosis
    "no_question",  # the label, and nothing behind it
    "no_diagnosis",
    "no_recommendation",
    "too_late",  # a question where only the diagnosis was left
)


@dataclass(frozen=True)
class Question:
    text: str


@dataclass(frozen=True)
class Conclusion(Ending):
    diagnosis: str
    recommendation: str

    def __str__(self) -> str:
        return f"诊断：{self.diagnosis}\n建议：{self.recommendation}"


def spoken(said: str | Conclusion) -> str:
    """A question or a conclusion as a reply."""
    return f"<answer>{said if isinstance(said, Conclusion) else f'问题：{said}'}</answer>"


def read_reply(text: str) -> Question | Conclusion | Malformed:
    """What a reply says, or the name of what is wrong with it."""
    text = text.strip()
    if not text:
        return Malformed("empty")
    if text.startswith("<think>"):
        _, closed, text = text.partition("</think>")
        if not closed:
            return Malformed("open_thought")
    text, opened, closed_times = text.strip(), text.count("<answer>"), text.count("</answer>")
    if not (opened and closed_times):
        return Malformed("no_answer")
    if opened > 1 or closed_times > 1:
        return Malformed("several_answers")
    if not (text.startswith("<answer>") and text.endswith("</answer>")):
        return Malformed("outside")
    return _read_answer(text.removeprefix("<answer>").removesuffix("</answer>").strip())


def _read_answer(text: str) -> Question | Conclusion | Malformed:
    """The labelled parts: [what stands before, label, words, label, words, ...]."""
    before, *parts = LABEL.split(text)
    labels = [KINDS[label.lower()] for label in parts[::2]]
    words = [part.strip() for part in parts[1::2]]
    if before.strip() or not labels:
        return Malformed("no_label")
    if "ask" in labels and len({*labels}) > 1:
        return Malformed("both")
    if labels[0] == "ask":
        asked = " ".join(word for word in words if word)
        return Question(asked) if asked else Malformed("no_question")
    named = [word for label, word in zip(labels, words, strict=True) if label == "name" and word]
    advised = [
        word for label, word in zip(labels, words, strict=True) if label == "advise" and word
    ]
    if not named or labels[0] != "name":
        return Malformed("no_diagnosis")
    return (
        Conclusion("、".join(named), "；".join(advised))
        if advised
        else Malformed("no_recommendation")
    )
