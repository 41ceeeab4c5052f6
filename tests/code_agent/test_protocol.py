"""Replies are read as the action they mean, or what is wrong is named; answers are graded as people write them."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_agent.actions import ACTIONS, SAID, why_refused
from code_agent.graders import Gold, grade
from code_agent.protocol import LONGEST_DICT, Action, Malformed, read_reply
from tests.corpora import cases_of

RUN = Action("validate_code", {"code": "print(1)\nprint({'a': 2})"})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        *cases_of(__file__, "corpus/no_actions"),
        (f"{RUN}\n{RUN}", "several_actions"),
        (f"{{'action': 'submit', 'params': {{'answer': '{'9' * LONGEST_DICT}'}}}}", "no_action"),
        (f"{{'action': 'submit', 'params': {{'answer': 0x{'f' * 6000}}}}}", "no_action"),
    ],
)
def test_what_is_no_action_is_named(text, problem):
    found = read_reply(text)
    assert isinstance(found, Malformed)
    assert found.problem == problem


def test_the_words_of_a_program_are_not_a_thought():
    reply = str(Action("validate_code", {"code": "print('</think>')"}))
    assert read_reply(reply) == Action("validate_code", {"code": "print('</think>')"})


@given(st.text() | st.text(alphabet="{}[]\"'action: ,\\params\ud800"))
def test_no_text_raises(text):
    found = read_reply(text)
    assert isinstance(found, Action) or found.problem in SAID


@pytest.mark.parametrize(
    "text", ["{" * 200_000, '{"a":' * 50_000, "{'a':" * 50_000, '{"a' * 100_000, "[" * 200_000]
)
def test_a_huge_reply_is_read_too(text):
    assert isinstance(read_reply(text), Malformed)


RIGHT_PAID = 0.9  # a number with its unit is not, nor CSV

Row = dict[str, Any]


def kind_of(values: Iterable[Any]) -> str:
    """The kind of all the items of a set or list, or of a column, as the corpus writes them."""
    kinds = {type(value) for value in values if value is not None}
    if float in kinds:
        return "number"
    names = {int: "integer", bool: "boolean", str: "text"}
    return names[kinds.pop()] if kinds else "text"


def gold_of(row: Row) -> Gold:
    gold = row["gold"]
    value = gold["value"]
    items: tuple[str, ...] = ()
    if gold["kind"] in ("set", "list"):
        value = tuple(value)
        items = (kind_of(value),)
    elif gold["kind"] == "table":
        value = tuple(map(tuple, value))
        items = tuple(map(kind_of, zip(*value, strict=True)))
    limits = {name: gold.get(name) for name in ("lower", "upper", "tolerance")}
    return Gold(gold["kind"], value, items, ordered=gold["kind"] == "list", **limits)


def answers() -> list[tuple[Row, bool]]:
    """Every answer and whether it is paid, without those to tables with holes."""
    every = [*cases_of(__file__, "corpus/answers"), *cases_of(__file__, "corpus/answers_sealed")]
    known = [row for row in every if "null" not in json.dumps(row["gold"])]
    return [(row, grade(row["answer"], gold_of(row))) for row in known]


@pytest.mark.system
def test_no_wrong_answer_is_paid_and_most_right_ones_are():
    found = answers()
    assert len(found) > 600
    assert not [(row["gold"], row["answer"]) for row, paid in found if paid and not row["right"]]
    right = [paid for row, paid in found if row["right"]]
    assert sum(right) / len(right) >= RIGHT_PAID


@pytest.mark.system
@pytest.mark.parametrize("row", cases_of(__file__, "corpus/replies"), ids=lambda row: row["why"])
def test_a_reply_is_the_action_it_means_or_refused(row):
    said = read_reply(row["reply"])
    refused = isinstance(said, Malformed) or why_refused(said, ACTIONS)
    if row["expect"] == "refused":
        assert refused
    elif row["expect"] == "action":
        assert not isinstance(said, Malformed)
        assert (said.name, said.params) == (row["action"], row["params"])
