"""The pieces of a text between punctuation; which of them are polite, and which say that nothing
was found.

pieces_of("密封，避光。")                                # (("密封", ","), ("避光", "。"))
abstains("数据库中没有找到该药。")                        # True
honesty("没有找到X的用法。", "X的用法是什么？")            # 1.0: that is all it says
"""

from __future__ import annotations

import re
from functools import lru_cache

from scoring.text import SEPARATOR, canonical, words_only

HAS_WORD = re.compile(r"[^\W_]")
LONGEST_ASIDE = 10  # Chinese characters of its own that an abstention may have
JOINT = "以及|还有|另有|和|及|与|或者?|跟|并且?|且|还有| and | or |and |or "
JOINTS = re.compile(JOINT)
COPULA = (
    "(?:主要|分别|应该|一般)?(?:是指|是|为|有|包括|包含|如下|如何"
    "|(?:(?:^|(?<= ))(?:it|they|here|there) )?(?<![a-z])(?:is|are))(?:以下几[种个点]|如下| as follows)?"
)
ABOUT = re.compile(r"关于|对于|针对|以[上下]|(?:regarding|about|for)(?![a-z])")
ENDING = re.compile(rf"(?:{COPULA})$")
HELPERS = re.compile(
    r"(?:以上|以下|如上|[能可会要应该得是有为到的了否吗不没无莫勿别非上中里所已本据])+|[按经给请我您帮问查就]"
    r"|(?:(?:the|our|your|for|of|in|from|per|about|is|are|as|it|that|this|what|which|you|i|we|have|has"
    r"|after|following|below|here|there|need|s|no|not)(?: |$))+"
)
"""Words that are no frame alone: "是" and "以上" may be what is asked for."""

# Frames are made of these words and nothing else: courtesies, where an answer comes from, and what
# leads to it. None of them can say something about a fact.
POLITE = (
    "(?:您|你|大家|早上|下午|晚上)好[啊呀]?|请问|很?抱歉|对不起|非常|很高兴|感谢|谢谢|不客气|好的|很?遗憾|尊敬的用户|解答|回答|提问|咨询"
    "|(?:祝|愿)您?(?:身体)?(?:健康|早日康复)|希望(?:这|以上)?(?:信息|内容)?(?:能够?)?(?:对您|帮)(?:您|到|有所?帮助)+"
    "|(?:以上)?(?:信息|内容)?仅?供您?参考|[如若]有(?:任何|其他)?(?:疑问|问题|不适)(?:[请可]?(?:随时|继续))?|欢迎(?:随时|继续)"
)
SOURCE = (
    "根据|依据|按照|按|经过|经|通过|关于|对于|针对|数据库|资料库|数据|资料|库|记录|记载|收录|信息|内容|结果|答案|详情|具体|原文"
    "|查询|检索|搜索|查阅|查到|查|请看|请参考|这样|就|找到|得到|来自|来源|显示|表明|可知|得知|发现|如下|以下|以上|如上|您的问题"
    "|本|该|我们|我|您|为|帮|给|请|答|据|到|的|了|中|里|上|所|1下|问|已|是"
)
ENGLISH = (
    "hello|hi|dear|user|there|please|welcome|for your patience|good question|get well soon"
    "|good (?:morning|afternoon|evening)|sure|certainly|of course|sorry|thanks|thank you"
    "|(?:i )?hope (?:this|that|it) helps|best wishes|take care"
    "|(?:please )?let me know if you (?:have|need) (?:any other questions|anything else)"
    "|according to|based on|from|per|regarding|about|for|of|in|the|our|your|database|records?"
    "|recorded|data|query|querying|search|results?"
    "|information|answer|question|source|is|are|as|it|that|this|what|which|you|asked|asking"
    "|requested|need|i|we|have|has|found|find"
    "|checked|after|checking|looked|up|says?|shows?|states?|lists?|returned|contains|follows|following|below|here|s"
)
WORDS = rf"{POLITE}|{SOURCE}|(?<![a-z])(?:{ENGLISH})(?![a-z])"
FRAME = re.compile(rf"(?:(?:{WORDS}) ?)+")
ADVICE = re.compile(
    r"(?:如有(?:疑问|不适|问题)|具体|用药前|必要时)?(?:建议|请)?(?:您)?(?:及时|先)?(?:(?:咨询|询问)(?:专业)?(?:医生或药师|医师或药师|医生|医师|药师)|遵循?医嘱)"
    r"|请?核对名[称字]|(?:please )?(?:consult|ask|follow)(?: with)? (?:a|your) (?:doctor"
    r"|pharmacist)(?: or (?:doctor|pharmacist))?"
)
TAKEN_BACK = re.compile(
    "不是|并非|相反|有误|不对|不实|说谎|其实|实际上|但是|不过|应该是|可能是|通常|1般|true|wrong|false|actually"
)

# Saying that nothing was found: the words that say it, what may stand beside them, and sentences
# that go with it (who else may know, that no answer can be given).
_SEARCHED = (
    "查询|检索|查找|搜索|查|找|搜|收录|记录|记载|收集|提供|提及|提到|列出|写明|注明|给出|返回"
)
_HELD = "记录|记载|信息|资讯|数据|资料|内容|结果|条目|说明|收录|匹配"
NOTHING = re.compile(
    rf"(?:没能?|未能?|并未|[尚暂]未|[并暂]?无|无法|没有)(?:能够?|有|被|在.{{1,8}}?中?)?(?:{_SEARCHED})[到出着见有]?"
    r"|(?:查询|检索|查找|搜索|查|找|搜)不[到着出]|查无|不详$|没有(?:(?:哪|任何|1)[个种款项条]|叫|名为|名称为)"
    rf"|(?:没有?|[暂尚]?无|缺少|缺乏|未有)(?=.{{0,40}}(?:{_HELD}))"
    r"|[库表里中][并暂尚也]?(?:没有|无(?!法)|不存在|为空|是空的)|(?:数据|资料|记录)(?:并)?(?:没有|无(?!法)|不存在|为空)"
    r"|(?:结果|记录|字段|内容|信息|值|1?[栏条项])(?:[是为]|均为|显示为?)?(?:空白?的?|0)(?![气腹.\d])|[是为]空白|(?<![\d.])0[条个项种](?:记录|结果|信息|数据)"
    r"|(?<![a-z])(?:no|not any|zero|any) (?:[a-z]+ ){0,3}(?:records?|data|information|results?|entry"
    r"|entries|match(?:es)?|rows?|mention)"
    r"|(?<![a-z])nothing (?:(?:was|is|could be) )?(?:found|recorded|listed|returned|stored"
    r"|about)|(?:returned|found) nothing"
    r"|(?:not|n't|unable to|cannot|could not) (?:be )?(?:f[io]u?nd|locate)|not (?:in|contained in"
    r"|recorded in) (?:the|our|this) database"
    r"|(?:not|isn't|aren't) (?:available|recorded|listed|included|present|given|mentioned|stored"
    r"|specified|there|on file)"
    r"|(?:does|do|did)(?: not|n't) (?:contain|have|include|list|mention|return|hold|record|say)"
    r"|(?:returned?|has|have|had|is|there is) (?:no |empty)"
)
UNSURE = re.compile(
    r"(?:不知道|不清楚|不了解|不确定|不得而知)|(?:[无没]法|没办法|不能|不好|难以|不便|不敢)[^,]{0,6}?(?:回答|提供|确定|得知|判断|给出|告诉|告知|作答|说|猜)"
    r"|不[做作]?(?:任何)?(?:猜测|推测|编造|臆测)|i (?:do not|don't) know|unknown|not (?:going to )?guess"
    r"|(?:cannot|can't|can not|unable to|not able to) (?:answer|say|tell|give|provide|confirm|determine)"
)
ASIDE = re.compile(
    "咨询|询问|医生|医师|药师|医院|就诊|就医|[若如].{0,8}不适|说明书|包装|药盒|核对|核实|确认|检查|再试|重试|拼写|换个|以免|无法|查过|帮不[上了]|please|consult|doctor"
    "|pharmacist|label|leaflet|sorry|searched|looked|checked"
)
BESIDE = re.compile(
    rf"{WORDS}|建议|为准|相关|任何|有关|对应|相应|匹配|符合|条件|字段|条目|说明|目前|暂时|因此|所以|同时|这|它|其|此|那|个|种|款|项|栏|病名|药名|名称|名字"
    "|咨询|询问|医生|医师|药师|医院|就诊|就医|专科|说明书|包装盒?|药盒|核对|核实|确认|检查|再试|重试|拼写|换个|以免|无法|查过|帮不[上了]|是否|正确|需要|可以|先|再|去|看|或|和|与|在|有|呢|哦|对|以"
    "|(?<![a-z])(?:unfortunately|the|a|an|any|was|were|so|therefore|but|and|or|your|with|on|at|by|to|be|please"
    "|consult|ask|doctor|pharmacist|sorry|query|rows?)(?![a-z])"
)
CLAIM = re.compile(
    r"[能可会要应该得是有不没无莫勿禁忌慎宜免]|(?<![a-z])(?:is|are|can|may|should)(?![a-z])"
)
MOST_WORDS = 6  # English words of its own that an abstention may have


def abstains(text: str) -> bool:
    """Whether a piece of the text says that nothing was found or recorded."""
    return any(NOTHING.search(piece) for piece, _ in pieces_of(text))


def pieces_of(text: str) -> tuple[tuple[str, str], ...]:
    """The text's pieces between punctuation in canonical form, each with the sign behind it."""
    return pieces_in(canonical(text))


@lru_cache(maxsize=8192)
def pieces_in(plain: str) -> tuple[tuple[str, str], ...]:
    """As `pieces_of`, of a canonical text."""
    place, found = 0, []
    for match in SEPARATOR.finditer(plain):
        found.append((plain[place : match.start()].strip(" -"), match.group().strip()))
        place = match.end()
    found.append((plain[place:].strip(), ""))
    return tuple((_signed(plain, piece), sign) for piece, sign in found if HAS_WORD.search(piece))


def _signed(plain: str, piece: str) -> str:
    """The piece with the minus before its number, which is no dash."""
    return f"-{piece}" if piece[:1].isdigit() and f"-{piece}" in plain else piece


@lru_cache(maxsize=16384)
def key_of(piece: str) -> str:
    """The piece's items in one order: "噪声与油烟" and "油烟与噪声" are equal."""
    parts = sorted(filter(None, JOINTS.split(piece)))
    return "\t".join(parts) if len(parts) > 1 else piece


def honesty(answer: str, known: str) -> float:
    """1 for an answer that says only that nothing was found, where nothing was to be found; else 0.

    Courtesies, advice to ask somebody else and words of `known` (the question, the reference) cost
    nothing.
    """
    abstained, plain = False, words_only(canonical(known))
    for piece, _ in pieces_of(answer):
        found = NOTHING.search(piece)
        abstained = abstained or found is not None
        beside = NOTHING.sub("\n", piece)
        goes_with = (
            is_free(piece)
            or found
            or ABOUT.match(piece)
            or ASIDE.search(piece)
            or UNSURE.search(piece)
        )
        own = _own_words(UNSURE.sub("\n", beside), plain)
        repeated = not own and not CLAIM.search(piece)
        if TAKEN_BACK.search(piece) or not (goes_with or repeated) or not _is_little(own):
            return 0.0
    return float(abstained)


def _own_words(text: str, known: str) -> list[str]:
    """The numbers, English words and Chinese characters of a text that neither `known` nor every
    abstention has.
    """
    rest = BESIDE.sub("\n", re.sub(r"[这那某]\d", "", text))
    found = re.findall(r"\d+(?:\.\d+)?|[a-z]+|[一-鿿]", rest)
    return [word for word in found if word not in known]


def _is_little(own: list[str]) -> bool:
    """Whether an abstention may have these words beside it: a few, and no number."""
    english = sum(word.isascii() for word in own)
    numbers = any(word[0].isdigit() for word in own)
    return not numbers and english <= MOST_WORDS and len(own) - english <= LONGEST_ASIDE


def is_free(piece: str) -> bool:
    """Whether the piece is a frame, or advice to ask somebody else; "是" alone is neither."""
    framed = FRAME.fullmatch(piece) is not None and not HELPERS.fullmatch(piece)
    return framed or ADVICE.fullmatch(piece) is not None


def without_frames(text: str) -> str:
    """The text's pieces without punctuation, and without the frames before them."""
    pieces = [piece for piece, _ in pieces_of(text)]
    while len(pieces) > 1 and is_free(pieces[0]):
        del pieces[0]
    return "\n".join(pieces)


def split_head(head: str) -> tuple[str, str]:
    """What a head is about and its label: ("X", "用法") of "X的用法"."""
    about, _, label = head.rpartition("的")
    return about, label
