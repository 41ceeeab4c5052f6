"""Which split a thing belongs to: entities, search words and filter values that belong together stay together.

Things (names and words, as texts) that one question may hold are tied into families by union-find; each family is dealt
to one split. A question is then accepted only if everything it names is its own split's (`Owners.claim`), so that no
two splits share anything, whatever the database looks like. A family has a bounded size: a tie that would exceed it is
refused, and with it the questions that need it; without the bound, common words would tie a whole database into one
family. Time and memory are linear in the number of things.

    families = Families(largest=20)
    families.tie(["甲片", "乙病"])
    owners = Owners(deal(families.groups(), {"train": 0.7, "test": 0.3}, random.Random(1)))
    owners.claim(["甲片", "乙病"], "train")
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence


class Families:
    """Union-find over texts, by size, with path halving; no family grows beyond `largest` things."""

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self._parent: dict[str, str] = {}
        self._size: dict[str, int] = {}

    def root(self, thing: str) -> str:
        """The thing that stands for the family of `thing`, which becomes a family of its own if it is new."""
        parent = self._parent
        if thing not in parent:
            parent[thing], self._size[thing] = thing, 1
        while parent[thing] != thing:
            parent[thing] = parent[parent[thing]]
            thing = parent[thing]
        return thing

    def tie(self, things: Sequence[str]) -> bool:
        """Make one family of the things' families; False, and nothing changes, if it would be too large."""
        roots = list(dict.fromkeys(self.root(thing) for thing in things))
        if len(roots) > 1 and sum(self._size[root] for root in roots) > self.largest:
            return False
        roots.sort(key=lambda root: -self._size[root])
        for root in roots[1:]:
            self._parent[root] = roots[0]
            self._size[roots[0]] += self._size.pop(root)
        return True

    def groups(self) -> list[list[str]]:
        """The families, each with its things, in the order they were first seen."""
        members: dict[str, list[str]] = {}
        for thing in self._parent:
            members.setdefault(self.root(thing), []).append(thing)
        return list(members.values())


def deal(groups: Iterable[Sequence[str]], shares: Mapping[str, float], rng: random.Random) -> dict[str, str]:
    """Each thing's split. Families are shuffled and each goes where most is missing of its share of the things."""
    shuffled = list(groups)
    rng.shuffle(shuffled)
    have = dict.fromkeys(shares, 0.0)
    split_of: dict[str, str] = {}
    for group in shuffled:
        split = min(shares, key=lambda name: (have[name] + len(group) / 2) / shares[name])
        have[split] += len(group)
        split_of.update(dict.fromkeys(group, split))
    return split_of


class Owners:
    """The split each thing belongs to; what nobody owns yet belongs to the first that asks."""

    def __init__(self, split_of: dict[str, str]) -> None:
        self._split_of = split_of

    def of(self, thing: str) -> str | None:
        """The split that owns the thing, if any does."""
        return self._split_of.get(thing)

    def may_use(self, things: Iterable[str], split: str) -> bool:
        """Whether none of the things belongs to another split."""
        return all(self._split_of.get(thing, split) == split for thing in things)

    def claim(self, things: Sequence[str], split: str) -> bool:
        """Take the things for the split; False, and nothing changes, if one belongs to another."""
        if not self.may_use(things, split):
            return False
        self._split_of.update(dict.fromkeys(things, split))
        return True
