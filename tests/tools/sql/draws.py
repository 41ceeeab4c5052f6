"""Which cases of a long list a commit is tested with; `make nightly` plays all of them."""

from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")


def drawn(cases: Sequence[Case], most: int) -> list[Case]:
    """Return so many of them, evenly from the first to the last, and the same ones every time."""
    if len(cases) <= most:
        return list(cases)
    return [cases[number * len(cases) // most] for number in range(most)]


def mostly_nightly(cases: Sequence[tuple[Any, ...]], most: int) -> list[Any]:
    """Return parameters of a test: all cases, those that are not drawn marked `nightly`."""
    now = set(drawn(range(len(cases)), most))
    return [
        pytest.param(*case, marks=[] if number in now else [pytest.mark.nightly])
        for number, case in enumerate(cases)
    ]
