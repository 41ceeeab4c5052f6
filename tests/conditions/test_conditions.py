"""The tables of conditions: what they promise, and that they fit together."""

from collections.abc import Iterable, Iterator
from math import isclose

import pytest

from conditions.condition_types import Condition, Tables, Weights, terms
from conditions.table import load_tables


@pytest.fixture(scope="module")
def tables():
    return load_tables()


@pytest.mark.parametrize(
    ("habits", "alone"),
    [("smoking", "smokers_zh"), ("alcohol", "drinkers_zh"), ("seafood_beer", "drinkers_zh")],
)
def test_only_smokers_and_drinkers_are_advised_what_is_for_them(tables, habits, alone):
    theirs = {name: getattr(one, alone) for name, one in tables.conditions.items()}
    assert any(theirs.values())
    for name, condition in tables.conditions.items():
        added = [theirs[name]] if theirs[name] else []
        assert [*condition.advice_for(habits)] == [*condition.advice_zh, *added]
        assert condition.advice_for("none") == condition.advice_for(None) == condition.advice_zh


def test_no_name_stands_for_two_things(tables):
    """An order or a diagnosis of that name would be taken for either."""
    for things in (tables.conditions, tables.examinations):
        for one in ("en", "zh"):
            names: list[str] = []
            for thing in things.values():
                names += [getattr(thing, one), *getattr(thing, f"aliases_{one}")]
            assert len({name.casefold() for name in names}) == len(names)


def named(tables: Tables, one: Condition) -> Iterator[tuple[Iterable[str], Iterable[str]]]:
    """What a condition names, beside what there is of that kind."""
    yield one.complaints, tables.complaints
    yield one.symptoms, tables.symptoms
    yield one.facets, tables.facets
    yield one.examinations, tables.examinations
    yield one.key, one.examinations
    for name, weights in one.facets.items():
        yield weights, tables.facets[name].values
    for name, finding in one.examinations.items():
        yield finding, tables.examinations[name].parts or finding


def test_what_a_condition_names_is_there(tables):
    for name, condition in tables.conditions.items():
        for said, known in named(tables, condition):
            assert set(said) <= set(known), name


def weights_of(tables: Tables) -> Iterator[Weights]:
    yield from (facet.usual for facet in tables.facets.values())
    for condition in tables.conditions.values():
        yield from condition.facets.values()
        for name, finding in condition.examinations.items():
            if not tables.examinations[name].parts:
                yield {text: share for text, share in finding.items() if isinstance(share, float)}


def test_weights_add_up_to_1(tables):
    for weights in weights_of(tables):
        assert isclose(sum(weights.values()), 1, abs_tol=1e-6), weights


def test_every_item_of_advice_has_a_term_to_be_known_by(tables):
    assert terms("see *urology* for a *urine test*") == ("urology", "urine test")
    for name, condition in tables.conditions.items():
        assert all(map(terms, condition.advice_zh)), name
