"""Whether a chat message is a question that can stand alone; if not, why not.

    judge("那孕妇呢？")                        # ("那孕妇呢？", "follow_up")
    judge("医生您好，布洛芬一天吃几次？谢谢")     # ("布洛芬一天吃几次？", None)

Rules, not a model: fast, the same every time, and meant to let doubtful ones pass, for `utils/filter_with_llm.py` looks
at every one of them. The words are in `chat_questions.toml`; docs/curation.md explains the reasons. Used by
`utils/chat_session_filter.py`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
WORDS = {name: "|".join(text.split()) for name, text in _TEXTS.items()}

MEDIA = re.compile(rf"[\[【<](?:{WORDS['media']})[^\]】>]{{0,40}}[\]】>]", re.I)
MARKS = r"[\s,，。.!！~～、;；:：?？…()（）\-—^_😊🙏👍🌹❤️]"
# Possessive and atomic, so that no hostile text makes the matching exponential.
ONLY_GREETING = re.compile(rf"(?>{WORDS['greeting']}|{MARKS})++", re.I)
ONLY_THANKS = re.compile(rf"(?>{WORDS['thanks']}|{MARKS})++", re.I)
LEADING = re.compile(rf"^(?>(?:{WORDS['greeting']})++{MARKS}++|{MARKS}++)++", re.I)
TRAILING = re.compile(
    r"(?>(?:(?<=[?？])|[\s,，。.!！~～;；]++)(?:谢谢(?:医生|大夫|您|你|了)?|多谢|感谢|麻烦您?了|辛苦了|急[急\s!！]*+|在线等))++"
    rf"{MARKS}*+$",
    re.I,
)
ASKING = re.compile(WORDS["asking"], re.I)
TOPIC = re.compile(rf"^[^我你您他她了]{{2,}}(?:{WORDS['topic']})[。.!！]?$")
FOLLOWING = re.compile(rf"^(?:{WORDS['following']})")
ELLIPSIS = re.compile(r"^.{1,12}呢[?？。!！~～\s]*$")
CONCRETE_QUESTION = re.compile(WORDS["concrete"])
BACK = re.compile(WORDS["back"])
GENERAL = re.compile(WORDS["general"])
SPARE = 1_000  # characters of greetings and pictures around a question of the allowed length
NEEDED = 2  # characters that are left of a question when everything general is taken out


def judge(text: str, shortest: int = 4, longest: int = 200) -> tuple[str, str | None]:
    """The text without greeting and thanks around it, and the reason why it is no candidate (None: it is one).

    `shortest` and `longest` are in characters, both allowed.
    """
    if len(text) > 2 * longest + SPARE:
        return text, "too_long"
    text = MEDIA.sub(" ", text).strip()
    if not re.search(r"[^\W_]", text):
        return text, "empty"
    if ONLY_GREETING.fullmatch(text):
        return text, "greeting"
    if ONLY_THANKS.fullmatch(text):
        return text, "thanks"
    text = TRAILING.sub("", LEADING.sub("", text)).strip()
    return text, _reason(text, shortest, longest)


def _reason(text: str, shortest: int, longest: int) -> str | None:
    if len(text) > longest:
        return "too_long"
    if not ASKING.search(text) and not TOPIC.search(text):
        return "too_short" if len(text) < shortest else "not_a_question"
    if is_follow_up(text):
        return "follow_up"
    return "too_short" if len(text) < shortest else None


def is_follow_up(text: str) -> bool:
    """Whether the question needs what was said before: it points back, leaves out its subject, or names nothing."""
    alone = FOLLOWING.sub("", text)
    if ELLIPSIS.match(alone) and not CONCRETE_QUESTION.search(alone):
        return True
    back = BACK.search(alone)
    if back and not _names_something(alone[: back.start()]):
        return True
    return not _names_something(BACK.sub("", alone))


def _names_something(text: str) -> bool:
    return len(GENERAL.sub("", text)) >= NEEDED
