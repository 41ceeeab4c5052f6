"""The parts of `bench.rollouts` that need no engine: they measure the product's own classes."""

import asyncio

import pytest

from bench.rollout_sides.fixed_latency import TASK, bare_loop, manager, play
from bench.rollout_sides.side_processes import llm, stores_with_runners

pytestmark = pytest.mark.system

CALLS = 3


@pytest.mark.nightly
def test_the_path_around_the_model_collects_whole_episodes(tmp_path):
    with llm(0.0, CALLS) as server, stores_with_runners((1, 4, CALLS)) as (address,):
        side = manager(address, tmp_path, server, CALLS, 4)
        seconds, finished = play(side, [TASK])
        assert asyncio.run(bare_loop(server, 4, CALLS, 4)) > 0
        side.close()
    assert seconds > 0
    assert len(finished) == 4
    assert all(record.sequences == len(one.sequences) == 1 for record, one in finished)
