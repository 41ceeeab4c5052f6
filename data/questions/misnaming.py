"""What people call an entity when not by its exact name: with a typo, shortened, or by another name it goes by.

Each comes with the part of the name that is still intact and finds the entity and no other, so that the gold SQL can
be honest about what the question tells.

    misspelt(entity, catalogue, rng); shortened(entity, catalogue); nicknames(entity, catalogue)
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from data.database.schema import NAME_COLUMN
from data.questions.entities import Catalogue, Entity, is_plain
from data.questions.questions import Called

# Characters that are often typed for each other: they sound or look alike.
PAIRS = (
    "莎沙 洛络 妮泥 蒂帝 克刻 托拖 米迷 兰蓝 诺糯 维唯 卡咖 丹单 佩配 恩嗯 芙夫 吉及 哈蛤 贝倍 塔他 菲非 "
    "露路 奇其 艾爱 梅煤 朗郎 斯思 瓦娃 尼泥 雅亚 多夺 珊姗 图涂 博搏 昂仰 里理 茜西 伦轮 帕怕 夏厦 朵躲 "
    "阿啊 林淋 头投 胞孢 霉酶 素速 酸醚 钠纳 氟佛 唑座 炎言 症证 疮创 肝干 肾甚 胃谓 肺废 糖唐 痛疼 黄磺 "
    "安胺 平评 松淞 定锭 韦维 那哪 列例 普谱"
)
# Of a character that is in several pairs, the first one counts.
ALIKE = {one: other for pair in reversed(PAIRS.split()) for one, other in (pair, pair[::-1])}

# What a name ends with and people leave out.
ENDING = re.compile(
    r"(?:(?:缓释|控释|肠溶|分散|咀嚼|泡腾|含|薄膜衣)?片|(?:缓释|肠溶|软)?胶囊|颗粒|冲剂|丸|口服(?:溶|混悬|乳)?液|糖浆|散|"
    r"(?:吸入)?气雾剂|注射液|软膏|乳膏|凝胶|滴眼液|滴剂|栓|喷雾剂|综合征|综合症|氏[症病热炎疮])$"
)
IN_BRACKETS = re.compile(r"[(（【\[]([^()（）【】\[\]]{2,12})[)）】\]]")
ALSO_CALLED = re.compile(
    r"(?:俗称|又称|又名|亦称|别名|简称)[为作是:：]?[“\"「]?([\u4e00-\u9fff]{2,10}?)(?=[”\"」，,。；;、（(]|$)"
)


def misspelt(entity: Entity, catalogue: Catalogue, rng: random.Random) -> Called | None:
    """The name with one character wrong, at a place that leaves a telling part; None if there is none."""
    name = entity.name
    places = [at for at, character in enumerate(name) if character in ALIKE]
    rng.shuffle(places)
    for at in places:
        part = max(name[:at], name[at + 1 :], key=len)
        typed = name[:at] + ALIKE[name[at]] + name[at + 1 :]
        if typed not in catalogue.names[entity.table] and _finds(entity, NAME_COLUMN[entity.table], part, catalogue):
            return Called(typed, part, NAME_COLUMN[entity.table])
    return None


def shortened(entity: Entity, catalogue: Catalogue) -> Called | None:
    """The name without its dosage form or ending, if what is left belongs to it alone."""
    part = ENDING.sub("", entity.name)
    if part != entity.name and _finds(entity, NAME_COLUMN[entity.table], part, catalogue):
        return Called(part, part, NAME_COLUMN[entity.table])
    return None


def nicknames(entity: Entity, catalogue: Catalogue) -> Iterator[Called]:
    """Brand names in brackets of the name, and what the overview says the disease is also called."""
    for part in IN_BRACKETS.findall(entity.name):
        if _finds(entity, NAME_COLUMN[entity.table], part, catalogue):
            yield Called(part, part, NAME_COLUMN[entity.table])
    for part in ALSO_CALLED.findall(entity.fields.get("overview", "")):
        if part not in entity.name and _finds(entity, "overview", part, catalogue):
            yield Called(part, part, "overview")


def _finds(entity: Entity, column: str, part: str, catalogue: Catalogue) -> bool:
    """Whether searching `column` for the part finds this entity and no other."""
    return is_plain(part) and catalogue.find(entity.table, column, part, 1) == [entity.row_id]
