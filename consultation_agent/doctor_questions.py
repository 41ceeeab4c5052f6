"""The text of a doctor's question: what of it asks, opens a consultation, or only leads up to it.

asking_of("好的。有没有发烧？")      # "有没有发烧？"
"""

import re

from common.toml import table_beside

SENTENCE = re.compile(r"[^?？!！。；;\n]+[?？]?")
FULL_STOP = re.compile(r"(?<=[a-z]{2})\.\s")
CHOICE = re.compile(r"([^\W\d_a-z]{1,2})[不没]\1")  # 疼不疼
SAID = table_beside(__file__, "said.toml")
HEARD = {name: re.compile("|".join(SAID["heard"][name])) for name in SAID["heard"]}
ASKING, ADVICE, TAG, EXAMPLE = (HEARD[name] for name in ("asking", "advice", "tag", "example"))
CLAUSE, JOINT, WHETHER = (HEARD[name] for name in ("clause", "joint", "whether"))
OPENING, MORE, PREFACE = (HEARD[name] for name in ("opening", "more", "preface"))
PASSED = HEARD["passed"]
ANOTHER_PERSON = HEARD["another_person"]
HAN_RUN = re.compile(r"[\u4e00-\u9fff]+")
ENGLISH = re.compile(r"[a-z]+")
STEM = 5  # letters by which an English word is known
# A clause with something behind it
BEFORE = re.compile(r"[^，,。.!！:：?？]*[，,。.!！:：]\s*(?:(?:and|so|but|now)\b\s*)?(?=\S)", re.I)
SMALL_CHINESE = re.compile(SAID["small"]["chinese"])
SMALL_ENGLISH = frozenset(SAID["small"]["english"].split())


def opens(question: str) -> bool:
    """Return whether a question opens a consultation, as "What brings you in?", and no more."""
    text = plain(TAG.sub("", question))
    if not OPENING.search(text) or MORE.search(text):
        return False
    return not content_of(OPENING.sub(" ", text))


def content_of(text: str) -> set[str]:
    """Return the words of content: beginnings of English ones, pairs of Chinese characters."""
    text = plain(text)
    found = {word[:STEM] for word in ENGLISH.findall(text) if word not in SMALL_ENGLISH}
    for run in HAN_RUN.findall(SMALL_CHINESE.sub(" ", text)):
        found.update(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    return found


def without_preface(question: str) -> str:
    """Return a question without the clauses that only lead up to it: "嗯，", "Okay, and "."""
    while before := BEFORE.match(question):
        clause = before[0].lower()
        leads_up = PREFACE.search(clause) or PASSED.match(question.lower())
        if not leads_up and (asks(clause) or content_of(clause)):
            break
        question = question[before.end() :]
    return question


def asking_sentences(question: str) -> list[str]:
    """Return the sentences of a question that ask, without examples."""
    text = FULL_STOP.sub("\n", TAG.sub("", question.lower()))
    return [EXAMPLE.sub("", one) for one in SENTENCE.findall(text) if asks(one)]


def asking_of(question: str) -> str:
    """Return what of a question asks, as `plain` writes it."""
    return plain(" ".join(asking_sentences(question)))


def asks(sentence: str) -> bool:
    if sentence.endswith(("?", "？")):
        return True
    return bool(ASKING.search(sentence) and not ADVICE.search(sentence))


def plain(text: str) -> str:
    """Return a text in one spelling: 疼不疼 and 疼痛 are 疼."""
    text = CHOICE.sub(r"\1", text.lower()).replace("平常", "平时")
    return text.replace("疼痛", "疼").replace("痛", "疼")
