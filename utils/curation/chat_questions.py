"""Whether a chat message is a question that can stand alone; if not, why not.

    judge("那孕妇呢？")                        # ("那孕妇呢？", "follow_up")
    judge("医生您好，布洛芬一天吃几次？谢谢")     # ("布洛芬一天吃几次？", None)

Rules, not a model: fast, the same every time, and meant to let doubtful ones pass, for `utils/filter_with_llm.py` looks
at every one of them. The reasons are `REASONS`. Used by `utils/chat_session_filter.py`.
"""

from __future__ import annotations

import re

REASONS = {
    "empty": "no words: a picture, a voice message, signs only",
    "greeting": "a greeting and nothing else",
    "thanks": "thanks, agreement or goodbye and nothing else",
    "too_short": "shorter than --min-length",
    "too_long": "longer than --max-length",
    "not_a_question": "no question",
    "follow_up": "a question that only its conversation explains",
}

MEDIA = re.compile(
    r"[\[【<](?:图片|照片|语音|视频|文件|表情|链接|动画表情|位置|image|voice|photo|sticker)[^\]】>]{0,40}[\]】>]", re.I
)
MARKS = r"[\s,，。.!！~～、;；:：?？…()（）\-—^_😊🙏👍🌹❤️]"
GREETING = (
    r"(?:你好啊?|您好|你们好|大家好|哈喽|哈啰|嗨|hi|hello|hey|在吗|在么|在不在|在线吗|有人吗|有人在吗|有医生吗|早上好|上午好|中午好|下午好|晚上好"
    r"|早安|晚安|打扰了?|打扰一下|麻烦了|客服|医生|大夫|药师|老师|专家|请问一下|请问|咨询一下|想咨询一下|我想咨询一下|想问一下|我想问一下|我想问|想请问|问一下|问下)"
)
THANKS = (
    r"(?:谢谢您|谢谢你|谢谢了|谢谢|多谢|感谢|非常感谢|感激不尽|麻烦您了|麻烦你了|辛苦了|辛苦|好的|好滴|好吧|好哒|好|行|嗯+|哦+|噢+|喔+|知道了|我知道了|明白了|我明白了|明白"
    r"|了解了|了解"
    r"|收到|清楚了|ok|okay|thanks|thank you|thx|再见|拜拜|bye"
    r"|不客气|没事了|没事|没有了|没有|对的?|是的?|可以|医生|大夫|您|你|哈+|呵+)"
)
# Possessive and atomic, so that no hostile text makes the matching exponential.
ONLY_GREETING = re.compile(rf"(?>{GREETING}|{MARKS})++", re.I)
ONLY_THANKS = re.compile(rf"(?>{THANKS}|{MARKS})++", re.I)
LEADING = re.compile(rf"^(?>{GREETING}++{MARKS}++|{MARKS}++)++", re.I)
TRAILING = re.compile(
    r"(?>(?:(?<=[?？])|[\s,，。.!！~～;；]++)(?:谢谢(?:医生|大夫|您|你|了)?|多谢|感谢|麻烦您?了|辛苦了|急[急\s!！]*+|在线等))++"
    rf"{MARKS}*+$",
    re.I,
)

ASKING = re.compile(
    r"[?？]|吗|么[?？。]?$|什么|甚么|怎么|怎样|咋|如何|为什么|为何|为啥|哪|几[个天次片粒岁种点号年月周]|多少|多久|多长|多大|多高|是否|能否|可否|能不能|可不可以|可以不|行不行"
    r"|会不会|要不要|该不该|有没有|有无|是不是|好不好|需不需要|用不用|啥|请问|谁|何时|何种|呢[?？。!！]?$|推荐|介绍一下|请介绍|讲讲|说说|说一下|解释|告诉我|查一下|查询"
    r"|帮我查|列出|区别|比较一下|对比|\b(?:what|how|why|when|which|who|where|can|could|should|is|are|does|do|may)\b",
    re.I,
)
# A topic alone is what people type into a search box: 布洛芬副作用.
TOPIC = re.compile(
    r"^[^我你您他她了]{2,}(?:副作用|不良反应|禁忌症?|用法用量|用法|用量|说明书|适应症|注意事项|功效|作用|成份|成分|贮藏|保存方法|有效期|生产厂家|症状|病因|治疗方法|治疗|检查|诊断|预防|预后|并发症)"
    r"[。.!！]?$"
)

FOLLOWING = re.compile(r"^(?:那么?|然后|还有|所以|另外|而且|但是|但|可是|不过|如果|要是|换成|比如)")
ELLIPSIS = re.compile(r"^.{1,12}呢[?？。!！~～\s]*$")
CONCRETE_QUESTION = re.compile(r"什么|怎么|怎样|如何|为什么|为何|多少|多久|哪|吗|是否|能不能|可不可以|会不会|几")
BACK = re.compile(
    r"这(?:个|种|款|类|样|些|两|俩)?(?:药|病|片|胶囊|情况|症状|产品|牌子)?|那(?:个|种|款|些|两|俩)(?:药|病)?|那(?:药|病)|它们?|该药|此药|该病|本品|上述|上面|以上|前面|前者|后者"
    r"|刚才|刚刚|您说的|你说的|你刚说|第[一二三四12345][种个款]|两者|二者"
)
# What says nothing about whom or what a question is about.
GENERAL = re.compile(
    r"请问|医生|大夫|您|你|我们?|他们?|她们?|它们?|自己|想问|问一下|一下|一般|平时|现在|以后|之前|之后|饭前|饭后|空腹|睡前|早上|晚上|每天|每日|每次|一天|一日|一次|一周|一个月|一个疗程|疗程"
    r"|需要|应该|可以|能够|能不能|可不可以|会不会|要不要|有没有|是不是|是否|能否|还能|不能|长期|同时|一起|继续|直接|马上|多长时间|多少钱|多少|多久|多长|几次|几天|几片|几粒|几个|几岁|几[盒瓶支]"
    r"|什么样|什么|怎么办|怎么样|怎么|怎样|如何|为什么|为何|为啥|哪里|哪儿|哪种|哪个|哪些|哪|啥|咋|时候|时间|有效果|效果|见效|有效|好转|恢复|治好|治愈|严重|危险|正常|问题|情况|原因|办法|方法|区别|关系|影响"
    r"|副作用|不良反应|禁忌|注意事项|注意|用法|用量|说明书|说明|作用|功效|适应症|症状|治疗|检查|吃药|用药|药物|药品|药|病|服用|使用|饮食|忌口"
    r"|孕妇|哺乳期|儿童|小孩|孩子|宝宝|婴儿|老人|老年人|成人|男性|女性|男|女|人"
    r"|吃|喝|用|服|停|换|买|卖|治|好|贵|便宜|推荐|介绍|告诉|那么?|然后|还有|所以|另外|如果|要是|就|都|也|还|再|又|没|不|有|是|的|了|吗|呢|吧|啊|呀|么|嘛|会|能|要|得|着|过|和|跟|与|或|在|到|对|把|给|让"
    r"|这|那|个|种|些|次|天|片|粒|点|多|少|几|一|二|两|三"
    r"|[\W_\d]"
)
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
