"""An order means its examination in the usual words of a ward, and never another one."""

from __future__ import annotations

import pytest

from conditions.orders import ORDERS, covered_by, named, panels
from conditions.table import load_tables

NONE = [
    "CBC with CRP",
    "CBC/CRP",
    "BMP and CBC",
    "乙肝丙肝",
    "CT",
    "检查",
    "thyroid scan",
    "24h urine calcium",
    "hepatitis E IgM",
    "MRI of the heat",  # head or heart
    "x" * 10_000,
]


@pytest.mark.parametrize("order", NONE)
def test_another_examination_and_several_are_none(order: str) -> None:
    assert named(order) is None


def test_every_further_name_is_understood() -> None:
    examinations = load_tables().examinations
    for key, names in ORDERS["names"].items():
        assert {named(name) for name in names} == {examinations[key].en}, key
    for table in (
        ORDERS["further"],
        {name: one["names"] for name, one in ORDERS["panels"].items()},
    ):
        for name, others in table.items():
            assert {named(other) for other in (name, *others)} == {name}


def test_a_panel_has_its_parts_and_smaller_panels() -> None:
    larger = covered_by("comprehensive metabolic panel")
    assert panels()["basic metabolic panel"] | {"basic metabolic panel"} <= larger
    assert covered_by("electrolytes") == {"electrolytes"}


@pytest.mark.parametrize(
    ("order", "name"),
    [
        ("ANA titre", "antinuclear antibody"),
        ("anti-CCP antibody", "anti-cyclic citrullinated peptide antibody"),
        ("anti-HBc IgM", "hepatitis B serology"),
        ("Sputum C&S", "sputum culture"),
        ("24h pH-impedance monitoring", "24-hour oesophageal pH monitoring"),
        ("ANA by IFA", "antinuclear antibody"),
        ("中段尿培养+药敏", "urine culture"),
        ("心电图（12导联）", "electrocardiogram"),
        ("insulin antibody", None),
    ],
)
def test_titres_antibodies_and_cultures_are_read_by_rule(order: str, name: str | None) -> None:
    assert named(order) == name
