"""Replies, orders and diagnoses written by people who had not read what reads them: corpus/README.md.

The shares of orders and of kinds of diagnoses that are read as meant are held where they were
measured; what must never happen (the wrong examination, a wrong diagnosis paid) never does.
"""

import re
from collections.abc import Iterable
from typing import Any

import pytest

from conditions.diagnosis import names_it
from conditions.orders import named, table_key
from conditions.table import load_tables
from diagnosis_agent.protocol import Conclusion, Malformed, Order, read_reply
from tests.corpora import cases_of

pytestmark = pytest.mark.system
Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    return [*cases_of(__file__, f"corpus/{name}"), *cases_of(__file__, f"corpus/{name}_sealed")]


def plain(text: str) -> str:
    return re.sub(r"[\s*_`\"'“”\[\]<>.,;:。]", "", text.lower())


def same(wanted: Any, said: str) -> bool:
    texts = wanted if isinstance(wanted, list) else [wanted]
    return wanted is None or plain(said) in map(plain, texts)


def read_as_meant(row: Row) -> bool:
    said, expect = read_reply(row["reply"]), row["expect"]
    kind = {Order: "order", Conclusion: "final", Malformed: "malformed"}[type(said)]
    if expect["kind"] == "any":
        return kind != expect.get("never")
    parts = all(
        same(expect.get(part), getattr(said, part, "")) for part in ("diagnosis", "examination")
    )
    return kind == expect["kind"] and parts


def meant(row: Row) -> bool:
    wanted = row["expect"] if isinstance(row["expect"], list) else [row["expect"]]
    name = named(row["order"])
    return (name and table_key(name)) in [*wanted, *([None] if row["kind"] == "several" else [])]


def judged_right(row: Row) -> bool:
    one = load_tables().conditions[row["gold"]]
    return names_it(row["answer"], (one.en, one.zh, *one.aliases_en, *one.aliases_zh))


def share(outcomes: Iterable[bool]) -> float:
    found = list(outcomes)
    return sum(found) / len(found)


def test_replies_are_read_as_they_are_meant():
    assert share(map(read_as_meant, rows("replies"))) >= 0.95


def test_an_order_means_the_examination_that_was_meant_or_none():
    found = [(row, meant(row)) for row in rows("orders")]
    assert not [row["order"] for row, right in found if not right and named(row["order"])]
    assert share(right for _, right in found) >= 0.9


def test_no_wrong_diagnosis_is_right_and_most_right_ones_are():
    found = [(row, judged_right(row)) for row in rows("diagnoses")]
    assert not [(row["gold"], row["answer"]) for row, paid in found if paid and not row["right"]]
    assert share(paid for row, paid in found if row["right"]) >= 0.8
