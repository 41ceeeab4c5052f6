"""The checks before every update find what would make the learning signal wrong."""

import pytest

from tests.messages import missing
from tests.training.rollouts import rolled_out
from training.engine.records import RolloutRecord
from training.engine.watchdog import check_advantages, check_episodes
from training.setup.plan import RunStopped


def record(session: int, reward: float | None, group: str = "g", **fields: object) -> RolloutRecord:
    counts = {"sequences": 1, "generated_tokens": 5, "triplets": 2}
    return rolled_out(sample=session, reward=reward, group=group, **{**counts, **fields})


@pytest.mark.parametrize(
    ("book", "keys", "tokens", "named"),
    [
        (record(0, 1.0), ["g_0_0"], 4, ("4 tokens", "generated 5")),
        (record(0, 1.0), ["g_0_0"], 6, ("6 tokens", "generated 5")),
        (record(0, 1.0, sequences=2), ["g_0_0"], 5, ("2 sequences", "1 of them")),
        (record(0, 1.0, sequences=1), ["g_0_0", "g_0_1"], 5, ("1 sequences", "2 of them")),
        (record(0, None), ["g_0_0"], 5, ("unscored",)),
        (record(0, None, cause="judge_failed"), ["g_0_0"], 5, ("judge_failed",)),
        (record(0, 0.7, cause="judge_failed"), ["g_0_0"], 5, ("judge_failed",)),  # of a retry
    ],
)
def test_what_differs_from_the_books_stops(book, keys, tokens, named):
    with pytest.raises(RunStopped) as stopped:
        check_episodes([book], keys, tokens)
    assert not missing(str(stopped.value), *named)


def test_an_unscored_episode_counted_as_zero_is_found():
    """With the unscored one as 0 the mean of the others would be 1/3 instead of 1/2."""
    books, found = [record(0, 1.0), record(1, 0.0)], {"g_0": 0.6667, "g_1": -0.3333}
    with pytest.raises(RunStopped) as stopped:
        check_advantages(books, found, normalised=False)
    assert not missing(str(stopped.value), "0.6667", "0.5000")


def test_large_rewards_are_compared_as_exactly_as_32_bit_can():
    books = [record(0, 10000.0), record(1, 0.0)]
    check_advantages(books, {"g_0": 5000.001, "g_1": -5000.001}, normalised=False)
    with pytest.raises(RunStopped):
        check_advantages(books, {"g_0": 5010.0, "g_1": -5010.0}, normalised=False)


def test_an_advantage_is_measured_against_its_own_group():
    """Another question's rewards would make an easy question teach that everything is good."""
    books = [record(0, 1.0, "a"), record(1, 0.8, "a"), record(2, 0.2, "b"), record(3, 0.0, "b")]
    own = {"a_0": 0.1, "a_1": -0.1, "b_2": 0.1, "b_3": -0.1}
    check_advantages(books, own, normalised=False)
    with pytest.raises(RunStopped):
        check_advantages(books, {**own, "a_0": 0.5}, normalised=False)  # against all four
