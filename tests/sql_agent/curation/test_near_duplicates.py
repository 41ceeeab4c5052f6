"""Near questions are found, all of them; questions of one wording about different names are not
near.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sql_agent.curation.near_duplicates import NEAR, NearDuplicates, pairs_of, similarity


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
