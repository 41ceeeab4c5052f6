"""Near questions are found, all of them; questions of one wording about different names are not
near.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql_agent.curation.near_duplicates import NEAR, NearDuplicates, pairs_of, similarity


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("布洛芬缓释片怎么吃？", "布洛芬缓释片 怎么吃", True),
        ("布洛芬缓释片的用法用量是什么？", "请问布洛芬缓释片的用法用量是什么", True),
        ("朵莎洛片的适应症是什么？", "米兰诺片的适应症是什么？", False),
        ("帮我查一下朵莎洛口服液的药物相互作用。", "帮我查一下米兰诺口服液的药物相互作用。", False),
        ("Ａspirin怎么吃", "aspirin怎么吃？", True),
    ],
)
def test_examples(one, other, near):
    found = NearDuplicates()
    found.add("one", one)
    assert (found.nearest(other) is not None) is near


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.text(alphabet="药片怎么吃", max_size=12), min_size=1, max_size=8),
    st.sampled_from([0.5, NEAR, 1.0]),
)
def test_the_nearest_is_that_of_comparing_with_all(texts, near):
    *known, asked = texts
    found = NearDuplicates(near)
    for number, text in enumerate(known):
        found.add(str(number), text)
    scores = [similarity(pairs_of(asked), pairs_of(text)) for text in known]
    best = max(scores, default=0.0)
    assert found.nearest(asked) == ((str(scores.index(best)), best) if best >= near else None)
