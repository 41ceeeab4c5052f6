"""Patterns that find Chinese personal names by what stands beside them: 我叫王芳, 患者李明，男, 张建国主任.

    for pattern in name_patterns():
        for match in pattern.finditer(text):
            if not other_word(match["name"]): ...

Without a sign beside it a name cannot be told from other words, and medical words begin with surnames too (高血压,
白内障, 黄疸), so a candidate that begins like one of `NOT_NAMES` is left alone. Surnames: the most frequent ones of the
2020 census of China, less those that are mostly other words.
"""

from __future__ import annotations

import re
from functools import lru_cache

SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔"
    "钟谭陆汪范金石廖贾夏韦傅付邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔汤常温康施文牛樊葛邢"
    "安齐易乔伍庞颜倪庄聂章鲁岳翟申欧耿关焦柳甘祝包宁尚符舒阮柯纪梅童凌毕单季裴霍涂成苗谷盛曲翁冉骆蓝路游靳管柴"
    "蒙鲍华喻祁蒲房滕屈饶解牟艾尤时穆司古吉缪简车项连芦麦褚娄窦戚岑景党宫费卜冷晏卫席柏米宗代桂全佟应臧闵苟邬边"
    "卞姬邝郎仇乐栗阎"
)
COMPOUND_SURNAMES = "欧阳|司马|上官|诸葛|皇甫|尉迟|公孙|慕容|令狐|夏侯|司徒|端木|南宫|东方"
# Surnames that before a title are nearly always another word: 关医生, but also 有关医生.
MOSTLY_WORDS = "关时应全成连解管单代房文安常包万和路车米冷边游简项古"
NOT_NAMES = re.compile(
    "高血|高烧|高热|高脂|高尿|高钾|高龄|高危|高考|高中|高原|高低|高度|高等|白|黄疸|黄体|黄斑|黄褐|黄色|黄连|黄芪|黄[的了痰水]"
    "|水肿|石膏|石女|金黄|金属|牛皮|牛奶|牛肉|牛黄|毛囊|毛发|毛细|马上|马来|江苏|江西|何时|何种|何为|任何|任务|夏天|夏季|夏日|曾经|周围|周期|周岁"
    "|周[一二三四五六日末身]|程度|叶酸|叶黄|苏醒|张口|张开|胡言|许多|许久|余热|温度|温热|温水|常[年规见常用人]|安全|安眠|安胎|安定|平时"
    "|易[怒感患]|严重|成人|成年|万一|时间|应该|应当|全身|全家|全部|全麻|关节|关于|关心|包皮|包块|包括|路上|连续|连花|管理|解答|解热|单纯|单侧|代谢"
    "|文化|康复|于是|孕|段时|项目|费用|景区|尚未|尚有|尤其|华法|华佗|华素|古代|吉兰|简单|游离|房颤|房子|车祸|符合|章程|颜色|陆续|龙胆|龙骨|雷公|贺氏"
    "|龟|林可|阮囊|甘草|甘油|甘露|汤药|柴胡|桂枝|桂林|麦冬|麻|艾[滋灸叶]|苗条|葛根|莫名|莫西|莫沙|戴眼|武汉|钱[的不]|孔雀|凌晨|盛行|聂氏|齐[了全]|史[无有]"
)
GIVEN = r"[\u4e00-\u9fa5]"
# Words that go on after a name; a given name seldom holds them.
NOT_GIVEN = "今年岁男女我是的有在想请和因为想问得患了，,您你好也被做吃要已说去来怀病发感经先医大主护教"
NAME = rf"(?P<name>(?:{COMPOUND_SURNAMES}|[{SURNAMES}])(?:(?![{NOT_GIVEN}]){GIVEN}){{1,2}})"
TITLES = "先生|女士|小姐|太太|医生|医师|大夫|主任|教授|护士|护士长|院长|同志|阿姨|叔叔|大爷|大妈|奶奶|爷爷|老师"
INTRODUCED = (
    r"(?:我叫|本人叫|名叫|名字叫|名字是|名字[:：]|姓名(?:是|为)?[:：\s]{0,2}"
    r"|(?:孩子|宝宝|女儿|儿子|妈妈|爸爸|老公|老婆|家人)叫)\s?"
)
PATIENT = r"(?:患者|病人|患儿|病号|产妇|伤者|家属|我是|本人)(?:姓名)?[:：\s]{0,2}"
# After a name in a medical record stand sex, age, punctuation or the end.
AFTER = r"(?=\s?(?:[,，。.;；:：、!！?？()（）\s]|$|男|女|性别|年龄|[0-9０-９]{1,3}岁|的家属|本人))"


@lru_cache(maxsize=1)
def name_patterns() -> tuple[re.Pattern[str], ...]:
    """The patterns, each with a group `name`: introduced, named as a patient, before a title."""
    before_title = "".join(char for char in SURNAMES if char not in MOSTLY_WORDS)
    titled = rf"(?P<name>(?:{COMPOUND_SURNAMES}|[{before_title}])(?:(?![{NOT_GIVEN}]){GIVEN}){{0,2}})(?={TITLES})"
    return tuple(map(re.compile, (INTRODUCED + NAME, PATIENT + NAME + AFTER, titled)))


def other_word(candidate: str) -> str:
    """The word a candidate begins with that shows it to be no name, "" if there is none."""
    found = NOT_NAMES.match(candidate)
    return found[0] if found else ""
