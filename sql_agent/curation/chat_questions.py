"""Decides whether a chat message is a question that can stand alone, and if not, why.

    judge("那孕妇呢？")                        # ("那孕妇呢？", "follow_up")
    judge("医生您好，布洛芬一天吃几次？谢谢")     # ("布洛芬一天吃几次？", None)

Doubtful questions pass, because `utils/filter_with_llm.py` looks at each one.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_PARTS = {name: "|".join(text.split()) for name, text in _TEXTS["words"].items()}
_PARTS["marks"] = _TEXTS["marks"]
SPARE = 1_000  # characters of greetings and pictures around a question of the allowed length
NEEDED = 2  # least characters of a question without its general words


RE: dict[str, re.Pattern[str]] = {}
for _name, _text in _TEXTS["patterns"].items():
    _filled = re.sub(r"{{(\w+)}}", lambda part: _PARTS[part[1]], _text)
    RE[_name] = re.compile(_filled, re.IGNORECASE)


def judge(text: str, shortest: int = 4, longest: int = 200) -> tuple[str, str | None]:
    """Return the text without greeting and thanks, and why it is not a candidate, or None if it is.

    shortest, longest: inclusive limits in characters.
    """
    if len(text) > 2 * longest + SPARE:
        return text, "too_long"
    text = RE["media"].sub(" ", text).strip()
    if not re.search(r"[^\W_]", text):
        return text, "empty"
    if RE["only_greeting"].fullmatch(text):
        return text, "greeting"
    if RE["only_thanks"].fullmatch(text):
        return text, "thanks"
    text = RE["trailing"].sub("", RE["leading"].sub("", text)).strip()
    if len(text) > longest:
        return text, "too_long"
    short = "too_short" if len(text) < shortest else None
    if not RE["asking"].search(text) and not RE["topic"].search(text):
        return text, short or "not_a_question"
    # A follow-up lacks a subject, or points back before it names one
    alone = RE["following"].sub("", text)
    before = RE["back"].split(alone, maxsplit=1)[0]
    if RE["ellipsis"].match(alone) and not RE["concrete"].search(alone):
        return text, "follow_up"
    return text, "follow_up" if len(RE["general"].sub("", before)) < NEEDED else short
