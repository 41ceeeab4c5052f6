"""vLLM's servers that start beside the trainer's workers; Ray and verl stand in, since importing
them takes half a minute.

Keeps of docs/architecture.md that verl finds its own servers, each on the devices of its rank.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from omegaconf import OmegaConf

from common.access import TOKEN
from training.setup.plan import Plan

MODULE = "training.cpu.early_servers"
ACTOR = "training.engine.actor"
VLLM = "verl.workers.rollout.vllm_rollout.vllm_async_server"


class Replica:
    """Asks its workers as verl's does, and takes their answers for its servers."""

    rollout_mode: Any
    workers: list[Any]
    _server_handle = _server_address = None

    def __init__(self, rank: int, *_: Any) -> None:
        self.replica_rank = rank
        self.servers: list[Any] = []

    async def launch_servers(self) -> None:
        self.servers = [await worker.__ray_call__.remote(id) for worker in self.workers]
        self._server_address = f"server-{self.replica_rank}"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Where verl looks for a kind of replica."""
    found: dict[str, Any] = {}
    context = SimpleNamespace(get_node_id=lambda: "node")
    replica = {
        "RolloutMode": SimpleNamespace(HYBRID="hybrid"),
        "RolloutReplicaRegistry": SimpleNamespace(register=found.__setitem__),
    }
    stand_ins = {
        "ray": {"get_runtime_context": lambda: context},
        "verl.workers.rollout.replica": replica,
        VLLM: {"vLLMReplica": Replica},
    }
    for name, content in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield found
    sys.modules.pop(MODULE, None)


def test_verl_finds_the_servers_that_have_begun_each_on_its_own_devices(
    registered: dict[str, Any],
) -> None:
    rollout = {"tensor_model_parallel_size": 2, "n_gpus_per_node": 4}
    config = OmegaConf.create(
        {"trainer": {"n_gpus_per_node": 4}, "actor_rollout_ref": {"rollout": rollout, "model": {}}}
    )
    with ThreadPoolExecutor() as pool:
        importlib.import_module(MODULE).begin(config, pool)
        replicas = [registered["vllm"]()(rank) for rank in (1, 0)]
        for replica in replicas:
            asyncio.run(replica.launch_servers())
    assert [replica.servers for replica in replicas] == [
        [("node", "2"), ("node", "3")],
        [("node", "0"), ("node", "1")],
    ]
    assert [replica._server_address for replica in replicas] == ["server-1", "server-0"]


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the training actor begins, in this order."""
    found: list[str] = []
    queue: dict[str, Any] = {}
    stand_ins = {
        "ray": {"remote": lambda kind: kind},
        "transfer_queue": {"init": queue.update},
        MODULE: {"begin": lambda *_: found.append("servers")},
        "training.engine.trainer": {
            "train": lambda *_: found.append("trainer" if queue else "trainer without a queue")
        },
    }
    for name, content in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**content))
    monkeypatch.delitem(sys.modules, ACTOR, raising=False)
    monkeypatch.setenv(TOKEN, "token")
    yield found
    sys.modules.pop(ACTOR, None)


@pytest.mark.parametrize(
    ("device", "nodes", "early"), [("cpu", 1, True), ("cpu", 2, False), ("cuda", 1, False)]
)
def test_servers_begin_before_the_trainer_on_one_machine_without_accelerators_only(
    device: str, nodes: int, early: bool, begun: list[str], tmp_path: Path
) -> None:
    """The servers of other machines would be missing, and on a GPU both share its memory."""
    plan = Plan(tmp_path, device, "m", 3, "", 1.0, 96, 60.0)
    config = OmegaConf.create({"trainer": {"nnodes": nodes}, "transfer_queue": {"enable": True}})
    importlib.import_module(ACTOR).TrainingActor().run(config, plan)
    assert begun == (["servers", "trainer"] if early else ["trainer"])
