"""The extension of vLLM's worker on a machine without an accelerator; vLLM and verl stand in, since
importing them takes half a minute.

Keeps of bench/faults.md that no process outlives a killed run, and of docs/architecture.md that vLLM
plays with the weights that are trained.
"""

from __future__ import annotations

import json
import subprocess
import sys

import psutil
import pytest

from common.settings import ROOT

pytestmark = pytest.mark.system
SERVER = """
import json, multiprocessing, sys, time
from types import ModuleType

names = ["vllm", "vllm.model_executor", "vllm.model_executor.layers", "verl", "verl.workers"]
names += ["verl.workers.rollout", "verl.workers.rollout.vllm_rollout"]
names += ["vllm.v1", "vllm.v1.sample", "vllm.v1.sample.ops"]
layers = ModuleType("vllm.model_executor.layers.utils")
layers.dispatch_cpu_unquantized_gemm = lambda layer, remove_weight: [layer, remove_weight]
base = ModuleType("verl.workers.rollout.vllm_rollout.utils")
base.vLLMColocateWorkerExtension = type("Base", (), {})
sampler = ModuleType("vllm.v1.sample.ops.topk_topp_sampler")
sampler.TopKTopPSampler = type("TopKTopPSampler", (), {})
for module in [*map(ModuleType, names), layers, base, sampler]:
    sys.modules[module.__name__] = module
    parent, _, name = module.__name__.rpartition(".")
    if parent:
        setattr(sys.modules[parent], name, module)

def work():
    from training.cpu.plain_weights import CpuWorkerExtension
    CpuWorkerExtension()
    packed = layers.dispatch_cpu_unquantized_gemm("linear", True)
    print(json.dumps([multiprocessing.current_process().pid, packed]), flush=True)
    time.sleep(600)

worker = multiprocessing.get_context("fork").Process(target=work)
worker.start()
worker.join()
"""


def test_plain_weights_stay_and_a_worker_ends_with_its_killed_server() -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert server.stdout
    number, packed = json.loads(server.stdout.readline())
    worker = psutil.Process(number)
    assert packed == ["linear", False]
    server.kill()
    server.wait()
    _, alive = psutil.wait_procs([worker], timeout=60)
    for one in alive:
        one.kill()
    assert not alive
