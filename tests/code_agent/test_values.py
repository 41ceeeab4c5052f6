"""A program's values are made again where its tests run, which it cannot read, end or deceive."""

import asyncio
import base64
import datetime
import decimal
import itertools
import json
import types
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from code_agent.actions import EpisodeContext, run_in
from code_agent.debugger import Debugger
from code_agent.judging import passes_tests
from code_agent.values import MOST, described, load, restored
from episodes.outcomes import EpisodeError
from tests.corpora import cases_of
from tools.sandbox import MachineTooSlowError, Sandbox, SandboxError

TIMES = pd.date_range("2101-01-01", periods=3, tz="UTC")
VALUES = [
    *(None, True, 5, -(10**30), 0.1, float("inf"), "text\ud800", 2 + 3j, b"".hex(), range(2, 9, 3)),
    *([1, [2.5, None]], (1, "a"), {1, 2}, frozenset({"x"}), {(1, 2): {"a": [None]}, 0.0: 508}),
    *(np.float64(0.1), np.int32(7), np.bool_(True), np.str_("x"), np.datetime64("2101-01-02")),
    *(np.arange(6).reshape(2, 3), np.array(["a", "bc"]), np.array([], dtype=float)),
    *(datetime.datetime(2101, 1, 2, 3), datetime.date(2101, 1, 2), datetime.time(4, 5)),
    *(datetime.timedelta(days=-1, seconds=3), decimal.Decimal("1.10"), pd.Interval(0, 1.5)),
    *(
        pd.Timestamp("2101-01-02 03:04:05.678", tz="UTC"),
        pd.Timedelta("1 days"),
        pd.Period("2101-03"),
    ),
]
SERIES = [
    pd.Series([1, 2, 3], name="n", index=["a", "b", "c"]),
    pd.Series(["a", 1, None], dtype=object),
    pd.Series(["x", "y", "x"], dtype="category"),
    pd.Series([1, None, 3], dtype="Int64"),
    pd.Series(TIMES),
    pd.Series([1, 2], index=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", None])),
    pd.Series([], dtype=float),
]


def programs(name: str) -> list[str]:
    """The programs of a file of the corpus."""
    text = (Path(__file__).parent / "corpus" / f"{name}.txt").read_text(encoding="utf-8")
    return text.split("# next\n")


def there_and_back(value: Any, *reads: str) -> Any:
    return restored(json.loads(json.dumps(described(value, reads))))


@pytest.mark.parametrize("value", VALUES, ids=ascii)
def test_a_value_comes_back_as_it_was(value):
    found = there_and_back(value)
    assert type(found) is type(value)
    assert np.array_equal(found, value) if isinstance(value, np.ndarray) else found == value


@pytest.mark.parametrize("series", SERIES, ids=lambda series: str(series.dtype))
def test_a_column_comes_back_as_it_was(series):
    pd.testing.assert_series_equal(there_and_back(series), series, check_freq=False)
    frame = pd.DataFrame({"a": series, "b": 1})
    frame.columns = ["twice", "twice"]
    pd.testing.assert_frame_equal(there_and_back(frame), frame, check_freq=False)
    index = pd.Index(series, name="i")
    pd.testing.assert_index_equal(there_and_back(index), index)


def test_of_another_object_what_is_read_comes_back():
    class Curve:
        events = np.array([1, 0, 1])
        inner = types.SimpleNamespace(p_value=0.25, other=1)

        def fit(self) -> None:
            """Nothing."""

    found = there_and_back(Curve(), "events", "inner", "p_value", "fit")
    assert found.events.sum() == 2
    assert vars(found.inner) == {"p_value": 0.25}
    assert not hasattr(found, "fit")
    for other in (len, Curve, types, lambda: 1):
        with pytest.raises(TypeError):
            described(other)


@pytest.mark.parametrize("document", cases_of(__file__, "corpus/no_descriptions"))
def test_what_is_no_description_makes_nothing(document):
    with pytest.raises(Exception):  # noqa: B017, PT011 (of any kind: the name is then missing)
        restored(document)


Judge = Callable[..., tuple[bool, str]]


@pytest.fixture(scope="module")
def judged(bubblewrap):
    """Judge what a program left by tests; then run another one. Return the verdict and its output."""
    sandbox, numbers = Sandbox(), itertools.count()

    def judge(program: str, tests: str, after: str = "") -> tuple[bool, str]:
        async def play() -> tuple[bool, str]:
            context = EpisodeContext(
                sandbox, f"episode {next(numbers)}", lambda *asked: "", Debugger()
            )
            await run_in(context, program)
            passed = await passes_tests(tests, context)
            said = (await run_in(context, after)).output
            await sandbox.end(context.episode)
            return passed, said

        return asyncio.run(play())

    yield judge
    asyncio.run(sandbox.close())


@pytest.mark.parametrize(("program", "tests"), cases_of(__file__, "corpus/right_values"))
def test_right_values_pass(judged, program, tests):
    assert judged(program, tests)[0]


TESTS = "assert n == 7401\nassert n > 0\nassert n.bit_length() == 13"
DECEIVERS = programs("deceivers")


@pytest.mark.parametrize("program", DECEIVERS, ids=range(len(DECEIVERS)))
def test_an_object_that_agrees_or_exits_is_paid_nothing(judged, program):
    assert not judged(program, TESTS)[0]


# Programs that write whatever their interpreter is given to a file
READERS = programs("readers")
AFTER = """
import gc, linecache, sys, pathlib
text = repr(linecache.cache) + repr([one for one in gc.get_objects() if isinstance(one, (str, dict, list))])
text += pathlib.Path('/scratch/seen').read_text() if pathlib.Path('/scratch/seen').exists() else ''
text += ''.join(path.read_bytes().decode('latin1') for path in pathlib.Path('/scratch').iterdir())
wanted = ''.join(['74', '01'])
print(f"found: {wanted in text}, asked: {'bit_length' in text}")
"""


@pytest.mark.parametrize("program", READERS, ids=["builtins", "frames"])
def test_the_programs_interpreter_never_sees_the_tests(judged, program):
    passed, said = judged(program, TESTS, AFTER)
    assert not passed
    assert "found: False, asked: True" in said, said[-500:]


def test_values_that_unpack_to_more_than_all_may_have_are_not_read():
    packed = zlib.compress(b'{"n": "' + b"a" * MOST + b'"}', level=9)
    with pytest.raises(ValueError, match=f"{MOST:,}"):
        load(base64.b64encode(packed).decode(), ["n"])


@pytest.mark.parametrize(
    ("error", "cause"),
    [(MachineTooSlowError, "machine_too_slow"), (SandboxError, "sandbox_failed")],
)
async def test_an_episode_is_unscored_by_its_cause(error, cause, monkeypatch):
    async def run(*arguments: object) -> None:
        raise error("as it was seen")

    monkeypatch.setattr(Sandbox, "run", run)
    context = EpisodeContext(Sandbox(), "a", lambda *asked: "", Debugger(None))
    with pytest.raises(EpisodeError, match="as it was seen") as caught:
        await run_in(context, "print(1)")
    assert caught.value.cause == cause
