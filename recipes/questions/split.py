"""Decide which split a thing (a name or word, as text) belongs to.

Things that one question may hold are tied into families, and each family is dealt to one split. A
question is accepted only if everything it names is its own split's, so no two splits share
anything. A tie that would exceed a family's bounded size is refused: common words would tie a whole
database into one family.

    families = Families(largest=20)
    families.tie(["甲片", "乙病"])
    owners = Owners(deal(families.groups(), {"train": 0.7, "test": 0.3}, random.Random(1)))
    owners.may_use(["甲片", "乙病"], "train")
"""

import random
from collections.abc import Iterable, Mapping, Sequence


class Families:
    """Things tied together. No family grows beyond `largest` of them."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self._family: dict[str, list[str]] = {}  # by thing. The members of a family share one list

    def tie(self, things: Sequence[str]) -> bool:
        """Make one family of the things' families. Return False, and change nothing, if it is too
        large.
        """
        families = [self._family.setdefault(thing, [thing]) for thing in things]
        different = list({id(family): family for family in families}.values())
        if len(different) > 1 and sum(map(len, different)) > self.largest:
            return False
        for family in different[1:]:
            different[0].extend(family)
            self._family.update(dict.fromkeys(family, different[0]))
        return True

    def groups(self) -> list[list[str]]:
        return list({id(family): family for family in self._family.values()}.values())


def deal(
    groups: Iterable[Sequence[str]], shares: Mapping[str, float], rng: random.Random
) -> dict[str, str]:
    """Return each thing's split.

    Families are shuffled, and each goes to the split that lacks most of its share of the things.
    """
    shuffled = list(groups)
    rng.shuffle(shuffled)
    have = dict.fromkeys(shares, 0.0)
    split_of: dict[str, str] = {}
    for group in shuffled:
        split = min(shares, key=lambda name: (have[name] + len(group) / 2) / shares[name])
        have[split] += len(group)
        split_of.update(dict.fromkeys(group, split))
    return split_of


class Owners(dict[str, str]):
    """The split each thing belongs to. Any split may take a thing without an owner."""

    def may_use(self, things: Iterable[str], split: str) -> bool:
        return all(self.get(thing, split) == split for thing in things)
