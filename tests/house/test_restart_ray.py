"""restart_ray.sh starts a head that answers, and stops that one and nothing else."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from common.settings import ROOT
from tests.corpora import cases_of
from tests.programs import Ended, ran

pytestmark = pytest.mark.engine

WORD = "MEDICAL_AGENT_RAY"
TASK = """
import ray
ray.init(log_to_driver=False)
print(ray.get(ray.remote(num_gpus=1)(lambda: 6 * 7).remote(), timeout=60))
"""


class Project:
    """A copy of the script in a folder of its own, with a port and the environment's Ray."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        (folder / "restart_ray.sh").write_bytes((ROOT / "restart_ray.sh").read_bytes())
        sizes = {"RAY_PORT": str(port), "RAY_GPUS": "1", "RAY_CPUS": "4"}
        others = {key: value for key, value in os.environ.items() if not key.startswith("RAY_")}
        self.environment = others | sizes | {"VENV": sys.prefix, "HOME": str(folder)}

    def restart_ray(self, *arguments: str) -> Ended:
        return self.run("bash", "restart_ray.sh", *arguments)

    def run(self, *command: str) -> Ended:
        return ran(*command, cwd=self.folder, env=self.environment)


@pytest.fixture
def project(tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    project = Project(tmp_path, port)
    yield project
    project.restart_ray("stop")


def test_it_starts_answers_and_stops_only_its_own(project):
    stranger = subprocess.Popen(["sleep", "300"], env=os.environ | {WORD: "another-project"})
    try:
        started = project.restart_ray()
        assert started.returncode == 0, started.stderr
        word = (project.folder / "runs/.ray" / os.uname().nodename / "token").read_text().strip()
        answer = project.run("bash", "-c", f"source runs/.ray/env && {sys.executable} -c '{TASK}'")
        assert answer.stdout.strip().endswith("42"), answer.stderr
        assert processes(word)

        stopped = project.restart_ray("stop")
        assert stopped.returncode == 0, stopped.stderr
        assert processes(word) == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize(("arguments", "code", "message"), cases_of(__file__, "wrong_ray_calls"))
def test_a_wrong_call_is_explained(project, arguments, code, message):
    port = project.environment["RAY_PORT"]
    result = project.restart_ray(*(word.format(port=port) for word in arguments))
    assert result.returncode == code
    assert message in result.stderr


def processes(word: str) -> list[str]:
    """Ids of living processes that carry this word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{WORD}={word}\0".encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:
            continue
    return found
