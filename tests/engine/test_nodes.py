"""Every node of a run's Ray must see the run's folder and the model, or the run does not begin;
docs/gpu.md.

Two nodes on this machine: they see the same files, so what is missing is missing on each.
"""

import subprocess
import sys

import pytest

from common.settings import ROOT
from tests.messages import missing

pytestmark = pytest.mark.engine

SCRIPT = """
import sys
from pathlib import Path
import ray
from omegaconf import OmegaConf
from ray.cluster_utils import Cluster
from training.setup.cluster import check_nodes_found, shared_files
from training.setup.plan import RunStopped

def tried(run_dir, model):
    try:
        check_nodes_found(config, shared_files(Path(run_dir), model))
    except RunStopped as stopped:
        return str(stopped)
    return "all see it"

folder, model = sys.argv[1:]
config = OmegaConf.create({"trainer": {
    "nnodes": 2, "n_gpus_per_node": 1, "v1": {"trainer_mode": "sync"}}})
machine = {"num_cpus": 3, "num_gpus": 1}  # verl reserves 3 processors beside a GPU
cluster = Cluster(initialize_head=True, head_node_args=machine | {"include_dashboard": False})
cluster.add_node(**machine)
ray.init(address=cluster.address, log_to_driver=False)
cluster.wait_for_nodes()
print("complete:", tried(folder, model))
print("another folder:", tried(folder + "/none", model))
print("a name of the hub:", tried(folder, "owner/model"))
ray.shutdown()
cluster.shutdown()
"""


def test_a_node_that_does_not_see_the_files_is_named(tmp_path):
    (tmp_path / "config.yaml").write_text("{}")
    (tmp_path / "model").mkdir()
    told = [sys.executable, "-c", SCRIPT, str(tmp_path), str(tmp_path / "model")]
    ended = subprocess.run(told, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stderr
    said = dict(line.split(": ", 1) for line in ended.stdout.splitlines() if ": " in line)
    assert said["complete"] == said["a name of the hub"] == "all see it"
    assert not missing(said["another folder"], "node", tmp_path / "none/config.yaml")
