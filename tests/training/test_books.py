"""The checks before every update find what would make the learning signal wrong."""

import pytest

from training.records import RolloutRecord
from training.watch import RunStopped, check_advantages, check_episodes, learnable_groups


def record(session: int, reward: float | None, group: str = "g", **fields: object) -> RolloutRecord:
    base = {"rollout_id": f"r{session}", "group": group, "session": session, "mode": "train", "step": 1}
    made = {**base, "status": "succeeded", "reward": reward, "sequences": 1, "generated_tokens": 5, "triplets": 2}
    return RolloutRecord(**{**made, **fields})  # type: ignore[arg-type]


def test_the_books_of_an_update() -> None:
    books = [record(0, 1.0, sequences=2), record(1, 0.0)]
    metrics = check_episodes(books, ["g_0_0", "g_0_1", "g_1_0"], trained_tokens=10)
    assert metrics == {
        "books/episodes": 2,
        "books/sequences": 3,
        "books/triplets": 4,
        "books/generated_tokens": 10,
        "books/trained_tokens": 10,
    }


@pytest.mark.parametrize(
    ("book", "keys", "tokens", "message"),
    [
        (record(0, 1.0), ["g_0_0"], 4, "4 tokens would be trained but the policy generated 5"),
        (record(0, 1.0, sequences=2), ["g_0_0"], 5, "became 2 sequences but 1 of them"),
        (record(0, None, cause="judge_failed"), ["g_0_0"], 5, r"unscored \(judge_failed\)"),
    ],
)
def test_what_differs_from_the_books_stops(book: RolloutRecord, keys: list[str], tokens: int, message: str) -> None:
    with pytest.raises(RunStopped, match=message):
        check_episodes([book], keys, tokens)


def test_only_different_rewards_teach() -> None:
    same = [record(0, 0.5, "a"), record(1, 0.5, "a")]
    assert learnable_groups(same) == 0
    assert learnable_groups([*same, record(0, 0.0, "b"), record(1, 0.5, "b")]) == 1


def test_advantages_of_the_scored_episodes_pass() -> None:
    books = [record(0, 1.0), record(1, 0.0)]
    check_advantages(books, {"g_0": 0.7071, "g_1": -0.7071}, normalised=True)
    check_advantages(books, {"g_0": 0.5, "g_1": -0.5}, normalised=False)


def test_an_unscored_episode_counted_as_zero_is_found() -> None:
    """Of three episodes one is unscored; with it as 0 the mean of the others would be 1/3 instead of 1/2."""
    with pytest.raises(RunStopped, match=r"its advantage is 0\.6667 but should be 0\.5000"):
        check_advantages([record(0, 1.0), record(1, 0.0)], {"g_0": 0.6667, "g_1": -0.3333}, normalised=False)
