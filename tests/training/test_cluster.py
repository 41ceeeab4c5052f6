"""What a run asks of its nodes is checked before Ray starts, and against the Ray it joined."""

import socket
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf

from episodes.agent import bundled_model
from sql_agent.agent import AGENT
from tests.messages import missing
from tests.training.plans import plan_of
from training.engine import algorithm
from training.engine.algorithm import _start_ray
from training.setup import cluster
from training.setup.cluster import check_nodes_asked
from training.setup.plan import ConfigError, RunStopped


def config_of(nodes: int = 1, gpus: int = 8, tensor: int = 1) -> DictConfig:
    replica = dict.fromkeys(cluster.REPLICA, 1) | {"tensor_model_parallel_size": tensor}
    trainer = {"nnodes": nodes, "n_gpus_per_node": gpus}
    return OmegaConf.create({"trainer": trainer, "actor_rollout_ref": {"rollout": replica}})


@pytest.fixture
def ray_address(monkeypatch):
    """RAY_ADDRESS of something that listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{listening.getsockname()[1]}")
        yield


@pytest.mark.parametrize(("nodes", "gpus", "replica"), [(1, 8, 3), (2, 6, 4)])
def test_replicas_that_do_not_fit(ray_address, nodes, gpus, replica):
    """Of the second case a third replica would lie across the nodes."""
    with pytest.raises(ConfigError) as refused:
        check_nodes_asked(config_of(nodes, gpus, tensor=replica))
    assert not missing(str(refused.value), f"{replica} GPUs", f"{nodes} x {gpus}", "--n-gpus")


def test_several_nodes_need_a_ray(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    check_nodes_asked(config_of(1))
    with pytest.raises(ConfigError) as refused:
        check_nodes_asked(config_of(2))
    assert not missing(str(refused.value), "--n-nodes 2", "./restart_ray.sh --host")


def test_a_ray_that_does_not_answer(monkeypatch):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{held.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(ConfigError) as refused:
            check_nodes_asked(config_of(1))
    assert not missing(str(refused.value), f"RAY_ADDRESS={address}", "./restart_ray.sh")


def test_a_run_does_not_begin_in_a_ray_without_room_for_it(tmp_path, ray_address, monkeypatch):
    """verl would wait for the GPUs for ever."""
    import ray

    kept: list[str] = []
    monkeypatch.setattr(ray, "init", lambda **options: None)
    monkeypatch.setattr(algorithm, "keep_in_ray", kept.append)
    monkeypatch.setattr(cluster, "free_gpus", lambda: [("10.0.0.1", 4)])
    monkeypatch.setattr(cluster, "JOIN_SECONDS", 0)
    plan = plan_of(tmp_path, model=bundled_model(AGENT), store_token="of this run")
    with pytest.raises(RunStopped, match=r"10\.0\.0\.1: 4"):
        _start_ray(plan, config_of(1, 8))
    assert kept == ["of this run"], "without it no worker of another machine is let in"


@pytest.mark.parametrize("joined", [False, True])
def test_ray_is_told_to_keep_strangers_out(joined, tmp_path, monkeypatch):
    """What a run's ports then answer is asked by tests/engine/test_ports.py, nightly."""
    told: dict[str, Any] = {}
    monkeypatch.setattr("ray.init", lambda **options: told.update(options))
    monkeypatch.setattr(algorithm, "check_nodes_found", lambda *_: None)
    monkeypatch.setattr(algorithm, "keep_in_ray", lambda token: None)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if joined:
        monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    config = config_of(1, 1)
    OmegaConf.update(config, "ray_kwargs.ray_init", {"num_cpus": 32}, force_add=True)
    _start_ray(plan_of(tmp_path, store_token="secret"), config)
    assert told["runtime_env"]["worker_process_setup_hook"] == "training.proxy.doors.guard_sockets"
    assert told.get("_node_ip_address") == (None if joined else "127.0.0.1")
    assert "secret" not in str(told), "what stands here is shown on command lines"
