"""Two machines train one model: Ray nodes in network namespaces of their own, with addresses of
their own.

Keeps of docs/gpu.md. Needs root (`ip netns`); takes about ten minutes and 14 GiB:

    python -m pytest tests/engine/test_cluster.py -m nightly
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.engine.test_resume_exact import episodes, metrics
from tests.runs import LIMIT_SECONDS, ROOT, Run, listens

pytestmark = [pytest.mark.engine, pytest.mark.nightly, pytest.mark.timeout(3600)]
if os.geteuid() != 0 or not shutil.which("ip"):
    pytest.skip("network namespaces need root and iproute2", allow_module_level=True)

COMMAND = (
    "--ci-fast",
    "--deterministic",
    "--resume",
    "auto",
    "trainer.save_freq=1",
    "trainer.test_freq=-1",
)
STORE, TOKEN = "http://10.99.0.1:4747", "token-of-the-nodes"
BETAS = 0.9, 0.999  # AdamW's


class Node:
    """A machine with a loopback interface, one address, and a copy of the script beside a home of
    its own.
    """

    def __init__(self, name: str, address: str, folder: Path, home: Path) -> None:
        self.name, self.address, self.folder = name, address, folder
        self.environment = {
            "VENV": sys.prefix,
            "HOME": str(home),
            "RAY_GPUS": "1",
            "RAY_CPUS": "32",
            "RAY_WAIT": "300",
        }
        folder.mkdir()
        shutil.copy(ROOT / "restart_ray.sh", folder)

    @property
    def within(self) -> tuple[str, ...]:
        return ("ip", "netns", "exec", self.name)

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        variables = os.environ | self.environment | environment
        told = {
            "cwd": self.folder,
            "env": variables,
            "capture_output": True,
            "text": True,
            "check": False,
        }
        return subprocess.run([*self.within, *command], timeout=600, **told)  # type: ignore[call-overload]

    def restart_ray(self, *arguments: str) -> None:
        ended = self.run("bash", "restart_ray.sh", *arguments)
        assert ended.returncode == 0, ended.stderr

    def processes(self, name: str = "") -> list[psutil.Process]:
        """What runs on this machine and is called so."""
        found = subprocess.run(
            ["ip", "netns", "pids", self.name], capture_output=True, text=True, check=True
        )
        living = [
            psutil.Process(int(number))
            for number in found.stdout.split()
            if psutil.pid_exists(int(number))
        ]
        return [process for process in living if name in " ".join(process.cmdline())]

    def kill(self) -> None:
        for process in self.processes():
            process.kill()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    """Two machines on a wire of their own; on the first a Ray head that the second has joined."""
    base, mark = tmp_path_factory.mktemp("nodes"), uuid.uuid4().hex[:6]
    names = [f"agl{mark}{letter}" for letter in "ab"]
    ip("link", "add", names[0], "type", "veth", "peer", "name", names[1])
    pair = [Node(name, f"10.99.0.{at}", base / name, base) for at, name in enumerate(names, 1)]
    try:
        for node in pair:
            ip("netns", "add", node.name)
            ip("link", "set", node.name, "netns", node.name)
            ip("-n", node.name, "addr", "add", f"{node.address}/24", "dev", node.name)
            for device in ("lo", node.name):
                ip("-n", node.name, "link", "set", device, "up")
        pair[0].restart_ray("--host", pair[0].address)
        pair[1].restart_ray("--address", f"{pair[0].address}:6379")
        yield pair[0], pair[1]
    finally:
        for node in pair:
            node.kill()
            ip("netns", "del", node.name)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def until(seen: Callable[[], object], seconds: float) -> None:
    end = time.time() + seconds
    while not seen():
        assert time.time() < end, f"not seen after {seconds} s"
        time.sleep(1)


@pytest.fixture(scope="module")
def alone(start: Callable[..., Run]) -> tuple[Run, set[str]]:
    """One step by one worker on one machine; and the addresses its processes listened on."""
    run = start(*COMMAND)
    run.wait_for(lambda run: "engine_ready" in run.text("timeline.json"))
    listening = {ip for process in run.alive() for ip in listens(process)}
    assert run.wait() == 0, run.output
    return run, listening


@pytest.fixture
def one(alone: tuple[Run, set[str]]) -> Run:
    return alone[0]


@dataclass
class Spread:
    """A run on both machines, of which the second was lost after two steps, and the same run
    resumed.

    Seen before: `status` of the store, and the names of the machines with a vLLM or a worker that
    `trains`, one each. `seconds` went by until the run ended.
    """

    lost: Run
    resumed: Run
    seconds: float
    status: str
    trains: list[str]


@pytest.fixture(scope="module")
def two(start: Callable[..., Run], nodes: tuple[Node, Node]) -> Spread:
    first, second = nodes
    run = start_on(first, start, 3)
    until(
        lambda: second.run("bash", "-c", "exec 3<>/dev/tcp/10.99.0.1/4747").returncode == 0,
        LIMIT_SECONDS,
    )
    play_on(second, start)
    run.wait_for(lambda run: len(run.steps()) == 2)
    asked = (sys.executable, "-m", "training.store", "status", STORE)
    status = second.run(*asked, AGL_TOKEN=TOKEN, PYTHONPATH=str(ROOT)).stdout
    works = ("VLLM::EngineCore", "ray::WorkerDict")
    trains = [node.name for node in nodes for name in works for _ in node.processes(name)]
    second.kill()
    killed = time.time()
    assert run.wait() == 1, run.output
    seconds = time.time() - killed
    assert run.alive() == []
    until(lambda: not first.processes("VLLM") and not first.processes("ray::WorkerDict"), 60)
    second.restart_ray("--address", "10.99.0.1:6379")
    resumed = start_on(first, start, 4, run_dir=run.run_dir)
    assert resumed.wait() == 0, resumed.output
    return Spread(run, resumed, seconds, status, trains)


def start_on(node: Node, start: Callable[..., Run], steps: int, **told: Any) -> Run:
    """Store, proxy, trainer and two runners on the head's machine."""
    variables = node.environment | {
        "RAY_ADDRESS": f"{node.address}:6379",
        "RAY_AUTH_MODE": "token",
        "AGL_TOKEN": TOKEN,
    }
    told |= {
        "AGL_SERVER_HOST": node.address,
        "LLM_PROXY_HOST": node.address,
        "AGL_SERVER_PORT": "4747",
    }
    flags = ("--n-nodes", "2", "--n-runners", "2", f"trainer.total_training_steps={steps}")
    return start(*COMMAND, *flags, within=node.within, **variables, **told)


def play_on(node: Node, start: Callable[..., Run]) -> Run:
    told = {"AGL_CURRENT_ROLE": "runner", "AGL_MANAGED_STORE": "0", "AGL_TOKEN": TOKEN}
    flags = ("--ci-fast", "--n-runners", "1", "--external-store-address", STORE)
    return start(*flags, within=node.within, **node.environment, **told)


@pytest.fixture(scope="module")
def gradients() -> Callable[[Run, int], list[Any]]:
    """The first update's gradients, which AdamW's first moments are; tensors as the model has them,
    put together from the devices' rows.
    """
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())

    def read(run: Run, devices: int) -> list[Any]:
        folder = run.run_dir / "checkpoints/global_step_1/actor"
        files = [folder / f"optim_world_size_{devices}_rank_{rank}.pt" for rank in range(devices)]
        states = [torch.load(file, weights_only=False)["state"] for file in files]
        rows = [[state[name]["exp_avg"].to_local() for state in states] for name in states[0]]
        return [torch.cat(parts) / (1 - BETAS[0]) for parts in rows]

    return read


def test_the_gradients_are_those_of_one_worker(
    one: Run, two: Spread, gradients: Callable[[Run, int], list[Any]]
) -> None:
    import torch
    from safetensors.torch import load_file

    assert [row for row in episodes(two.resumed) if '"step": 1,' in row] == episodes(one)
    norms = [metrics(run)[0]["actor/grad_norm"] for run in (one, two.resumed)]
    whole, shared = (
        torch.cat([part.flatten() for part in gradients(*run)])
        for run in ((one, 1), (two.resumed, 2))
    )
    weights = [
        torch.cat([tensor.flatten() for _, tensor in sorted(load_file(file).items())])
        for run in (one, two.resumed)
        for file in (run.run_dir / "checkpoints/global_step_1/actor/huggingface").glob(
            "*.safetensors"
        )
    ]
    apart = float((whole - shared).norm() / whole.norm())
    moved = (weights[0] - weights[1]).abs()
    print(
        f"norms {norms}, gradients apart {apart:.1e}, weights apart {moved.max():.1e}, mean {moved.mean():.1e}"
    )
    assert norms[0] > 0
    assert norms[1] == pytest.approx(norms[0], rel=1e-5)
    assert apart < 1e-5  # sums in another order: 5e-7 was seen
    assert (
        float(moved.mean()) < 1e-8
    )  # 2e-10; where a gradient is next to nothing, AdamW takes its sign alone


def test_on_one_machine_everything_listens_on_the_loopback_address(
    alone: tuple[Run, set[str]],
) -> None:
    assert alone[1] == {"127.0.0.1", "::ffff:127.0.0.1"}


def test_both_machines_train_serve_and_play(nodes: tuple[Node, Node], two: Spread) -> None:
    assert two.trains == [node.name for node in nodes for _ in range(2)]
    assert "runners   3" in two.status, two.status
    assert two.status.count("heard") == 3


def test_a_machine_is_lost_and_the_run_goes_on_when_it_is_back(two: Spread) -> None:
    assert json.loads(two.lost.text("summary.1.json"))["exit_reason"] == "failed"
    assert two.seconds < 60, two.lost.output
    assert "resuming from" in two.resumed.output
    assert [row["step"] for row in two.resumed.lines("metrics.jsonl")] == [1, 2, 3, 4]
    summary = two.resumed.summary()
    assert summary["generated_tokens"] == summary["trained_tokens"] > 0
    assert two.resumed.alive() == []
