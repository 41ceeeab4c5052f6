"""Families, dealing and ownership: what is tied stays together, nothing is in two splits, sizes are
bounded.

Keeps of docs/your-data.md: nothing is in two splits.
"""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from recipes.questions.split import Families, Owners, deal

SHARES = {"train": 0.6, "val": 0.1, "test": 0.3}
THING = st.integers(0, 40).map(str)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(THING, min_size=1, max_size=6), max_size=40), st.integers(1, 10))
def test_tied_things_share_a_family_and_no_family_outgrows_the_bound(ties, largest):
    families = Families(largest)
    made = [tie for tie in ties if families.tie(tie)]
    groups = families.groups()
    assert sorted(thing for group in groups for thing in group) == sorted(
        {thing for tie in ties for thing in tie}
    )
    assert all(len(group) <= largest for group in groups)
    assert all(any(set(tie) <= set(group) for group in groups) for tie in made)
    split_of = deal(groups, SHARES, random.Random(1))
    assert all(len({split_of[thing] for thing in tie}) == 1 for tie in made)


def test_what_nobody_owns_may_be_taken_by_any_split():
    owners = Owners({"a": "train"})
    assert owners.may_use(["a", "b"], "train")
    owners["b"] = "train"
    assert not owners.may_use(["c", "b"], "test")
    assert owners.may_use(["c"], "test")
