"""The pieces of a text between punctuation, and which of them are frames: courtesies, and words for
where an answer comes from.

    pieces_of("密封，避光。")                # (("密封", ","), ("避光", "。"))
    is_free("根据数据库查询结果")             # True
    key_of("噪声与油烟") == key_of("油烟与噪声")

The words are in pieces.toml.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path

from scoring.text import SEPARATOR
from sql_agent.judge.canonical import canonical

TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SIGN = re.compile("[+±×≠¬❌✗✘✖🚫]")
"""Says something without a word: a result may be "+", and "❌" denies."""
HAS_WORD = re.compile(rf"[^\W_]|{SIGN.pattern}")
OTHER_NUMBER = r"[-+.~<>≤≥≠±≈/∕^%\d]"
"""What makes another number of the one that it stands beside."""
DENYING = re.compile(
    r"不|没|未|无|非|误|错|反|否|假|谣|虚|禁(?!忌)|勿"
    r"|(?<![性类级区分])别(?![名称])|莫|空|缺|可以|放心|撤回|更正|纠正|作废|忽略|[≠¬❌✗✘✖🚫]"
    r"|(?<![a-z])(?:no|not|none"
    r"|nothing|never|wrong|false|ignore|incorrect|untrue|untruth|myth|opposite|contrary|disregard|isn|aren|doesn|don|won"
    r"|can|cannot|unable|unknown|zero|empty|except)(?![a-z])"
)
"""What takes back or denies where it stands beside a fact."""
JOINT = "以及|还有|另有|和|及|与|或者?|跟|并且?|且|还有| and | or |(?<![a-z])(?:and|or) "
JOINTS = re.compile(JOINT)
COPULA = (
    "(?:主要|分别|应该?|1般|被)?(?:(?:记录|记载|登记|标注|标记|显示|描述|注明|列|写)(?:为|的?是|成)|是指|是|为|有|包括|包含|如下|如何"
    "|叫做?|称[为作]"
    "|(?:(?:^|(?<= ))(?:it|they|here|there) )?(?<![a-z])(?:is|are|was|were)"
    "(?: (?:listed|recorded|given|stated|documented|described|noted|reported|registered|shown) as)?)"
    "(?:以下几[种个点]|如下| as follows)?"
)
ABOUT = re.compile(r"关于|对于|针对|以[上下]|(?:regarding|about|for)(?![a-z])")
ENDING = re.compile(rf"(?:{COPULA})$")
SAME = {"是的": "是", "不是": "否", "没有": "无", "男性": "男", "女性": "女"}
HELPERS = re.compile(
    r"(?:以上|以下|如上|[能可会要应该得是有为到的了否吗不没无莫勿别非上中里所已本据])+|[按经给请我您帮查就让从]"
    r"|(?:(?:the|our|your|for|of|in|from|per|about|is|are|as|it|that|this|what|which|you|i|we|have|has"
    r"|after|following|below|here|there|need|s|no|not)(?: |$))+"
)
"""Words that are no frame alone: "是" and "以上" may be what is asked for."""

COURTESY_BEHIND = re.compile("(?:医生|医师|大夫|先生|女士|呢|哦|呀|喔)$")

_FRAME = {name: "|".join(patterns) for name, patterns in TABLE["frame"].items()}
WORDS = rf"{_FRAME['polite']}|{_FRAME['source']}|(?<![a-z])(?:{_FRAME['english']})(?![a-z])"
FRAME = re.compile(rf"(?:(?>{WORDS}) ?)++")  # possessive: "查到" is a word, and two
ADVICE = re.compile(_FRAME["advice"])


def pieces_of(text: str) -> tuple[tuple[str, str], ...]:
    """Return the text's pieces between punctuation in canonical form, each with the sign behind it. A
    question mark stays: what is asked or doubted is not stated.
    """
    return pieces_in(canonical(text))


@lru_cache(maxsize=8192)
def pieces_in(plain: str) -> tuple[tuple[str, str], ...]:
    """Return the same as `pieces_of`, for a canonical text."""
    place, found = 0, []
    for match in SEPARATOR.finditer(plain):
        if match.start() > place:
            sign = match.group().strip()
            piece = _undashed(plain[place : match.start()])
            found.append((f"{piece}?" if sign == "?" else piece, sign))
        place = match.end()
    found.append((_undashed(plain[place:]), ""))
    return tuple(one for one in found if HAS_WORD.search(one[0]))


def _undashed(text: str) -> str:
    """Return the text without dashes around it; the minus before its number is not a dash."""
    piece = text.strip(" -")
    minus = piece[:1].isdigit() and text[: text.index(piece)].endswith("-")
    return f"-{piece}" if minus else piece


@lru_cache(maxsize=16384)
def key_of(piece: str) -> str:
    """Return the piece's items in one order: "噪声与油烟" and "油烟与噪声" are equal; so are "是" and
    "是的".
    """
    if piece in SAME:
        return SAME[piece]
    parts = sorted(filter(None, JOINTS.split(piece)))
    return "\t".join(parts) if len(parts) > 1 else piece


def is_free(piece: str) -> bool:
    """Return whether the piece is a frame, or advice to ask somebody else; "是" alone is neither."""
    piece = piece.removesuffix("?")
    framed = FRAME.fullmatch(piece) is not None and not HELPERS.fullmatch(piece)
    return framed or ADVICE.fullmatch(piece) is not None


def without_frames(text: str) -> str:
    """Return the text's pieces without punctuation, and without the frames before them."""
    pieces = [piece for piece, _ in pieces_of(text)]
    while len(pieces) > 1 and is_free(pieces[0]):
        del pieces[0]
    return "\n".join(pieces)


def split_head(head: str) -> tuple[str, str]:
    """Return what a head is about and its label: ("X", "用法") of "X的用法"."""
    about, _, label = head.rpartition("的")
    return about, label
