"""What a run asks of its nodes is checked before Ray starts, and against the Ray it joined;
docs/gpu.md.
"""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from omegaconf import DictConfig, OmegaConf

from sql_agent.agent import AGENT
from training.engine import algorithm
from training.engine.algorithm import _init_ray, _start_ray, _stop_ray, memory_was_full
from training.setup import cluster
from training.setup.arguments import parse
from training.setup.cluster import (
    check_nodes_asked,
    check_nodes_found,
    check_none_lost,
    check_room,
    living_nodes,
    pools,
)
from training.setup.model_folder import check_model
from training.setup.plan import ConfigError, Plan, RunStopped
from training.setup.presets import choose


def config_of(
    nodes: int = 1, gpus: int = 8, mode: str = "sync", tensor: int = 1, **rollout: int
) -> DictConfig:
    replica = {
        "tensor_model_parallel_size": tensor,
        "data_parallel_size": 1,
        "pipeline_model_parallel_size": 1,
    }
    trainer = {"nnodes": nodes, "n_gpus_per_node": gpus, "v1": {"trainer_mode": mode}}
    return OmegaConf.create(
        {"trainer": trainer, "actor_rollout_ref": {"rollout": {**replica, **rollout}}}
    )


@pytest.fixture
def ray_address(monkeypatch: pytest.MonkeyPatch):
    """RAY_ADDRESS of something that listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{listening.getsockname()[1]}")
        yield


@pytest.mark.parametrize(
    "sizes", [(1, 8, 1), (1, 8, 8), (2, 8, 4), (2, 8, 8), (2, 8, 16), (4, 8, 16), (2, 1, 2)]
)
def test_replicas_that_share_out_nodes(ray_address: None, sizes: tuple[int, int, int]) -> None:
    nodes, gpus, tensor = sizes
    check_nodes_asked(config_of(nodes, gpus, tensor=tensor))


@pytest.mark.parametrize(
    ("nodes", "gpus", "sizes", "replica"),
    [
        (1, 8, {"tensor": 3}, 3),
        (1, 1, {"tensor": 2}, 2),
        (1, 8, {"tensor": 4, "pipeline_model_parallel_size": 4}, 16),
        (2, 6, {"tensor": 4}, 4),  # a third replica would lie across the nodes
        (3, 4, {"tensor": 6}, 6),
    ],
)
def test_replicas_that_do_not(
    ray_address: None, nodes: int, gpus: int, sizes: dict[str, int], replica: int
) -> None:
    with pytest.raises(
        ConfigError, match=rf"= {replica} GPUs .*, which do not divide {nodes} x {gpus} "
    ):
        check_nodes_asked(config_of(nodes, gpus, **sizes))


def test_rollouts_with_gpus_of_their_own(ray_address: None) -> None:
    config = config_of(2, 8, "separate_async", tensor=2, nnodes=1, n_gpus_per_node=4)
    assert pools(config) == [(2, 8), (1, 4)]
    check_nodes_asked(config)
    config.actor_rollout_ref.rollout.tensor_model_parallel_size = (
        8  # fits the trainer's, not theirs
    )
    with pytest.raises(ConfigError, match="do not divide 1 x 4"):
        check_nodes_asked(config)


def test_several_nodes_need_a_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    check_nodes_asked(config_of(1))
    with pytest.raises(
        ConfigError, match=r"--n-nodes 2 needs a Ray that has them: ./restart_ray.sh --host"
    ):
        check_nodes_asked(config_of(2))


def test_a_ray_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ConfigError, match=f"no Ray answers on RAY_ADDRESS={address}"):
        check_nodes_asked(config_of(1))


@pytest.mark.parametrize(
    ("asked", "free"),
    [
        ([(1, 1)], [("a", 1)]),
        ([(2, 8)], [("a", 8), ("b", 0), ("c", 8)]),
        ([(2, 1)], [("a", 2)]),  # Ray may put both on one machine
        ([(2, 8), (1, 4)], [("a", 8), ("b", 8), ("c", 4)]),
    ],
)
def test_room(asked: list[tuple[int, int]], free: list[tuple[str, int]]) -> None:
    check_room(asked, free)


@pytest.mark.parametrize(
    ("asked", "free", "message"),
    [
        (
            [(1, 2)],
            [("a", 1), ("b", 1)],
            "wants 1 x 2 GPUs .*; free in this Ray are a: 1, b: 1. Add nodes",
        ),
        ([(2, 8)], [("b", 8), ("a", 7)], "wants 2 x 8 GPUs .* a: 7, b: 8"),
        ([(1, 4), (1, 4)], [("a", 4)], "wants 1 x 4 and 1 x 4 GPUs"),
        ([(1, 1)], [], "are none"),
    ],
)
def test_too_little_room(
    asked: list[tuple[int, int]], free: list[tuple[str, int]], message: str
) -> None:
    """verl asks Ray for it and waits for ever."""
    with pytest.raises(RunStopped, match=message):
        check_room(asked, free)


def test_heads_are_dealt_evenly() -> None:
    folder = str(Path(AGENT.model))
    check_model(folder, split=2)
    with pytest.raises(
        ConfigError, match=r"the \d+ attention heads of .* cannot be dealt to 3 GPUs"
    ):
        check_model(folder, split=3)


def test_flags_are_verls() -> None:
    options = parse(AGENT, ["--n-gpus", "8", "--n-nodes", "2"])
    told = choose(AGENT, "full", "cuda", options.n_gpus, options.n_nodes)
    assert (told["trainer.n_gpus_per_node"], told["trainer.nnodes"]) == (8, 2)


@pytest.mark.parametrize(
    ("nodes", "gpus", "batch"), [(1, 1, 16), (1, 2, 32), (1, 8, 128), (2, 8, 256), (1, 6, 64)]
)
def test_a_preset_for_these_gpus(nodes: int, gpus: int, batch: int) -> None:
    told = choose(AGENT, "full", "cuda", gpus, nodes)
    offloads = told["actor_rollout_ref.actor.fsdp_config.param_offload"]
    assert (told["data.train_batch_size"], offloads) == (batch, nodes * gpus < 8)


def test_a_machine_that_is_lost_is_named_with_the_command_that_brings_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    before = {"a": "10.0.0.1", "b": "10.0.0.2"}
    with pytest.raises(RunStopped) as found:
        check_none_lost(before, "vLLM does not answer", lambda: {"a": "10.0.0.1"})
    said = str(found.value)
    assert said.startswith("lost from the Ray of this run: 10.0.0.2 (vLLM does not answer)")
    assert "./restart_ray.sh --address 10.0.0.1:6379" in said
    assert "--resume auto" in said
    check_none_lost(before, "a fault of another kind", lambda: before, wait=0.0)
    seen = iter([before, {"a": "10.0.0.1"}, {"a": "10.0.0.1"}])  # Ray notices a while later
    with pytest.raises(RunStopped, match="of this run: 10"):
        check_none_lost(before, "why", lambda: next(seen), wait=30.0)


def test_a_machine_that_ray_calls_dead_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [
        {"NodeID": name, "NodeManagerAddress": f"10.0.0.{number}", "Alive": name == "living"}
        for number, name in enumerate(("living", "dead"))
    ]
    monkeypatch.setattr("ray.nodes", lambda: nodes)
    assert living_nodes() == {"living": "10.0.0.0"}


def two_machines(monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    """A Ray of two machines with a GPU each; unless they share a disk, the second sees no files of
    the first.
    """
    import ray

    nodes = [
        {"NodeID": f"{number:056x}", "NodeManagerAddress": f"10.0.0.{number}", "Alive": True}
        for number in (1, 2)
    ]
    free = {node["NodeID"]: {"GPU": 1.0} for node in nodes}

    def played(task: Callable[[], object], place: Any) -> object:
        with monkeypatch.context() as there:
            if place.node_id == nodes[1]["NodeID"] and not shared:
                there.setattr(os.path, "exists", lambda path: False)
            return task()

    def remote(task: Callable[[], object]) -> SimpleNamespace:
        return SimpleNamespace(
            options=lambda scheduling_strategy: SimpleNamespace(
                remote=lambda: played(task, scheduling_strategy)
            )
        )

    monkeypatch.setattr(ray, "nodes", lambda: nodes)
    monkeypatch.setattr(ray._private.state, "available_resources_per_node", lambda: free)
    monkeypatch.setattr(ray, "remote", lambda **needs: remote)
    monkeypatch.setattr(ray, "get", list)


def test_a_machine_that_does_not_see_the_run_s_files_is_named_before_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its part of each checkpoint would be missing."""
    (tmp_path / "config.yaml").write_text("{}")
    model = tmp_path / "model"
    model.mkdir()
    run = Plan(tmp_path, "cuda", str(model), 3, "", 1.0, 96, 60.0)
    two_machines(monkeypatch, shared=True)
    check_nodes_found(config_of(2, 1), run)
    two_machines(monkeypatch, shared=False)
    lacking = f"the node 10.0.0.2 does not see {tmp_path / 'config.yaml'}, {model}; all nodes"
    with pytest.raises(RunStopped, match=lacking):
        check_nodes_found(config_of(2, 1), run)


def test_a_ray_that_does_not_start_in_time_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Ray's own words, which it says after 30 s on a machine that is too busy."""
    import ray

    def fail(**options: object) -> None:
        raise RuntimeError(str(options["said"]))

    monkeypatch.setattr(ray, "init", fail)
    with pytest.raises(RunStopped, match=r"did not start in its time .*end other programs"):
        _init_ray(said="The current node timed out during startup. This could happen because ...")
    with pytest.raises(RuntimeError, match="another fault"):
        _init_ray(said="another fault")


def test_a_run_does_not_begin_in_a_ray_without_room_for_it(
    tmp_path: Path, ray_address: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """verl would wait for the GPUs for ever."""
    import ray

    kept: list[str] = []
    monkeypatch.setattr(ray, "init", lambda **options: None)
    monkeypatch.setattr(algorithm, "keep_in_ray", kept.append)
    monkeypatch.setattr(cluster, "_free_gpus", lambda: ({"a": "10.0.0.1"}, {"a": 4}))
    monkeypatch.setattr(cluster, "JOIN_SECONDS", 0)
    plan = Plan(tmp_path, "cpu", AGENT.model, 3, "", 1.0, 96, 60.0, token="of this run")
    with pytest.raises(RunStopped, match=r"free in this Ray are .*: 4"):
        _start_ray(plan, config_of(1, 8))
    assert kept == ["of this run"], "without it no worker of another machine is let in"


@pytest.mark.parametrize("joined", [False, True])
def test_of_a_ray_of_its_own_a_run_keeps_the_workers_logs_and_leaves_no_process(
    joined: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a cluster are of others, too."""
    import ray
    from ray._private import worker

    session, run_dir = tmp_path / "session", tmp_path / "run"
    for folder in (session, run_dir):
        folder.mkdir()
    for name, text in (("worker-1.out", "said"), ("worker-2.err", ""), ("raylet.out", "said")):
        (session / name).write_text(text)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if joined:
        monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    node = SimpleNamespace(get_logs_dir_path=lambda: str(session))
    monkeypatch.setattr(worker, "global_worker", SimpleNamespace(node=node))
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    ending, hanging = psutil.Popen(["sleep", "20"]), psutil.Popen(["sleep", "20"])
    monkeypatch.setattr(ray, "shutdown", lambda: (ending.terminate(), ending.wait()))
    monkeypatch.setattr(algorithm, "_ray_processes", lambda: [ending, hanging])
    monkeypatch.setattr(algorithm, "END_SECONDS", 0.1)
    _stop_ray(Plan(run_dir, "cpu", "m", 3, "", 1.0, 96, 60.0))
    assert (ending.wait(), hanging.wait()) == (-signal.SIGTERM, -signal.SIGKILL)
    kept = [path.name for path in run_dir.rglob("*") if path.is_file()]
    assert kept == ([] if joined else ["worker-1.out"])


def test_a_worker_that_ray_ended_for_memory_is_one_line_with_what_to_do() -> None:
    """Ray's own words are a page with a table of processes."""
    said = memory_was_full(
        "3 worker(s) were killed due to the node running low on memory. Memory on the node (IP: "
        "127.0.0.1, ID: 02) was 22.18GB used / 23.54GB limit (0.94)\nOOM kill reason: ..."
    )
    assert said.startswith("a machine's memory was full (22.18GB used / 23.54GB limit)")
    assert "--resume auto" in said
    assert "\n" not in said
    assert "another form" in memory_was_full("another form\nof it")
