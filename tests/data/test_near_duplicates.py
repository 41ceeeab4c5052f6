"""Near questions are found, all of them; questions of one wording about different names are not
near.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.questions.near_duplicates import NEAR, NearDuplicates, pairs_of, similarity

CHARACTERS = "朵莎洛妮蒂克托米兰诺维卡丹佩恩芙吉哈贝塔菲露奇艾梅朗斯瓦尼雅"


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("布洛芬缓释片怎么吃？", "布洛芬缓释片 怎么吃", True),
        ("布洛芬缓释片的用法用量是什么？", "请问布洛芬缓释片的用法用量是什么", True),
        ("朵莎洛片的适应症是什么？", "米兰诺片的适应症是什么？", False),
        ("帮我查一下朵莎洛口服液的药物相互作用。", "帮我查一下米兰诺口服液的药物相互作用。", False),
        ("Ａspirin怎么吃", "aspirin怎么吃？", True),
        ("", "？", True),
    ],
)
def test_examples(one, other, near):
    found = NearDuplicates()
    found.add("one", one)
    assert (found.nearest(other) is not None) is near


def test_the_most_similar_one_is_named():
    found = NearDuplicates()
    found.add("a", "布洛芬缓释片的用法用量是什么")
    found.add("b", "请问布洛芬缓释片的用法用量是什么呢")
    assert found.nearest("布洛芬缓释片的用法用量是什么？") == ("a", 1.0)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_what_is_found_is_near_and_equal_texts_are_found(one, other):
    found = NearDuplicates()
    found.add("one", one)
    assert found.nearest(one) == ("one", 1.0)
    nearest = found.nearest(other)
    if nearest:
        assert nearest[1] == similarity(pairs_of(one), pairs_of(other)) >= NEAR


def test_every_near_pair_is_found_among_thousands_of_one_wording():
    rng = random.Random(5)
    texts = [
        f"请问{''.join(rng.sample(CHARACTERS, 8))}的用法用量和不良反应分别是什么"
        for _ in range(1_500)
    ]
    found = NearDuplicates()
    for number, text in enumerate(texts):
        found.add(str(number), text)
    nearest = [found.nearest(text + "呢") for text in texts]
    assert [key for key, _ in nearest] == [str(number) for number in range(len(texts))]


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
