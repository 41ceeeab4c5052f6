"""Run `mutmut run` as `make mutants` wants it, in a room's copy.

It also deletes a call whose value is not used, and a filter of a comprehension. A text is changed
in one way, since mutmut's others say the same again. The quick tests are asked first, because the
first that fails is the last. Every test begins with empty caches, or they would hide the change.
"""

import gc
import sys
from collections.abc import Iterator
from functools import _lru_cache_wrapper, cache
from itertools import islice
from pathlib import Path
from typing import Any

import libcst as cst
import pytest
from mutmut.__main__ import cli
from mutmut.mutation import mutators
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.workers.isolation import ForkRunner


def one_text(node: Any) -> Iterator[Any]:
    return islice(mutators.operator_string(node), 1)


def deleted_call(node: cst.Expr) -> Iterator[cst.Expr]:
    called = node.value.expression if isinstance(node.value, cst.Await) else node.value
    if isinstance(called, cst.Call):
        yield node.with_changes(value=cst.Name("None"))


def deleted_filter(node: cst.CompFor) -> Iterator[cst.CompFor]:
    for condition in node.ifs:
        yield node.with_changes(ifs=[one for one in node.ifs if one is not condition])


class EmptyCaches:
    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        for cached in caches(len(sys.modules)):
            cached.cache_clear()


@cache
def caches(modules: int) -> list[Any]:
    """Return the caches of functions below the room's folder. A further module may bring more."""
    own = {path.name for path in Path().iterdir()}
    found = [one for one in gc.get_objects() if isinstance(one, _lru_cache_wrapper)]
    return [one for one in found if one.__module__.split(".")[0] in own]


def with_empty_caches(runner: Any, params: Any, plugins: Any = ()) -> int:
    return int(executed(runner, params, plugins=[*plugins, EmptyCaches()]))


def quick_first(runner: Any, tests: Any) -> Any:
    seconds = state().duration_by_test
    return asked(runner, sorted(tests, key=lambda test: seconds.get(test, 0.0)))


def wait_for_a_change(runner: Any, timeout: float | None = None) -> Any:
    while True:
        try:
            return wait_for_any(runner, timeout)
        except KeyError:
            continue  # a test left this process, such as a database's worker


operators: Any = mutators.mutation_operators
place = [change for _, change in operators].index(mutators.operator_string)
operators[place] = (operators[place][0], one_text)
operators += [(cst.Expr, deleted_call), (cst.CompFor, deleted_filter)]
tests: Any = PytestRunner
asked = tests._pytest_args_regular_run
tests._pytest_args_regular_run = quick_first
executed = tests.execute_pytest
tests.execute_pytest = with_empty_caches
forks: Any = ForkRunner
wait_for_any = forks.wait_for_result
forks.wait_for_result = wait_for_a_change
cli(["run", "--max-children", sys.argv[1]])
