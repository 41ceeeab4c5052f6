"""The rows that verl is given: their lines untouched, and in which order where agents are mixed."""

from collections import Counter
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from episodes.joint import WEIGHT, WHOSE
from training.engine.dataset import RolloutDataset
from training.engine.mixture import draws

BATCH = 8


def rows(counts: dict[str, int], weights: dict[str, float]) -> list[dict[str, Any]]:
    found = []
    for name, count in counts.items():
        found += [{WHOSE: name, WEIGHT: weights[name]}] * count
    return found


def test_a_batch_holds_each_agent_by_its_weight():
    found = rows({"sql": 60, "diagnosis": 30}, {"sql": 1, "diagnosis": 3})
    names = [found[line][WHOSE] for line in draws(found, seed=1)]
    batches = [Counter(names[at : at + BATCH]) for at in range(0, len(names) - BATCH + 1, BATCH)]
    assert all(batch == {"sql": 2, "diagnosis": 6} for batch in batches)


@given(
    counts=st.dictionaries(st.sampled_from("abcd"), st.integers(1, 40), min_size=1),
    weights=st.tuples(*[st.floats(0.1, 10)] * 4),
)
def test_every_row_is_drawn_before_one_is_drawn_twice(counts, weights):
    found = rows(counts, dict(zip("abcd", weights, strict=True)))
    drawn = Counter(draws(found, seed=3))
    assert set(drawn) == set(range(len(found)))
    for name in counts:
        own = [drawn[line] for line, row in enumerate(found) if row[WHOSE] == name]
        assert max(own) - min(own) <= 1


def test_verl_is_given_the_rows_in_this_order_under_their_own_numbers(tmp_path):
    file = tmp_path / "train.jsonl"
    found = rows({"sql": 4, "code": 2}, {"sql": 1, "code": 2})
    file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in found))
    orders = []
    for seed in (7, 7, 8):
        dataset = RolloutDataset(str(file), config=OmegaConf.create({"seed": seed}))
        orders.append([dataset[at]["index"] for at in range(len(dataset))])
        assert orders[-1] == draws(found, seed)
        assert [dataset[at]["agent"] for at in range(3)].count("code") == 2
    assert orders[0] == orders[1] != orders[2]


def test_lines_travel_as_they_are_and_types_are_read_once(tmp_path):
    file = tmp_path / "train.jsonl"
    lines = ['{"a":  1, "task_type": "x"}', '{"a": "一\u2028二"}', '{"task_type": "y"}']
    file.write_text("\n".join(lines), encoding="utf-8")
    config = OmegaConf.create({"seed": 1})
    dataset = RolloutDataset(str(file), config)
    found = [dataset[place] for place in range(len(dataset))]
    assert [row["task"] for row in found] == lines
    assert [row["data_source"] for row in found] == ["x", "all", "y"]
    assert [row["index"] for row in found] == [0, 1, 2]
    assert len(RolloutDataset(str(file), config, max_samples=2)) == 2
