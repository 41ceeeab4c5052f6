"""What verl is handed of a scored rollout."""

import pytest

from tests.training.standins import Queue
from training.engine.records import RolloutRecord
from training.engine.trajectories import TokenSequence, Trajectory

PROMPTS = {"b": {"uid": "b", "task": "{}"}, "a": {"uid": "a", "task": "{}"}}


@pytest.fixture
def queue(monkeypatch):
    import transfer_queue as tq

    queue = Queue()
    monkeypatch.setattr(tq, "kv_batch_put", queue.kv_batch_put)
    return queue


def finished(group: str, sample: int, *tokens: int) -> tuple[RolloutRecord, Trajectory]:
    """An episode that generated these tokens after a prompt of two, with a tool's in second place."""
    mask = [0 if place == 1 else 1 for place in range(len(tokens))]
    sequence = TokenSequence([1, 2], list(tokens), mask, [-0.5 * one for one in mask])
    values = {"mode": "train", "step": 4, "reward": 0.5, "turns": 2, "terms": {"judge": 0.5}}
    return RolloutRecord(group=group, sample=sample, **values), Trajectory([sequence])


def put(*scored: tuple[RolloutRecord, Trajectory]) -> None:
    from training.engine.batch import put_sequences

    put_sequences(list(scored), PROMPTS, "train")


def test_a_sequence_has_the_tokens_mask_and_reward_of_its_episode(queue):
    put(finished("a", 3, 5, 6, 7))
    row = queue.rows["train", "a_3_0"]
    plain = {name: value.tolist() for name, value in row.items() if hasattr(value, "tolist")}
    assert plain["prompts"] == [1, 2]
    assert plain["responses"] == [5, 6, 7]
    assert plain["input_ids"] == [1, 2, 5, 6, 7]
    assert plain["position_ids"] == [0, 1, 2, 3, 4]
    assert plain["response_mask"] == plain["loss_mask"] == [1, 0, 1]
    assert plain["rollout_log_probs"] == [-0.5, 0.0, -0.5]
    assert plain["rm_scores"] == [0.0, 0.0, 0.5]
    assert (row["session_id"], row["uid"], row["num_turns"]) == (3, "a", 2)
    assert row["extra_fields"]["reward_extra_info"] == {"judge": 0.5}
    sizes = {"prompt_len": 2, "response_len": 3, "seq_len": 5}
    steps = {"global_steps": 4, "min_global_steps": 3, "max_global_steps": 3}
    assert queue.tags["train", "a_3_0"] == {"status": "success", **sizes, **steps}


def test_their_order_is_by_group_as_asked_and_by_content(queue):
    """verl sums in this order, and two deterministic runs must be the same to the last bit."""
    episodes = [finished("a", 0, 9), finished("b", 0, 8), finished("a", 1, 5), finished("b", 1, 7)]
    put(*episodes)
    put(*reversed(episodes))
    assert queue.puts == [["b_1_0", "b_0_0", "a_1_0", "a_0_0"]] * 2
