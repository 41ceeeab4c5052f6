"""Workers that are forks of one process: their ids are their own, and one outlives another."""

import os

import pytest

from tests.programs import python
from training.cpu.fork_server import JOB, JOB_VARIABLE
from training.setup.device import environment

RUN = """
import os
import shlex
import subprocess
import sys
import time

import ray
from training.cpu.fork_server import CLIENT, PARENT_VARIABLE

address = sys.argv[1]
command = [sys.executable, "-m", "training.cpu.fork_server", address, str(os.getpid())]
variables = os.environ | {PARENT_VARIABLE: str(os.getpid())}
server = subprocess.Popen(command, env=variables, start_new_session=True)
while not os.path.exists(address):
    time.sleep(0.05)
ray.init(
    address="local",
    _node_ip_address="127.0.0.1",
    include_dashboard=False,
    num_cpus=2,
    runtime_env={"py_executable": shlex.join([sys.executable, "-I", "-S", str(CLIENT), address])},
)


@ray.remote(num_cpus=0)
class Worker:
    def process(self):
        return os.getpid(), os.getppid()


ended, other = Worker.remote(), Worker.remote()
process, parent = ray.get(other.process.remote())
assert ray.get(ended.process.remote())[1] == parent == server.pid, "no forks"
ray.kill(ended)
time.sleep(2)  # Ray cleans up 0.2 s later
print("answers:", ray.get(other.process.remote())[0] == process)
ray.shutdown()
server.kill()
"""


@pytest.mark.engine
def test_a_worker_outlives_another(tmp_path):
    job = {JOB_VARIABLE: JOB, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    done = python("-c", RUN, tmp_path / "socket", env=os.environ | environment("cpu") | job)
    assert "answers: True" in done.stdout, done.stderr


DRAW = """
import os
from training.cpu import fork_server

fork_server.import_engine(os.getppid())
import ray

for _ in range(3):
    if not os.fork():
        print(ray.ObjectRef.from_random().hex(), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.engine
def test_forks_draw_object_ids_of_their_own():
    """Ray's generator would be theirs in one state: two workers that start at once would end."""
    done = python("-c", DRAW, env=os.environ | environment("cpu"))
    ids = done.stdout.split()
    assert len(ids) == len(set(ids)) == 3, done.stderr
