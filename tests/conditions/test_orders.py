"""An order means its examination in the usual words of a ward, and never another one."""

import pytest

from conditions.orders import ORDERS, covered_by, named
from conditions.table import load_tables
from tests.corpora import cases_of


@pytest.mark.parametrize("case", cases_of(__file__, "orders"), ids=lambda case: case["order"])
def test_an_order_means_one_examination_or_none(case):
    assert named(str(case["order"])) == case["examination"]


def test_every_further_name_is_understood():
    for key, names in ORDERS["names"].items():
        assert {named(name) for name in names} == {load_tables().examinations[key].en}, key
    panel_names = {name: one["names"] for name, one in ORDERS["panels"].items()}
    for name, others in (ORDERS["further"] | panel_names).items():
        assert {named(other) for other in (name, *others)} == {name}


def test_a_panel_has_its_parts_and_smaller_panels():
    assert covered_by("basic metabolic panel") <= covered_by("comprehensive metabolic panel")
    assert covered_by("electrolytes") == {"electrolytes"}
