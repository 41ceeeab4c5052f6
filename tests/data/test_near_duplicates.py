"""Near questions are found, questions of one wording about different names are not, and time stays linear."""

from __future__ import annotations

import random
import time

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


def test_nearly_all_near_pairs_are_found_among_thousands_of_one_wording():
    rng = random.Random(5)
    texts = [f"请问{''.join(rng.sample(CHARACTERS, 8))}的用法用量和不良反应分别是什么" for _ in range(1_500)]
    found = NearDuplicates()
    for number, text in enumerate(texts):
        found.add(str(number), text)
    changed = [(number, text + "呢") for number, text in enumerate(texts)]
    hits = sum(1 for number, text in changed if (found.nearest(text) or [""])[0] == str(number))
    assert hits > 0.99 * len(texts)


def test_time_is_linear_where_all_have_one_wording():
    def seconds(count):
        rng, found, start = random.Random(count), NearDuplicates(), time.process_time()
        for number in range(count):
            text = f"帮我查一下{''.join(rng.sample(CHARACTERS, 4))}的药物相互作用。"
            found.nearest(text)
            found.add(str(number), text)
        return time.process_time() - start

    seconds(100)
    assert seconds(4_000) < 30 * seconds(400)
