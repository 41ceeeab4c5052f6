"""The name and the fields that the next values of an answer stand under, and their order.

topic = Topic(gold)        # of 甲 and 乙, with 单价 and 产地
topic.enter("甲的单价", [])
topic.fits("甲", "单价")    # True
topic.fits("乙", "单价")    # False, as is 产地 of 甲
"""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from sql_agent.judge.gold import Gold, Place
from sql_agent.judge.groups import JOINTS
from sql_agent.judge.heads import ENDING, without

NUMBER = re.compile(r"\d[\d.]*")  # 2024~01 is none

Asked = tuple[int, ...]  # where the question has words that gold has no field for


class Topic:
    """What stands over the values that follow, as the heads and values before have left it."""

    def __init__(self, gold: Gold) -> None:
        self.gold = gold
        self.owner: str | None = ""  # the last name. None: a name or field that is not gold's
        self.last = 0  # place among gold's names of what was told last
        # The fields of the last head that may follow, in its order: gold's, or the question's words
        self.labels: Sequence[str] = []
        self.asked: Sequence[Asked] = []
        # and those that stand above every name: 单价：甲5元，乙8元
        self.above: tuple[Sequence[str], Sequence[Asked]] = ([], [])
        self.is_above = False  # whether names that come next stand under the last head
        self.turns: list[str] = []  # "name", "field" and "value", as they come
        # Where gold has the fields of values that stand under no field's name
        self.told_at: dict[Asked, int] = {}  # by the question's words, in the whole answer
        self.told_as: dict[str, int] = {}  # under the last head, by the fact without its numbers
        self.least = -1  # of the last words: other values come behind it

    def enter(self, head: str, listed: Sequence[str]) -> Sequence[str]:
        """Take the names and fields of a head. Return its names if values of all names follow."""
        names = [name for name in self.gold.heads.names if name in head]
        together = self._all_in_order(head, listed) if names else []
        if names:
            self._enter_names("" if together else max(names, key=len))
        nameless = without(head, names)  # 病区 of 一病区 is no field
        field = ENDING.sub("", nameless).strip("\n的 ")
        if field:
            self._enter_field(field, nameless, len(together) or 1)
        self.is_above = bool(field) and not names
        if names or self.labels or self.asked:
            self.told_as.clear()
            self.least = -1
        return names if together else []

    def _all_in_order(self, head: str, listed: Sequence[str]) -> Sequence[str]:
        """Return gold's names if list and head have them in its order, as values will be told."""
        names = self.gold.heads.names
        longest_first = sorted(names, key=len, reverse=True)
        said = [*listed, *re.findall("|".join(map(re.escape, longest_first)), head)]
        return names if said == names and len(names) > 1 else []

    def _enter_names(self, owner: str) -> None:
        if self.is_above:
            self.above = (self.labels, self.asked)
        self.labels, self.asked = self.above
        self.owner = owner
        self.last = 0
        if len(self.gold.heads.names) > 1:
            self.turns.append("name")

    def _enter_field(self, field: str, head: str, values: int) -> None:
        heads = self.gold.heads
        labels = [label for label in heads.labels if label and label in head]  # 目的 of field 目
        if labels and not has_another(without(field, labels)):
            # A label that stands only within a longer one is not named
            rest = without(head, labels)
            whole = [label for label in labels if without(head, {*labels} - {label}) != rest]
            whole.sort(key=head.index)
            self.labels = [heads.aliases.get(label, label) for label in whole]
        else:
            # A part of one field's name is that field: 相互作用 is 药物相互作用.
            longer = {heads.aliases.get(label, label) for label in heads.labels if field in label}
            self.labels = [*longer] if len(longer) == 1 else []
        self.asked = [] if self.labels else self._places_of(field, values)
        if (labels or self.labels or self.asked) and len(self.gold.fields) > 1:
            self.turns.append("field")

    def _places_of(self, field: str, values: int) -> Sequence[Asked]:
        """Return where the question has the words of a field, for each value under them."""
        own = max(field.split("\n"), key=len)  # 甲和乙的单价
        words = [self.gold.heads.place(word) for word in JOINTS.split(own)]
        if len(words) == 1:
            words *= values
        return words if all(words) else []

    def leave(self) -> None:
        """Take what follows as said of something else, until a name comes."""
        self.owner = None

    def fits(self, owner: str, label: str) -> bool:
        """Return whether a fact of this owner and field fits here.

        Without names the owners must come in their order.
        """
        if self.owner is None or (label and self.labels and label not in self.labels):
            return False
        if owner and self.owner:
            return owner == self.owner
        return not owner or self._place(owner) >= self.last

    def _place(self, owner: str) -> int:
        return self.gold.heads.names.index(owner) if owner else self.last

    def takes_in_order(self, fact: str, places: Collection[Place], begins_row: bool) -> bool:
        """Take a fact whose field no head names, if it comes in the order of gold or the question."""
        fields = sorted(self.gold.fields.index(label) for _, label in places if label)
        if self.labels or not fields:
            return True
        form = NUMBER.sub("#", fact)
        # What a row of numbers is of may stand behind them: 床位数：82（骨科）
        least = -1 if self.gold.groups.heads_numbers(fact) else self.least
        before = self.told_as.get(form, least)
        if self.asked and before not in fields:
            field = self._under_next_words(fields)
        else:
            start = -1 if begins_row and not self.owner else before
            field = next((field for field in fields if field >= start), None)
        if field is not None:
            self.told_as[form] = field
        return field is not None

    def _under_next_words(self, fields: Sequence[int]) -> int | None:
        """Take the first of the fields that comes in the order of the question's words.

        最早和最晚的日期: gold has that of 最早 first. An answer may not turn that later.
        """
        words = self.asked[0]
        for field in fields:
            told_at = {words: field, **self.told_at}
            in_order = [told_at[one] for one in sorted(told_at)]
            if told_at[words] == field and in_order == sorted(in_order):
                self.told_at = told_at
                self.asked = self.asked[1:]
                self.least = field
                return field
        return None

    def tell(self, fact: str, places: Collection[Place]) -> None:
        """Take a fact as told. Fields that its head has before its own do not follow any more."""
        self.is_above = False
        if fact not in self.gold.heads.names:
            self.turns.append("value")
        self.last = min(self._place(owner) for owner, _ in places)
        labels = {label for _, label in places}
        while "" not in labels and self.labels and self.labels[0] not in labels:
            self.labels = self.labels[1:]

    def stands_behind(self) -> bool:
        """Return whether names, or fields, stand behind their values, as in 8甲，12乙."""
        for kind in ("name", "field"):
            turns = [turn for turn in self.turns if turn in (kind, "value")]
            if turns[:1] == ["value"] and turns[-1] == kind:
                return True
        return False


def has_another(field: str) -> bool:
    """Return whether a name that nobody knows is joined to a label, here a line break: 起因和\\n."""
    joined = pairwise(JOINTS.split(field))
    return any(a and b and a.endswith("\n") != b.startswith("\n") for a, b in joined)
