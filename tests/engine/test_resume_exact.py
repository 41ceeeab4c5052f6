"""A run that was killed while it saved, and resumed, is the run that was not: weights, optimizer,
metrics, episodes.

    python -m pytest tests/engine/test_resume_exact.py -m nightly -k grpo
"""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.messages import missing
from tests.runs import Run

pytestmark = [pytest.mark.engine, pytest.mark.nightly, pytest.mark.timeout(3600)]

COMMAND = (
    *("--ci-fast", "--deterministic", "--resume", "auto", "--keep", "2"),
    *("trainer.total_training_steps=4", "trainer.save_freq=1", "trainer.test_freq=2"),
)
KINDS = {
    "grpo": (),
    "lora": ("--lora", "--lora-rank", "8", "actor_rollout_ref.actor.optim.lr=3e-3"),
}
# Of the machine, not of what it computes; and known-bad answers, which each runner process draws
# for its judge.
MEASURED = ("timing_", "perf/", "judge_seconds", "canaries/")
# The first three are names drawn at random
TIMED = ("rollout_id", "group", "sample", "seconds", "canaries")


def kill_while_saving(run: Run, step: int) -> None:
    """SIGKILL all processes of a run at once, while its checkpoint of that step is half written."""
    run.wait_for(lambda run: len(run.steps()) == step - 1)
    processes, drafts = run.alive(), run.run_dir / "checkpoints"
    while not list(drafts.glob(f".global_step_{step}.*/global_step_{step}/actor")):
        assert run.process.poll() is None, run.output
        time.sleep(0.002)
    for process in processes:
        process.kill()
    run.wait()
    assert not (drafts / f"global_step_{step}").exists(), "it was killed too late"


def metrics(run: Run) -> list[dict[str, Any]]:
    """What each step computed; of times and rates there are no two equal."""
    rows = [{"step": row["step"], **row["data"]} for row in run.lines("metrics.jsonl")]
    for row in rows:
        for name in [name for name in row if any(part in name for part in MEASURED)]:
            del row[name]
    return rows


def episodes(run: Run) -> list[str]:
    """What each episode was, in no order: which of a group's is the first is a matter of chance."""
    rows = run.lines("episodes.jsonl")
    for row in rows:
        del row["counters"]["judge_seconds"]
        for name in TIMED:
            row.pop(name, None)
    lines = [json.dumps(row, sort_keys=True) for row in rows]
    # vLLM draws the ids of calls at random
    return sorted(re.sub(r"chatcmpl-tool-[0-9a-f]+", "id", line) for line in lines)


def checkpoint(run: Run) -> Path:
    return run.run_dir / "checkpoints/global_step_4"


@pytest.fixture(scope="module")
def load():
    """Read a shard: its tensors want a process group of as many devices."""
    import torch

    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield lambda path: torch.load(path, weights_only=False)
    torch.distributed.destroy_process_group()


def leaves(tree: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in dicts, lists and tuples, by its place."""
    if isinstance(tree, dict | list | tuple):
        for name, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from leaves(part, f"{place}/{name}")
    else:
        yield place, tree


def equal(first: Any, second: Any) -> bool:
    """Whether two values are the same to the last bit, tensors and arrays in every element."""
    parts = [part.to_local() if hasattr(part, "to_local") else part for part in (first, second)]
    return bool(
        (parts[0] == parts[1]).all() if hasattr(parts[0], "shape") else parts[0] == parts[1]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_and_the_same_command_again_change_nothing(kind, start, load):
    whole = start(*COMMAND, *KINDS[kind])
    assert whole.wait() == 0, whole.output
    assert "the run begins" in whole.output
    killed = start(*COMMAND, *KINDS[kind])
    kill_while_saving(killed, 3)
    resumed = start(*COMMAND, *KINDS[kind], run_dir=killed.run_dir)
    assert resumed.wait() == 0, resumed.output
    assert not missing(resumed.output, "global_step_3", "resuming from", "global_step_2")
    assert metrics(resumed) == metrics(whole)
    assert episodes(resumed) == episodes(whole)
    saved = checkpoint(whole)
    shards = sorted(path.relative_to(saved) for path in saved.glob("*/*.pt"))
    assert len(shards) == 3
    for name in shards:
        first, second = (dict(leaves(load(checkpoint(run) / name))) for run in (whole, resumed))
        assert first.keys() == second.keys()
        assert all(equal(first[place], second[place]) for place in first), name
    kept = {path.name for path in checkpoint(resumed).parent.glob("global_step_*")}
    assert kept == {"global_step_3", "global_step_4"}
