"""Values are compared: what means the gold value scores in any spelling, and nothing else does."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from code_agent.graders import LONGEST, Gold, GoldError, grade
from code_agent.task import gold_of
from tests.corpora import cases_of

CASES = cases_of(__file__, "corpus/spellings")
EVERY_GOLD = [gold_of(case["gold"]) for case in CASES]
ONE_OF_EACH_KIND = {gold.kind: gold for gold in EVERY_GOLD}.values()


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["gold"]["value"]))
def test_spellings_of_the_value_score_and_no_other_answer(case):
    gold = gold_of(case["gold"])
    assert [answer for answer in case["right"] if not grade(answer, gold)] == []
    assert [answer for answer in case["wrong"] if grade(answer, gold)] == []


HOSTILE = [
    "(" * 300, "[" * 60_000, "-" * 60_000, "{" * 300, "1+" * 30_000 + "1", "9" * 60_000, "1e" + "9" * 5000, "[1e999]",
    "[0x" + "f" * 6000 + "]",
    "[" + "1," * 30_000 + "1]", "(" + "1+" * 30_000 + "1)", "[" + "-" * 60_000 + "1]", "[" + "lambda:" * 9000 + "1]",
    "[a" + "[0]" * 20_000 + "]", "[" * 30_000 + "]" * 30_000, '{"a":' * 10_000 + "1" + "}" * 10_000, "np.int64(" * 99,
    "'" * 9, '""', "' '", "\\", "\x00", "\ud800", "17" * (LONGEST // 2 + 1),
]  # fmt: skip


@pytest.mark.parametrize("answer", HOSTILE, ids=lambda answer: repr(answer[:12]))
def test_no_answer_raises(answer):
    assert not any(grade(answer, gold) for gold in ONE_OF_EACH_KIND)


def test_a_long_answer_in_another_order_is_graded_in_time():
    """No other episode goes on meanwhile. With the square of the length it took minutes."""
    gold = Gold("set", tuple(range(-3000, 3000)), items=("integer",))
    begun = time.process_time()
    assert grade(", ".join(f"{value:+}" for value in reversed(gold.value)), gold)
    texts = tuple(f"drug {number}" for number in range(2500))
    with_missing = Gold("list", texts + (None,) * 2500, items=("text",), ordered=False)
    assert grade("\n".join([*texts, *["<NA>"] * 2500]), with_missing)
    assert time.process_time() - begun < 10


@given(some.sampled_from(EVERY_GOLD), some.text(max_size=60))
def test_no_text_raises(gold, answer):
    assert grade(answer, gold) in (True, False)


@pytest.mark.parametrize(
    ("gold", "said"),
    [({"kind": "colour", "value": 1}, "'colour'"),
     ({"kind": "integer", "value": "x"}, "own value"), ({"kind": "number", "value": float("nan")}, "own value"),
     ({"kind": "number", "value": 3.0, "lower": 1.0, "upper": 2.0}, "own value"),
     ({"kind": "date", "value": "2104-13-01"}, "own value"),
     ({"kind": "set", "value": (1, 1), "items": ("integer",)}, "own value"),
     ({"kind": "set", "value": (1,)}, "its kind"),
     ({"kind": "table", "value": ((1, 2),), "items": ("integer",)}, "its kind"),
     ({"kind": "text", "value": ""}, "own value")],
)  # fmt: skip
def test_a_gold_that_nothing_could_match_is_refused(gold, said):
    with pytest.raises(GoldError, match=said) as caught:
        Gold(**gold)
    assert repr(gold["value"]) in str(caught.value) or "colour" in said, "it says which"
