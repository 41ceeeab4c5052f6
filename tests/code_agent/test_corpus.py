"""Answers and replies written by people who had not read graders and parser: corpus/README.md.

docs/code.md promises that no other value, no superset and no text around a value is paid, and that
no reply raises.
"""

import json
from typing import Any

import pytest

from code_agent.actions import ACTIONS, why_refused
from code_agent.graders import Gold, grade
from code_agent.protocol import Malformed, read_reply
from tests.code_agent.conftest import lines_of

pytestmark = pytest.mark.system
RIGHT_PAID = (
    0.75  # what stands in a frame or a series of pandas, or with a unit, is not: docs/code.md
)
Row = dict[str, Any]


def kind_of(values: list[Any]) -> str:
    """The kind of all the items of a set or list, or of a column, as the corpus writes them."""
    kinds = {type(value) for value in values if value is not None}
    return (
        "number"
        if float in kinds
        else {int: "integer", bool: "boolean", str: "text"}[kinds.pop()]
        if kinds
        else "text"
    )


def gold_of(row: Row) -> Gold:
    gold, value, items = row["gold"], row["gold"]["value"], ()
    if gold["kind"] in ("set", "list"):
        value, items = tuple(value), (kind_of(value),)
    elif gold["kind"] == "table":
        value, items = (
            tuple(map(tuple, value)),
            tuple(kind_of(list(column)) for column in zip(*value, strict=True)),
        )
    limits = {name: gold.get(name) for name in ("lower", "upper", "tolerance")}
    return Gold(gold["kind"], value, items, ordered=False, **limits)


def answers() -> list[tuple[Row, bool]]:
    """Every answer and whether it is paid; those to tables with holes, which no gold of ours has,
    are left out.
    """
    every = [*lines_of("answers"), *lines_of("answers_sealed")]
    known = [row for row in every if "null" not in json.dumps(row["gold"])]
    return [(row, grade(row["answer"], gold_of(row))) for row in known]


def test_no_wrong_answer_is_paid_and_most_right_ones_are() -> None:
    found = answers()
    assert len(found) > 600
    assert not [(row["gold"], row["answer"]) for row, paid in found if paid and not row["right"]]
    right = [paid for row, paid in found if row["right"]]
    assert sum(right) / len(right) >= RIGHT_PAID


@pytest.mark.parametrize("row", lines_of("replies"), ids=lambda row: row["why"])
def test_a_reply_is_the_action_it_means_or_refused(row: Row) -> None:
    said = read_reply(row["reply"])
    refused = isinstance(said, Malformed) or why_refused(said, ACTIONS)
    if row["expect"] == "refused":
        assert refused
    elif row["expect"] == "action":
        assert not isinstance(said, Malformed)
        assert (said.name, said.params) == (row["action"], row["params"])
